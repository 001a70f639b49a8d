# `vm-trace top` of a file: what it says of a trace. test/integration/test_top.rb has running programs.
require_relative "tool_helper"

class TestTop < Minitest::Test
  include ToolHelper

  RARE, OFTEN = "Foo#rare (/app/foo.rb:3)", "Foo#often (/app/foo.rb:9)"

  # The title of the table of exits, and its methods.
  def exits(trace, *options)
    with_file(trace) do |path|
      out = tool("top", "--count=1", "--window=100000000", *options, path).out
      title, _, *rows = out[/^Exits.*?(?=\n\n|\z)/m].lines(chomp: true)
      return [title, rows.map { |row| row[/Foo#\w+/] }]
    end
  end

  def test_the_order_of_exits_is_named
    timed = StatesTrace.new do |t|
      t.exits(:main, "R", RARE, 5, lost: 30)
      3.times { |i| t.exits(:main, "R", OFTEN, 6 + i, lost: 1) }
    end.build
    assert_equal ["Exits, most lost time first", %w[Foo#rare Foo#often]], exits(timed)
    assert_equal ["Exits, most frequent first", %w[Foo#often Foo#rare]], exits(timed, "--by-count")
  end

  def test_without_states_there_is_no_lost_time_to_sort_by
    trace = FxtBuilder.simple do |b|
      [[RARE, 1], [OFTEN, 3]].each { |label, count| count.times { |i| b.exit("R", label, ts: i) } }
    end
    order = %w[Foo#often Foo#rare]
    assert_equal ["Exits, most frequent first (lost time needs the stream states)", order], exits(trace)
    assert_equal ["Exits, most frequent first", order], exits(trace, "--by-count")
  end
end
