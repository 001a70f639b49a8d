# A lambda is made of each rule, once.

class Rules
  def initialize = @compiled = {}

  def apply(rule, price, count)
    (@compiled[rule] ||= eval("->(price, count) { #{rule} }")).call(price, count)
  end
end

rules = Rules.new
texts = ["price * count", "price * count - count / 10", "count > 5 ? price * count * 9 / 10 : price * count"]
sum = 0
(60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |i|
  texts.each { |text| sum += rules.apply(text, i, i % 11) }
end
puts sum
