# All instance variables are set in the same order.

class Account
  NAMES = %i[@base @bonus @fee @tax].freeze
  ORDERS = NAMES.permutation.to_a.freeze

  def initialize(order)
    @base = @bonus = @fee = @tax = nil
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
