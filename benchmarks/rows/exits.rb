# exits.rb DEPTH EXITS: one exit for each call, for ever, with DEPTH frames on the stack: the sum is
# too large for the small integers that the method was compiled for.
require_relative "../inside"

depth, exits = ARGV.map { |argument| Integer(argument) }

def add(x)
  x + 1
end

# <main>, iterate, Integer#times, two blocks, level_0, add; the others are callers in between.
FRAMES_OF_ITS_OWN = 7
source = +"def level_0(x, n)\n  i = 0\n  while i < n\n    add(x)\n    i += 1\n  end\nend\n"
callers = depth - FRAMES_OF_ITS_OWN
raise ArgumentError, "at least #{FRAMES_OF_ITS_OWN} frames" if callers < 0
(1..callers).each { |level| source << "def level_#{level}(x, n) = level_#{level - 1}(x, n)\n" }
eval(source)

LARGE = 2**62 - 1 # the largest that fits: one more does not
top = :"level_#{callers}"
60.times { send(top, 1, 10) }
VMTraceBench.iterate(warmup: 2, runs: 5) { send(top, LARGE, exits) }
