# late.rb KIND RACTORS EXITS [FILE]: so many ractors at once, each of which takes EXITS exits. KIND
# is `add` (a guard of compiled code) or `throw` (`break` out of a block, which the interpreter
# catches: the exit of an exception handler). With FILE, RubyVM::Trace.start begins the trace when
# everything is compiled; without it the flags decide.
require_relative "../inside"

Warning[:experimental] = false
kind, ractors, exits, file = ARGV
ractors, exits = Integer(ractors), Integer(exits)

def add(x)
  x + 1
end

def give
  yield
end

def loop_of_add(x, n)
  i = 0
  while i < n
    add(x)
    i += 1
  end
end

def loop_of_throw(_, n)
  i = 0
  while i < n
    give { break }
    i += 1
  end
end

LARGE = 2**62 - 1 # one more is too large for the small integers that `add` was compiled for
LOOP = :"loop_of_#{kind}"
60.times { __send__(LOOP, 1, 10) }
# The first ractor invalidates compiled code that assumed a single one.
Ractor.new { 60.times { __send__(LOOP, 1, 10) } }.value
RubyVM::Trace.start(file: file) if file
VMTraceBench.iterate(warmup: 2, runs: 5) do
  Array.new(ractors) { Ractor.new(exits) { |n| __send__(LOOP, LARGE, n) } }.each(&:value)
end
RubyVM::Trace.stop if file
