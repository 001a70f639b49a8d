# What `vm-trace check` says about the stream `calls`.
require_relative "tool_helper"

class TestCallsCheck < Minitest::Test
  include ToolHelper

  A, B, C = "Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)", "Integer#times"

  # Makes a trace with one call that the block adds, and asserts that it has only this fault.
  def assert_call_fault(message, settings: {}, build: {})
    offset = nil
    trace = CallsTrace.new(settings: settings) { |t| offset = yield t }
    assert_fault(offset, message, trace.build(**build))
  end

  def assert_summary_fault(message, settings: {}, **counts)
    trace = CallsTrace.new(settings: settings) do |t|
      t.call(:main, A, 1, 9, left_out: 3) { t.call(:main, B, 2, 3) }
    end
    offset = trace.builder.offset
    result = check(trace.build(**counts))
    assert_match(/\Avm-trace: F: offset \d+: #{Regexp.escape(message)}\n\z/, result.err)
    assert_operator result.err[/offset (\d+)/, 1].to_i, :>=, offset
    assert_equal 1, result.status
  end

  def test_nested_calls_of_several_tracks_are_fine
    trace = CallsTrace.new(settings: { calls_min_ns: [:uint64, 1000], calls_depth: [:uint64, 40] }) do |t|
      t.thread(:fiber, 3 * 2**29)
      t.call(:main, "<main> (/app/a.rb:1)", 0, 100, began: true, ended: true) do
        t.call(:main, A, 1, 50, left_out: 2, left_out_ms: 3) do
          t.call(:main, B, 2, 10)
          t.call(:fiber, A, 3, 60)
          t.call(:main, C, 10, 20) { t.call(:main, "block in #{A}", 11, 12) }
        end
      end
      t.call(:fiber, B, 61, 61.0005, ended: true) # only its part in the trace is that short
    end
    assert_fine(trace.build)
  end

  def test_streams_may_have_options_in_the_settings
    assert_fine(CallsTrace.new(settings: { flags: "threads calls:min=1000ns:depth=3 gc" }) { |t| t.call(:main, A, 1, 2) }.build)
  end

  def test_a_call_that_is_no_complete_duration
    assert_call_fault("call #{A} is not a duration in one record", build: { calls: 1 }) do |t|
      t.event(:instant, :main, "call", A, 1)
    end
  end

  def test_calls_that_overlap
    assert_call_fault("call #{B} begins at 2000000 inside another one, and ends after it") do |t|
      t.call(:main, A, 1, 3)
      t.call(:main, B, 2, 4)
    end
  end

  # As a thread's call that was open at a reset, while what it blocked in began with the reset.
  def test_a_call_that_begins_while_its_thread_is_blocked
    assert_call_fault("call #{A} begins at 3000000 while its thread is blocked, and ends after that",
                      settings: { flags: "calls threads" }) do |t|
      t.runs(:main, 0)
      t.blocks(:main, "Queue#pop", 2, 4, 4.5)
      t.call(:main, A, 3, 5)
    end
  end

  def test_what_a_thread_blocks_in_inside_of_a_call_is_fine
    assert_fine(CallsTrace.new(settings: { flags: "calls threads" }) do |t|
      t.runs(:main, 0)
      t.call(:main, A, 1, 9) do
        t.blocks(:main, "Queue#pop", 1, 4, 4.5)
        t.blocks(:main, "Queue#pop", 5, 6, 6.5)
        t.call(:main, B, 6, 7)
      end
    end.build)
  end

  def test_calls_that_begin_at_the_same_time
    assert_call_fault("call #{A} begins at 1000000, as one inside of it") do |t|
      t.call(:main, A, 1, 3) { t.call(:main, B, 1, 2) }
    end
  end

  def test_time_that_goes_backwards
    assert_call_fault("call #{B}: time goes backwards on thread 43, from 9000000 to 6000000 ns") do |t|
      t.call(:main, A, 8, 9)
      t.call(:main, B, 5, 6)
    end
  end

  def test_a_call_that_is_shorter_than_the_settings_say
    assert_call_fault("call #{A} of 1000 ns; the shortest is 1001", settings: { calls_min_ns: [:uint64, 1001] }) do |t|
      t.call(:main, A, 1, 1.001)
    end
  end

  def test_left_out_calls
    assert_call_fault("call #{A}: calls of 2000000 ns are left out of one that took 1000000") do |t|
      t.call(:main, A, 1, 2, left_out: 1, left_out_ms: 2)
    end
    assert_call_fault("call #{A} has the time of calls that are left out, but leaves out none") do |t|
      t.call(:main, A, 1, 2, left_out_ms: 0.5)
    end
    assert_call_fault("call #{A} has no unsigned number as its argument left_out", build: { calls: 1 }) do |t|
      t.event(:complete, :main, "call", A, 1, extra: [t.ns(2)], left_out: "many")
    end
  end

  def test_marks_of_open_calls
    assert_call_fault("call #{A} has the unknown began yesterday") { |t| t.call(:main, A, 1, 2, began: "yesterday") }
    assert_call_fault("call #{A} has the unknown ended tomorrow") { |t| t.call(:main, A, 1, 2, ended: "tomorrow") }
  end

  def test_settings
    assert_call_fault("call #{A}: the settings do not have the stream calls", settings: { flags: "gc callsx" }) do |t|
      t.call(:main, A, 1, 2).tap { t.call(:main, A, 3, 4) }
    end
    assert_match(/settings: calls_depth is 0$/, check(CallsTrace.new(settings: { calls_depth: [:uint64, 0] }).build).err)
  end

  # What was open before may have begun earlier than the settings of a snapshot.
  def test_calls_from_before_the_settings
    late = ->(settings = {}, **call) do
      CallsTrace.new(settings: nil) do |t|
        t.event(:instant, :main, "trace", "settings", 5, pid: [:uint32, 42], flags: "calls", **settings)
        t.call(:main, A, 4, 6, **call)
      end
    end
    assert_match(/: event is earlier than trace settings$/, check(late.().build).err)
    assert_fine(late.(began: true).build)
    assert_fine(late.({ snapshot: "save" }).build(snapshot: "save"))
  end

  def test_counts_of_the_summary
    assert_summary_fault("trace summary says calls: 3, but the file holds: 2", calls: 3)
    assert_summary_fault("trace summary says calls_left_out: 2, but the calls leave out: 3", calls_left_out: 2)
    trace = CallsTrace.new { |t| t.call(:main, A, 1, 9, left_out: 3) }
    assert_fine(trace.build(calls_left_out: 8)) # five were outside of any recorded call
  end

  def test_counts_are_not_compared_where_calls_were_overwritten_or_lost
    newest = CallsTrace.new(settings: { keep: "newest" }) { |t| t.call(:main, A, 1, 2) }
    assert_fine(newest.build(calls: 7))
    lost = CallsTrace.new do |t|
      t.call(:main, A, 1, 2)
      t.event(:instant, :main, "trace", "loss", 3, reason: "the disk is full", lost: [:uint64, 4])
    end
    assert_fine(lost.build(calls: 7, lost: 4))
  end
end
