# A thread sorts a large array, one call in C that holds the GVL until it is done. Requests of the main
# thread wait that long, whatever the time slice.
# Place: Ranking#best, Array#sort
# Subject: gvl
# JIT: any

class Ranking
  def initialize(size) = @scores = Array.new(size) { |i| (i * 7919 % size).to_s }

  def best = @scores.sort.last(10)
end

class Server
  def request(number)
    sleep 0.001
    number % 7
  end
end

ranking = Ranking.new((60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil)
background = Thread.new { loop { ranking.best } }
server = Server.new
sum = 0
(12 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |number| sum += server.request(number) }
background.kill
puts sum
