# The numbers in the page of `vm-trace html`, decoded apart from the page's own scripts, whose comments describe them.
require "zlib"

module PageNumbers
  # What a thread did: ns for each state, and [name, count, ns, longest, first pauses] of what it did there.
  Segment = Struct.new(:from, :to, :ns, :pieces, :names, :by)

  # Gives the next varint of the bytes with each call; nil at the end.
  def self.varints(bytes)
    at = 0
    lambda do
      value = shift = 0
      while (byte = bytes[at])
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        return value if byte < 128
      end
    end
  end

  # What follows the window: for each number of the page, its [[bin, value] ...].
  def self.of(data)
    read = varints(data["bins"]["packed"].unpack1("m0").bytes)
    all = Array.new(data["bins"]["numbers"]) do
      bin = 0
      Array.new(read.call) { [bin += read.call, read.call] }
    end
    raise "there are more numbers than the page has" if read.call
    [[], *all]
  end

  # Those of a track of the timeline, or of the pauses. `by` is a number of the page's strings.
  def self.segments(numbers)
    numbers, segments, at = numbers.dup, [], 0
    until numbers.empty?
      what, gap, length = numbers.shift(3)
      segment = Segment.new(at + gap, at + gap + length, [0] * 4, 1, [], nil)
      segment.ns[what & 3] = length
      if what & 4 != 0
        segment.pieces = numbers.shift
        segment.ns = numbers.shift(4)
        segment.names = Array.new(numbers.shift) { numbers.shift(5) }
      elsif what & 8 != 0
        name, ns = numbers.shift(2)
        segment.names = [[name, 1, ns, ns, what[5]]]
      end
      segment.by = numbers.shift if what & 16 != 0
      segments << segment
      at = segment.to
    end
    segments
  end

  # The slices in the page: [[[pid, tid, number of the track], method, begin, length] ...], and the extras by slice.
  def self.calls(page, data)
    calls, texts = data.values_at("calls", "strings")
    read = varints(Zlib.inflate(page[%r{id="calls-data">([^<]*)<}, 1].unpack1("m")).bytes)
    tracks = calls["tracks"].each_with_index.flat_map { |(pid, tid, _, slices), i| [[pid, tid, i]] * slices }
    begins = calls["tracks"].flat_map { |*, slices| at = 0; Array.new(slices) { at += read.call } }
    lengths = tracks.map { read.call }
    names = tracks.map { texts[calls["methods"][read.call][0]] }
    at = 0
    extras = Array.new(calls["extras"]) { [at += read.call, read.call, read.call, read.call] }
    raise "there are more numbers than the page has" if read.call || tracks.size != calls["slices"]
    [tracks.zip(names, begins, lengths), extras]
  end
end
