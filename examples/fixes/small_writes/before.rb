# A file without a buffer (`sync = true`): each field is a system call, for which Ruby lets go of the GVL
# and takes it again.
# Place: Dump#row, IO#write
# Subject: blocked
# JIT: any
require "tempfile"

class Dump
  def initialize(file)
    @file = file
    @file.sync = true
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
