# One thread has one life, of which each stream has seen a part: what it has not is in the tables, so that all add up
# to the same whole.
require_relative "tool_helper"
require_relative "samples_trace"

class TestWholeTimes < Minitest::Test
  include ToolHelper

  MS = 1_000_000
  MAIN, FOO = "<main> (/app/run.rb:1)", "Foo#foo (/app/foo.rb:3)"

  # The main thread lives from 0 to 100 ms. Its states are seen from 50 ms on, samples from 30 to 60, calls from 40 to
  # 90, its records of threads from 10 on.
  def trace
    SamplesTrace.new(ends: 100) do |t|
      t.runs(:main, 10)
      t.event(:complete, :main, "call", FOO, 40, extra: [90 * MS])
      30.times { |i| t.sample(:main, 31 + i, 1, i < 20 ? "compiled" : "interpreted", FOO, MAIN) }
      t.event(:instant, :main, "trace", "states", 100, compiled: [:uint64, 45 * MS], exited: [:uint64, 5 * MS],
              unseen: [:uint64, 50 * MS], changes: [:uint64, 2], left_out: [:uint64, 0])
    end.build
  end

  def data(*options) = with_file(trace) { |path| JSON.parse(tool("report", "--format=json", *options, path).out) }
  def text(*options) = with_file(trace) { |path| tool("report", "--all", *options, path).out }

  def test_parts_of_all_streams_add_up_to_the_same
    data = data()
    states = data["states"]["rows"]
    by_thread = data["states_by_thread"]["rows"][0]
    sampled = data["samples_by_thread"]["rows"][0]
    threads = data["thread_states"]["rows"][0]
    calls = data("--calls")["calls_by_thread"]["rows"][0]
    assert_equal({ states: 100 * MS, states_by_thread: 100 * MS, samples: 100 * MS, threads: 100 * MS, calls: 100 * MS },
                 { states: states.sum { |row| row["ns"] },
                   states_by_thread: by_thread.values_at("life_ns", "not_seen_ns").sum,
                   samples: sampled.values_at("time_ns", "not_sampled_ns").sum,
                   threads: threads.values_at("life_ns", "not_seen_ns").sum,
                   calls: calls.values_at("recorded_ns", "outside_ns").sum })
    assert_equal [50 * MS, 70 * MS, 10 * MS, 50 * MS],
                 [states.last["ns"], sampled["not_sampled_ns"], threads["not_seen_ns"], calls["outside_ns"]]
    assert_equal ["unseen", nil], states.last.values_at("state", "share")
    assert_in_delta 1, states.sum { |row| row["share"].to_f }, 0.001
  end

  def test_people_see_the_same
    text = text()
    assert_match(/^Where the time went: 50\.0 ms of the 100 ms of 1 thread \(share: of what was seen\)$/, text)
    assert_match(/^  50\.00 ms +\(not seen\)$/, text)
    assert_match(/^Samples by thread and state \(%: of the sampled time\): 30\.0 ms of the 100 ms of these threads,/, text)
    assert_match(/^ +time +not sampled .*\n +30\.0 ms +70\.0 ms /, text)
    assert_match(/^Calls by own time: 1 call, which took 50\.0 ms of the 100 ms of their threads \(share: of the latter\)$/,
                 text)
    assert_match(/^  50\.0 ms +50\.0% +\(outside recorded calls\)$/, text)
    assert_match(/^Where the time of 1 thread went \(waiting: for the GVL; %: of life\)$/, text)
    assert_match(/^ +life .* not seen +thread\n +90\.0 ms .* 10\.0 ms +main$/, text)
  end

  # What is hardly anything needs no column.
  def test_nothing_unseen_is_not_shown
    whole = ThreadsTrace.new(ends: 100) { |t| t.runs(:main, 0.1) }.build
    with_file(whole) { |path| refute_match(/not seen/, tool("report", "--all", path).out) }
  end

  def test_a_window_cuts_the_whole
    sampled = data("--since=50ms", "--until=70ms")["samples_by_thread"]["rows"][0]
    assert_operator sampled.values_at("time_ns", "not_sampled_ns").sum, :<=, 20 * MS
    assert_operator sampled["not_sampled_ns"], :>, 0
  end
end
