# A converter asks each value for five methods by `respond_to?`; the values answer by
# `respond_to_missing?`.
# Place: Converter#text, Value#respond_to_missing?, Kernel#respond_to?
# Subject: method
# JIT: any

class Value
  def initialize(number) = @number = number

  def respond_to_missing?(name, all = false) = name.start_with?("own_") || super

  def method_missing(name, *) = name == :own_text ? @number.to_s : super
end

class Converter
  NAMES = %i[to_str to_text to_json to_csv own_text].freeze

  def text(value)
    name = NAMES.find { |one| value.respond_to?(one) }
    value.public_send(name)
  end
end

converter = Converter.new
values = Array.new(10) { |i| Value.new(i) }
size = 0
(70_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { values.each { |value| size += converter.text(value).size } }
puts size
