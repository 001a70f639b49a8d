# Damaged traces.
require_relative "fxt_builder"

module Mutants
  module_function

  # Bytes flipped, words replaced by wild values, pieces removed, doubled, moved.
  def mutate(bytes, random)
    bytes = bytes.dup
    (1 + random.rand(8)).times do
      next if bytes.bytesize < 16
      at = random.rand(bytes.bytesize)
      word = 8 * random.rand(bytes.bytesize / 8)
      case random.rand(7)
      when 0, 1 then bytes.setbyte(at, bytes.getbyte(at) ^ 1 << random.rand(8))
      when 2 then bytes.setbyte(at, random.rand(256))
      when 3 then bytes[word, 8] = [random.rand(2**64)].pack("Q<")
      when 4 then bytes[word, 8] = [bytes[word, 8].ljust(8, "\0").unpack1("Q<") & ~0xfff0 | random.rand(5000) << 4].pack("Q<")
      when 5 then bytes[word, 8 * random.rand(20)] = ""
      when 6 then bytes.insert(word, bytes[8 * random.rand(bytes.bytesize / 8), 8 * random.rand(40)])
      end
    end
    bytes[0, 8] = FxtBuilder::MAGIC if random.rand(10) > 0 && bytes.bytesize >= 8
    random.rand(10) == 0 ? bytes[0, random.rand(bytes.bytesize + 1)] : bytes
  end
end
