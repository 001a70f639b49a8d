# optparse: each command of a shell makes its own OptionParser, with all options, before it parses a
# few words.
# Place: Command#parse, OptionParser#initialize, OptionParser#define, OptionParser#make_switch
# Subject: method
# JIT: any
require "optparse"

class Command
  NAMES = %w[alpha beta gamma delta epsilon zeta eta theta].freeze

  def parser(options)
    OptionParser.new do |o|
      NAMES.each { |name| o.on("--#{name}=N", Integer, "sets #{name}") { |n| options[name] = n } }
    end
  end

  def parse(words)
    options = {}
    parser(options).parse(words)
    options.values.sum
  end
end

command = Command.new
sum = 0
(8_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += command.parse(["--beta=#{i}", "--eta=3", "file"]) }
puts sum
