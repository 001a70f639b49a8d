# One update with the whole text.
require "digest"

class Checksum
  def of(text)
    digest = Digest::MD5.new
    digest << text
    digest.hexdigest
  end
end

checksum = Checksum.new
text = "the same text " * 100
value = nil
(7_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { value = checksum.of(text) }
puts value
