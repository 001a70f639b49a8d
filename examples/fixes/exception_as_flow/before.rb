# A method asks whether a text is a number by rescuing ArgumentError: each one has a backtrace.
# Place: Columns#number, Kernel#Integer, Kernel#raise
# Subject: method
# JIT: any

class Columns
  def number(text)
    Integer(text)
  rescue ArgumentError
    nil
  end

  def sum(texts) = texts.sum { |text| number(text) || 0 }
end

columns = Columns.new
texts = %w[12 name 7 street 99 - 5 x]
sum = 0
(250_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += columns.sum(texts) }
puts sum
