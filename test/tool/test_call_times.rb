# What `vm-trace` makes of trace/calls and trace/interpreted: how long calls of a method take with and
# without compiled code.
require_relative "tool_helper"
require_relative "page_helper"

class TestCallTimes < Minitest::Test
  include PageHelper

  MS = 1_000_000
  F, G, H = "Foo#f (/app/foo.rb:3)", "Foo#g (/app/foo.rb:9)", "block in Foo#h (/app/foo.rb:20)"

  def report(trace, *options)
    with_file(trace) { |path| return tool("report", "--all", *options, path).out }
  end

  def json(trace, *options) = JSON.parse(report(trace, "--format=json", *options))

  def trace(&block)
    StatesTrace.new do |t|
      t.states(:main, compiled: 70, exited: 30)
      t.exits(:main, "R", F, 5, lost: 30)
      t.site("R", F, 1, lost: 30)
      block.call(t)
    end.build
  end

  # A call that was interrupted is a long call, not a slow one: the times of calls that exited, and of those
  # that did not, are no measure of what exits cost. What they lost is.
  def test_nothing_promises_more_than_exits_lost
    given = trace do |t|
      t.calls(F, "compiled", 1600, 16)
      t.calls(F, "exited", 320, 9000)
      t.interpreted(G, "profiled again", 10, 0.5, ran: 600, first: 1, last: 2)
    end
    refute_match(/\bgain/i, report(given))
    assert_nil json(given)["estimated_gains"]
    durations = json(given).values.grep(Hash).flat_map { |table| table["rows"].to_a }.flat_map(&:to_a)
    assert_operator durations.filter_map { |name, value| value if name.end_with?("_ns") }.max, :<=, 100 * MS
    refute_includes data_of(page(given)), "gains"
  end

  # Slices are written when their frames have ended, so their labels may lack the class.
  def test_page_takes_owners_of_labels_from_calls
    given = trace do |t|
      t.calls(F, "compiled", 1600, 16)
      t.slice(:main, "compiled", 10, 20, iseq: F.delete_prefix("Foo#"))
    end
    data = data_of(page(given))
    assert_equal F, data["strings"][data["slices"][0][2][4]]
  end

  # --- check ---

  def faults(&block) = check(trace(&block)).err.lines.map { |line| line[/offset \d+: (.*)/, 1] }.uniq

  def test_check_of_calls
    fine = faults do |t|
      t.calls(F, "compiled", 16, 5)
      t.calls(F, "exited", 16, 5, interpreted_ns: [:uint64, 5 * MS])
    end
    assert_empty fine
    args = { iseq: F, state: "compiled", calls: [:uint64, 16], ran_ns: [:uint64, 5 * MS],
             interpreted_ns: [:uint64, 0], first_ns: [:uint64, 1], last_ns: [:uint64, 2 * MS] }
    {
      { state: "asleep" } => "trace calls has the unknown state asleep",
      { state: nil } => "trace calls lacks its argument state",
      { iseq: nil } => "trace calls lacks its argument iseq",
      { calls: [:uint64, 0] } => "calls: calls is 0",
      { ran_ns: nil } => "trace calls lacks its argument ran_ns",
      { calls: "many" } => "trace calls has no unsigned number as its argument calls",
      { interpreted_ns: [:uint64, 7 * MS] } => "calls: interpreted for 7000000 ns of the 5000000 that the calls ran",
      { first_ns: [:uint64, 9 * MS] } => "calls: its first call is later than its last: 9000000, 2000000",
    }.each do |wrong, message|
      given = args.merge(wrong).compact
      assert_equal [message], faults { |t| t.event(:instant, :main, "trace", "calls", 100, **given) }
    end
  end

  def test_check_of_interpreted_calls
    assert_equal ["interpreted: interpreted for 9000000 ns of the 5000000 that the calls ran"],
                 faults { |t| t.interpreted(F, "profiled again", 1, 9, ran: 5, first: 1, last: 2) }
  end

  def test_cut_leaves_calls_out
    with_file(trace { |t| t.calls(F, "compiled", 1600, 16) }) do |path|
      assert_equal 0, tool("cut", "--since=50ms", "-o", "#{path}.cut", path).status
      refute_match(/"calls"/, tool("dump", "#{path}.cut").out)
    end
  end
end
