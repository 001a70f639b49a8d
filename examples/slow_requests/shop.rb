# A shop whose every thousandth order is slow; doc/guide/slow-requests.md has the commands.
#   shop.rb REQUESTS FOLDER    saves traces of slow requests in FOLDER
#   shop.rb REQUESTS           prints where a sampling profiler finds the time
require "socket"
require_relative "../../gem/lib/vm_trace"

class Page
  ITEMS = Array.new(160) { |i| ["Tea & \"biscuits\" no. #{i}", 199 + i * 10] }

  def self.escape(text) = text.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
  def self.price(cents) = format("%d.%02d", *cents.divmod(100))
  def self.render = ITEMS.map { |name, cents| "<tr><td>#{escape(name)}<td>#{price(cents)}" }.join("\n")
end

# Orders as they come in, and sorted by price. The new ones are sorted in when there are a thousand of them.
class Journal
  def initialize
    @new = []
    @sorted = Array.new(5000) { |i| i }
  end

  def append(cents)
    @new << cents
    compact if @new.size == 1000
  end

  def compact
    @new.each { |cents| @sorted.insert(position(cents), cents) }
    @new = []
    @sorted = @sorted.first(5000) # for the page of small orders
  end

  def position(cents)
    i = 0
    i += 1 while i < @sorted.size && @sorted[i] < cents
    i
  end
end

class Shop
  def initialize = @journal = Journal.new

  def call(env)
    @journal.append(env["PATH_INFO"].hash % 10_000)
    [200, { "content-type" => "text/html" }, [Page.render]]
  end
end

# Another process sends a signal each millisecond, and this one notes which method is running.
def profile
  samples = Hash.new(0)
  trap("USR2") do
    at = caller_locations(1, 1).first
    samples["#{at.label} (#{File.basename(at.path)}:#{at.lineno})"] += 1
  end
  clock = fork { Process.kill(:USR2, Process.ppid) while sleep(0.001) }
  yield
  Process.kill(:KILL, clock)
  counts = samples.to_a # the last signal may still come
  counts.sort_by(&:last).reverse.first(5).each do |method, count|
    puts format("%5.1f %%  %s", 100.0 * count / counts.sum(&:last), method)
  end
end

requests, folder = Integer(ARGV[0]), ARGV[1]
app = Shop.new
app = VmTrace::SlowRequests.new(app, folder: folder, ms: 3, percentile: 99, files: 10) if folder
socket, client = UNIXSocket.pair
asking = fork do # another process asks
  requests.times do |i|
    client.puts(i)
    client.gets or exit!
  end
  exit!
end
client.close
serve = lambda do
  while (number = socket.gets&.chomp)
    _, _, body = app.call("PATH_INFO" => "/orders/#{number}", "HTTP_X_REQUEST_ID" => number)
    socket.puts(body.sum(&:size))
  end
end
folder ? serve.() : profile(&serve)
Process.wait(asking)
