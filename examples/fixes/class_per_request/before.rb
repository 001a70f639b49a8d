# Each request makes a class with methods from a template. The JIT compiles them, the request ends, and
# the next one brings new ones.
# Place: Renderer#render, Module#class_eval, name, street, city, phone
# Subject: compiling
# JIT: yjit zjit

class Renderer
  def render(fields)
    methods = fields.map { |field| "def #{field}(i) = i % 7 == 0 ? \"#{field}\".size + i : i * 3" }
    view = Class.new { class_eval(methods.join("\n")) }.new
    sum = 0
    60.times { |i| fields.each { |field| sum += view.public_send(field, i) } }
    sum
  end
end

renderer = Renderer.new
fields = %i[name street city phone]
sum = 0
(1_500 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += renderer.render(fields) }
puts sum
