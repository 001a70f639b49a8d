# The method takes the list itself.

class Router
  def area(list) = list[0] * (list[1] || 1) * (list[2] || 1)

  def dispatch(arguments, weights)
    area = area(arguments)
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
