# The divisor is compared with 0 before.

class Stats
  def mean(sum, count)
    count == 0 ? 0 : sum / count
  end
end

stats = Stats.new
sum = 0
(3_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += stats.mean(i, i % 3) }
puts sum
