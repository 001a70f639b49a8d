# A program that computes checksums of large texts, in one call in C for each: nothing can be gained
# here.
# Place: none
# Subject: method
# JIT: any
require "digest"

class Archive
  def checksum(text) = Digest::SHA256.hexdigest(text)
end

archive = Archive.new
text = "sixteen letters\n" * 65_536
value = nil
(100 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { value = archive.checksum(text) }
puts value
