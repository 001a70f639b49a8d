# The loop compares the index with the size.

class Words
  def count(text)
    words = at = 0
    inside = false
    size = text.bytesize
    while at < size
      letter = text.getbyte(at) > 32
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
