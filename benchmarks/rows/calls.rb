# calls.rb ROUNDS FOLDER [programs]: nanoseconds that recording adds to a call and its return, into a
# file and into memory, and that a TracePoint adds, whose block counts. With `programs` also how much
# longer programs with 5 and 20 million calls a second take.
#
# All times are processor time of this thread, the medians of some rounds, in which all take turns.
# TracePoint comes last, for it discards compiled code.
require_relative "../inside"

rounds, folder, programs = Integer(ARGV[0]), ARGV[1], ARGV[2]
T = RubyVM::Trace
PATH = "#{folder}/vm-trace-bench-#{$$}.fxt"
LENGTHS = { 22 => 57_313, 27 => 635_621 }.freeze # argument of fib => calls
N, CALLS = LENGTHS.to_a.last

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def work(turns)
  i = 0
  i += 1 while i < turns
  i
end

def program(calls, turns)
  i = 0
  while i < calls
    work(turns)
    i += 1
  end
end

$repeated = 0 # traces, because a disk that others use was too slow: calls that are lost cost less
ATTEMPTS = 5

# The last of so many times.
def traced(calls, times: 1, **where)
  ATTEMPTS.times do
    T.start(calls: true, **where)
    took = Array.new(times) { VMTraceBench.cpu_seconds { yield } }.last
    status = T.stop
    return took if status.fetch(:lost).zero? && status.fetch(:calls) >= calls * times
    raise "#{status[:calls]} calls are recorded" if status.fetch(:lost).zero?
    $repeated += 1
    File.delete(PATH) if where[:file]
  end
  raise "calls are lost in each of #{ATTEMPTS} traces"
end

# Into a file.
def trace_file(calls, &body)
  took = traced(calls, file: PATH, &body)
  @bytes = File.size(PATH)
  File.delete(PATH)
  took
end

def of_a_call(list) = VMTraceBench.median(list) * 1e9 / CALLS

def added(on, off) = of_a_call(on.zip(off).map { |a, b| a - b })

body = -> { fib(N) }
3.times { fib(N) }
trace_file(CALLS, &body) # pages that a trace needs are touched once before
off, on, memory = [], [], []
rounds.times do
  off << VMTraceBench.cpu_seconds(&body)
  on << trace_file(CALLS, &body)
  memory << traced(CALLS, times: 2, memory: 8, &body) # its ring is full then
end
VMTraceBench.report(:off, of_a_call(off))
VMTraceBench.report(:call, added(on, off))
VMTraceBench.report(:memory, added(memory, off))
sizes = LENGTHS.map { |n, calls| trace_file(calls) { fib(n) }; @bytes }
VMTraceBench.report(:bytes, (sizes[1] - sizes[0]).fdiv(LENGTHS.values.inject { |few, many| many - few }))

# So that a call with its work takes so long.
def turns_for(ns)
  4.times.inject(50) do |turns, _|
    took_ns = VMTraceBench.median(Array.new(9) { VMTraceBench.cpu_seconds { program(100_000, turns) } }) * 1e4
    (turns * ns / took_ns).round.clamp(1, 10_000)
  end
end

if programs
  20.times { program(10_000, 100) }
  { 5 => 200.0, 20 => 50.0 }.each do |millions, ns|
    turns = turns_for(ns)
    loop_body = -> { program(CALLS, turns) }
    plain, longer = [], []
    rounds.times do
      plain << VMTraceBench.cpu_seconds(&loop_body)
      longer << trace_file(CALLS, &loop_body)
    end
    # The rate is never quite that, so it is scaled to it.
    VMTraceBench.report("slowdown_#{millions}", 1 + added(longer, plain) * millions / 1e3)
    VMTraceBench.report("rate_#{millions}", CALLS / VMTraceBench.median(plain) / 1e6)
  end
end
VMTraceBench.report(:repeated, $repeated)

events = 0
point = TracePoint.new(:call, :return) { events += 1 }
peer = Array.new([rounds, 5].min) { point.enable { VMTraceBench.cpu_seconds(&body) } }
raise "TracePoint reports #{events} events" if events < 2 * CALLS * peer.size
VMTraceBench.report(:peer, of_a_call(peer) - of_a_call(off))
