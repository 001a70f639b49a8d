# A thread rebuilds an index in the background and never waits: each request of the main thread waits
# for the GVL until the time slice of that thread is over.
# Place: Index#rebuild, Index#add
# Subject: gvl
# JIT: any

class Index
  def initialize = @terms = {}

  def add(number) = @terms[number % 4096] = number * 7 % 255

  def rebuild(passes)
    passes.times { 1_000.times { |number| add(number) } }
    @terms.size
  end
end

class Server
  def request(number)
    sleep 0.001
    number % 7
  end
end

background = Thread.new { loop { Index.new.rebuild(10_000) } }
server = Server.new
sum = 0
(12 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |number| sum += server.request(number) }
background.kill
puts sum
