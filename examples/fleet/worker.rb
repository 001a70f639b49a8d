# A preforked service, as small as it can be and still have what the questions ask for: requests with spans, threads
# that wait for the GVL, garbage collections, and exits. `RELEASE=43` has a change that makes compiled code exit.
#   ruby --yjit --yjit-call-threshold=2 --vm-trace=default,states,compiles --vm-trace-file=DIR/%p.fxt worker.rb WORKERS
RELEASE = ENV.fetch("RELEASE", "42").to_i
LARGEST_FIXNUM = 2**62 - 1
SMALLEST_FIXNUM = -2**62

class Shop
  # Compiled for integers that fit into a machine word; three prices of each order do not.
  def total(prices) = prices.sum { |price| price + 1 }

  # Compiled for texts of three bytes and more.
  def country(code) = code.getbyte(2)

  # Likewise: since release 43 some prices are too small for it.
  def discount(price) = price - 1

  def page(lines) = lines.map { |line| "<li>#{line}</li>" }.join
end

def request(shop, number)
  prices = Array.new(20) { |i| i < 3 ? LARGEST_FIXNUM : i }
  shop.total(prices)
  shop.country(number % 5 == 0 ? "de" : "deu")
  prices.each { |price| shop.discount(RELEASE >= 43 && number % 4 == 0 ? SMALLEST_FIXNUM : price) }
  shop.page(prices * 2)
end

def work(requests)
  shop = Shop.new
  threads = Array.new(2) do |thread|
    Thread.new do
      requests.times { |i| RubyVM::Trace.span("request") { request(shop, i * 2 + thread) } }
    end
  end
  threads.each(&:join)
  GC.start
end

workers = Array.new(ARGV.fetch(0, "1").to_i) { |worker| fork { work(60 + worker % 7 * 10) } }
workers.each { |pid| Process.wait(pid) }
