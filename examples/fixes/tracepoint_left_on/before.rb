# A TracePoint for calls that nobody looks at any more is still enabled: compiled code was thrown away,
# and all methods are interpreted.
# Place: Parser#skip, Parser#run, <main>
# Subject: exits
# JIT: any

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

calls = 0
TracePoint.new(:call) { calls += 1 }.enable
parser = Parser.new
sum = 0
(5_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += parser.run(1_000) }
puts sum
