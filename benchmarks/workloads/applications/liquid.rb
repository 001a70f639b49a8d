# What do Liquid templates cost? Parsed once, rendered often: a tree of nodes is interpreted.
require_relative "../../packages"
VMTraceBench.with_packages("liquid") { require "liquid" }

TEMPLATE = Liquid::Template.parse(<<~LIQUID)
  {% assign total = 0 %}<h1>{{ title | escape | truncate: 20 }}</h1>
  {% for item in items %}{% cycle "odd", "even" %} {{ item.name | upcase }}{% assign total = total | plus: item.price %}
  {% if item.tags.size > 2 %}{{ item.tags | join: ", " }}{% elsif item.price > 100 %}dear
  {% else %}{{ item.missing | default: "plain" }}{% endif %}
  {% endfor %}{{ total | times: 2 }} {{ items.size | minus: 1 }}
LIQUID

items = Array.new(60) { |i| { "name" => "item #{i}", "price" => i * 3, "tags" => %w[a b c d].first(i % 5) } }
VMTraceBench.iterate do
  10.times { TEMPLATE.render("title" => "List <of> items", "items" => items).include?("10620 59") or raise }
end
