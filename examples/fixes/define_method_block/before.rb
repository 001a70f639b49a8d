# Accessors are made by `define_method` with a block: each call also calls the block.
# Place: Order#price, Order#tax
# Subject: method
# JIT: any

class Order
  %i[price tax].each { |name| define_method(name) { @values[name] } }

  def initialize(price) = @values = { price: price, tax: price / 5 }

  def total = price + tax
end

orders = Array.new(100) { |i| Order.new(i * 10) }
sum = 0
(450_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { orders.each { |order| sum += order.total } }
puts sum
