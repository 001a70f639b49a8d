# A thread asks for the next result ten times a second instead of waiting for it.
# Place: Client#result, Kernel#sleep
# Subject: blocked
# JIT: any

class Client
  def initialize(queue) = @queue = queue

  def result
    sleep 0.1 while @queue.empty?
    @queue.pop
  end
end

requests, results = Queue.new, Queue.new
Thread.new { loop { number = requests.pop; sleep 0.01; results << number * 3 } }
client = Client.new(results)
sum = 0
(12 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |number|
  requests << number
  sum += client.result
end
puts sum
