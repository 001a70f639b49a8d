# Nothing is a pair, too.

class Index
  NONE = [nil, nil].freeze

  def initialize
    @entries = { 1 => ["first", 10], 3 => ["third", 30] }
  end

  def find(number)
    @entries.fetch(number, NONE)
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
