# One line puts values of many classes into a string. YJIT compiles the conversion for a few classes
# and leaves compiled code for the others.
# Place: Page#cell
# Subject: exits
# JIT: yjit

class Page
  def cell(value)
    text = "<td>#{value}</td>"
    width = i = 0
    while i < 24
      width = (width * 3 + i * text.bytesize) % 4093
      i += 1
    end
    width
  end
end

page = Page.new
values = [:name, "text", 12, 1.5, nil, true, false, 1..2, 3r]
sum = 0
(140_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { values.each { |value| sum += page.cell(value) } }
puts sum
