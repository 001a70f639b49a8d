# A chain of `map`, `select` and `each_slice` makes a new array at each step, in an inner loop.
# Place: Orders#total
# Subject: gc
# JIT: any

class Orders
  def total(items)
    priced = items.map { |item| [item, item * 3] }
    priced.select { |item, price| price.odd? }.map { |item, price| [price - item] }.flatten.sum
  end
end

orders = Orders.new
items = (1..40).to_a
sum = 0
(200_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += orders.total(items) }
puts sum
