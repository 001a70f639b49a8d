#!/usr/bin/env ruby
# The tables of doc/internals/events.md are made from the schema, vm_trace/schema/events.def.
#   event-tables.rb [ROOT]            fails if a table differs
#   event-tables.rb --write [ROOT]    writes them
#
# A table lies between "<!-- table: KEY -->" and "<!-- end of table -->". KEY is `events` (all of them), or a list of
# events whose arguments the table has: `call`, `trace site`, `gc GC minor`.

class Schema
  Event = Struct.new(:category, :name, :form, :arguments)
  Argument = Struct.new(:name, :type, :need, :meaning, :values)

  FORMS = { "INSTANT" => "instant", "COUNTER" => "counter", "SPAN" => "duration", "DURATION" => "duration",
            "COMPLETE" => "duration in one record", "ASYNC" => "async", "FLOW" => "flow",
            "MARKER" => "instant, duration, counter" }.freeze
  TYPES = { "STRING" => "string", "UINT32" => "uint32", "UINT64" => "uint64", "UINT" => "uint32, uint64",
            "INT" => "int32, int64", "INTEGER" => "integer", "ADDRESS" => "integer, pointer", "ANYTHING" => "any",
            "FRAMES" => "strings", "CALLERS" => "strings" }.freeze
  NEEDS = { "ALWAYS" => "always", "MAY" => "", "BEGIN" => "at the begin" }.freeze
  ROW = /\b(NAMES|EVENT|ALSO|ARG|VALUE)\(((?:"(?:\\.|[^"\\])*"|[^"()]|\([^()]*\))*)\)/

  attr_reader :events

  def initialize(text)
    text = text.gsub(%r{/\*.*?\*/}m, "").gsub(/^#.*$/, "")
    @strings = text.scan(/(?:FIXED|STRING)\((\w+), "([^"]*)"\)/).to_h
    @names = {}
    @events = []
    text.scan(ROW) { |kind, body| row(kind, fields(body)) }
  end

  def of(key)
    @events.select { |event| key == event.category ? event.name.nil? : key == "#{event.category} #{event.name}" }
           .tap { |found| abort "event-tables.rb: events.def has no event #{key}" if found.empty? }
  end

  # One row for the events of a category and a form.
  def overview
    rows = @events.group_by { |event| [event.category, event.form] }.map do |(category, form), events|
      arguments = events.flat_map(&:arguments).map { |argument| label(argument, frames: "backtrace") }.uniq
      listed = category == "trace" ? "[below](#metadata-the-category-trace)" : arguments.empty? ? "none" : arguments.join(", ")
      names = events.sort_by { |event| event.name ? 1 : 0 }
                    .map { |event| event.name ? "`#{event.name}`" : @names.fetch(category) }
      [category, "| `#{category}` | #{names.join(", ")} | #{form} | #{listed} |"]
    end
    rows = rows.sort_by.with_index { |row, i| [row[0] == "trace" ? 1 : 0, i] }
    ["| category | name | kind | arguments |", "|---|---|---|---|", *rows.map(&:last)]
  end

  def arguments(keys)
    events = keys.flat_map { |key| of(key) }
    rows = events.flat_map(&:arguments).uniq.map do |argument|
      owners = events.select { |event| event.arguments.include?(argument) }
      only = owners.map { |event| "`#{event.name || event.category}`" }.join(", ") if owners.size < events.size
      [label(argument), only, TYPES.fetch(argument.type), need(argument.need), meaning(argument)]
    end
    heads = ["argument", "of", "type", "there", "meaning"]
    shown = heads.each_index.reject { |i| rows.all? { |row| row[i].to_s.empty? } }
    [heads, *rows].map { |row| "| #{row.values_at(*shown).join(" | ")} |" }.insert(1, "|#{"---|" * shown.size}")
  end

  private

  def fields(body)
    body.scan(/(?:"(?:\\.|[^"\\])*"\s*)+|\w+(?:\(\w+\))?/).map do |field|
      field.start_with?('"') ? field.scan(/"((?:\\.|[^"\\])*)"/).join.gsub(/\\(.)/, '\1') : field
    end
  end

  def row(kind, fields)
    case kind
    when "NAMES" then @names[string(fields[0])] = fields[1]
    when "EVENT" then @group = [event(*fields)]
    when "ALSO" then @group << event(*fields)
    when "ARG" then @group.each { |event| event.arguments << Argument.new(fields[0], *fields[1..3], []) }
    when "VALUE" then @group.each { |event| event.arguments.last.values << [string(fields[0]), fields[1]] }
    end
  end

  def event(category, name, form)
    category, name = string(category), name == "ANY" ? nil : string(name)
    found = @events.find { |event| event.category == category && event.name == name }
    found || Event.new(category, name, FORMS.fetch(form), []).tap { |event| @events << event }
  end

  def string(name) = @strings.fetch(name) { abort "event-tables.rb: events.def has no string #{name}" }

  def label(argument, frames: "`0` to `9`, `10+`")
    return frames if %w[FRAMES CALLERS].include?(argument.type)
    argument.name == "ANY" ? "others" : "`#{string(argument.name)}`"
  end

  def need(need)
    other = need[/\((\w+)\)/, 1] or return NEEDS.fetch(need)
    "#{need.start_with?("WITH") ? "with" : "without"} `#{string(other)}`"
  end

  def meaning(argument)
    texts = argument.values.map { |text, meaning| meaning.empty? ? "`#{text}`" : "`#{text}`: #{meaning}" }
    return argument.meaning if texts.empty?
    "#{argument.meaning}. #{texts.join(argument.values.all? { |_, meaning| meaning.empty? } ? ", " : ". ")}"
  end
end

write = ARGV.delete("--write")
root = ARGV.shift || File.expand_path("..", __dir__)
page = "#{root}/doc/internals/events.md"
schema = Schema.new(File.read("#{root}/vm_trace/schema/events.def", encoding: "UTF-8"))
shown = []
text = File.read(page, encoding: "UTF-8")
made = text.gsub(/^(<!-- table: (.*?) -->\n).*?^(<!-- end of table -->)$/m) do
  head, key, tail = $1, $2, $3
  keys = key == "events" ? [] : key.split(", ")
  shown.concat(keys)
  "#{head}#{(key == "events" ? schema.overview : schema.arguments(keys)).join("\n")}\n#{tail}"
end
wanted = schema.events.reject { |event| event.arguments.empty? || event.category == "marker" }
missing = wanted - shown.flat_map { |key| schema.of(key) }
faults = missing.map do |event|
  "doc/internals/events.md: no table has the arguments of #{[event.category, event.name].compact.join(" ")}"
end
if made != text
  if write then File.write(page, made)
  else
    faults << "doc/internals/events.md: a table differs from vm_trace/schema/events.def; " \
              "ruby scripts/event-tables.rb --write writes it"
  end
end
puts faults
exit faults.empty?
