# The words are in a Set.
require "set"

class Filter
  STOP = Array.new(300) { |i| "word#{i}" }.to_set.freeze

  def stop?(word) = STOP.include?(word)

  def count(words) = words.count { |word| stop?(word) }
end

filter = Filter.new
words = Array.new(100) { |i| i.even? ? "word#{i * 2}" : "other#{i}" }
sum = 0
(9_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += filter.count(words) }
puts sum
