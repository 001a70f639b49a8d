# ostruct: each row is an OpenStruct, which defines methods on each object.
# Place: OpenStruct#initialize, OpenStruct#new_ostruct_member!, OpenStruct#[]=, Table#sum
# Subject: method
# JIT: any
# Needs: ostruct
require "ostruct"

class Table
  def sum(rows)
    sum = 0
    rows.times { |i| sum += area(OpenStruct.new(width: i, height: 2)) }
    sum
  end

  def area(row) = row.width * row.height
end

puts Table.new.sum((130_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil)
