# `vm-trace top` of a file: what it says of a trace. test/integration/test_top.rb has running programs.
require_relative "tool_helper"
require "terminal"

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

  # What is written to a terminal of that TERM.
  def on_terminal(term, columns: 80)
    with_file(OurTrace.new.build) do |path|
      Terminal.open(columns: columns) do |terminal|
        side = terminal.side
        pid = spawn({ "TERM" => term, "COLUMNS" => nil, "LINES" => nil }, TOOL, "top", "--count=1", "--interval=10ms",
                    "--window=100000000", path, in: side, out: side, err: side)
        return terminal.wait(pid).first
      end
    end
  end

  # Many a terminal has no entry in the terminfo of the machine, if TERM is set at all.
  def test_the_screen_needs_no_entry_of_terminfo
    ["xterm", "xterm-ghostty", "alacritty", nil].each do |term|
      shown = on_terminal(term)
      assert_match(/\A\e\[\?1049h.*Foo#bar.*q: quit.*\e\[\?1049l.*\z/m, shown, term.inspect)
    end
  end

  # Titles may be longer: the screen cuts them off, because lines do not wrap.
  def test_rows_fit_a_narrow_screen
    shown = on_terminal("xterm", columns: 40)
    lines = shown[/\e\[H.*\e\[7m[^\e]*/m].gsub(/\e\[[?\d]*[A-Za-z]/, "").lines(chomp: true)
    assert_equal 24, lines.size
    assert_operator lines.grep(/\A /).map(&:size).max, :<=, 40
    assert_includes shown, "Foo#bar"
    assert_operator shown.index("\e[?7l"), :<, shown.index("\e[H")
  end
end
