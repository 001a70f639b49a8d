# What do ERB templates cost? Compiled once; loops, conditions, escaped texts, a layout around a page.
require_relative "../../inside"
require "erb"

Row = Struct.new(:id, :name, :price, :tags)

LAYOUT = <<~HTML
  <html><head><title><%= ERB::Util.html_escape(title) %></title></head>
  <body>
  <%= body %>
  </body></html>
HTML

TABLE = <<~HTML
  <table>
  <%- rows.each_with_index do |row, i| -%>
  <tr class="<%= i.even? ? "even" : "odd" %>">
    <td><%= row.id %></td>
    <td><%= ERB::Util.html_escape(row.name) %></td>
    <td><%= "%.2f" % row.price %></td>
    <%- if row.tags.empty? -%>
    <td>none</td>
    <%- else -%>
    <td><%= row.tags.map { |tag| "<i>\#{ERB::Util.html_escape(tag)}</i>" }.join(", ") %></td>
    <%- end -%>
  </tr>
  <%- end -%>
  </table>
HTML

class Pages
  ERB.new(LAYOUT, trim_mode: "-").def_method(self, "layout(title, body)")
  ERB.new(TABLE, trim_mode: "-").def_method(self, "table(rows)")
end

rows = Array.new(200) { |i| Row.new(i, "Thing <#{i}> & more", i * 1.25, %w[red "green" b&w].first(i % 4)) }
pages = Pages.new
VMTraceBench.iterate do
  size = 30.times.sum { |i| pages.layout("Page #{i}", pages.table(rows)).size }
  size > 600_000 or raise size.to_s
end
