#!/usr/bin/env ruby
# Writes the parts of the guide that explain reasons, from the texts of the tool
# (tools/vm-trace/topics/exits/advice/).
#   reason-pages.rb TOOL            fails if a page is not as it would be written
#   reason-pages.rb --write TOOL    writes the pages
# In a page, two lines begin and end such a part; the first names the JIT and the kinds of reasons:
#   <!-- reasons of ZJIT: exit, compile error -->
#   <!-- end of reasons -->
# Exits and compile errors get a section with an example each, the others a row of a table.
require "json"
require "open3"

module ReasonPages
  PART = /^<!-- reasons of ([\w ]+): ([\w ,]+) -->\n(.*?)^<!-- end of reasons -->$/m
  WIDTH = 100
  SECTIONS = ["exit", "compile error"].freeze

  module_function

  # Text in lines; code between backticks stays on one line.
  def wrapped(text)
    text.scan(/(?:`[^`]*`|[^\s`])+/).each_with_object([+""]) do |word, lines|
      if lines.last.empty? then lines.last << word
      elsif lines.last.size + 1 + word.size > WIDTH then lines << word.dup
      else lines.last << " " << word
      end
    end.join("\n")
  end

  def code(name) = name.include?("`") ? "`` #{name} ``" : "`#{name}`"

  # Rows with equal texts share a section, or a row of a table.
  def codes(rows) = rows.map { |row| code(row["reason"]) }.join(", ")
  def texts(row) = [*row.values_at("meaning", "cause"), [row["help"], pair(row)].compact.join(" ")]
  def pair(row) = row["tested"] && "(Pair: [`#{row["tested"]}`](fixes.md).)"

  def section(rows)
    row = rows.first
    meaning, cause, help = texts(row)
    parts = ["### #{codes(rows)}", wrapped(meaning), wrapped("Usual causes: #{cause}"), wrapped("What helps: #{help}")]
    parts << "```ruby\n#{row["example"]}```" if row["example"]
    parts.join("\n\n")
  end

  def table(groups)
    lines = groups.map { |rows| "| #{[codes(rows), *texts(rows.first)].join(" | ")} |" }
    ["| reason | meaning | usual causes | what helps |", "|---|---|---|---|", *lines].join("\n")
  end

  def topic(rows)
    text = rows.first["topic_text"]
    groups = rows.chunk_while { |a, b| texts(a) == texts(b) }.to_a
    body = SECTIONS.include?(rows.first["kind"]) ? groups.map { |group| section(group) } : [table(groups)]
    ["## #{rows.first["topic"]}", *(wrapped(text) if text), *body].join("\n\n")
  end

  def part(rows, jit, kinds)
    wanted = rows.select { |row| row["jit"] == jit && kinds.include?(row["kind"]) }
    raise "no reasons of #{jit}: #{kinds.join(", ")}" if wanted.empty?
    wanted.chunk_while { |a, b| a["topic"] == b["topic"] }.map { |of_topic| topic(of_topic) }.join("\n\n")
  end

  def page(text, rows)
    text.gsub(PART) do
      jit, kinds = $1, $2
      "<!-- reasons of #{jit}: #{kinds} -->\n\n#{part(rows, jit, kinds.split(", "))}\n\n<!-- end of reasons -->"
    end
  end

  def rows(tool)
    out, status = Open3.capture2(tool, "explain", "--format=json")
    raise "#{tool}: #{status}" unless status.success?
    JSON.parse(out)["advice"]["rows"]
  end

  def files = Dir[File.expand_path("../doc/guide/*.md", __dir__)].select { |file| File.read(file).match?(PART) }.sort
end

if $PROGRAM_NAME == __FILE__
  write = ARGV.delete("--write")
  rows = ReasonPages.rows(ARGV.fetch(0))
  old = ReasonPages.files.reject do |file|
    text = File.read(file)
    page = ReasonPages.page(text, rows)
    File.write(file, page) if write && page != text
    write || page == text
  end
  abort old.map { |file| "#{file}: out of date; run scripts/reason-pages.rb --write #{ARGV[0]}" }.join("\n") if old.any?
end
