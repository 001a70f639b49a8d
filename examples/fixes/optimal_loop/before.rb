# A loop with integers that compiled code runs as fast as it can: nothing can be gained here.
# Place: none
# Subject: method
# JIT: any

class Sieve
  def sum(rounds)
    sum = i = 0
    while i < rounds
      sum = (sum + i * 3) & 0xffffff
      i += 1
    end
    sum
  end
end

sieve = Sieve.new
all = 0
(120_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { all = (all * 3 + sieve.sum(5_000)) & 0xffffff }
puts all
