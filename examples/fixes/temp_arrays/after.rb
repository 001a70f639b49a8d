# One loop with a sum.

class Orders
  def total(items)
    sum = 0
    items.each do |item|
      price = item * 3
      sum += price - item if price.odd?
    end
    sum
  end
end

orders = Orders.new
items = (1..40).to_a
sum = 0
(200_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += orders.total(items) }
puts sum
