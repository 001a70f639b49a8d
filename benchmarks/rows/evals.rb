# evals.rb RACTORS EVALS: so many evals while RACTORS ractors are alive. Each makes an ISEQ that dies soon, and the garbage collector tells
# the tracer of each.
require_relative "../inside"

Warning[:experimental] = false
ractors, evals = ARGV.map { |argument| Integer(argument) }
alive = Array.new(ractors) { Ractor.new { Ractor.receive } }

VMTraceBench.iterate(warmup: 1, runs: 5) do
  i = 0
  while i < evals
    eval("1 + 1")
    i += 1
  end
end
alive.each { |ractor| ractor.send(nil) }.each(&:value)
