# json: each object has a `to_json` that generates a hash by itself, so a list of objects is as many
# calls of the generator, and strings that are put together.
# Place: Item#to_json, JSON.generate
# Subject: method
# JIT: any
require "json"

Item = Struct.new(:number, :name, :price) do
  def to_json(*state) = { number: number, name: name, price: price }.to_json(*state)
end

items = Array.new(200) { |i| Item.new(i, "item #{i}", i * 10) }
size = 0
(16_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { size += JSON.generate(items).bytesize }
puts size
