# The file keeps its buffer.
require "tempfile"

class Dump
  def initialize(file)
    @file = file
  end

  def row(fields) = fields.each { |field| @file.write(field, ",") }

  def size = @file.size
end

Tempfile.create("dump") do |file|
  dump = Dump.new(file)
  fields = Array.new(10) { |i| "field #{i}" }
  (40_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { dump.row(fields) }
  puts dump.size
end
