# csv: the converter `:numeric` tries Integer and Float on each field, and rescues their exceptions.
# Place: Kernel#Integer, Kernel#Float, CSV.parse
# Subject: method
# JIT: any
# Needs: csv
require "csv"

text = Array.new(200) { |i| "name#{i},#{i},street #{i},#{i * 3}\n" }.join
sum = 0
(80 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times do
  CSV.parse(text, converters: :numeric).each { |row| sum += row[1] + row[3] }
end
puts sum
