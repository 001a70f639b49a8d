# What follows the window in the page of `vm-trace html`, decoded apart from the page's own script.
module PageNumbers
  # For each number of the page, its [[bin, value] ...].
  def self.of(data)
    bytes = data["bins"]["packed"].unpack1("m0").bytes.each
    read = lambda do
      value = shift = 0
      while true
        byte = bytes.next
        value |= (byte & 127) << shift
        shift += 7
        return value if byte < 128
      end
    end
    all = Array.new(data["bins"]["numbers"]) do
      bin = 0
      Array.new(read.call) { [bin += read.call, read.call] }
    end
    raise "there are more numbers than the page has" if more?(bytes)
    [[], *all]
  end

  def self.more?(bytes)
    bytes.peek
    true
  rescue StopIteration
    false
  end
end
