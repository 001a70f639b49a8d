# Each request sets a constant (`Settings.const_set`). That invalidates the code that reads it, which is
# then interpreted and compiled again and again.
# Place: Shop#price, Shop#request
# Subject: compiling
# JIT: yjit

module Settings
  DISCOUNT = 0
end

class Shop
  def request(discount)
    Settings.send(:remove_const, :DISCOUNT)
    Settings.const_set(:DISCOUNT, discount)
    sum = 0
    60.times { |i| sum += price(i) }
    sum
  end

  def price(cents)
    sum = i = 0
    while i < 15
      sum = (sum + cents * i - Settings::DISCOUNT) % 5003
      i += 1
    end
    sum
  end
end

shop = Shop.new
sum = 0
(8_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += shop.request(i % 5) }
puts sum
