# One call of the generator for all.
require "json"

Item = Struct.new(:number, :name, :price)

items = Array.new(200) { |i| Item.new(i, "item #{i}", i * 10) }
size = 0
(16_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { size += JSON.generate(items.map(&:to_h)).bytesize }
puts size
