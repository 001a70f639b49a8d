# Options are passed on by `**options` through three methods: each call makes new hashes.
# Place: Link#render, Link#tag, Link#attributes, <main>
# Subject: gc
# JIT: any

class Link
  def render(text, **options) = tag(:a, text, **options)
  def tag(name, text, **options) = name.size + text.size + attributes(**options)
  def attributes(id: nil, title: nil, **rest) = (id || 0) + (title ? title.size : 0) + rest.size
end

link = Link.new
sum = 0
(3_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |i|
  sum += link.render("more", id: i, title: "t", role: 1)
end
puts sum
