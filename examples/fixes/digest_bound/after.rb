# The same in four updates for each text.
require "digest"

class Archive
  def checksum(text)
    digest = Digest::SHA256.new
    part = text.bytesize / 4
    4.times { |i| digest << text.byteslice(i * part, part) }
    digest.hexdigest
  end
end

archive = Archive.new
text = "sixteen letters\n" * 65_536
value = nil
(100 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { value = archive.checksum(text) }
puts value
