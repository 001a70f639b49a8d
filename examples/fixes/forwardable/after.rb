# Written by hand.

class Stack
  def initialize = @items = []

  def push(item) = @items.push(item)
  def pop = @items.pop
  def size = @items.size
end

stack = Stack.new
sum = 0
(7_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |i|
  stack.push(i)
  sum += stack.pop + stack.size
end
puts sum
