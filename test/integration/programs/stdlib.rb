# Of Ruby's own library: options, templates and JSON.
require "erb"
require "json"
require "optparse"

def parse(arguments)
  found = { numbers: [] }
  rest = OptionParser.new do |options|
    options.banner = "Usage: x [options]"
    options.on("-n", "--number N", Integer, "a number") { |n| found[:numbers] << n }
    options.on("-f", "--float F", Float) { |f| found[:float] = f }
    options.on("--[no-]color", "colours") { |c| found[:color] = c }
    options.on("--level LEVEL", %i[low high], "low or high") { |l| found[:level] = l }
    options.on("--list A,B", Array) { |l| found[:list] = l }
    found[:help] = options.help.size
  end.parse(arguments)
  [found, rest]
rescue OptionParser::ParseError => e
  [e.class, e.message]
end

template = ERB.new("<% rows.each_with_index do |row, i| -%>\n<%= i %>: <%= ERB::Util.h(row.to_s) %>\n<% end -%>\n", trim_mode: "-")
400.times do |i|
  rows = [
    parse(%W[-n #{i} --number=#{i * 2} --no-color file#{i}]),
    parse(%W[--level hi --list a,b,#{i} -f 1.5e#{i % 9} -- -n]),
    parse(%w[--level middle]),
    parse(%w[-n one]),
    JSON.parse(JSON.generate("a" => [1, 2.5, nil, true, { "b" => "\u00e9\n#{i}" }], "big" => 2**70 + i)),
    (JSON.parse("[1, {]") rescue $!.class),
    JSON.pretty_generate({ i => [i.to_s] * (i % 4) }),
  ]
  text = template.result(binding)
  puts text if i % 40 == 0
end
