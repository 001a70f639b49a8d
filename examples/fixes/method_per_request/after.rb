# The title is an attribute.

class View
  attr_accessor :title

  def heading = "<h1>" + title + "</h1>"
end

class Pages
  def show(name)
    view = View.new
    view.title = name
    size = 0
    40.times { size += view.heading.size }
    size
  end
end

pages = Pages.new
size = 0
(100_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += pages.show("page #{i % 10}") }
puts size
