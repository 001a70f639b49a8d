# What do Mustache templates cost? Compiled to Ruby once; each name is looked up in a stack of contexts.
require_relative "../../packages"
VMTraceBench.with_packages("mustache") { require "mustache" }

class Page < Mustache
  self.template = <<~MUSTACHE
    <h1>{{title}}</h1>
    {{#items}}
    <li class="{{kind}}">{{name}} {{#tags}}<i>{{.}}</i>{{/tags}}{{^tags}}none{{/tags}} {{{raw}}} {{shop}}</li>
    {{/items}}
  MUSTACHE

  def title = "A <list>"
  def shop = "corner & co"
end

items = Array.new(100) do |i|
  { name: "item #{i}", kind: i.even? ? "even" : "odd", tags: %w[a b].first(i % 3), raw: "<b>#{i}</b>" }
end
VMTraceBench.iterate do
  10.times do
    page = Page.new
    page[:items] = items
    page.render.scan("corner &amp; co").size == 100 or raise
  end
end
