# compiling.rb METHODS: so many methods are made, compiled, and exit once, as when an application starts. Processor
# time of the whole process from the first call on.
require_relative "../inside"

methods = Integer(ARGV[0])
methods.times { |i| eval("def m#{i}(x, y) = (a = x + #{i}; b = a * 2; c = [a, b, y].max; c.to_s.size + b - a + x)") }
names = Array.new(methods) { |i| :"m#{i}" }
from = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
3.times { names.each { |name| 12.times { |k| send(name, k, 1) } } }
names.each { |name| send(name, 2**62 - 1, 1) }
VMTraceBench.report("iteration", Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - from)
