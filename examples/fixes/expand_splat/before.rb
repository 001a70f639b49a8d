# `head, *rest = list` takes a list apart. The compiler leaves at it, and the rest of the method is interpreted.
# Place: Path#depth
# Subject: exits
# JIT: yjit zjit

class Path
  def depth(names)
    root, *rest = names
    sum = i = 0
    while i < 30
      sum += i if i != rest.size
      i += 1
    end
    root == :a ? sum : -sum
  end
end

path = Path.new
names = %i[a b c d]
sum = 0
(700_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += path.depth(names) }
puts sum
