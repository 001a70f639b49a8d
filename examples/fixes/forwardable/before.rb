# forwardable: `def_delegators` makes methods that are nearly as fast as ones written by hand.
# Place: Stack#size, Stack#push, Stack#pop
# Subject: method
# JIT: any
require "forwardable"

class Stack
  extend Forwardable
  def_delegators :@items, :push, :pop, :size

  def initialize = @items = []
end

stack = Stack.new
sum = 0
(7_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |i|
  stack.push(i)
  sum += stack.pop + stack.size
end
puts sum
