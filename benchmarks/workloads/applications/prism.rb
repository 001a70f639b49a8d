# What does a walk over Ruby's syntax tree cost? Prism parses in C; objects, visitors and tokens are Ruby.
require_relative "../../packages"
VMTraceBench.with_packages { require "prism" }

FILES = %w[emulator requests nbody shapes].map { |name| "#{__dir__}/../#{name}.rb" }
SOURCE = FILES.map { |file| File.read(file, encoding: "UTF-8") }.join.freeze

class Calls < Prism::Visitor
  attr_reader :names

  def initialize = @names = Hash.new(0)

  def visit_call_node(node)
    @names[node.name] += node.location.start_line > 0 ? 1 : 0
    super
  end
end

VMTraceBench.iterate do
  calls = Calls.new
  calls.visit(Prism.parse(SOURCE).value)
  calls.names[:+] > 10 or raise
  Prism.lex(SOURCE).value.size > 1000 or raise
end
