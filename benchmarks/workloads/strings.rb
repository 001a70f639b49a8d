# What do building, splitting and scanning strings cost?
require_relative "../inside"

def line(i)
  "#{i}: the quick brown fox #{i * 7} jumps over #{i.to_s(16)}"
end

def words(text)
  text.split(" ").map { |word| word.capitalize.tr("aeiou", "*") }.join("_")
end

VMTraceBench.iterate do
  10_000.times { |i| words(line(i)).include?("Fox") }
end
