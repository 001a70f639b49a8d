#!/usr/bin/env ruby
# Checks that the tool writes JSON only by its writer, tools/vm-trace/base/json.c: no text or character
# of another file has what would be a part of JSON. export/metrics.c writes labels in braces, which are
# not JSON.
#   check-json.rb [ROOT]
root = ARGV.shift || File.expand_path("..", __dir__)
TREE = "tools/vm-trace"
EXEMPT = ["base/json.c", "export/metrics.c"]
LITERAL = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/
PARTS = {
  "a key" => /\\"\s*:/,
  "a quote behind a bracket or comma" => /[\[{,]\\"/,
  "a quote before a bracket" => /\\"\s*[\]}]/,
  "a value behind a bracket" => /(?<!\\033)[\[{]%/,
  "only brackets" => /\A["'][\s,:]*[\[\]{}](?:[\[\]{},:\s]|\\n)*["']\z/
}

faults = Dir.glob("**/*.{c,h}", base: File.join(root, TREE)).sort.flat_map do |file|
  next [] if EXEMPT.include?(file)
  text = File.read(File.join(root, TREE, file), encoding: "UTF-8")
  code = text.gsub(%r{/\*.*?\*/}m) { |comment| comment.gsub(/[^\n]/, "") }
  code.each_line.with_index(1).flat_map do |line, number|
    line.scan(LITERAL).filter_map do |literal|
      part, = PARTS.find { |_, pattern| literal.match?(pattern) }
      "#{TREE}/#{file}:#{number}: #{literal} looks like JSON (#{part}): base/json.h writes it" if part
    end
  end
end
puts faults
exit faults.empty?
