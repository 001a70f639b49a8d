# The conformance files beside the repository: what Perfetto's own trace processor made of them is what the tool must make of them.
require_relative "tool_helper"
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

  QUESTIONS = {
    "slices" => "select s.ts, s.dur, s.depth, s.category, s.name, t.tid, p.pid from slice s left join thread_track tt " \
                "on s.track_id=tt.id left join thread t using(utid) left join process p using(upid) order by s.ts, s.depth, s.id",
    "args" => "select s.ts, s.name, a.key, a.value_type, a.display_value from slice s join args a using(arg_set_id) " \
              "order by s.ts, s.id, a.key",
    "threads" => "select p.pid, p.name as process, t.tid, t.name as thread from thread t left join process p using(upid) " \
                 "where t.tid != 0 order by p.pid, t.tid",
    "counters" => "select c.ts, c.value, t.name from counter c join track t on c.track_id=t.id order by c.ts",
    "flows" => "select a.ts as from_ts, a.name as from_name, b.ts as to_ts, b.name as to_name from flow f " \
               "join slice a on a.id=f.slice_out join slice b on b.id=f.slice_in",
    "sched" => "select s.ts, s.dur, s.cpu, t.tid, s.end_state from sched s join thread t using(utid) order by s.ts",
    "states" => "select ts.ts, ts.dur, ts.state, t.tid, w.tid as waker_tid from thread_state ts join thread t using(utid) " \
                "left join thread w on w.utid=ts.waker_utid order by ts.ts, t.tid",
    "faults" => "select name, value from stats where value > 0 and name like 'fuchsia%'",
  }.freeze

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
