# The regular expression is a constant.

class Log
  LEVEL = "ERROR|FATAL"
  PATTERN = /\A\[(?:#{LEVEL})\]/

  def errors(lines)
    pattern = PATTERN
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
