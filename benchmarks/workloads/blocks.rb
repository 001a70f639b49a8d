# What do blocks, yield and the iterators of arrays and ranges cost?
require_relative "../inside"

def twice_each(list)
  list.each { |x| yield x + x }
end

def work(list)
  sum = 0
  twice_each(list) { |x| sum += x if x % 3 == 0 }
  sum + list.map { |x| x ^ 5 }.select(&:even?).inject { |a, b| a + b }
end

LIST = (1..100).to_a.freeze
VMTraceBench.iterate { 1_500.times { work(LIST) } }
