# The setting is an attribute of the module.

module Settings
  class << self
    attr_accessor :discount
  end
end

class Shop
  def request(discount)
    Settings.discount = discount
    sum = 0
    60.times { |i| sum += price(i) }
    sum
  end

  def price(cents)
    sum = i = 0
    while i < 15
      sum = (sum + cents * i - Settings.discount) % 5003
      i += 1
    end
    sum
  end
end

shop = Shop.new
sum = 0
(8_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += shop.request(i % 5) }
puts sum
