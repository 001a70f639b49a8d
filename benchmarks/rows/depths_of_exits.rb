# depths_of_exits.rb FIRST COUNT: one exit at each of COUNT depths, from FIRST frames on, in two
# methods that call each other, for YJIT, whose code exits each time. The caller sets
# RUBY_THREAD_VM_STACK_SIZE.
require_relative "../inside"

first, count = ARGV.map { |argument| Integer(argument) }

def even(n, at, x)
  return x + 1 if n == at
  odd(n + 1, at, x)
end

def odd(n, at, x)
  return x + 1 if n == at
  even(n + 1, at, x)
end

2000.times { [1, 2].each { |at| even(0, at, 1) } }
VMTraceBench.iterate(warmup: 0, runs: 1) { first.upto(first + count - 1) { |at| even(0, at, 2**62 - 1) } }
