# The accessors are made by `def`, in a string.

class Order
  %i[price tax].each { |name| class_eval("def #{name} = @values[:#{name}]", __FILE__, __LINE__) }

  def initialize(price) = @values = { price: price, tax: price / 5 }

  def total = price + tax
end

orders = Array.new(100) { |i| Order.new(i * 10) }
sum = 0
(450_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { orders.each { |order| sum += order.total } }
puts sum
