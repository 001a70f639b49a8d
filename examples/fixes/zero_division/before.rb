# A method divides by zero now and then, and rescues ZeroDivisionError: the exception costs more than
# all divisions.
# Place: Stats#mean, Integer#/
# Subject: method
# JIT: yjit

class Stats
  def mean(sum, count)
    sum / count
  rescue ZeroDivisionError
    0
  end
end

stats = Stats.new
sum = 0
(3_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += stats.mean(i, i % 3) }
puts sum
