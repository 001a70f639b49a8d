# A method gives its block parameter a default (`block ||= ...`). YJIT has no code for that: each call
# leaves compiled code there, and the loop below is interpreted.
# Place: Ledger#total
# Subject: exits
# JIT: yjit

class Ledger
  IDENTITY = ->(cents) { cents }

  def total(entries, &block)
    block ||= IDENTITY
    sum = i = 0
    while i < entries.size
      cents = entries[i]
      sum = (sum * 3 + cents) % 1_000_003 if cents.odd?
      i += 1
    end
    sum + block.call(1)
  end
end

ledger = Ledger.new
entries = Array.new(100) { |i| i * 37 % 101 }
sum = 0
(500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += ledger.total(entries) }
puts sum
