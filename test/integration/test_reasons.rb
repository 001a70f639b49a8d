# The names of reasons that the tool knows are those of the Ruby: vm-trace explain.
require_relative "helper"
require "open3"

Integration.only "ruby-4.1", "zjit"

class TestReasons < Integration::Test
  # What counts an exit or a fallback, as ZJIT's source says.
  def counted
    stats = File.read(File.join(RUBY_SRC, "zjit/src/stats.rs"))
    %w[side_exit_counter send_fallback_counter].flat_map { |name| stats[/^pub fn #{name}\(.*?^}/m].scan(/=> ((?:exit|send_fallback)_\w+)/).flatten }.uniq
  end

  def test_explain_knows_every_counter
    out, status = Open3.capture2(Trace::TOOL, "explain")
    assert_predicate status, :success?
    known = out.lines.map { |line| line.split(/ {2,}/)[1].to_s.strip }
    assert_operator counted.size, :>, 80
    assert_empty counted.map { |name| name.sub(/\A(exit|send_fallback)_/, "") } - known
  end

  def test_a_reason_is_traced_and_chosen_by_the_names_that_explain_gives
    result = trace("def foo = (::RubyVM::ZJIT.induce_side_exit!)\n20.times { foo }\n")
    %w[DirectiveInduced directive_induced exit_directive_induced].each do |name|
      out, = Open3.capture2(Trace::TOOL, "report", "--format=csv", "--table=totals", "--reason=#{name}", result.trace.path)
      assert_operator out.lines[1].to_i, :>, 10, name
    end
  end
end
