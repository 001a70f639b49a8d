# markers.rb EXTENSION ROUNDS FOLDER: nanoseconds of a marker from C (benchmarks/marks) and from Ruby, not recorded and recorded,
# beside what a program would do that notes times by itself. The median of some rounds, in which all take turns.
require_relative "../inside"

extension, rounds, folder = ARGV[0], Integer(ARGV[1]), ARGV[2]
require extension
COUNT = 200_000
T = RubyVM::Trace

def instants(n) = n.times { T.instant("tick") }
def instants_with_arguments(n) = n.times { |i| T.instant("tick", id: i, kind: :request) }
def spans(n) = n.times { T.span("tick") { } }
def empty(n) = n.times { }

# What a Ruby program does without a tracer.
def peer(n)
  times = []
  n.times { times << :tick << Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
end

CASES = {
  c: -> { Marks.instants(COUNT) }, c_span: -> { Marks.spans(COUNT) }, c_peer: -> { Marks.peer(COUNT) },
  ruby: -> { instants(COUNT) }, ruby_arguments: -> { instants_with_arguments(COUNT) }, ruby_span: -> { spans(COUNT) },
  ruby_peer: -> { peer(COUNT) }, empty: -> { empty(COUNT) }
}.freeze

def round(into)
  CASES.each do |name, body|
    GC.start
    from = VMTraceBench.now
    body.call
    (into[name] ||= []) << (VMTraceBench.now - from) * 1e9 / COUNT
  end
end

def medians(lists) = lists.transform_values { |list| list.sort[list.size / 2] }

off, on, lost = {}, {}, 0
path = "#{folder}/vm-trace-bench-#{$$}.fxt"
traced = lambda do |into|
  T.start(markers: true, exits: false, file: path)
  round(into)
  lost += T.stop.fetch(:lost)
  File.delete(path)
end
round({})
traced.call({})
rounds.times do
  round(off)
  traced.call(on)
end
medians(off).each { |name, ns| VMTraceBench.report(:"off_#{name}", ns) }
medians(on).each { |name, ns| VMTraceBench.report(:"on_#{name}", ns) }
VMTraceBench.report(:lost, lost)
