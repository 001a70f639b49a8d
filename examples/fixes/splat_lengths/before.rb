# One call passes on lists of several lengths with a splat. YJIT compiles it for the first length.
# Place: Router#dispatch
# Subject: exits
# JIT: yjit

class Router
  def area(width, height = 1, depth = 1) = width * height * depth

  def dispatch(arguments, weights)
    area = area(*arguments)
    i = 0
    while i < weights.size
      area = (area + weights[i]) % 10_007
      i += 1
    end
    area
  end
end

router = Router.new
lists = [[3], [3, 4], [3, 4, 5], [7, 8]]
weights = Array.new(30) { |i| i * i }
sum = 0
(700_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do
  lists.each { |list| sum += router.dispatch(list, weights) }
end
puts sum
