# One regular expression for the host.
require "uri"

class Links
  HOST = %r{\Ahttps?://([^/?#:]+)}

  def host(link) = link[HOST, 1]
end

links = Links.new
list = Array.new(40) { |i| "https://host#{i}.example.com/path/#{i}?page=#{i}" }
size = 0
(6_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { list.each { |link| size += links.host(link).size } }
puts size
