# A generator adds to numbers near the limit of small integers and masks the sum. The addition
# overflows: the exit comes before a loop that is then interpreted.
# Place: Dice#roll
# Subject: exits
# JIT: yjit zjit

class Dice
  MASK = (1 << 62) - 1

  def initialize
    @state = MASK - 1
  end

  def roll(count)
    @state = (@state + MASK) & MASK
    eyes = i = 0
    bits = @state
    while i < count
      eyes += (bits >> i) % 6
      eyes -= 3 if eyes > 50
      i += 1
    end
    eyes
  end
end

dice = Dice.new
sum = 0
(900_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += dice.roll(40) }
puts sum
