# digest: a checksum is updated with single characters.
# Place: Checksum#of, Digest::Instance#<<, Digest::Base#<<, Digest::Base#update
# Subject: method
# JIT: any
require "digest"

class Checksum
  def of(text)
    digest = Digest::MD5.new
    text.each_char { |char| digest << char }
    digest.hexdigest
  end
end

checksum = Checksum.new
text = "the same text " * 100
value = nil
(7_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { value = checksum.of(text) }
puts value
