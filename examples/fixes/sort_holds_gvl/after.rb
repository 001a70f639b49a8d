# Another process sorts, and sends what is needed of the result.

class Ranking
  def initialize(size) = @scores = Array.new(size) { |i| (i * 7919 % size).to_s }

  def best
    IO.popen("-") do |io|
      next Marshal.load(io) if io
      Marshal.dump(@scores.sort.last(10), $stdout)
      $stdout.flush
      exit!(0)
    end
  end
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
