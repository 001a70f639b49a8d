# The first of a row of commits that has a property which the first one lacks and the last one has, by as few
# questions as it takes.

module Bench
  class Bisection
    # found: its index. doubtful: indexes before it of which nothing is known.
    Answer = Struct.new(:found, :doubtful)

    # The block gets an index and answers true, false or nil (unknown); it is not asked about the first and the last.
    def self.run(size)
      low, high = 0, size - 1
      unknown = []
      loop do
        left = [*low + 1...high] - unknown
        return Answer.new(high, unknown.select { |at| at.between?(low, high) }.sort) if left.empty?
        middle = left.min_by { |at| [(at - (low + high) / 2.0).abs, at] }
        case yield(middle)
        when true then high = middle
        when false then low = middle
        else unknown << middle
        end
      end
    end
  end
end
