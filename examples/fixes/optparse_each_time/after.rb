# One parser for all commands.
require "optparse"

class Command
  NAMES = %w[alpha beta gamma delta epsilon zeta eta theta].freeze

  def parser
    @parser ||= OptionParser.new do |o|
      NAMES.each { |name| o.on("--#{name}=N", Integer, "sets #{name}") { |n| @options[name] = n } }
    end
  end

  def parse(words)
    @options = {}
    parser.parse(words)
    @options.values.sum
  end
end

command = Command.new
sum = 0
(8_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += command.parse(["--beta=#{i}", "--eta=3", "file"]) }
puts sum
