# The conformance files beside the repository: what Perfetto's own trace processor made of them is what the tool must make of them.
require_relative "tool_helper"
require_relative "questions"
require "csv"

class TestConformance < Minitest::Test
  include ToolHelper

  def answer(file, question)
    path = file.sub(/\.fxt\z/, ".#{question}.csv")
    File.exist?(path) ? CSV.read(path, headers: true).map(&:to_h) : []
  end

  def events_of(file)
    result = tool("dump", file)
    result.out.each_line.map { |line| JSON.parse(line) }
  end

  def test_all_files_pass_but_the_one_that_is_cut
    conformance_files.each do |file|
      result = tool("check", file)
      if File.basename(file) == "truncated_tail.fxt"
        assert_equal "vm-trace: #{file}: offset 824: the file is cut: it ends after 20 bytes of a record of 24\n", result.err
        assert_equal 1, result.status
      else
        assert_equal "", result.err.lines.grep_v(/: warning: record of the unknown type 13 is skipped/).join
        assert_equal 0, result.status, file
      end
    end
  end

  # The questions of the conformance files' README, asked in SQL: the same answers, byte for byte. No file: no rows.
  QUESTIONS.each do |question, sql|
    define_method("test_#{question}_agree_byte_for_byte") do
      files = conformance_files
      skip "the tool was built without SQLite" if tool("query", files.first, "select 1").err.include?("built without SQLite")
      files.each do |file|
        csv = file.sub(/\.fxt\z/, ".#{question}.csv")
        out = tool("query", file, sql).out
        if File.exist?(csv)
          assert_equal File.read(csv, encoding: "UTF-8"), out, file
        else
          assert_equal 1, out.lines.size, "#{file}: no #{question} expected, but\n#{out}"
        end
      end
    end
  end

  # What dump prints agrees too: instants and complete durations come out of it as they are.
  def test_dumped_instants_agree
    conformance_files.each do |file|
      events = events_of(file)
      next if events.any? { |e| e["ph"] =~ /[BEbe]/ }
      events = events.select { |e| %w[i X].include?(e["ph"]) }.sort_by.with_index { |e, i| [e["ts"], i] }
      expected = answer(file, "slices").map { |s| s.values_at("ts", "category", "name", "tid", "pid") }
      assert_equal expected, events.map { |e| e.values_at("ts", "cat", "name", "tid", "pid").map(&:to_s) }, file
    end
  end

  def test_dumped_arguments_agree
    conformance_files.each do |file|
      events = events_of(file).select { |e| %w[i X].include?(e["ph"]) }.sort_by.with_index { |e, i| [e["ts"], i] }
      found = events.flat_map do |e|
        e["args"].sort.map { |key, value| [e["ts"].to_s, e["name"], key, value.nil? ? "null" : value.to_s] }
      end
      assert_equal answer(file, "args").map { |a| a.values_at("ts", "name", "key", "display_value") }, found, file
    end
  end

  def test_dumped_thread_names_agree
    conformance_files.each do |file|
      names = answer(file, "threads").to_h { |t| [t["tid"], t["thread"]] }
      events_of(file).each do |e|
        next if names[e["tid"].to_s] == "[NULL]"
        assert_equal names[e["tid"].to_s], e["thread"], file
      end
    end
  end
end
