# uri: each link is parsed in full by URI.parse, though only its host is asked for.
# Place: Links#host, URI.parse, URI::RFC3986_Parser#parse, URI::RFC3986_Parser#split
# Subject: method
# JIT: any
require "uri"

class Links
  def host(link) = URI.parse(link).host
end

links = Links.new
list = Array.new(40) { |i| "https://host#{i}.example.com/path/#{i}?page=#{i}" }
size = 0
(6_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { list.each { |link| size += links.host(link).size } }
puts size
