# A method returns a pair, or nil if it finds nothing. `name, line = nil` exits, and the rest of the method is
# interpreted.
# Place: Index#distance, Index#find
# Subject: exits
# JIT: yjit zjit

class Index
  def initialize
    @entries = { 1 => ["first", 10], 3 => ["third", 30] }
  end

  def find(number)
    @entries[number]
  end

  def distance(number)
    name, line = find(number)
    sum = i = 0
    while i < 30
      sum += line ? line - i : i
      i += 1
    end
    name ? sum : -sum
  end
end

index = Index.new
sum = 0
(900_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += index.distance(i & 3) }
puts sum
