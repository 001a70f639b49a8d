# Durations in tables for people: one unit a column, with aligned decimal points, whatever the command. The numbers
# for programs are the reference.
require_relative "tool_helper"

class TestDurations < Minitest::Test
  include ToolHelper

  UNITS = { "ns" => 1, "us" => 1e3, "ms" => 1e6, "s" => 1e9 }.freeze
  DURATION = /\A[+-]?(<?)([\d,]+)(?:\.(\d+))? (ns|us|ms|s)\z/
  COMMANDS = [%w[report], %w[report --calls], %w[report --syscalls --sched], %w[report --samples], %w[report --endpoints],
              %w[report --top=2]].freeze

  # The tables of Markdown: lists of columns, each with its cells.
  def columns_of(markdown)
    markdown.split(/^## .*\n\n/).drop(1).flat_map do |table|
      rows = table.lines.grep(/^\|/).map do |line|
        line.chomp.split(" | ", -1).map { |cell| cell.delete_prefix("| ").delete_suffix(" |").strip }
      end
      rows.drop(2).transpose
    end
  end

  def durations_of(column) = column.reject(&:empty?).map { |cell| DURATION.match(cell) or return nil }

  # A duration as it must be shown.
  def shown(ns, unit, decimals)
    return "0 #{unit}" if ns.zero?
    value = format("%.#{decimals}f", ns.abs / UNITS[unit])
    return "<#{format("%.#{decimals}f", 10.0**-decimals)} #{unit}" if value.to_f.zero?
    "#{value.sub(/\A\d+/) { |digits| digits.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") }} #{unit}"
  end

  def each_column
    Dir[File.join(TRACES, "*.fxt")].sort.product(COMMANDS).each do |path, command|
      columns_of(tool(*command, "--format=markdown", path).out).each do |column|
        found = durations_of(column)
        yield found, [File.basename(path), *command, column] if found && !found.empty?
      end
    end
  end

  def test_a_column_has_one_unit_and_so_many_decimals
    count = 0
    each_column do |found, what|
      assert_equal 1, found.map { |match| match[4] }.uniq.size, what
      decimals = found.reject { |match| match[0].start_with?("0 ") }.map { |match| match[3].to_s.size }.uniq
      assert_operator decimals.size, :<=, 1, what
      count += found.size > 1 ? 1 : 0
    end
    assert_operator count, :>, 50
  end

  def test_three_digits_as_far_as_two_decimals_give_them
    each_column do |found, what|
      next if found.any? { |match| match[3].to_s.size > 3 } # a moment
      found.each do |match|
        digits = "#{match[2].delete(",")}#{match[3]}".sub(/\A0+/, "").size
        assert(digits >= 3 || match[3].to_s.size == 2 || match[4] == "ns" || match[0].start_with?("0 "), what.inspect)
      end
    end
  end

  # All of one table, in the text that is read.
  def test_values_are_those_of_programs
    path = File.join(TRACES, "gvl.fxt")
    rows = JSON.parse(tool("report", "--format=json", path).out)["thread_states"]["rows"]
    text = tool("report", "--all", path).out[/^Where the time of.*?\n\n/m].lines.drop(2).grep(/./)
    %w[life_ns waiting_ns blocked_ns gc_ns running_ns].each_with_index do |id, i|
      cells = text.map { |line| line.scan(/<?[\d,.]+ (?:ns|us|ms|s)\b/)[i] }
      unit = cells.first[/\w+\z/]
      decimals = cells.map { |cell| cell[/\.(\d+)/, 1].to_s.size }.max
      assert_equal(rows.map { |row| shown(row[id], unit, decimals) }, cells, id)
    end
  end

  # The first column of the table of exits, of sites that lost so much.
  def lost_times(*ms)
    trace = StatesTrace.new(ends: 20_000) do |t|
      ms.each_with_index { |time, i| t.site("R#{i}", "Foo#f#{i} (/app/foo.rb:#{i + 1})", 1, lost: time) }
    end.build
    with_file(trace) do |path|
      return tool("report", "--all", path).out[/^Exits by lost time.*?\n\n/m].scan(/^ +(<?[\d.,]+ \w+)  /).flatten
    end
  end

  def test_the_unit_is_that_of_the_longest_unless_most_are_shorter
    assert_equal ["19.7 ms"], lost_times(19.7)
    assert_equal ["19.70 ms", "6.40 ms"], lost_times(19.7, 6.4)
    assert_equal ["152 ms", "101 ms"], lost_times(152, 101)
    assert_equal ["152.00 ms", "1.00 ms", "<0.01 ms"], lost_times(152, 1, 0.004)
    assert_equal ["15.02 s", "11.03 s", "0.01 s"], lost_times(15_020, 11_030, 12.6)
    assert_equal ["15,020.0 ms", "11,030.0 ms", "218.0 ms", "99.0 ms", "12.6 ms"],
                 lost_times(15_020, 11_030, 218, 99, 12.6)
    assert_equal ["1.00 s"], lost_times(999.96)
  end

  def test_diff_has_one_unit_a_column
    gvl, kernel = %w[gvl kernel].map { |name| File.join(TRACES, "#{name}.fxt") }
    columns = columns_of(tool("diff", "--format=markdown", gvl, kernel).out)
    units = columns.filter_map { |column| durations_of(column)&.map { |match| match[4] }&.uniq }
    refute_empty units
    units.each { |found| assert_equal 1, found.size, found }
  end
end
