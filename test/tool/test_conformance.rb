# The conformance cases: the tool must give the same answers as Perfetto's own trace processor
# (test/conformance/README.md).
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
        assert_equal "vm-trace: #{file}: offset 824: the file is truncated: it ends after 20 bytes of a record of 24\n", result.err
        assert_equal 1, result.status
      else
        assert_equal "", result.err.lines.grep_v(/: warning: record of the unknown type 13 is skipped/).join
        assert_equal 0, result.status, file
      end
    end
  end

  # A clone has all that these tests need.
  def test_the_repository_has_cases_of_each_kind
    %w[*.fxt streams/*.fxt queries/*.sql].each { |pattern| refute_empty Conformance.files(pattern, folders: [Conformance::OURS]), pattern }
  end

  def test_new_cases_beside_the_clone_run_too_and_ours_count_where_both_are
    Dir.mktmpdir do |dir|
      %w[new.fxt truncated_tail.fxt].each { |name| File.write(File.join(dir, name), "") }
      files = Conformance.files("*.fxt", folders: [Conformance::OURS, dir])
      assert_includes files, File.join(dir, "new.fxt")
      assert_includes files, File.join(Conformance::OURS, "truncated_tail.fxt")
      refute_includes files, File.join(dir, "truncated_tail.fxt")
    end
  end

  def needs_sqlite
    skip "the tool was built without SQLite" if tool("query", conformance_files.first, "select 1").err.include?("built without SQLite")
  end

  def name_of(path) = path.delete_prefix("#{Conformance::OURS}/").delete_prefix("#{Conformance::ARRIVING}/").sub(/\.\w+\z/, "")

  # The answer equals the file byte for byte. That of a pending case must differ, or the case would
  # stay in the list for ever.
  def assert_answer(expected, found, name)
    if (reason = Conformance.pending[name])
      refute_equal expected, found, "#{name} passes now: move it to test/conformance, and out of the list of pending ones (#{reason})"
    else
      assert_equal expected, found, name
    end
  end

  # The questions of the README, asked in SQL. No file: no rows.
  QUESTIONS.each do |question, sql|
    define_method("test_#{question}_agree_byte_for_byte") do
      needs_sqlite
      Conformance.files("{,streams/}*.fxt").each do |file|
        csv = file.sub(/\.fxt\z/, ".#{question}.csv")
        out = tool("query", file, sql).out.gsub(PARTIAL_COLUMN, "")
        if File.exist?(csv)
          assert_answer File.read(csv, encoding: "UTF-8"), out, "#{name_of(file)}.#{question}"
        else
          assert_equal 1, out.lines.size, "#{file}: no #{question} expected, but\n#{out}"
        end
      end
    end
  end

  # Questions that cases beside the clone ask and the tool cannot answer.
  def test_no_answer_is_left_out_but_for_the_pending
    asked = Conformance.files("{,streams/}*.csv").map { |csv| name_of(csv) }.reject { |name| QUESTIONS.key?(name[/\w+\z/]) }
    assert_empty asked - Conformance.pending.keys
  end

  def test_queries_agree_byte_for_byte
    needs_sqlite
    trace = Conformance.files("queries/demo.fxt").first
    Conformance.files("queries/*.sql").each do |sql|
      result = tool("query", trace, "--file", sql)
      next if result.err.include?("built without PCRE2")
      assert_answer File.read(sql.sub(/sql\z/, "csv"), encoding: "UTF-8"), result.out, name_of(sql)
    end
  end

  # dump agrees, too: it prints instants and complete durations as they are.
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
