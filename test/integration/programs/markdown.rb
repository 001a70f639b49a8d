# kramdown turns this repository's documents into HTML, and rouge colours its sources.
require "kramdown"
require "rouge"

ROOT = File.expand_path("../../..", __dir__)
documents = Dir["#{ROOT}/{README.md,doc/guide/{tracing,runtime,markers}.md}"].sort
documents.each do |path|
  html = Kramdown::Document.new(File.read(path, encoding: "UTF-8"), auto_ids: true).to_html
  puts "#{File.basename(path)} #{html.size} #{html.scan(/<h2/).size} #{html.sum}"
end
{ Rouge::Lexers::C => "vm_trace/base/[cn]*.c", Rouge::Lexers::Ruby => "examples/*.rb", Rouge::Lexers::Rust => "vm_trace/jit/*.rs" }.each do |lexer, files|
  Dir["#{ROOT}/#{files}"].sort.each do |path|
    html = Rouge::Formatters::HTML.new.format(lexer.lex(File.read(path, encoding: "UTF-8")))
    puts "#{File.basename(path)} #{html.size} #{html.scan("<span").size} #{html.sum}"
  end
end
