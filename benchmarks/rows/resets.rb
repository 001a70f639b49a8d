# resets.rb RACTORS RATE: RubyVM::Trace.reset 10,000 times a second in each of RACTORS ractors at
# once, in batches with exits and pauses between. Reports the processor time of one reset; then
# checks that the hits after a last reset are those that were taken.
require_relative "../inside"
require "tmpdir"

Warning[:experimental] = false
ractors, rate = ARGV.map { |argument| Integer(argument) }

def add(x) = x + 1
def exits(n) = n.times { add(2**62 - 1) }

60.times { add(1) }
60.times { exits(1) }
Ractor.new { 60.times { exits(1) } }.value

PER_SECOND, BATCH, SECONDS = 10_000, 20, 1.0

workers = Array.new(ractors) do
  Ractor.new do
    Ractor.receive
    spent = resets = 0
    from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    while (now = Process.clock_gettime(Process::CLOCK_MONOTONIC) - from) < SECONDS
      exits(3)
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      BATCH.times { RubyVM::Trace.reset }
      spent += Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - before
      resets += BATCH
      ahead = resets.fdiv(PER_SECOND) - now
      sleep(ahead) if ahead > 0
    end
    [spent, resets, Ractor.receive]
  end
end
workers.each { |worker| worker.send(nil) }
sleep(SECONDS + 0.5)
RubyVM::Trace.reset
workers.each { |worker| worker.send(nil) }
results = workers.map(&:value)

# New ractors, because those above have ended; each takes another number of exits.
RubyVM::Trace.reset
Array.new(ractors) { |n| Ractor.new(n) { |more| exits(10 + more) } }.each(&:value)
expected = ractors.times.sum { |n| 10 + n }
Dir.mktmpdir("vm-trace-bench") do |folder|
  saved = RubyVM::Trace.save("#{folder}/trace.fxt")
  sites = IO.popen([ENV.fetch("VM_TRACE"), "query", "#{folder}/trace.fxt", <<~SQL], &:read).lines.last.to_i
    SELECT SUM(h.int_value) FROM slice s JOIN args h ON h.arg_set_id = s.arg_set_id AND h.key = 'hits'
      JOIN args l ON l.arg_set_id = s.arg_set_id AND l.key = 'location' AND l.display_value LIKE '%add (%' WHERE s.name = 'site'
  SQL
  exact = sites == expected && saved[:lost] == 0 && (rate > 1 || saved[:exits] >= expected)
  VMTraceBench.report("exact", exact ? 1 : 0)
end
VMTraceBench.report("reset_ns", results.sum { |spent, _| spent }.fdiv(results.sum { |_, resets| resets }))
VMTraceBench.report("a_second", results.sum { |_, resets| resets } / SECONDS / ractors)
