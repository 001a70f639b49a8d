# kernel.rb ROUNDS FOLDER: nanoseconds of a system call, and of a sleep (a thread gives up its CPU and
# gets one back): not recorded, recorded by the streams `syscalls` and `sched`, and by the peers: perf
# record of the same tracepoints, and strace. The median of some rounds, in which all take turns.
# Processor time of this thread, of which the kernel's part is what recording adds.
require_relative "../inside"

rounds, folder = Integer(ARGV[0]), ARGV[1]
CALLS, STRACED_CALLS, SLEEPS = 100_000, 5_000, 1_000
T = RubyVM::Trace
PATH = "#{folder}/vm-trace-bench-#{$$}"

def call(count = CALLS)
  VMTraceBench.cpu_seconds { count.times { Process.getpgid(0) } } * 1e9 / count
end

def rest
  VMTraceBench.cpu_seconds { SLEEPS.times { sleep 0.000_05 } } * 1e9 / SLEEPS
end

def recorded(stream)
  T.start(stream => true, exits: false, file: PATH)
  result = yield
  $lost += T.stop.fetch(:lost)
  result
ensure
  File.delete(PATH) if File.exist?(PATH)
end

# A peer is attached to this process. NaN: it is not installed, or not allowed to.
def beside(*command)
  pid = Process.spawn(*command, out: File::NULL, err: File::NULL)
  sleep 0.5
  return Float::NAN if Process.wait(pid, Process::WNOHANG)
  result = yield
  Process.kill(:INT, pid)
  Process.wait(pid)
  result
rescue Errno::ENOENT
  Float::NAN
ensure
  File.delete(PATH) if File.exist?(PATH)
end

def perf(*events) = ["perf", "record", "-q", "-o", PATH, *events.flat_map { |event| ["-e", event] }, "-p", $$.to_s]

$lost = 0
CASES = {
  off_call: -> { call },
  on_call: -> { recorded(:syscalls) { call } },
  perf_call: -> { beside(*perf("raw_syscalls:sys_enter", "raw_syscalls:sys_exit")) { call } },
  strace_call: -> { beside("strace", "-f", "-o", File::NULL, "-p", $$.to_s) { call(STRACED_CALLS) } },
  off_rest: -> { rest },
  on_rest: -> { recorded(:sched) { rest } },
  perf_rest: -> { beside(*perf("sched:sched_switch", "sched:sched_waking")) { rest } }
}.freeze

call
rest
results = Hash.new { |lists, name| lists[name] = [] }
rounds.times { CASES.each { |name, body| results[name] << body.call } }
results.each { |name, list| VMTraceBench.report(name, VMTraceBench.median(list)) }
VMTraceBench.report(:lost, $lost)
