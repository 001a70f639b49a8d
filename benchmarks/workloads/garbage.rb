# What do allocation and garbage collection cost, with some objects that survive?
require_relative "../inside"

class Node
  attr_accessor :left, :right

  def initialize(left, right)
    @left, @right = left, right
  end

  def count
    1 + (@left ? @left.count : 0) + (@right ? @right.count : 0)
  end
end

def tree(depth)
  depth == 0 ? Node.new(nil, nil) : Node.new(tree(depth - 1), tree(depth - 1))
end

KEPT = tree(14)
VMTraceBench.iterate { 8.times { tree(12).count } }
