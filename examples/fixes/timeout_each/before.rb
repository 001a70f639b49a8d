# timeout: each small step has a Timeout of its own, which another thread watches.
# Place: Steps#run, Timeout.timeout, Timeout#timeout
# Subject: method
# JIT: any
require "timeout"

class Steps
  def step(i) = i * i % 7

  def run(count)
    sum = 0
    count.times { |i| sum += Timeout.timeout(5) { step(i) } }
    sum
  end
end

steps = Steps.new
puts steps.run((200_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil)
