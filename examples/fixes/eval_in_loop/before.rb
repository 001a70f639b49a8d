# A rule is evaluated with `eval` each time: its text is parsed and compiled again, and no JIT compiles
# code that runs once.
# Place: Rules#apply, Kernel#eval
# Subject: method
# JIT: any

class Rules
  def apply(rule, price, count) = eval(rule)
end

rules = Rules.new
texts = ["price * count", "price * count - count / 10", "count > 5 ? price * count * 9 / 10 : price * count"]
sum = 0
(60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |i|
  texts.each { |text| sum += rules.apply(text, i, i % 11) }
end
puts sum
