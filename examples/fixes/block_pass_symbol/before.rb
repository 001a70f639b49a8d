# A method passes its block on (`&block`), and its callers give a symbol (`&:odd?`), for which YJIT has
# no code.
# Place: Bag#pick
# Subject: exits
# JIT: yjit

class Bag
  def initialize(items) = @items = items

  def each_item(&block) = @items.each(&block)

  def pick(rounds, &block)
    each_item(&block)
    sum = i = 0
    while i < rounds
      sum = (sum * 5 + i) % 6151
      i += 1
    end
    sum
  end
end

bag = Bag.new([1, 2, 3])
sum = 0
(1_200_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += bag.pick(40, &:odd?) }
puts sum
