# ruby_prof.rb ROUNDS: nanoseconds that ruby-prof adds to a call and its return, the median of some
# rounds. Processor time, as in calls.rb.
require_relative "../inside"
require "ruby-prof"

N, CALLS = 20, 21_891

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

fib(N)
added = Array.new(Integer(ARGV[0])) do
  off = VMTraceBench.cpu_seconds { fib(N) }
  profile = RubyProf::Profile.new
  profile.start
  on = VMTraceBench.cpu_seconds { fib(N) }
  profile.stop
  on - off
end
VMTraceBench.report(:call, VMTraceBench.median(added) * 1e9 / CALLS)
