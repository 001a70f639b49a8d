# The method is one of the class that calls it.

class Invoice
  def cents(amount) = amount * 100

  def total(amounts)
    sum = i = 0
    while i < amounts.size
      sum += cents(amounts[i])
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
