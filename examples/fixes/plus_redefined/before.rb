# A library redefines `Integer#+` to count calls. From then on each addition of the program is a call of
# a method in Ruby.
# Place: Sums#of, Integer#+
# Subject: exits
# JIT: any

class Integer
  alias plain_plus +
  define_method(:+) { |other| plain_plus(other) }
end

class Sums
  def of(count)
    sum = i = 0
    while i < count
      sum = (sum + i) % 7919
      i += 1
    end
    sum
  end
end

sums = Sums.new
all = 0
(15_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { all = (sums.of(1_000) * 3) ^ (all >> 1) }
puts all
