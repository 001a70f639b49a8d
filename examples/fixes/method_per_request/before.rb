# Each request defines a method on its own object, so each object has a class of its own, in which
# calls search for their method.
# Place: Pages#show, View#heading, Kernel#define_singleton_method
# Subject: method
# JIT: any

class View
  def heading = "<h1>" + title + "</h1>"
end

class Pages
  def show(name)
    view = View.new
    view.define_singleton_method(:title) { name }
    size = 0
    40.times { size += view.heading.size }
    size
  end
end

pages = Pages.new
size = 0
(100_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += pages.show("page #{i % 10}") }
puts size
