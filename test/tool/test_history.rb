# `vm-trace history` of one method. test_traces.rb has its output.
require_relative "tool_helper"

class TestHistory < Minitest::Test
  include ToolHelper

  def history(bytes, method = "A#a", *options)
    with_file(bytes) { |path| return tool("history", *options, path, method) }
  end

  def compiled(jit: "ZJIT", flags: "compiles", begun: true)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 0, args: { "pid" => 1, "jit" => jit, "flags" => flags })
      b.event(:begin, "compile", "x", ts: 10) if begun
      b.event(:end, "compile", "x", ts: 20, args: { "iseq" => "A#a (/a.rb:1)", "version" => [:uint32, 1], "code_bytes" => [:uint64, 500] })
      yield b if block_given?
    end
  end

  # The method is an option, as in other commands; or the last argument.
  def test_the_method_by_option_or_by_position
    with_file(compiled) do |path|
      by_position = tool("history", path, "A#a")
      assert_equal 0, by_position.status
      assert_match(/^A#a /, by_position.out)
      assert_equal by_position.out, tool("history", "--method=A#a", path).out
      [[path], []].each do |arguments|
        lacking = tool("history", *arguments)
        assert_equal 2, lacking.status
        assert_match(/needs a file/, lacking.err)
      end
      assert_includes tool("history", "--method=A#b", path).err, "did you mean A#a?"
    end
  end

  # With trace points, code is larger than the program's own.
  def test_bytes_of_traced_code_are_said_to_be_that
    { "exits compiles" => "500 bytes with tracing", "fallbacks compiles" => "500 bytes with tracing", "compiles invalidations" => "500 bytes",
      "no_exits" => "500 bytes" }.each do |flags, text|
      assert_match(/ compiled +#{text}$/, history(compiled(flags: flags)).out, flags)
    end
    with_file(compiled(flags: "exits compiles")) do |path|
      assert_match(/ 500 bytes of code with tracing$/, tool("report", "--all", path).out)
    end
    with_file(compiled) { |path| assert_match(/ 500 bytes of code$/, tool("report", "--all", path).out) }
  end

  # The table is 100 columns wide, and its last text has lines of its own.
  def test_a_text_that_does_not_fit_its_column_gets_a_line
    trace = File.join(TRACES, "recompiled.fxt")
    lines = ->(*arguments) { tool(*arguments).out.lines(chomp: true).map(&:strip) }
    assert_includes lines["history", trace, "Foo#bar"], "details: 2,000 bytes with tracing, 300 of them for 3 exits"
    assert_includes lines["report", "--all", trace], "invalidated by: 1: NoProfileSend, 2: CME is invalidated: 0x..."
  end

  def test_versions_of_yjit_are_those_of_blocks
    assert_match(/ block version /, history(compiled(jit: "YJIT")).out)
    refute_match(/ block version /, history(compiled).out)
  end

  # Its begin gave way at the file's limit. The begin of another compilation is not its own.
  def test_a_compilation_whose_begin_is_not_in_the_trace_takes_no_time
    rows = ->(result) { JSON.parse(result.out)["history"]["rows"].map { |row| row.values_at("time_ns", "duration_ns") } }
    assert_equal [[20, 0]], rows[history(compiled(begun: false), "A#a", "--format=json")]
    trace = compiled do |b|
      b.event(:end, "compile", "x", ts: 50, args: { "iseq" => "A#a (/a.rb:1)", "version" => [:uint32, 2], "code_bytes" => [:uint64, 1] })
    end
    assert_equal [[10, 10], [50, 0]], rows[history(trace, "A#a", "--format=json")]
  end
end
