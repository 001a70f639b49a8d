# What does a lexer with states cost? Rouge colours the source of the workloads.
require_relative "../../packages"
VMTraceBench.with_packages("rouge") { require "rouge" }

FILES = %w[emulator requests nbody shapes].map { |name| "#{__dir__}/../#{name}.rb" }
SOURCE = FILES.map { |file| File.read(file, encoding: "UTF-8") }.join.freeze

VMTraceBench.iterate do
  html = Rouge::Formatters::HTML.new.format(Rouge::Lexers::Ruby.new.lex(SOURCE))
  html.scan("<span").size > 1000 or raise
end
