# The options are one hash, which is passed on as it is.

class Link
  def render(text, options) = tag(:a, text, options)
  def tag(name, text, options) = name.size + text.size + attributes(options)

  def attributes(options)
    id, title = options[:id], options[:title]
    rest = options.size - (options.key?(:id) ? 1 : 0) - (options.key?(:title) ? 1 : 0)
    (id || 0) + (title ? title.size : 0) + rest
  end
end

link = Link.new
sum = 0
(3_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do |i|
  sum += link.render("more", { id: i, title: "t", role: 1 })
end
puts sum
