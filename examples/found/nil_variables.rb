# Parser generators declare variables so, and each call of such a method left ZJIT's code: see
# doc/guide/found.md.
def declare
  a, b, c = nil
  i = 0
  i += 1 while i < 20
  [a, b, c]
end

CALLS = Integer(ARGV[0] || 20_000)

def seconds
  start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  CALLS.times { declare }
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
end

seconds
puts "a call takes %.0f ns" % (Array.new(3) { seconds }.min / CALLS * 1e9)
