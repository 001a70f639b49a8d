# The index is built in small slices with a pause after each. (Where all CPUs have something to do,
# another process is the better place.)

class Index
  def initialize = @terms = {}

  def add(number) = @terms[number % 4096] = number * 7 % 255

  def rebuild(passes)
    passes.times do
      1_000.times { |number| add(number) }
      sleep 0.0005
    end
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
