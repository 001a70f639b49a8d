# ractors.rb RACTORS EXITS: so many ractors at once, each of which takes EXITS exits, one a call,
# with few frames on its stack.
require_relative "../inside"

Warning[:experimental] = false
ractors, exits = ARGV.map { |argument| Integer(argument) }

def add(x)
  x + 1
end

def loop_of_exits(x, n)
  i = 0
  while i < n
    add(x)
    i += 1
  end
end

LARGE = 2**62 - 1
60.times { loop_of_exits(1, 10) }
# The first ractor invalidates compiled code that assumed a single one.
Ractor.new { 60.times { loop_of_exits(1, 10) } }.value
VMTraceBench.iterate(warmup: 2, runs: 5) do
  Array.new(ractors) { Ractor.new(exits) { |n| loop_of_exits(LARGE, n) } }.each(&:value)
end
