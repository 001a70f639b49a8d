# `vm-trace history` of a partial trace. test_traces.rb has its output.
require_relative "tool_helper"

class TestHistoryPartial < Minitest::Test
  include ToolHelper

  # A method that exits, and what else was traced of it.
  def trace(flags: nil, compile: false, invalidation: false)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1, args: { "flags" => flags }) if flags
      if compile
        b.event(:begin, "compile", "compile", ts: 10)
        b.event(:end, "compile", "compile", ts: 20, args: { "iseq" => "Foo#bar (/app/foo.rb:2)", "version" => [:uint32, 1] })
      end
      b.event(:instant, "side_exit", "GuardType(String)", ts: 100, args: { "0" => "Foo#bar (/app/foo.rb:3)", "insn" => "send" })
      next unless invalidation
      b.event(:begin, "invalidation", "NoProfileSend", ts: 110, args: { "iseq" => "Foo#bar (/app/foo.rb:2)", "version" => [:uint32, 1] })
      b.event(:end, "invalidation", "NoProfileSend", ts: 120)
    end
  end

  def partial(**what)
    with_file(trace(**what).bytes) do |path|
      result = tool("history", path, "Foo#bar")
      assert_equal ["", 0], [result.err, result.status]
      assert_includes result.out, "GuardType(String)"
      return result.out[/^  partial +(.*)/, 1]
    end
  end

  def test_a_trace_of_exits_alone_says_that_its_story_is_partial
    both = "compilations and invalidations were not traced, so they are missing below (--zjit-trace-compiles --zjit-trace-invalidation records them)"
    assert_equal both, partial(flags: "exits")
    assert_equal "compilations were not traced, so they are missing below (--zjit-trace-compiles records them)", partial
    assert_equal "invalidations were not traced, so they are missing below (--zjit-trace-invalidation records them)",
                 partial(flags: "exits compiles", compile: true)
    assert_equal "compilations were not traced, so they are missing below (--zjit-trace-compiles records them)",
                 partial(flags: "exits invalidations", invalidation: true)
  end

  def test_what_was_traced_and_did_not_happen_is_not_missing
    assert_nil partial(flags: "exits compiles invalidations")
    assert_nil partial(flags: "exits compiles invalidations", compile: true)
    assert_nil partial(compile: true)
  end
end
