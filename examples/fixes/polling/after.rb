# `pop` waits for the result.

class Client
  def initialize(queue) = @queue = queue

  def result = @queue.pop
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
