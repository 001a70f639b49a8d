# throws.rb THROWS: a loop that leaves a block by `break`, which compiled code can't do: one exit a
# throw.
require_relative "../inside"

throws = Integer(ARGV[0])

def give
  yield
end

def loop_of_throws(n)
  i = 0
  while i < n
    give { break }
    i += 1
  end
end

60.times { loop_of_throws(10) }
VMTraceBench.iterate(warmup: 2, runs: 5) { loop_of_throws(throws) }
