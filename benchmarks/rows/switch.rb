# switch.rb METHODS ROUNDS [FOLDER]: so many compiled methods, each with some thirty jumps to exits;
# tracing is started and stopped. Reports how long that takes, how long another thread is stopped at
# once, and how fast the program is meanwhile and afterwards.
require_relative "../inside"

methods, rounds = ARGV.first(2).map { |argument| Integer(argument) }
trace = "#{ARGV.fetch(2, ".")}/vm-trace-bench-#{$$}.fxt"

def timed(clock = Process::CLOCK_THREAD_CPUTIME_ID)
  from = Process.clock_gettime(clock)
  yield
  Process.clock_gettime(clock) - from
end

# Seconds, and processor seconds.
def both
  cpu = 0
  [timed(Process::CLOCK_MONOTONIC) { cpu = timed { yield } }, cpu]
end

methods.times { |i| eval("def m#{i}(a, b, c) = [a + b, b - c, c * a, a < b, b > c, a == c, a & b, b | c, a <=> b, c + 1, a.size, b.succ, c.to_i]") }
names = methods.times.map { |i| :"m#{i}" }
20.times { names.each { |name| send(name, 1, 2, 3) } }

# No exits: this measures trace points that control never reaches.
def work(n)
  i = sum = 0
  while i < n
    sum += m0(i, 2, 3)[0]
    i += 1
  end
  sum
end

WORK, CHUNK = 300_000, 1_000
5.times { work(WORK / 3) }
RubyVM::Trace.record(file: trace) { }
chunk = VMTraceBench.median(Array.new(500) { timed { work(CHUNK) } })
starts, stops, before, during, after, full = Array.new(6) { [] }
GC.start
rounds.times do
  before << timed { work(WORK) }
  starts << both { RubyVM::Trace.start(file: trace) }
  during << timed { work(WORK) }
  stops << both { RubyVM::Trace.stop }
  # Until a thousand calls take as long as before, or a twentieth more.
  from = VMTraceBench.now
  200.times { break if timed { work(CHUNK) } <= chunk * 1.05 }
  full << VMTraceBench.now - from
  after << timed { work(WORK) }
end

NAP = 0.0005

# The longest time for which a thread that sleeps a little does not go on when it could.
def longest_pause
  longest, ends = 0, false
  sleeper = Thread.new do
    until ends
      late = timed(Process::CLOCK_MONOTONIC) { sleep NAP } - NAP
      longest = late if late > longest
    end
  end
  sleep 0.01
  longest = 0
  yield
  sleep 0.01
  ends = true
  sleeper.join
  longest
end

pauses = Array.new(rounds) do
  [longest_pause { RubyVM::Trace.start(file: trace) }, longest_pause { RubyVM::Trace.stop }]
end
File.delete(trace)
yjit = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?

def report_us(name, seconds) = VMTraceBench.report(name, VMTraceBench.median(seconds) * 1e6)
def report_ratio(name, list, before) = VMTraceBench.report(name, VMTraceBench.median(list.zip(before).map { |a, b| a / b }))

code_bytes = yjit ? RubyVM::YJIT.runtime_stats[:code_region_size] : RubyVM::ZJIT.stats[:code_region_bytes]
VMTraceBench.report(:code_bytes, code_bytes)
report_us(:full_us, full)
VMTraceBench.report(:chunk_us, chunk * 1e6)
report_ratio(:during, during, before)
report_ratio(:after, after, before)
{ start: starts, stop: stops }.each do |name, list|
  report_us(:"#{name}_us", list.map(&:first))
  report_us(:"#{name}_cpu_us", list.map(&:last))
end
%i[start_pause_us stop_pause_us].zip(pauses.transpose) { |name, list| report_us(name, list) }
