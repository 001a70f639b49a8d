# A small server whose requests take a millisecond, beside one thread that computes statistics in the
# background. doc/guide/threads.md finds out what keeps the requests waiting.
#   ruby examples/greedy.rb [REQUESTS]
require "rbconfig"
require "socket"

class Shop
  PRICES = Array.new(400) { |i| i * 37 % 101 }.freeze

  def page(id)
    rows = PRICES.rotate(id).map { |price| "<td>#{price}</td>" }
    "<table>#{rows.join}</table>\n"
  end
end

class Statistics
  def refresh = @median = prices.sort.at(75_000)

  def prices = Array.new(150_000) { |i| root(i) }

  # By Newton's method, in Ruby: nothing here ever waits, so nothing gives up the GVL.
  def root(number)
    x = number.to_f + 1
    30.times { x = (x + number / x) / 2 }
    x
  end
end

CLIENT = <<~'RUBY'
  require "socket"
  port, count = ARGV.map { |argument| Integer(argument) }
  times = Array.new(count) do |i|
    from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.puts i
    socket.read
    sleep 0.005
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - from - 0.005
  end
  puts "%d requests: median %.1f ms, slowest %.1f ms" % [count, *times.sort.values_at(count / 2, -1).map { |s| s * 1000 }]
RUBY

requests = Integer(ARGV.fetch(0, "100"))
server = TCPServer.new("127.0.0.1", 0)
client = Process.spawn(RbConfig.ruby, "--disable=gems", "-e", CLIENT, server.addr[1].to_s, requests.to_s)

Thread.new do
  Thread.current.name = "statistics"
  statistics = Statistics.new
  loop do
    statistics.refresh
    sleep 0.05
  end
end

shop = Shop.new
requests.times do |i|
  socket = server.accept
  Thread.new do
    Thread.current.name = "request"
    socket.puts shop.page(Integer(socket.gets))
    socket.close
  end
end
Process.wait(client)
