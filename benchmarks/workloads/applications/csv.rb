# What does a CSV parser in Ruby cost? Quoted fields, converters, headers; then rows are written again.
require_relative "../../packages"
VMTraceBench.with_packages { require "csv" }

LINES = Array.new(400) { |i| %(#{i},"name, #{i}",#{i}.5,"said ""#{i}""\nand left") }
TEXT = "id,name,price,note\n#{LINES.join("\n")}\n".freeze

VMTraceBench.iterate do
  table = CSV.parse(TEXT, headers: true, converters: :numeric)
  table.sum { |row| row["price"] } == 80_000.0 or raise
  CSV.generate { |csv| table.each { |row| csv << row.fields } }.size > 10_000 or raise
end
