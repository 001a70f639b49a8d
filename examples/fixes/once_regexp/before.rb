# A regular expression with the option `o`. The JITs have no code for the instruction `once`, so each call
# leaves compiled code before its loop.
# Place: Log#errors
# Subject: exits
# JIT: yjit zjit

class Log
  LEVEL = "ERROR|FATAL"

  def errors(lines)
    pattern = /\A\[(?:#{LEVEL})\]/o
    count = i = weight = 0
    while i < lines.size
      line = lines[i]
      weight = (weight * 5 + line.bytesize) % 9973
      count += 1 if i % 16 == 0 && line.match?(pattern)
      i += 1
    end
    count + weight
  end
end

log = Log.new
lines = Array.new(64) { |i| "[#{%w[INFO WARN ERROR FATAL][i / 16]}] request #{i} took #{i * 3} ms" }
sum = 0
(350_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += log.errors(lines) }
puts sum
