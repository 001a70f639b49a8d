# Exits in pairs: what `report` and `check` make of the flows of the category `throw`.
require_relative "tool_helper"

class TestThrows < Minitest::Test
  include ToolHelper

  BLOCK, METHOD, CALLER = "block in Foo#a (/app/foo.rb:4)", "Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)"

  def json(bytes, *options)
    with_file(bytes) { |path| return JSON.parse(tool("report", "--format=json", *options, path).out) }
  end

  def pairs(bytes, *options)
    json(bytes, *options)["throws"]["rows"].map { |row| row.values_at("thrown_at", "caught_at", "count", "lost_ns") }
  end

  # A throw at a time, caught 1 ms later.
  def pair(trace, at, id, caught_at: METHOD, thread: :main, lost: [0, 0], caught: true)
    trace.exits(thread, "Throw", BLOCK, at, lost: lost[0], insn: "throw")
    trace.event(:flow_begin, thread, "throw", "throw", at, extra: [id])
    trace.exits(thread, "ExceptionHandler", caught_at, at + 1, lost: lost[1], insn: "(handler)")
    trace.event(:flow_end, thread, "throw", "throw", at + 1, extra: [id]) if caught
  end

  def trace(&block) = StatesTrace.new(&block).build

  def test_pairs_are_counted_by_where_they_are_thrown_and_caught
    bytes = trace do |t|
      t.thread(:other, 77)
      pair(t, 10, 1, lost: [1, 2])
      pair(t, 20, 2, lost: [1, 2])
      pair(t, 30, 3, caught_at: CALLER, lost: [5, 5])
      pair(t, 40, 4, thread: :other)
      pair(t, 50, 5, caught: false)
      t.site("Throw", BLOCK, 5, insn: "throw")
      t.site("ExceptionHandler", METHOD, 5, insn: "(handler)")
    end
    with_file(bytes) { |path| assert_equal 0, tool("check", path).status, tool("check", path).err }
    assert_equal [[BLOCK, CALLER, 1, 10_000_000], [BLOCK, METHOD, 3, 6_000_000]], pairs(bytes)
    out = with_file(bytes) { |path| tool("report", "--all", path).out }
    assert_match(/^Jumps out of blocks: 4, two exits each$/, out)
    assert_match(/10\.00 ms +1 +25\.0% +block in Foo#a \(\/app\/foo\.rb:4\) +Foo#b \(\/app\/foo\.rb:9\)/, out)
  end

  # Throws of two threads between those of one.
  def test_each_thread_has_its_own
    bytes = trace do |t|
      t.thread(:other, 77)
      t.exits(:main, "Throw", BLOCK, 10, insn: "throw")
      t.event(:flow_begin, :main, "throw", "throw", 10, extra: [1])
      pair(t, 11, 2, thread: :other, caught_at: CALLER)
      t.exits(:main, "ExceptionHandler", METHOD, 13, insn: "(handler)")
      t.event(:flow_end, :main, "throw", "throw", 13, extra: [1])
    end
    assert_equal [[BLOCK, METHOD], [BLOCK, CALLER]], pairs(bytes).map { |row| row.first(2) }.sort
  end

  def test_a_filter_that_one_exit_passes_keeps_the_pair
    bytes = trace { |t| pair(t, 10, 1); pair(t, 20, 2, caught_at: CALLER) }
    assert_equal [CALLER], pairs(bytes, "--method=Foo#b*").map { |row| row[1] }
    assert_equal 2, pairs(bytes, "--reason=Throw").size
    assert_equal 1, pairs(bytes, "--since=15ms").size
    assert_empty pairs(bytes, "--reason=Guard*")
  end

  def test_a_trace_without_pairs_has_no_table
    bytes = trace { |t| t.exits(:main, "GuardType(Fixnum)", METHOD, 10) }
    assert_empty pairs(bytes)
    refute_match(/Jumps/, with_file(bytes) { |path| tool("report", "--all", path).out })
  end

  # What the recorder never writes.
  def test_check_finds_flows_that_cannot_be
    faults = {
      "does not directly follow an event" => ->(t) { t.event(:flow_begin, :main, "throw", "throw", 10, extra: [1]) },
      "is not a flow" => ->(t) { t.event(:instant, :main, "throw", "throw", 10) },
      "begins a second time" => ->(t) { pair(t, 10, 1, caught: false); pair(t, 20, 1, caught: false) },
      "did not begin" => lambda { |t|
        t.exits(:main, "ExceptionHandler", METHOD, 10, insn: "(handler)")
        t.event(:flow_end, :main, "throw", "throw", 10, extra: [1])
      }
    }
    faults.each do |fault, events|
      with_file(trace(&events)) { |path| assert_includes tool("check", path).err, fault }
    end
  end
end
