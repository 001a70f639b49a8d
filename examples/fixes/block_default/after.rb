# The default has a variable of its own.

class Ledger
  IDENTITY = ->(cents) { cents }

  def total(entries, &block)
    convert = block || IDENTITY
    sum = i = 0
    while i < entries.size
      cents = entries[i]
      sum = (sum * 3 + cents) % 1_000_003 if cents.odd?
      i += 1
    end
    sum + convert.call(1)
  end
end

ledger = Ledger.new
entries = Array.new(100) { |i| i * 37 % 101 }
sum = 0
(500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += ledger.total(entries) }
puts sum
