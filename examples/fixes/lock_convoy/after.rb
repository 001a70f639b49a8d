# The lock protects the table only.

class Store
  def initialize
    @lock = Mutex.new
    @rows = {}
  end

  def fetch(key)
    @lock.synchronize { @rows[key] } || load(key).tap { |row| @lock.synchronize { @rows[key] = row } }
  end

  def load(key)
    sleep 0.01
    key * 3
  end
end

store = Store.new
count = (25 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil
workers = Array.new(4) do |worker|
  Thread.new { (0...count).sum { |i| store.fetch(worker * count + i) } }
end
puts workers.sum(&:value)
