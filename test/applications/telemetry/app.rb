# What the gem vm_trace records of OpenTelemetry, GraphQL and Active Job 7.1, without Rails. Prints what the tracing system has.
require "bundler/setup"
require "active_job"
require "graphql"
require "json"
require "opentelemetry/sdk"
require "vm_trace"

exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
OpenTelemetry::SDK.configure do |config|
  config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
end
TRACER = OpenTelemetry.tracer_provider.tracer("test")

class Query < GraphQL::Schema::Object
  field :note, String do
    argument :id, Integer
  end
  def note(id:) = id == 7 ? raise(ArgumentError, "broken on purpose") : "note #{id}"
end
class Schema < GraphQL::Schema
  query Query
  trace_with VmTrace::GraphQLTrace
end

class Count < ActiveJob::Base
  self.queue_adapter = :inline
  self.logger = nil
  def perform(words) = words.empty? ? raise(ArgumentError, "broken on purpose") : words.size
end

# A subscriber that is there before: what goes wrong in ours must not reach it, nor the program.
seen = []
ActiveSupport::Notifications.subscribe("perform.active_job") { |event| seen << event.payload[:job].class.name }
VmTrace::Notifications.subscribe
VmTrace::Notifications.subscribe(%i[jobs cache])
VmTrace.start(markers: true, exits: false, file: "traces/%p.fxt")

answers = []
endpoint = lambda do |env|
  answers << Schema.execute("query Show($id: Int!) { note(id: $id) }", variables: { "id" => 3 }).to_h
  answers << (Schema.execute("{ note(id: 7) }") rescue $!.message)
  Count.perform_later(%w[s3cret])
  answers << (Count.perform_now([]) rescue $!.message)
  ActiveSupport::Cache::MemoryStore.new.fetch("s3cret") { 1 }
  [200, {}, []]
end
app = VmTrace::SlowRequests.new(endpoint, folder: "slow", ms: -1, record: { memory: 4, markers: true })
inside = VmTrace::Requests.new(endpoint)

# OpenTelemetry's middleware stands before ours.
TRACER.in_span("GET /") { inside.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/s3cret" }) }
inside.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/s3cret" }) # without a span

# Sidekiq runs a job of its own, and one of Active Job, which already has a span.
require "vm_trace/sidekiq"
VmTrace::SidekiqJobs.new.call(nil, { "class" => "Plain", "jid" => "1", "args" => ["s3cret"] }, "low") { answers << "plain" }
VmTrace::SidekiqJobs.new.call(nil, { "class" => "Wrapper", "wrapped" => "Count", "jid" => "2" }, "low") { Count.perform_now(%w[a]) }

# One of our subscribers breaks.
broken = Class.new(Hash) { def [](key) = key == :store ? raise("s3cret") : super }
ActiveSupport::Notifications.instrument("cache_read.active_support", broken.new.update(key: "k")) { answers << "read" }
RubyVM::Trace.stop

Dir.mkdir("slow")
TRACER.in_span("slow") { app.call({ "REQUEST_METHOD" => "GET" }) }
sleep 0.01 until Dir["slow/*.fxt"].any?
puts JSON.generate(answers: answers, seen: seen, slow: Dir.children("slow"),
                   spans: exporter.finished_spans.map { |span| [span.name, span.hex_trace_id, span.hex_span_id] })
