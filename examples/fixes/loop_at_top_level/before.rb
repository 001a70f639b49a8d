# The loop of a script is at its top level, which runs once. A JIT compiles what is called often, so the
# loop stays in the interpreter. (Where its body is short, a method for it gains little.)
# Place: <main>
# Subject: interpreted
# JIT: any

count = (30_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil
sum = i = 0
while i < count
  sum = (sum * 3 + i) % 7919
  sum += 1 if sum.even?
  i += 1
end
puts sum
