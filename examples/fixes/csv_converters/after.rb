# A converter that looks at the field first.
require "csv"

NUMBER = ->(field) { field.match?(/\A-?\d+\z/) ? field.to_i : field }

text = Array.new(200) { |i| "name#{i},#{i},street #{i},#{i * 3}\n" }.join
sum = 0
(80 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do
  CSV.parse(text, converters: NUMBER).each { |row| sum += row[1] + row[3] }
end
puts sum
