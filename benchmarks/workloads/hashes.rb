# What do hashes with symbols, strings and integers as keys cost?
require_relative "../inside"

def record(i)
  { id: i, name: "n#{i % 100}", score: i * 3 % 17 }
end

def group(records)
  groups = Hash.new(0)
  records.each { |record| groups[record[:name]] += record[:score] }
  groups
end

VMTraceBench.iterate do
  records = Array.new(20_000) { |i| record(i) }
  group(records).sum { |_, score| score }
end
