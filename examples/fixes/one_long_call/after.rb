# A row is a method of its own.

class Image
  def initialize(size)
    @size = size
    @pixels = Array.new(size * size) { |i| i * 7919 % 256 }
  end

  def blur(rounds)
    rounds.times do
      y = 1
      while y < @size - 1
        row(y)
        y += 1
      end
    end
    @pixels.sum
  end

  def row(y)
    x = 1
    while x < @size - 1
      at = y * @size + x
      @pixels[at] = (@pixels[at - 1] + @pixels[at + 1] + @pixels[at - @size] + @pixels[at + @size]) / 4
      x += 1
    end
  end
end

scale = ENV.fetch("FIXES_SCALE", "1").to_f
puts Image.new((650 * scale).ceil + 2).blur(25)
