# The weekday is a number that is counted along.
require "date"

class Calendar
  def workdays(from, days)
    first = from.wday
    (0...days).count { |i| (first + i) % 7 != 6 && (first + i) % 7 != 0 }
  end
end

calendar = Calendar.new
from = Date.new(2026, 1, 1)
sum = 0
(15_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += calendar.workdays(from, 365 + i % 7) }
puts sum
