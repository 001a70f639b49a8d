# erb: a template is compiled to Ruby, parsed and run by `eval` each time it is rendered.
# Place: ERB#result, ERB::Compiler#compile, ERB#initialize, Kernel#eval, Page#render
# Subject: method
# JIT: any
require "erb"

class Page
  TEMPLATE = "<h1><%= title %></h1>\n<ul>\n<% rows.each do |row| %><li><%= row %></li>\n<% end %></ul>\n"

  def render(title, rows) = ERB.new(TEMPLATE).result(binding)
end

page = Page.new
rows = (1..5).to_a
size = 0
(25_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += page.render("page #{i % 10}", rows).size }
puts size
