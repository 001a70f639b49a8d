# date: a loop over all days makes a Date object for each, and asks it for its weekday.
# Place: Calendar#workdays, Date#+, Date#wday
# Subject: method
# JIT: any
require "date"

class Calendar
  def workdays(from, days)
    (0...days).count { |i| !(from + i).saturday? && !(from + i).sunday? }
  end
end

calendar = Calendar.new
from = Date.new(2026, 1, 1)
sum = 0
(15_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += calendar.workdays(from, 365 + i % 7) }
puts sum
