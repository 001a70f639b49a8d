# What does a parser of combinators cost? Parslet parses JSON: small objects, blocks, a cache of results.
require_relative "../../packages"
VMTraceBench.with_packages("parslet") { require "parslet" }

class Grammar < Parslet::Parser
  rule(:space) { match('\s').repeat }
  rule(:string) { str('"') >> (str("\\") >> any | str('"').absent? >> any).repeat.as(:string) >> str('"') >> space }
  rule(:digits) { match("[0-9]").repeat(1) }
  rule(:number) { (str("-").maybe >> digits >> (str(".") >> digits).maybe).as(:number) >> space }
  rule(:list) { str("[") >> space >> (value >> (comma >> value).repeat).maybe.as(:list) >> str("]") >> space }
  rule(:pair) { string.as(:key) >> str(":") >> space >> value.as(:value) }
  rule(:object) { str("{") >> space >> (pair >> (comma >> pair).repeat).maybe.as(:object) >> str("}") >> space }
  rule(:comma) { str(",") >> space }
  rule(:value) { string | number | list | object }
  root(:value)
end

THINGS = Array.new(8) { |i| %({"id": #{i}, "name": "thing \\"#{i}\\"", "list": [1, -2.5, [3]], "empty": {}}) }
TEXT = "[#{THINGS.join(", ")}]".freeze
PARSER = Grammar.new

VMTraceBench.iterate do
  PARSER.parse(TEXT)[:list].size == 8 or raise
end
