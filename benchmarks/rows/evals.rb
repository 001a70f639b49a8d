# evals.rb RACTORS EVALS: so many evals while RACTORS ractors are alive. Each makes an ISEQ that is
# freed soon, and the garbage collector reports each to the tracer. Processor time, because others
# may use the machine.
require_relative "../inside"

Warning[:experimental] = false
ractors, evals = ARGV.map { |argument| Integer(argument) }
alive = Array.new(ractors) { Ractor.new { Ractor.receive } }

def all(n)
  i = 0
  while i < n
    eval("1 + 1")
    i += 1
  end
end

all(evals)
5.times do
  from = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  all(evals)
  VMTraceBench.report("iteration", Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - from)
end
alive.each { |ractor| ractor.send(nil) }.each(&:value)
