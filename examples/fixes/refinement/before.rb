# A hot call is one of a refinement.
# Place: Invoice#total, Integer#cents, cents
# Subject: method
# JIT: any

module Money
  refine Integer do
    def cents = self * 100
  end
end

class Invoice
  using Money

  def total(amounts)
    sum = i = 0
    while i < amounts.size
      sum += amounts[i].cents
      i += 1
    end
    sum
  end
end

invoice = Invoice.new
amounts = (1..100).to_a
sum = 0
(800_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += invoice.total(amounts) }
puts sum
