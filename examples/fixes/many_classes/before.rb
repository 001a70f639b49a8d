# A factory calls `new` of more classes than YJIT makes versions for, and has work to do afterwards.
# Place: Factory#build
# Subject: exits
# JIT: yjit

class Shape
  attr_reader :size

  def initialize(size) = @size = size
end

class Factory
  KINDS = Array.new(12) { |i| Class.new(Shape) { define_method(:area) { size * size + i } } }.freeze

  def build(kind, count)
    shape = kind.new(count)
    sum = i = 0
    while i < count
      sum = (sum + i * shape.size) % 7919
      i += 1
    end
    sum + shape.area
  end
end

factory = Factory.new
sum = 0
(150_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do
  Factory::KINDS.each { |kind| sum += factory.build(kind, 20) }
end
puts sum
