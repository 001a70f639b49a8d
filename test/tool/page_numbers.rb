# What follows the window in the page of `vm-trace html`, decoded apart from the page's own script.
module PageNumbers
  # For each number of the page, its [[bin, value] ...].
  def self.of(data)
    bytes, at = data["bins"]["packed"].unpack1("m0").bytes, 0
    read = lambda do
      value = shift = 0
      while true
        byte = bytes.fetch(at)
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        return value if byte < 128
      end
    end
    all = Array.new(data["bins"]["numbers"]) do
      bin = 0
      Array.new(read.call) { [bin += read.call, read.call] }
    end
    raise "there are more numbers than the page has" if at < bytes.size
    [[], *all]
  end
end
