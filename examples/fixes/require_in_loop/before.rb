# A method requires the library that it needs. Each call looks whether it is loaded.
# Place: Codec#encode, Kernel#require
# Subject: method
# JIT: any

class Codec
  def encode(text)
    require "digest"
    require "uri"
    URI.encode_www_form_component(text).size
  end
end

codec = Codec.new
sum = 0
(400_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += codec.encode("a b#{i % 10}") }
puts sum
