#!/usr/bin/env ruby
# Asks the ten questions of duckdb/questions.sql or clickhouse/questions.sql.
#   ask.rb duckdb DATABASE [QUESTION...] [name=value...]      DATABASE: the file that load made
#   ask.rb clickhouse PORT [QUESTION...] [name=value...]      PORT: of any shard
#   ask.rb ENGINE DATABASE|PORT sql='SELECT ...'              asks another question
#   ask.rb duckdb DATABASE load tables=FOLDER                 loads the tables of vm-trace export --tables into DATABASE
# Names: service, old, new (versions). With --json each row is a line of JSON, otherwise answers are tables.
# DuckDB is the program that DUCKDB names, or `duckdb`, or node with the npm package @duckdb/node-api (NODE_PATH).
require "json"
require "open3"

HERE = __dir__

# The SQL of each question, by its name.
def questions(engine)
  text = File.read("#{HERE}/#{engine}/questions.sql")
  text.scan(/^-- (\w+): ([^\n]*\n(?:--[^\n]*\n)*)(.*?;)$/m).to_h do |name, explanation, sql|
    [name, [explanation.gsub(/\n(-- )?/, " ").strip, sql]]
  end
end

def fill(sql, values)
  sql.gsub(/\{(\w+)\}/) { values.fetch($1) { abort "ask.rb: this question needs #{$1}=..." }.gsub("'", "''") }
end

def rows_of(engine, where, sql)
  clickhouse = ["clickhouse-client", "--port", where, "--format", "JSONEachRow", "--query", sql.chomp(";")]
  duckdb = ENV["DUCKDB"] || (system("which", "duckdb", out: File::NULL) ? "duckdb" : nil)
  command =
    if engine == "clickhouse" then clickhouse
    elsif duckdb then [duckdb, "-jsonlines", where]
    else ["node", "#{HERE}/duckdb/duckdb.mjs", where]
    end
  out, err, status = Open3.capture3(*command, stdin_data: engine == "duckdb" ? sql : "")
  abort "ask.rb: #{command.first}: #{err}" unless status.success?
  out.lines.map { |line| JSON.parse(line) }
end

def print_table(rows)
  return puts("(none)") if rows.empty?
  text = ->(value) { value.is_a?(Float) ? format("%.3f", value) : value.to_s }
  cells = [rows.first.keys] + rows.map { |row| row.values.map(&text) }
  widths = cells.transpose.map { |column| column.map(&:size).max }
  numbers = rows.first.values.map { |value| value.to_s.match?(/\A[\d.]+\z/) }
  cells.each do |line|
    aligned = line.each_with_index.map { |cell, i| numbers[i] ? cell.rjust(widths[i]) : cell.ljust(widths[i]) }
    puts aligned.join("  ").rstrip
  end
end

engine, where, *rest = ARGV
usage = File.read(__FILE__)[/^#   .*?(?=^require)/m].gsub(/^# ?/, "")
abort usage unless %w[duckdb clickhouse].include?(engine) && where
json = rest.delete("--json")
values, names = rest.partition { |word| word.include?("=") }
values = values.to_h { |word| word.split("=", 2) }
if names == ["load"]
  rows_of(engine, where, fill(File.read("#{HERE}/#{engine}/load.sql"), values))
  exit
end
known = questions(engine)
names, known["sql"] = ["sql"], ["", values["sql"]] if values.key?("sql")
(names.empty? ? known.keys : names).each do |name|
  explanation, sql = known.fetch(name) { abort "ask.rb: no question #{name}; there are #{known.keys.join(", ")}" }
  rows = rows_of(engine, where, fill(sql, values))
  next rows.each { |row| puts JSON.generate(row) } if json
  puts "#{name}: #{explanation}"
  print_table(rows)
  puts
end
