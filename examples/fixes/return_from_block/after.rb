# `find` ends by itself.

class Table
  def initialize(rows) = @rows = rows

  def find(key) = @rows.find { |row| row > key }

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
