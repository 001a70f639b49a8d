# rexml: one XPath query for each element, through a document that has them in order.
# Place: Feed#titles, REXML::XPathParser#parse, REXML::XPath.first, REXML::XPathParser#expr
# Subject: method
# JIT: any
# Needs: rexml/document
require "rexml/document"

class Feed
  def initialize(count)
    items = Array.new(count) { |i| "<item id='#{i}'><title>title #{i}</title></item>" }
    @document = REXML::Document.new("<feed>#{items.join}</feed>")
  end

  def titles(count) = Array.new(count) { |i| REXML::XPath.first(@document, "/feed/item[@id='#{i}']/title").text }
end

count = (150 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil
puts Feed.new(count).titles(count).join.size
