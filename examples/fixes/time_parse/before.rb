# time: `Time.parse` tries all formats that there are, by regular expressions, on texts of one known
# format.
# Place: Time.parse, Date._parse, Entry#time
# Subject: method
# JIT: any
require "time"

class Entry
  def initialize(text) = @text = text

  def time = Time.parse(@text)
end

entries = Array.new(50) { |i| Entry.new("2026-03-%02d 12:%02d:07 UTC" % [i % 28 + 1, i]) }
sum = 0
(2_500 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { entries.each { |entry| sum += entry.time.to_i } }
puts sum
