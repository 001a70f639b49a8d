# The line of the innermost frame is that of the instruction that exits, however many lines an
# expression has; other frames have the line of their call.
require_relative "helper"

class TestLines < Integration::Test
  BIG = 4_611_686_018_427_387_903 # 2**62 - 1: one more is no Fixnum

  def innermost(script, reason)
    found = trace(script).trace.exits(reason)
    refute_empty found, "no exit for #{reason}"
    found.map { |event| event["args"]["0"] }.uniq
  end

  # Runs with integers until compiled, then lets the same + overflow. The backtrace of a failing +
  # has its line.
  def assert_line_of_plus(definition)
    script = definition + <<~RUBY
      100.times { foo(1) }
      9.times { foo(#{BIG}) }
      begin
        foo(nil)
      rescue => e
        at = e.backtrace_locations.find { |location| [location.label, "Object#" + location.label].include?("Object#foo") }
        puts "Object#foo (script.rb:\#{at.lineno})"
      end
    RUBY
    result = trace(script)
    exits = result.trace.exits("FixnumAddOverflow")
    refute_empty exits
    assert_equal [result.out.chomp], exits.map { |event| event["args"]["0"] }.uniq
    assert_equal [result.out.chomp], result.trace.sites("FixnumAddOverflow").map { |site| site["location"] }.uniq
  end

  {
    an_array: "def foo(x)\n  [\n    1,\n    (x + 1),\n    2\n  ]\nend\n",
    arguments: "def bar(*) = nil\ndef foo(x)\n  bar(\n    1,\n    x +\n      1\n  )\nend\n",
    a_first_line: "def foo(x) = x + 1\n",
    a_hash: "def foo(x)\n  {\n    a: 1,\n    b: x + 1,\n  }\nend\n",
    a_string: "def foo(x)\n  \"a\n  \#{x + 1}\n  b\"\nend\n",
    an_assignment: "def foo(x)\n  y =\n    z =\n      x + 1\n  y\nend\n",
    a_return: "def foo(x)\n  return x +\n    1\nend\n",
    comments: "def foo(x)\n  # one\n\n  # two\n  y = x + 1 # three\n\n  y\nend\n",
  }.each do |name, definition|
    define_method("test_an_exit_in_#{name}_has_the_line_of_its_instruction") { assert_line_of_plus(definition) }
  end

  def test_the_frames_below_have_the_lines_of_their_calls
    result = trace(<<~'RUBY')
      $notes = []
      def leaf
        ::RubyVM::ZJIT.induce_side_exit!; $notes << caller_locations(0)
      end
      def middle(a)
        [
          1,
          leaf,
          a
        ]
        leaf
          .size
      end
      def outer
        middle(
          1
        )
        middle 2 do
        end
      end
      9.times do
        outer
      end
      $notes.each { |stack| puts stack.map { |at| "#{at.label} #{at.lineno}" }.join("\t") }
    RUBY
    notes = result.out.lines(chomp: true).map { |line| line.split("\t") }.uniq
    stacks = result.trace.exits("DirectiveInduced").map do |event|
      Trace.frames(event).first.map { |label| label.sub(/ \(script\.rb:(\d+)\)\z/, ' \1') }
    end
    assert_equal 4, stacks.uniq.size
    internal = ->(stack) { stack.map { |label| label.match?(/\A(Integer#)?times\b/) ? "times" : Integration.backtrace_label(label) } }
    assert_empty stacks.uniq.map(&internal) - notes.map(&internal)
  end

  with :inlining, def test_an_exit_inside_an_inlined_method_has_the_line_of_its_instruction
    script = <<~RUBY
      def small(x) =
        x + 1
      def foo(x)
        small(
          x
        )
      end
      100.times { foo(1) }
      9.times { foo(#{BIG}) }
    RUBY
    exits = trace(script, "--zjit-inline-threshold=100").trace.exits("FixnumAddOverflow")
    refute_empty exits
    assert_equal [["Object#small (script.rb:2)", "Object#foo (script.rb:4)", "block in <main> (script.rb:9)"]],
                 exits.map { |event| Trace.named_frames(event).first(3) }.uniq
  end

  # Only where a line has the instruction more than once; then also what it calls.
  def test_two_instructions_of_one_line_are_told_apart
    definition = "def size(x) = x\ndef foo(x, y)\n  (x + 1) + (y + 1)\nend\ndef bar(x) =\n  x + 1\n"
    script = definition + <<~RUBY
      100.times { foo(1, 1); bar(1) }
      9.times { foo(#{BIG}, 1) }
      5.times { foo(1, #{BIG}) }
      3.times { bar(#{BIG}) }
    RUBY
    events = trace(script).trace
    insns = eval(definition + "RubyVM::InstructionSequence.of(method(:foo)).to_a.last.grep(Array)", TOPLEVEL_BINDING.dup)
    assert_equal 3, insns.count { |insn, | insn == :opt_plus }
    counts = events.exits("FixnumAddOverflow").map { |event| event["args"].values_at("0", "insn", "insn_index") }.tally
    foo, bar = counts.partition { |(place, *), _| place.include?("#foo") }
    assert_equal [9, 5], foo.sort_by { |(*, index), _| index }.map(&:last).first(2), counts
    assert_equal [[["Object#bar (script.rb:6)", "opt_plus", nil], 3]], bar
    sites = events.sites("FixnumAddOverflow").group_by { |site| site["insn_index"] }
    assert_equal foo.to_h { |(*, index), count| [index, count] }.merge(nil => 3),
                 sites.transform_values { |same| same.sum { |site| site["hits"] } }
  end

  def test_insn_is_the_instruction_that_exits
    script = "def foo(x) = x + 1\n100.times { foo(1) }\n9.times { foo(#{BIG}) }\n"
    events = trace(script).trace.exits("FixnumAddOverflow")
    assert_equal ["opt_plus"], events.map { |event| event["args"]["insn"] }.uniq
  end
end
