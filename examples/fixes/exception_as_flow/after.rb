# `Integer` returns nil.

class Columns
  def number(text) = Integer(text, exception: false)

  def sum(texts) = texts.sum { |text| number(text) || 0 }
end

columns = Columns.new
texts = %w[12 name 7 street 99 - 5 x]
sum = 0
(250_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += columns.sum(texts) }
puts sum
