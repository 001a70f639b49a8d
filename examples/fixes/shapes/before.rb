# Objects set their instance variables in many orders, so they have many shapes, and the methods that
# read them serve all.
# Place: Account#balance
# Subject: method
# JIT: yjit zjit

class Account
  NAMES = %i[@base @bonus @fee @tax].freeze
  ORDERS = NAMES.permutation.to_a.freeze

  def initialize(order)
    ORDERS[order % ORDERS.size].each { |name| instance_variable_set(name, name.size) }
  end

  def balance(rounds)
    sum = i = 0
    while i < rounds
      sum = (sum + @base + @bonus - @fee - @tax + i) % 9973
      i += 1
    end
    sum
  end
end

accounts = Array.new(24) { |order| Account.new(order) }
sum = 0
(120_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { accounts.each { |account| sum += account.balance(20) } }
puts sum
