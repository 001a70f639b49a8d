# frames.rb: nanoseconds of a call that a JIT does without a frame, unless the program begins with
# --vm-trace=calls: of a method that returns a constant, and of a leaf in C. And of an ordinary call.
# The loop is part of each. Processor time of this thread, the median of some rounds.
require_relative "../inside"

CALLS, FIB = 200_000, [22, 57_313].freeze # argument => calls
LOOP = 100

class Receiver
  def constant = 5
end

def constant(receiver, _)
  i = 0
  while i < LOOP
    receiver.constant
    i += 1
  end
end

def leaf(_, text)
  i = 0
  while i < LOOP
    text.ascii_only?
    i += 1
  end
end

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def ns_of_a_call(calls, &body)
  body.call
  VMTraceBench.median(Array.new(5) { VMTraceBench.cpu_seconds(&body) }) * 1e9 / calls
end

receiver, text = Receiver.new, "ascii"
%i[constant leaf].each do |name|
  50.times { send(name, receiver, text) }
  VMTraceBench.report(name, ns_of_a_call(CALLS) { (CALLS / LOOP).times { send(name, receiver, text) } })
end
VMTraceBench.report(:call, ns_of_a_call(FIB[1]) { fib(FIB[0]) })
