# cold.rb FRAMES: that many methods, each of which is seen for the first time when the method that
# it calls exits.
require_relative "../inside"

frames = Integer(ARGV[0])

def add(x)
  x + 1
end

60.times { |i| add(i) }
LARGE = 2**62 - 1

source = +"def all_of_them(x)\n"
frames.times { |i| source << "  call_#{i}(x)\n" }
source << "end\n"
frames.times { |i| source << "def call_#{i}(x)\n  add(x)\nend\n" }
eval(source)

# The first exit of all: sets up what is made once, not for each frame.
1000.times { add(LARGE) }
GC.start
GC.disable
VMTraceBench.iterate(warmup: 0, runs: 1) { all_of_them(LARGE) }
