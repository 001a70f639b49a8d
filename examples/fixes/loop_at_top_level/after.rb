# The body of the loop is a method. The loop itself is still interpreted, and calls of compiled code from
# there cost as much as the body: nearly nothing is gained.

def step(sum, i)
  sum = (sum * 3 + i) % 7919
  sum.even? ? sum + 1 : sum
end

count = (30_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil
sum = i = 0
while i < count
  sum = step(sum, i)
  i += 1
end
puts sum
