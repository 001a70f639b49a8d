# A shift to the right that fills with zeros makes its mask at each call. The power of two overflows: the exit comes
# before the rest of the method, which is then interpreted.
# Place: Mixer#shift, Mixer#mix
# Subject: exits
# JIT: yjit

class Mixer
  BITS = 64

  def shift(number, count)
    (number >> count) & ((1 << (BITS - count)) - 1)
  end

  def mix(number)
    3.times { |i| number ^= shift(number, i + 1) }
    number
  end
end

mixer = Mixer.new
sum = 0
(400_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += mixer.mix(i) & 255 }
puts sum
