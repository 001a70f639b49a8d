# Each step is masked.

class Checksum
  def of(bytes)
    sum = 17
    i = 0
    while i < bytes.size
      sum = (sum * 31 + bytes[i]) & 0xffffffff
      i += 1
    end
    sum
  end
end

checksum = Checksum.new
lists = Array.new(8) { |n| Array.new(40) { |i| (i * 7 + n) % 251 } }
all = 0
(60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do
  lists.each { |list| all = (all * 3 + checksum.of(list)) & 0xffffffff }
end
puts all
