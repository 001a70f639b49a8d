# Options that choose what of a trace counts, where nothing in it matches them: `report` and `annotate` name the
# option and what there is, `cut` and `history` likewise.
require_relative "tool_helper"

class TestTraceFilter < Minitest::Test
  include ToolHelper

  F, G = "Foo#sign (/app/foo.rb:3)", "block in Foo#each_cent (/app/foo.rb:9)"

  def trace
    CallsTrace.new(ends: 100) do |t|
      t.thread(:statistics, 77)
      t.event(:instant, :main, "side_exit", "GuardType(Fixnum)", 5, "0": F)
      t.event(:instant, :statistics, "side_exit", "GuardType(Fixnum)", 6, "0": G)
      t.call(:main, F, 10, 40)
    end.build
  end

  # [status, message] of a command, whose output still is a whole one.
  def said(command, *options, trace: self.trace)
    with_file(trace) do |path|
      result = tool(command, *options, path)
      yield result if block_given?
      return [result.status, result.err.gsub(path, "F")]
    end
  end

  def report(*options) = said("report", "--all", *options)

  def test_what_matches_is_fine
    %w[--thread=statistics --thread=77 --thread=stat* --method=Foo#sign --method=*each* --reason=GuardType
       --since=99ms --until=1ns].each do |option|
      assert_equal [0, ""], report(option), option
      assert_equal [0, ""], said("annotate", option), option
    end
  end

  def test_mistyped_options_are_wrong_usage
    {
      "--thread=statistic" => "no thread matches --thread=statistic; did you mean statistics?",
      "--thread=web\e" => "no thread matches --thread=web\\x1B; there are main, statistics",
      "--method=Foo#sing" => "no event is in a method Foo#sing; did you mean Foo#sign?",
      "--method=each_cnet" => "no event is in a method each_cnet; did you mean block in Foo#each_cent?",
      "--method=zzzzzz" => "no event is in a method zzzzzz; a glob such as '*name*' matches part of a name",
      "--reason=GuardTipe" => "no event has the reason GuardTipe; did you mean GuardType(*)?",
      "--since=1" => "nothing is after --since=1.000000: the trace lasts 0.100000 s",
    }.each do |option, message|
      %w[report annotate].each do |command|
        found = said(command, option) { |result| refute_empty result.out }
        assert_equal [2, "vm-trace: #{command}: #{message}\n"], found
      end
    end
  end

  def test_a_reason_that_no_event_has_is_known
    assert_equal [0, "vm-trace: report: no event has the reason GuardLess\n"], report("--reason=GuardLess")
  end

  def test_a_window_without_time_is_wrong_usage
    [%w[--since=20ms --until=10ms], %w[--since=10ms --until=10ms], %w[--until=0]].each do |options|
      %w[report annotate cut].each do |command|
        found = said(command, *options) { |result| assert_empty result.out }
        assert_equal [2, "vm-trace: #{command}: --since is not before --until: the range is empty\n"], found
      end
    end
  end

  def test_cut_of_a_window_behind_the_trace_writes_nothing
    with_file(trace) do |path|
      result = tool("cut", "--since=1", "-o", "#{path}.cut", path)
      assert_equal [2, "vm-trace: cut: nothing is after --since=1.000000: the trace lasts 0.100000 s\n"],
                   [result.status, result.err]
      refute_path_exists "#{path}.cut"
    end
  end

  def test_both_a_method_and_a_reason
    assert_equal [0, ""], report("--reason=GuardType", "--method=Foo#sign")
    assert_equal [0, "vm-trace: report: no event has the reason GuardLess\n"],
                 report("--reason=GuardLess", "--method=Foo#sign")
    status, message = report("--reason=GuardLess", "--method=Foo#sing")
    assert_equal 2, status
    assert_equal ["no event has the reason GuardLess", "no event is in a method Foo#sing; did you mean Foo#sign?"],
                 message.lines(chomp: true).map { |line| line.delete_prefix("vm-trace: report: ") }
  end

  def test_history_offers_a_method
    given = CallsTrace.new { |t| t.event(:instant, :main, "side_exit", "GuardType(Fixnum)", 5, "0": F) }.build
    with_file(given) do |path|
      result = tool("history", path, "Foo#sing")
      assert_equal 2, result.status
      assert_match(/no ISEQ or exit matches Foo#sing; did you mean Foo#sign\?$/, result.err)
    end
  end

  def line_of(title, *options)
    with_file(trace) { |path| return tool("report", "--all", *options, path).out[/^  #{title} +(.*)$/, 1] }
  end

  # What a filter leaves out is recorded all the same.
  def test_selections_that_a_filter_leaves_out_are_no_streams_to_record
    assert_equal "none pass --reason: only exits and fallbacks have a reason",
                 line_of("calls", "--calls", "--reason=GuardType")
    assert_equal "none pass --thread", line_of("calls", "--calls", "--thread=statistics")
    assert_equal "none pass --thread, --since", line_of("calls", "--calls", "--thread=main", "--since=50ms")
    assert_equal "none: --vm-trace=syscalls records them", line_of("syscalls", "--syscalls", "--reason=GuardType")
    assert_equal "none pass --since, --until", line_of("exits", "--since=50ms", "--until=60ms")
  end
end
