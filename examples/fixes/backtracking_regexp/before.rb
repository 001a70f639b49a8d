# A regular expression strips trailing blanks and looks at each run of blanks from each of its
# characters: quadratic time.
# Place: Text#strip_end, String#sub
# Subject: method
# JIT: any

class Text
  def strip_end(line) = line.sub(/\s+\z/, "")
end

text = Text.new
lines = Array.new(20) { |i| "name#{" " * (300 + i)}value#{" " * i}" }
sum = 0
(4_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { lines.each { |line| sum += text.strip_end(line).size } }
puts sum
