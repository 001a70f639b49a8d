# A parser reads bytes until `getbyte` returns nil. Each text ends with an exit, behind which little
# is left to do: many exits, and not much to gain.
# Place: Words#count
# Subject: exits
# JIT: yjit zjit

class Words
  def count(text)
    words = at = 0
    inside = false
    while (byte = text.getbyte(at))
      letter = byte > 32
      words += 1 if letter && !inside
      inside = letter
      at += 1
    end
    words
  end
end

words = Words.new
texts = Array.new(16) { |i| "the text has  #{i} words, and a few more of them than #{i * i}" }
sum = 0
(400_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { texts.each { |text| sum += words.count(text) } }
puts sum
