# shellwords: simple lines, without quotes, are split by the rules of a shell.
# Place: Script#words, Shellwords#shellsplit, Shellwords.shellsplit, String#scan
# Subject: method
# JIT: any
require "shellwords"

class Script
  def words(line) = Shellwords.split(line)
end

script = Script.new
lines = Array.new(20) { |i| "copy file#{i}.txt to folder/#{i}" }
sum = 0
(14_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { lines.each { |line| sum += script.words(line).size } }
puts sum
