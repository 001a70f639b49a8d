# The same by an object and one update.
require "digest"

class Archive
  def checksum(text)
    digest = Digest::SHA256.new
    digest << text
    digest.hexdigest
  end
end

archive = Archive.new
text = "sixteen letters\n" * 65_536
value = nil
(100 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { value = archive.checksum(text) }
puts value
