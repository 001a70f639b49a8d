# What do objects of one class with their variables in different orders cost? A few exits, until the JIT has learnt them.
require_relative "../inside"

class Point
  attr_reader :x, :y

  def initialize(order)
    order.each { |name| instance_variable_set(name, name.size + order.size) }
  end

  def sum
    @x + @y
  end
end

ORDERS = [%i[@x @y], %i[@y @x], %i[@a @x @y], %i[@a @b @y @x], %i[@x @c @y], %i[@y @d @e @x]].freeze
POINTS = ORDERS.map { |order| Point.new(order) }.freeze

def total(n)
  sum = 0
  n.times { |i| sum += POINTS[i % 6].sum }
  sum
end

VMTraceBench.iterate(warmup: 10) { total(100_000) }
