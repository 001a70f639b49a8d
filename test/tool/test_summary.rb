# `vm-trace summary`: what it counts. How the whole screen looks is in test_traces.rb.
require_relative "tool_helper"

class TestSummary < Minitest::Test
  include ToolHelper

  def summary(bytes, *options)
    with_file(bytes) { |path| return tool("summary", *options, path) }
  end

  # Rows of the table under a title, as arrays of [count, ..., name].
  def table(out, title)
    lines = out.lines.map(&:chomp)
    start = lines.index { |line| line.start_with?(title) } or flunk "no table #{title} in\n#{out}"
    lines[start + 2..].take_while { |line| line =~ /\A +[\d,]/ }.map { |line| line.strip.split(/  +/) }
  end

  def test_exits_are_counted_by_reason_and_by_innermost_frame
    out = summary(OurTrace.new.build).out
    assert_equal [["2", "66.7%", "GuardType(Fixnum)"], ["1", "33.3%", "NoProfileSend", "[may recompile]"]], table(out, "Exits by reason: 3")
    assert_equal [["2", "66.7%", "Foo#bar (/app/foo.rb:3)"], ["1", "33.3%", "Foo#baz (/app/foo.rb:9)"]],
                 table(out, "Exits by innermost frame: 3")
    assert_equal [["1", "100.0%", "profiling"]], table(out, "Recompile exits by what they led to")
    assert_equal [["1", "100.0%", "SendPolymorphic"]], table(out, "Fallbacks by reason")
    refute_match(/estimates|exactly/, out)
  end

  def test_sampled_exits_are_scaled_and_it_says_so
    out = summary(OurTrace.new(rate: 97).build).out
    assert_match(/^  sampled        counts of exits are estimates/, out)
    assert_match(/^Exits by reason: about 291, from 3 recorded; exactly 296$/, out)
    assert_equal [["194", "66.7%", "199", "GuardType(Fixnum)"], ["97", "33.3%", "97", "NoProfileSend", "[may recompile]"]],
                 table(out, "Exits by reason")
  end

  def test_last_of_two_arguments_of_one_name_counts
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "side_exit", "r", ts: 1, args: [b.arg("0", "first"), b.arg(FxtBuilder::Inline.new("0"), "second")])
    end
    assert_equal [["1", "100.0%", "second"]], table(summary(trace).out, "Exits by innermost frame")
  end

  def test_exits_that_are_not_instants_are_not_exits
    out = summary(FxtBuilder.simple { |b| b.event(:counter, "side_exit", "n", ts: 1, extra: 1); b.event(:complete, "side_exit", "n", ts: 1, extra: 2) }).out
    refute_match(/^Exits/, out)
  end

  def test_losses_are_told_with_their_reason
    trace = OurTrace.new
    2.times { |i| trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 500 + i], "reason" => "disk full" } } }
    assert_match(/^  lost           1,001 events: 1,001 disk full$/, summary(trace.build).out)
    assert_match(/^  lost           nothing$/, summary(OurTrace.new.build).out)
  end

  def test_trace_without_its_summary_does_not_claim_that_nothing_was_lost
    trace = OurTrace.new
    trace.summary = nil
    out = summary(trace.build).out
    assert_match(/^  lost           nothing is known to be; the trace has no summary/, out)
    assert_match(/^  \(only those whose code was freed: the trace has no summary\)$/, out)
  end

  def test_sites_of_one_place_are_summed
    trace = OurTrace.new
    trace.sites << trace.site("side_exit", "GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", "opt_plus", 40)
    out = summary(trace.build).out
    assert_match(/^Sites, with exact hit counts: 44 in 4 sites$/, out)
    assert_equal ["42", "95.5%", "1", "GuardType(Fixnum) in opt_plus, Foo#bar (/app/foo.rb:3)"], table(out, "Sites")[0]
  end

  def test_compilations_are_counted_once_and_their_phases_apart
    out = summary(OurTrace.new.build).out
    assert_match(/^Compilations: 1, 400 ns in all, 400 ns each$/, out)
    assert_equal [["1", "100 ns", "100 ns", "build_hir"]], table(out, "Phases of compilation")
  end

  def test_time_of_durations_is_that_of_the_paired_ends
    out = summary(FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.event(:begin, "invalidation", "a", ts: 1000)
      b.event(:begin, "invalidation", "a", ts: 2000, thread: 2)
      b.event(:end, "invalidation", "a", ts: 5000)
      b.event(:end, "invalidation", "a", ts: 12_000, thread: 2)
      b.event(:complete, "invalidation", "b", ts: 20_000, extra: 20_500)
    end).out
    assert_equal [["2", "14.0 us", "7000 ns", "a"], ["1", "500 ns", "500 ns", "b"]], table(out, "Invalidations")
  end

  def test_more_rows_than_top_are_summed
    trace = FxtBuilder.simple do |b|
      12.times { |i| (i + 1).times { b.event(:instant, "side_exit", "Reason#{i}", ts: 1, args: { "0" => "f" }) } }
    end
    out = summary(trace, "--top=2").out
    assert_equal [["12", "15.4%", "Reason11"], ["11", "14.1%", "Reason10"], ["55", "70.5%", "in 10 more"]], table(out, "Exits by reason: 78")
    assert_equal 12, table(summary(trace, "-n", "12").out, "Exits by reason: 78").size
  end

  def test_ties_stand_in_the_order_of_names
    trace = FxtBuilder.simple { |b| %w[c a b].each { |n| b.event(:instant, "side_exit", n, ts: 1, args: { "0" => "f" }) } }
    assert_equal %w[a b c], table(summary(trace).out, "Exits by reason").map(&:last)
  end

  def test_durations_that_took_most_time_come_first
    trace = FxtBuilder.simple do |b|
      3.times { |i| b.event(:complete, "invalidation", "often", ts: i * 10, extra: i * 10 + 1) }
      b.event(:complete, "invalidation", "long", ts: 100, extra: 200)
    end
    assert_equal %w[long often], table(summary(trace).out, "Invalidations").map(&:last)
  end

  def test_threads_are_listed_where_there_is_more_than_one
    refute_match(/^Threads/, summary(OurTrace.new.build).out)
    out = summary(FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.thread_name(42, 44, "worker")
      b.event(:instant, "c", "n", ts: 1)
      2.times { b.event(:instant, "c", "n", ts: 1, thread: 2) }
    end).out
    assert_equal [["2", "42", "44", "worker"], ["1", "42", "43", "main"]], table(out, "Threads: 2")
  end

  def test_control_characters_do_not_reach_the_terminal
    trace = OurTrace.new
    trace.settings["command"] = "ruby \e]0;title\a\r\n"
    trace.exits[0][:name] = "\e[31mred"
    trace.exits[0][:args]["0"] = "a\u009bb\u202e\x00\xff"
    out = summary(trace.build).out
    refute_match(/[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202e]/, out)
    assert_includes out, "ruby \\x1B]0;title\\x07\\r\\n"
    assert_includes out, "\\x1B[31mred"
    assert_includes out, "a\\x9Bb\\u202E\\x00\\xFF"
  end

  def test_cut_trace_is_summed_up_to_there_with_status_1
    builder = OurTrace.new.build
    result = summary(builder.bytes[0..-9])
    assert_equal 1, result.status
    assert_match(/the file is cut/, result.err)
    assert_match(/^Exits by reason: 3$/, result.out)
  end

  def test_file_that_is_no_trace_gets_no_screen
    result = summary("hello, hello")
    assert_empty result.out
    assert_equal 4, result.status
  end

  def test_trace_without_exits_says_so
    trace = OurTrace.new
    trace.exits = trace.sites = []
    assert_match(/^No exits\.$/, summary(trace.build).out)
  end

  def test_a_million_events_fit_in_little_memory
    skip "no bash to limit memory with" unless system("bash", "-c", "ulimit -v 1000000", err: File::NULL)
    events = FxtBuilder.new(magic: false)
    1000.times { |i| events.event(:instant, 100, 100, ts: 9000 + i, args: [events.arg(101, [:string, 102])]) }
    Dir.mktmpdir do |dir|
      path = File.join(dir, "large.fxt")
      head = FxtBuilder.simple { |b| b.string(100, "side_exit"); b.string(101, "0"); b.string(102, "frame") }
      File.open(path, "wb") { |f| f << head.bytes; 1000.times { f << events.bytes } }
      # 32 MB of trace with 60 MB of address space, of which the program and its libraries take a part.
      out = IO.popen(["bash", "-c", 'ulimit -v 60000; exec "$0" summary "$1"', TOOL, path], &:read)
      assert_equal 0, $?.exitstatus
      assert_match(/^Exits by reason: 1,000,000$/, out)
    end
  end
end
