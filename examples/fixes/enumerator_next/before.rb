# Two lists are read in step by external enumerators: each `next` switches to a fiber and back.
# Place: Merge#count, Enumerator#next, Enumerator#peek
# Subject: method
# JIT: any

class Merge
  def count(left, right)
    a, b = left.each, right.each
    same = 0
    loop do
      case a.peek <=> b.peek
      when 0 then same += 1; a.next; b.next
      when -1 then a.next
      else b.next
      end
    end
    same
  end
end

merge = Merge.new
left, right = (0..2_000).step(2).to_a, (0..2_000).step(3).to_a
sum = 0
(4_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += merge.count(left, right) }
puts sum
