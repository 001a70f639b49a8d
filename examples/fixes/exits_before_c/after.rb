# Without the assignment to the block parameter.

class Inventory
  def largest(list, &by)
    list.max(3).sum
  end
end

inventory = Inventory.new
list = Array.new(200) { |i| i * 7919 % 10_007 }
sum = 0
(1_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += inventory.largest(list) }
puts sum
