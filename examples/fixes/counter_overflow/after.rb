# The state has fewer bits, so that no sum is a big integer. (For numbers below the mask, adding the
# mask subtracts 1.)

class Dice
  MASK = (1 << 62) - 1

  def initialize
    @state = MASK - 1
  end

  def roll(count)
    @state = @state == 0 ? MASK : @state - 1
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
