# The calls are written out, once, from the names.

class Person
  FIELDS = %i[name street city zip country phone email language age height weight job].freeze
  FIELDS.each { |field| attr_accessor field }

  def initialize(number) = FIELDS.each_with_index { |field, i| instance_variable_set(:"@#{field}", number + i) }
end

class Serializer
  steps = Person::FIELDS.map { |field| "sum = (sum * 7 + person.#{field}) % 10_007" }
  class_eval("def row(person)\nsum = 0\n#{steps.join("\n")}\nend", __FILE__, __LINE__)
end

serializer = Serializer.new
people = Array.new(20) { |number| Person.new(number) }
sum = 0
(150_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { people.each { |person| sum += serializer.row(person) } }
puts sum
