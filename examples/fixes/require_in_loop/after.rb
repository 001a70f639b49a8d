# The libraries are required where the program begins.
require "digest"
require "uri"

class Codec
  def encode(text) = URI.encode_www_form_component(text).size
end

codec = Codec.new
sum = 0
(400_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += codec.encode("a b#{i % 10}") }
puts sum
