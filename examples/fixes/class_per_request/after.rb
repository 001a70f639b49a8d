# The class of a list of fields is made once.

class Renderer
  def initialize = @views = {}

  def render(fields)
    view = @views[fields] ||= view_of(fields)
    sum = 0
    60.times { |i| fields.each { |field| sum += view.public_send(field, i) } }
    sum
  end

  def view_of(fields)
    methods = fields.map { |field| "def #{field}(i) = i % 7 == 0 ? \"#{field}\".size + i : i * 3" }
    Class.new { class_eval(methods.join("\n")) }.new
  end
end

renderer = Renderer.new
fields = %i[name street city phone]
sum = 0
(1_500 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += renderer.render(fields) }
puts sum
