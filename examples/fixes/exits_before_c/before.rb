# Each call exits, but then a method in C takes the time, which needs no compiled code: many exits,
# nothing to gain.
# Place: Inventory#largest
# Subject: exits
# JIT: yjit

class Inventory
  def largest(list, &by)
    by ||= nil
    list.max(3).sum
  end
end

inventory = Inventory.new
list = Array.new(200) { |i| i * 7919 % 10_007 }
sum = 0
(1_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += inventory.largest(list) }
puts sum
