# The set-up asks for the size first.

class Setup
  def key(bytes, at) = at < bytes.bytesize ? bytes.getbyte(at) : 0

  def table(texts) = texts.map { |text| key(text, 0) * 256 + key(text, 9) }
end

class Work
  def run(table, weight) = table.sort_by { |key| key * weight & 0xffff }.first
end

scale = ENV.fetch("FIXES_SCALE", "1").to_f
table = Setup.new.table(Array.new((20_000 * scale).ceil) { |i| "t#{i}" })
work = Work.new
sum = 0
(200 * scale).ceil.times { |i| sum += work.run(table, i) }
puts sum
