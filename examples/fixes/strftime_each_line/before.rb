# A log formats the time of each line, though most lines have the same second.
# Place: Log#line, Time#strftime
# Subject: method
# JIT: any

class Log
  def line(time, text) = "#{time.strftime("%Y-%m-%d %H:%M:%S")} #{text}"
end

log = Log.new
start = Time.utc(2026, 1, 1)
size = 0
(1_500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += log.line(start + i / 1000, "served").size }
puts size
