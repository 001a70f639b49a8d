# states.rb ROUNDS FOLDER: nanoseconds of a change between compiled code and the interpreter, while
# execution states are recorded, and of an event of TracePoint. The median of some rounds, in which
# all take turns; TracePoint comes last, for it discards compiled code.
require_relative "../inside"

rounds, folder = Integer(ARGV[0]), ARGV[1]
T = RubyVM::Trace
ENTRIES = 200_000
PATH = "#{folder}/vm-trace-bench-#{$$}.fxt"

def callee(x) = x + 1
1_000.times { |i| callee(i) }

# Never compiled: it is called once for each measurement, and what it calls is compiled.
def interpreted_loop(count)
  i = 0
  i = callee(i) while i < count
end

def seconds
  from = VMTraceBench.now
  yield
  VMTraceBench.now - from
end

off, on, peer = [], [], []
lost = 0
body = -> { interpreted_loop(ENTRIES) }
traced = lambda do |into, **streams|
  T.start(file: PATH, **streams)
  into << seconds(&body)
  lost += T.stop.fetch(:lost)
  File.delete(PATH)
end
body.call
rounds.times do
  off << seconds(&body)
  traced.call(on, states: true)
end
cost = on.zip(off).map { |a, b| (a - b) * 1e9 / (2 * ENTRIES) }
VMTraceBench.report(:change, VMTraceBench.median(cost))
VMTraceBench.report(:off, VMTraceBench.median(off) * 1e9 / ENTRIES)
VMTraceBench.report(:lost, lost)
point = TracePoint.new(:call, :return) {}
rounds.times { point.enable { peer << seconds(&body) } }
VMTraceBench.report(:peer, (VMTraceBench.median(peer) - VMTraceBench.median(off)) * 1e9 / (2 * ENTRIES))

# What the tracer reads: the processor's counter, as far as Ruby comes to it.
GC.disable
nothing = Array.new(rounds) { seconds { i = 0; i += 1 while i < 1_000_000 } }
clock = Array.new(rounds) do
  seconds { i = 0; (Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond); i += 1) while i < 1_000_000 }
end
VMTraceBench.report(:clock, (VMTraceBench.median(clock) - VMTraceBench.median(nothing)) * 1e3)
