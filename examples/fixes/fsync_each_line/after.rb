# One `fsync` for a hundred entries.
require "tempfile"

class Journal
  def initialize(file)
    @file = file
    @count = 0
  end

  def append(entry)
    @file.write(entry, "\n")
    @file.fsync if (@count += 1) % 100 == 0
  end

  def size = @file.size
end

Tempfile.create("journal") do |file|
  journal = Journal.new(file)
  (600 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| journal.append("entry #{i}") }
  puts journal.size
end
