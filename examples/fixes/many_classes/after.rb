# One class has the kind as data.

class Shape
  attr_reader :size

  def initialize(kind, size)
    @kind = kind
    @size = size
  end

  def area = size * size + @kind
end

class Factory
  KINDS = (0...12).to_a.freeze

  def build(kind, count)
    shape = Shape.new(kind, count)
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
