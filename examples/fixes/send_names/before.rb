# A serializer calls the getters of a record by `send(name)` with more names than YJIT makes versions
# for.
# Place: Serializer#row
# Subject: method
# JIT: yjit

class Person
  FIELDS = %i[name street city zip country phone email language age height weight job].freeze
  FIELDS.each { |field| attr_accessor field }

  def initialize(number) = FIELDS.each_with_index { |field, i| instance_variable_set(:"@#{field}", number + i) }
end

class Serializer
  def row(person)
    sum = 0
    i = 0
    while i < Person::FIELDS.size
      sum = (sum * 7 + person.send(Person::FIELDS[i])) % 10_007
      i += 1
    end
    sum
  end
end

serializer = Serializer.new
people = Array.new(20) { |number| Person.new(number) }
sum = 0
(150_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { people.each { |person| sum += serializer.row(person) } }
puts sum
