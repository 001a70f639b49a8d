# A class with `attr_reader`.

class Point
  attr_reader :x, :y

  def initialize(x, y)
    @x = x
    @y = y
  end
end

class Path
  def length(points)
    sum = 0
    i = 1
    while i < points.size
      sum += (points[i].x - points[i - 1].x).abs + (points[i].y - points[i - 1].y).abs
      i += 1
    end
    sum
  end
end

path = Path.new
points = Array.new(100) { |i| Point.new(i * 17 % 101, i * 31 % 89) }
sum = 0
(800_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += path.length(points) }
puts sum
