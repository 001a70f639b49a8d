# A journal calls `fsync` after each entry.
# Place: Journal#append, IO#fsync
# Subject: blocked
# JIT: any
require "tempfile"

class Journal
  def initialize(file) = @file = file

  def append(entry)
    @file.write(entry, "\n")
    @file.fsync
  end

  def size = @file.size
end

Tempfile.create("journal") do |file|
  journal = Journal.new(file)
  (600 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| journal.append("entry #{i}") }
  puts journal.size
end
