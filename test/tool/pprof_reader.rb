# Reads a profile for pprof by its description, without its program (github.com/google/pprof, proto/profile.proto).
require "stringio"
require "zlib"

# Read by their specification.
module ProtocolBuffers
  # { field => [value, ...] }, bytes as strings.
  def fields(bytes)
    io = StringIO.new(bytes)
    result = Hash.new { |hash, key| hash[key] = [] }
    until io.eof?
      key = varint(io)
      raise "field #{key >> 3} has the wire type #{key & 7}" unless [0, 2].include?(key & 7)
      result[key >> 3] << (key & 7 == 2 ? io.read(varint(io)) : varint(io))
    end
    result
  end

  def varint(io)
    value = shift = 0
    loop do
      byte = io.readbyte
      value |= (byte & 0x7f) << shift
      return value if byte < 0x80
      shift += 7
    end
  end

  def varints(bytes)
    io = StringIO.new(bytes)
    values = []
    values << varint(io) until io.eof?
    values
  end
end

module PprofReader
  include ProtocolBuffers

  # [[[name, file, line], ... innermost first], [events, exits]] of each sample, after
  # profile.proto.
  def read_pprof(bytes)
    profile = fields(Zlib.gunzip(bytes))
    strings = profile[6].map { |text| text.dup.force_encoding("UTF-8") }
    assert_equal "", strings.first
    assert strings.all?(&:valid_encoding?)
    functions = profile[5].to_h { |f| fields(f).then { |g| [g[1][0], [strings[g[2][0]], strings[g[4][0]]]] } }
    locations = profile[4].to_h do |location|
      l = fields(location)
      line = fields(l[4][0])
      [l[1][0], [*functions.fetch(line[1][0]), [line[2][0]].pack("Q").unpack1("q")]]
    end
    types = profile[1].map { |t| fields(t).then { |g| [strings[g[1][0]], strings[g[2][0]]] } }
    samples = profile[2].map do |sample|
      s = fields(sample)
      [varints(s[1][0]).map { |id| locations.fetch(id) }, varints(s[2][0])]
    end
    [types, samples, profile]
  end
end
