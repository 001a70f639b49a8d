# StringScanner reads whole tokens.
require "strscan"

class Tokens
  def initialize(text) = @scanner = StringScanner.new(text)

  def next_token
    @scanner.skip(/ +/)
    @scanner.scan(/[^ ]+/)
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
