# The text of the last second is kept.

class Log
  def line(time, text)
    second = time.to_i
    @prefix = time.strftime("%Y-%m-%d %H:%M:%S") if @second != second
    @second = second
    "#{@prefix} #{text}"
  end
end

log = Log.new
start = Time.utc(2026, 1, 1)
size = 0
(1_500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += log.line(start + i / 1000, "served").size }
puts size
