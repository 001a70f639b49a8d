# Renders pages with Mustache. -I chooses how (before, by_count, after); all print the same checksum.
#   pages.rb [ROUNDS]
require "digest"
require "mustache"
require "page"

PRODUCTS = (1..60).map do |i|
  { title: "Product <#{i}>", cheap: i.odd?, variants: (1..i % 6).map { |v| { name: "v#{v}", price: v * 1.5 } } }
end

text = nil
ARGV.fetch(0, "15").to_i.times { 40.times { text = render_page(products: PRODUCTS) } }
puts Digest::MD5.hexdigest(text)
