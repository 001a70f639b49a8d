# Two indexes.

class Merge
  def count(left, right)
    a = b = same = 0
    while a < left.size && b < right.size
      x, y = left[a], right[b]
      same += 1 if x == y
      a += 1 if x <= y
      b += 1 if y <= x
    end
    same
  end
end

merge = Merge.new
left, right = (0..2_000).step(2).to_a, (0..2_000).step(3).to_a
sum = 0
(4_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += merge.count(left, right) }
puts sum
