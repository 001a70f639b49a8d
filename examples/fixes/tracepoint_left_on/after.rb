# The TracePoint is gone.

class Parser
  def skip(i) = i * 3 % 17 == 0 ? i + 2 : i + 1

  def run(count)
    steps = i = 0
    while i < count
      i = skip(i)
      steps += 1
    end
    steps
  end
end

parser = Parser.new
sum = 0
(5_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += parser.run(1_000) }
puts sum
