# What the order by time suggests: compile the template once.
require_relative "../before/page"

class Page < Mustache
  self.template = TEMPLATE
end

def render_page(data) = Page.render(data)
