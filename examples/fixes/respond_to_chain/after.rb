# The value has the method, and the converter keeps the name for each class.

class Value
  def initialize(number) = @number = number

  def own_text = @number.to_s
end

class Converter
  NAMES = %i[to_str to_text to_json to_csv own_text].freeze

  def initialize = @names = {}

  def text(value)
    name = @names[value.class] ||= NAMES.find { |one| value.respond_to?(one) }
    value.public_send(name)
  end
end

converter = Converter.new
values = Array.new(10) { |i| Value.new(i) }
size = 0
(70_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { values.each { |value| size += converter.text(value).size } }
puts size
