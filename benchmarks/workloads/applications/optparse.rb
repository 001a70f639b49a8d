# What does a command line cost? OptionParser with many options, by blocks and regular expressions.
require_relative "../../inside"
require "optparse"

def parse(arguments)
  options = { level: 0, names: [] }
  rest = OptionParser.new do |o|
    o.banner = "Usage: tool [OPTION]... FILE"
    o.on("-v", "--[no-]verbose", "say more") { |yes| options[:verbose] = yes }
    o.on("-l", "--level N", Integer, "how much") { |n| options[:level] += n }
    o.on("--ratio R", Float) { |r| options[:ratio] = r }
    o.on("-n", "--names LIST", Array, "of them") { |list| options[:names].concat(list) }
    o.on("--kind KIND", %i[red green blue]) { |kind| options[:kind] = kind }
    o.on("--size SIZE", /\A(\d+)x(\d+)\z/) { |_, width, height| options[:size] = [width.to_i, height.to_i] }
    20.times { |i| o.on("--option-#{i} [X]", "number #{i}") { |x| options[i] = x } }
  end.permute(arguments)
  [options, rest]
end

arguments = %w[one -v -l 3 --ratio=0.5 --names a,b,c --kind gr two --size 3x4 --option-7 seven
               --option-1 --no-verbose -l4 -- -x]
VMTraceBench.iterate do
  60.times do
    options, rest = parse(arguments)
    rest == %w[one two -x] && options[:level] == 7 && options[:kind] == :green && options[7] == "seven" or raise
  end
end
