# stringio: a tokenizer reads single characters by `getc` and `ungetc`.
# Place: Tokens#next_token, StringIO#getc, Tokens#count
# Subject: method
# JIT: any
require "stringio"

class Tokens
  def initialize(text) = @io = StringIO.new(text)

  def next_token
    char = @io.getc
    char = @io.getc while char == " "
    return unless char
    token = +""
    while char && char != " "
      token << char
      char = @io.getc
    end
    token
  end

  def count
    count = 0
    count += 1 while next_token
    count
  end
end

text = Array.new(200) { |i| "token#{i}" }.join("  ")
sum = 0
(6_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += Tokens.new(text).count }
puts sum
