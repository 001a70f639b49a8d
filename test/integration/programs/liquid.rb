# Liquid's templates: loops, filters, conditions, and errors in them.
require "liquid"

template = Liquid::Template.parse(<<~LIQUID)
  {% assign total = 0 %}{% for row in rows %}{% cycle "a", "b" %}{% if row.size > 3 %}{{ row | join: "," | upcase }}{% elsif row.first == "x" %}x{% else %}{{ row | first | default: "none" }}{% endif %}
  {% endfor %}{{ rows.size | plus: 1 | times: 2.5 }} {{ title | escape | truncate: 12 }} {{ missing.deep.er }} {{ 1 | divided_by: zero }}
LIQUID
200.times do |i|
  rows = Array.new(i % 7) { |n| n.even? ? [i, n] : ["x", n, i * 2**60, nil].take(n) }
  text = template.render("rows" => rows, "title" => "<#{"t" * (i % 30)}>", "zero" => i % 3)
  puts text if i % 20 < 7
end
