# Lines without special characters are split at blanks.
require "shellwords"

class Script
  def words(line) = line.match?(/["'\\]/) ? Shellwords.split(line) : line.split
end

script = Script.new
lines = Array.new(20) { |i| "copy file#{i}.txt to folder/#{i}" }
sum = 0
(14_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { lines.each { |line| sum += script.words(line).size } }
puts sum
