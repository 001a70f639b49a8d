# What do method calls and small integers cost? No exits.
require_relative "../inside"

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

VMTraceBench.iterate { fib(28) == 317_811 or raise }
