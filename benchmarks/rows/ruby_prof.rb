# ruby_prof.rb ROUNDS: nanoseconds that ruby-prof adds to a call and its return, the median of some
# rounds. Processor time, as in calls.rb.
require_relative "../inside"
require "ruby-prof"

N, CALLS = 20, 21_891

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def seconds
  from = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  yield
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - from
end

fib(N)
added = Array.new(Integer(ARGV[0])) do
  off = seconds { fib(N) }
  profile = RubyProf::Profile.new
  profile.start
  on = seconds { fib(N) }
  profile.stop
  on - off
end
VMTraceBench.report(:call, added.sort[added.size / 2] * 1e9 / CALLS)
