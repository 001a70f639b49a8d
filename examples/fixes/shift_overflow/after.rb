# The masks are made once.

class Mixer
  BITS = 64
  MASKS = (0..BITS).map { |count| (1 << (BITS - count)) - 1 }.freeze

  def shift(number, count)
    (number >> count) & MASKS[count]
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
