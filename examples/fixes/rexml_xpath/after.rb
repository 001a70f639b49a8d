# One pass over the elements.
require "rexml/document"

class Feed
  def initialize(count)
    items = Array.new(count) { |i| "<item id='#{i}'><title>title #{i}</title></item>" }
    @document = REXML::Document.new("<feed>#{items.join}</feed>")
  end

  def titles(count)
    titles = @document.root.elements.to_h { |item| [item.attributes["id"].to_i, item.elements.first.text] }
    Array.new(count) { |i| titles[i] }
  end
end

count = (150 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil
puts Feed.new(count).titles(count).join.size
