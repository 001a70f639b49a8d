# The same with `until` and the operands in another order.

class Sieve
  def sum(rounds)
    sum = i = 0
    until i >= rounds
      sum = (i * 3 + sum) & 0xffffff
      i += 1
    end
    sum
  end
end

sieve = Sieve.new
all = 0
(120_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { all = (all * 3 + sieve.sum(5_000)) & 0xffffff }
puts all
