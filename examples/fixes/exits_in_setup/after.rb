# The set-up asks for the size first.

class Setup
  def key(bytes, at) = at < bytes.bytesize ? bytes.getbyte(at) : 0

  def table(texts) = texts.map { |text| key(text, 0) * 256 + key(text, 9) }
end

class Work
  def run(table)
    sum = i = 0
    while i < table.size
      sum = (sum * 3 + table[i]) & 0xfffffff
      i += 1
    end
    sum
  end
end

scale = ENV.fetch("FIXES_SCALE", "1").to_f
table = Setup.new.table(Array.new((50_000 * scale).ceil) { |i| "t#{i}" })
work = Work.new
sum = 0
(5_000 * scale).ceil.times { sum = (sum * 3 + work.run(table)) & 0xffffff }
puts sum
