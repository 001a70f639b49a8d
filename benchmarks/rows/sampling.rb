# sampling.rb ROUNDS FOLDER [stackprof]: what samples of time cost a program that runs below 53 frames, by processor
# time: how much longer its thread takes with a sample each millisecond, and what one sample costs (at a sample each
# 100 us) its thread, and its whole process, of which the sampler is a thread. With `stackprof` the same of that
# profiler, for which any Ruby will do. The medians of some rounds, in which all take turns.
require_relative "../inside"

rounds, folder, peer = Integer(ARGV[0]), ARGV[1], ARGV[2]
FRAMES, SECONDS = 53, 0.3
PATH = "#{folder}/vm-trace-bench-#{$$}"

def step(number) = number & 7

# Without collections, whose times differ from round to round.
def work(count)
  i = 0
  i += step(i) ? 1 : 2 while i < count
end

# <main>, rounds, a block of it and the like are frames, too.
def deep(frames, count)
  frames > 0 ? deep(frames - 1, count) : work(count)
end

CLOCKS = [Process::CLOCK_THREAD_CPUTIME_ID, Process::CLOCK_PROCESS_CPUTIME_ID].freeze
def clocks = CLOCKS.map { |clock| Process.clock_gettime(clock) }

# Seconds of the thread, and of the process.
def once(count)
  from = clocks
  deep(FRAMES - 8, count)
  clocks.zip(from).map { |to, at| to - at }
end

if peer
  require "stackprof"
  SAMPLED = lambda do |us, count|
    StackProf.start(mode: :wall, interval: us, ignore_gc: true)
    seconds = once(count)
    StackProf.stop
    [seconds, StackProf.results[:samples]]
  end
else
  SAMPLED = lambda do |us, count|
    RubyVM::Trace.start(samples: "#{us}us", exits: false, file: PATH)
    seconds = once(count)
    status = RubyVM::Trace.stop
    File.delete(PATH)
    raise "#{status[:lost]} samples are lost" unless status[:lost].zero?
    [seconds, status[:sample_records]]
  end

  # perf record of this process with native stacks. nil: it can't.
  def beside_perf(count)
    pid = Process.spawn("perf", "record", "-q", "-e", "cpu-clock", "-F", "1000", "-g", "-o", PATH, "-p", $$.to_s,
                        out: File::NULL, err: File::NULL)
    sleep 0.5
    return if Process.wait(pid, Process::WNOHANG)
    once(count).tap do
      Process.kill(:INT, pid)
      Process.wait(pid)
    end
  rescue Errno::ENOENT
    nil
  ensure
    File.delete(PATH) if File.exist?(PATH)
  end
end

count = 100_000
3.times { once(count) }
count = (count * SECONDS / once(count)[0]).round
SAMPLED.call(1000, count) # what a trace needs is touched once before
slower, of_thread, of_process, perf = [], [], [], []
rounds.times do
  before = once(count)
  on, = SAMPLED.call(1000, count)
  fast, samples = SAMPLED.call(100, count)
  beside = beside_perf(count) unless peer
  untraced = before.zip(once(count)).map { |a, b| (a + b) / 2 }
  slower << on[0] / untraced[0]
  of_thread << (fast[0] - untraced[0]) * 1e6 / samples
  of_process << (fast[1] - untraced[1]) * 1e6 / samples
  perf << beside[0] / untraced[0] if beside
end
VMTraceBench.report(:slower, VMTraceBench.median(slower))
VMTraceBench.report(:thread_us, VMTraceBench.median(of_thread))
VMTraceBench.report(:process_us, VMTraceBench.median(of_process))
VMTraceBench.report(:perf, perf.size < rounds ? Float::NAN : VMTraceBench.median(perf)) unless peer
