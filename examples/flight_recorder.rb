# A small web server that saves the exits of its slow requests; doc/guide/flight-recorder.md has the commands. Another process
# sends REQUESTS requests. For each one that takes much longer than the others, and for one that asks for it, the server
# saves the flight recorder's trace in FOLDER.
#   flight_recorder.rb FOLDER [REQUESTS]
require "socket"

if ARGV.first == "ask"
  port, requests = ARGV.drop(1).map(&:to_i)
  requests.times do |i|
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write("GET /customers/#{i}/total HTTP/1.0\r\n#{"Save-Trace: yes\r\n" if i == 1499}\r\n")
    socket.read.include?("200 OK") or abort "request #{i} failed"
    socket.close
  end
  exit
end

class Invoice
  def initialize(lines) = @lines = lines
  def line_total(quantity, price) = quantity * price
  def total = @lines.sum { |quantity, price| line_total(quantity, price) }
end

class Shop
  LINES = Array.new(5000) { |i| [3 + i % 7, 100 + i % 900] } # quantity, cents
  # One customer in a thousand pays in a currency that has 18 digits after the point.
  LONG_LINES = LINES.map { |quantity, cents| [quantity * 40, cents * 10**15] }

  def answer(path)
    customer = path[%r{\A/customers/(\d+)/total\z}, 1] or return ["404 Not Found", ""]
    ["200 OK", Invoice.new(customer.to_i % 1000 == 500 ? LONG_LINES : LINES).total.to_s]
  end
end

# Processor time of this thread, so that a busy machine makes no request slow.
class SlowRequests
  WARM = 200 # requests
  TIMES_THE_MEDIAN = 3

  def initialize(folder)
    @folder = folder
    @times = []
  end

  def watch(number, wanted: -> { false })
    RubyVM::Trace.reset
    start = now
    result = yield
    time = now - start
    slow = @times.size >= WARM && time > TIMES_THE_MEDIAN * @times.sort[@times.size / 2]
    @times.shift if @times.push(time).size > 500
    save(number, "slow") if slow
    save(number, "fast") if !slow && wanted.call
    result
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

  # A failure here must not fail the request.
  def save(number, kind)
    saved = RubyVM::Trace.save(File.join(@folder, "#{kind}-#{number}.fxt"))
    puts "#{saved[:path]}: #{saved[:exits]} exits"
  rescue SystemCallError => e
    warn e.message
  end
end

folder, requests = ARGV[0], ARGV.fetch(1, "3000")
server = TCPServer.new("127.0.0.1", 0)
asking = Process.spawn(RbConfig.ruby, "--disable=gems", __FILE__, "ask", server.addr[1].to_s, requests)
shop, slow_requests = Shop.new, SlowRequests.new(folder)
requests.to_i.times do |number|
  socket = server.accept
  path = socket.gets.split[1]
  headers = []
  headers << $_ while socket.gets("\r\n") && $_ != "\r\n"
  status, body = slow_requests.watch(number, wanted: -> { headers.any? { |line| line.start_with?("Save-Trace:") } }) { shop.answer(path) }
  socket.write("HTTP/1.0 #{status}\r\nContent-Length: #{body.size}\r\n\r\n#{body}")
  socket.close
end
Process.wait(asking)
