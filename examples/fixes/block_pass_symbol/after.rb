# The caller gives a literal block.

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
(1_200_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += bag.pick(40) { |item| item.odd? } }
puts sum
