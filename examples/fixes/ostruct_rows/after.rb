# The rows are a Struct.

class Table
  Row = Struct.new(:width, :height, keyword_init: true)

  def sum(rows)
    sum = 0
    rows.times { |i| sum += area(Row.new(width: i, height: 2)) }
    sum
  end

  def area(row) = row.width * row.height
end

puts Table.new.sum((130_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil)
