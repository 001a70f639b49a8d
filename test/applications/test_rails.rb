# Rails on Puma: threads, workers, jobs of Solid Queue in processes of their own, restarts, and a trace from outside.
# Level: all. Minutes.
require_relative "helper"

class TestRails < Applications::Test
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  WRITES = Array.new(24) do |i|
    ["POST", "/notes", { title: "Note #{i} <#{"x" * (i % 50)}>", body: "some & more words " * (i % 9),
                         "tags[]" => i % 3 == 0 ? %w[a b] : "c" }]
  end.freeze
  READS = [*%w[/notes /notes.json /notes?title=1 /notes.json?title=%25 /notes/0 /nowhere /broken],
           *(1..24).map { |i| "/notes/#{i}" }].map { |path| ["GET", path] }.freeze
  INVALID = [["POST", "/notes", { title: "" }], ["POST", "/notes", { title: "x" * 41 }]].freeze

  # Rails itself turns YJIT on, if the application lets it.
  def environment(jit) = { "RAILS_ENV" => "production", "LATE_YJIT" => jit == "late" ? "1" : "0" }

  def rails
    dir = application("rails")
    made = run_command(dir, "none", "ruby", "schema.rb", env: environment("none"))
    assert_predicate made.status, :success?, made.out
    FileUtils.cp(File.join(dir, "notes.sqlite3"), File.join(dir, "empty.sqlite3"))
    dir
  end

  def serve_rails(dir, jit, env: {}, **options, &block)
    FileUtils.rm_f(Dir[File.join(dir, "notes.sqlite3*")])
    FileUtils.cp(File.join(dir, "empty.sqlite3"), File.join(dir, "notes.sqlite3"))
    serve(dir, jit == "late" ? "none" : jit, *PUMA, ready: "/notes", env: environment(jit).merge(env), **options, &block)
  end

  def drive(server, rounds: 3) = ask(server.port, WRITES + INVALID) + ask_from(3, server.port, READS * rounds)

  def compare(dir, jit, **options)
    block = ->(server) { block_given? ? yield(server) : drive(server) }
    untraced = serve_rails(dir, jit, **options, &block)
    traced = serve_rails(dir, jit, traced: STREAMS, **options, &block)
    assert_equal untraced.answers, traced.answers
    assert_equal [untraced.status.exitstatus, untraced.status.termsig], [traced.status.exitstatus, traced.status.termsig]
    assert_includes untraced.answers.map { |answer| answer[2] }, 200
    traced
  end

  each_jit("threads", jits: [*JITS.keys, "late"]) { |jit| assert_equal 1, compare(rails, jit).traces.size }

  each_jit("workers") do |jit|
    traced = compare(rails, jit, env: { "WORKERS" => "2" })
    assert_equal 3, traced.traces.size
    assert_equal 3, traced.traces.map { |trace| pid(trace) }.uniq.size
  end

  # The supervisor, a dispatcher and a worker of Solid Queue.
  each_jit("jobs") do |jit|
    traced = compare(rails, jit, env: { "JOBS" => "1" }, exit_p: false) do |server|
      answers = drive(server)
      counted = nil
      wait_until("all jobs have run", every: 0.2) do
        counted = ask(server.port, [["GET", "/jobs"]])
        counted[0].last.include?('"counted":24')
      end
      answers + counted
    end
    assert_equal 4, traced.traces.size
  end

  # --- the gem vm_trace ---

  SECRET = "s3cret"
  SECRETS = [["POST", "/notes", { title: SECRET, body: SECRET, "tags[]" => SECRET }], ["GET", "/notes?title=#{SECRET}"],
             ["GET", "/notes/#{SECRET}"]].freeze

  # The application with our gem, and lines of its configuration.
  def rails_with_gem(*settings)
    dir = rails
    add_gem(dir)
    path = File.join(dir, "config/application.rb")
    text = File.read(path)
    text.sub!(/^require "solid_queue"$/, "\\0\nrequire \"vm_trace\"")
    text.sub!(/^    config.hosts.clear$/) { [$&, *settings.map { |line| "    #{line}" }].join("\n") }
    File.write(path, text)
    dir
  end

  def start(**options) = "config.vm_trace.start = #{{ markers: true, exits: false, file: "traces/%p.fxt", **options }}"
  def traces_of(served, dir)
    check_traces(Dir[File.join(dir, "traces/*.fxt")], exits: [served.status.pid]).map { |report| Trace.new(report["path"]) }
  end

  each_jit("with_gem", jits: [*JITS.keys, "late"]) do |jit|
    plain = serve_rails(rails, jit) { |server| ask(server.port, WRITES + INVALID + SECRETS + READS) }
    dir = rails_with_gem(start(threads: true))
    served = serve_rails(dir, jit) { |server| ask(server.port, WRITES + INVALID + SECRETS + READS) }
    assert_equal plain.answers, served.answers
    trace = traces_of(served, dir).fetch(0)
    spans = spans(trace)
    refute_includes File.binread(trace.path), SECRET
    assert_empty File.readlines(File.join(dir, "log.txt")).grep(/vm_trace: /)

    requests = spans.select { |name,| name == "request" }.last(served.answers.size)
    assert_equal served.answers.map { |_, _, status| status }, requests.map { |_, args,| args["status"] }
    assert_equal ["NotesController#index", nil, "NotesController#broken"],
                 requests.last(READS.size).values_at(0, 5, 6).map { |_, args,| args["endpoint"] }
    assert_equal requests.size, requests.map { |_, args,| args.fetch("request_id") }.uniq.size
    shown = spans.find { |name, args,| name == "NotesController#show" && args["status"] == 404 }
    refute_nil shown
    assert_equal({ "status" => 500, "error" => "ArgumentError" },
                 spans.find { |name,| name == "NotesController#broken" }[1].slice("status", "error"))

    within = spans.select { |_, _, around| around.include?("NotesController#index") }
    load = within.find { |name,| name == "Note Load" }
    assert_equal({ "verb" => "SELECT", "table" => "notes" }, load[1].slice("verb", "table"))
    assert_includes within.map(&:first), "render notes/index.html.erb"
    assert_includes within.map(&:first), "instantiate Note"
    enqueued = spans.find { |name,| name == "enqueue CountWordsJob" }
    assert_equal ["request", "NotesController#create"], enqueued[2].first(2)
    assert_equal "default", enqueued[1]["queue"]
  end

  # What boots in the master goes on in each worker; what boots in each worker begins there. The jobs of Solid Queue run in
  # a process of its supervisor.
  %w[0 1].each do |preload|
    define_method "test_workers_with_gem_preload_#{preload}" do
      dir = rails_with_gem(start)
      served = serve_rails(dir, "yjit", env: { "WORKERS" => "2", "PRELOAD" => preload }) do |server|
        wait_until("requests have reached both workers", every: 0.1) do
          ask_from(4, server.port, READS.first(5))
          server.traces.count { |path| File.binread(path).include?("NotesController#index") } == 2
        end
      end
      traces = traces_of(served, dir)
      assert_equal 2 + preload.to_i, traces.size
      assert_equal traces.size, traces.map { |trace| trace.settings["pid"] }.uniq.size
      assert_equal 2, traces.count { |trace| spans(trace).any? { |_, args,| args["endpoint"] == "NotesController#index" } }
    end
  end

  def test_jobs_with_gem
    dir = rails_with_gem(start)
    served = serve_rails(dir, "none", env: { "JOBS" => "1" }, exit_p: false) do |server|
      ask(server.port, WRITES)
      wait_until("all jobs have run", every: 0.2) { ask(server.port, [["GET", "/jobs"]])[0].last.include?('"counted":24') }
    end
    jobs = traces_of(served, dir).flat_map { |trace| spans(trace) }.select { |name,| name == "CountWordsJob" }
    assert_equal 24, jobs.map { |_, args,| args.fetch("job_id") }.uniq.size
    assert_equal [["CountWordsJob", "default", 1]], jobs.map { |_, args,| args.values_at("endpoint", "queue", "attempt") }.uniq
  end

  def test_slow_requests_with_gem
    dir = rails_with_gem('config.vm_trace.slow_requests = { folder: "traces", ms: -1, files: 100, record: { memory: 4, markers: true, exits: false } }',
                         "config.vm_trace.spans = %i[sql]")
    served = serve_rails(dir, "none") do |server|
      ids = Array.new(5) { |i| "id-#{i}" }
      ids.each { |id| Net::HTTP.get(URI("http://127.0.0.1:#{server.port}/notes"), { "X-Request-Id" => id }) }
      wait_until("all are saved") { ids.all? { |id| server.traces.any? { |path| path.end_with?("ms-#{id}.fxt") } } }
    end
    trace = traces_of(served, dir).find { |saved| saved.path.end_with?("id-3.fxt") }
    request = spans(trace).find { |name, args,| name == "request" && args["request_id"] == "id-3" }
    assert_equal "NotesController#index", request[1]["endpoint"]
    assert_includes spans(trace).map(&:first), "Note Load"
    refute_includes spans(trace).map(&:first), "NotesController#index"
  end

  # What puts itself first in an initializer, as OpenTelemetry's instrumentation does, stands before ours.
  def test_the_middleware_of_the_gem_stands_first_but_for_that_of_initializers
    dir = rails_with_gem
    Dir.mkdir(File.join(dir, "config/initializers"))
    File.write(File.join(dir, "config/initializers/first.rb"), <<~'RUBY')
      Outermost = Struct.new(:app) { def call(env) = app.call(env) }
      Rails.application.config.middleware.insert_before(0, Outermost)
    RUBY
    outcome = run_command(dir, "none", "ruby", "-e", 'require "./config/environment"; puts Rails.application.middleware.map(&:name)',
                          env: environment("none"))
    assert_equal %w[Outermost VmTrace], outcome.out.lines(chomp: true).first(2)
  end

  # As on an unpatched Ruby: one line in the log, and nothing before the application.
  def test_without_patches_the_gem_says_so_once
    dir = rails_with_gem('RubyVM.send(:remove_const, :Trace)', start, 'config.vm_trace.slow_requests = { folder: "nowhere" }')
    served = serve_rails(dir, "none", env: { "WORKERS" => "2", "PRELOAD" => "1" }) { |server| ask(server.port, READS) }
    assert_equal serve_rails(rails, "none") { |server| ask(server.port, READS) }.answers, served.answers
    assert_equal 1, File.readlines(File.join(dir, "log.txt")).grep(/WARN.*vm_trace: this Ruby has no RubyVM::Trace/).size
    assert_empty Dir[File.join(dir, "traces/*")]
  end
end
