# A method returns out of a block. ZJIT leaves compiled code where that is thrown, and again where it
# is caught.
# Place: Table#find, Table#count
# Subject: exits
# JIT: zjit

class Table
  def initialize(rows) = @rows = rows

  def find(key)
    @rows.each { |row| return row if row > key }
    nil
  end

  def count(keys)
    sum = i = 0
    while i < keys.size
      sum += find(keys[i])
      i += 1
    end
    sum
  end
end

table = Table.new((1..40).to_a)
keys = Array.new(50) { |i| i % 10 }
sum = 0
(60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += table.count(keys) }
puts sum
