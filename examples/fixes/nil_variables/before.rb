# A method declares its variables by `a, b, c = nil`. ZJIT compiles that for arrays only, so each call
# leaves compiled code in its first line.
# Place: Machine#run
# Subject: exits
# JIT: zjit

class Machine
  def run(bytes)
    state, mark, count = nil
    state = mark = count = i = 0
    while i < bytes.size
      state = (state * 2 + bytes[i]) % 257
      count += 1 if state > mark
      mark = state
      i += 1
    end
    count
  end
end

machine = Machine.new
bytes = Array.new(60) { |i| i * 37 % 251 }
sum = 0
(500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += machine.run(bytes) }
puts sum
