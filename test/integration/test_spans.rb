# Compilations, invalidations and fallbacks: what --zjit-trace-compiles, -invalidation and
# -fallbacks record.
require_relative "helper"

class TestSpans < Integration::Test
  SCRIPT = <<~'RUBY'
    def foo(x) = x.to_s
    def branches(x) = x == 0 ? 0 : x == 1 ? x.to_s : x.inspect
    def bar(x, *rest, **more) = foo(x)
    def redefined = 1
    def caller_of_it = redefined
    30.times { |i| foo(i + 1); caller_of_it }
    30.times { |i| branches(i / 10) }
    def redefined = 2
    30.times { caller_of_it; bar(1, *[2], a: 3) }
    class Integer
      def +(other) = 7
    end
  RUBY

  def traced_by(*flags)
    result = run_ruby(SCRIPT, "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", *flags)
    assert_predicate result.status, :success?, result.err
    result.trace
  end

  # Each span as [depth, begin, end].
  def spans(trace, category)
    open = []
    trace.in_category("compile", "invalidation").each_with_object([]) do |event, found|
      if event["ph"] == "B"
        open << event
      else
        begun = open.pop
        found << [open.count { |other| other["cat"] == category }, begun, event] if begun["cat"] == category
      end
    end
  end

  zjit_only def test_a_compilation_has_phases_inside
    found = spans(traced_by("--zjit-trace-compiles"), "compile")
    outermost, inner = found.partition { |depth, *| depth == 0 }
    refute_empty outermost
    phases = inner.map { |_, begun, _| begun["name"] }.uniq
    assert_empty %w[infer_types validate] - phases
    inner.each { |_, begun, ended| assert_empty [begun["args"], ended["args"]].reject(&:empty?).map(&:keys).flatten - %w[iseq version code_bytes exit_bytes exits inlined error] }
  end

  zjit_only def test_the_outermost_span_says_iseq_version_and_bytes
    result = run_ruby(<<~'RUBY', "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", "--zjit-trace-compiles", *NO_INLINING)
      def branches(x)
        x == 0 ? 0 : x == 1 ? x.to_s : x.inspect
      end
      30.times { |i| branches(i / 10) }
    RUBY
    outermost = spans(result.trace, "compile").select { |depth, *| depth == 0 }
    whole = outermost.map { |_, _, ended| ended["args"] }.select { |arguments| arguments["iseq"] }
    assert(whole.all? { |arguments| arguments.key?("version") && arguments.key?("code_bytes") })
    branches = whole.select { |arguments| arguments["iseq"].start_with?("Object#branches (script.rb:") }
    versions = Integration.can?(:recompile_exits) ? [1, 2, 3] : [1]
    assert_equal versions, branches.map { |arguments| arguments["version"] }, "one compilation for each version, in order"
    branches.each { |arguments| assert_operator arguments["code_bytes"], :>, 0 }
    assert_equal ["Object#branches (script.rb:2)"], branches.map { |arguments| arguments["iseq"] }.uniq
  end

  zjit_only def test_as_many_compilations_as_the_jit_counts
    result = run_ruby(SCRIPT + 'puts RubyVM::ZJIT.stats.values_at(:compiled_iseq_count).join(" ")',
                      "--zjit-call-threshold=2", "--zjit-stats-quiet", "--zjit-trace-file=%p.fxt", "--zjit-trace-compiles")
    whole = spans(result.trace, "compile").filter_map { |_, _, ended| ended["args"] if ended["args"]["iseq"] }
    assert_equal result.out.to_i, whole.count { |arguments| arguments["version"] > 0 }
  end

  def test_an_invalidation_has_a_reason_and_the_backtrace
    found = spans(traced_by("--zjit-trace-invalidation"), "invalidation")
    stacks = found.select { |depth, *| depth == 0 }.map { |_, begun, _| [begun["name"], begun["args"]["0"]] }
    refute_empty stacks
    assert(stacks.all? { |name, frame| !name.empty? && frame })
    assert(stacks.any? { |_, frame| frame.end_with?("(script.rb:8)") }, "the redefinition of a method: #{stacks}")
    assert(stacks.any? { |_, frame| frame == "<class:Integer> (script.rb:11)" }, "the redefinition of +: #{stacks}")
  end

  zjit_only def test_a_fallback_is_an_instant_with_a_backtrace
    trace = traced_by("--zjit-trace-fallbacks")
    found = trace.in_category("fallback")
    refute_empty found
    assert_equal ["i"], found.map { |event| event["ph"] }.uniq
    assert_equal trace.summary["fallbacks"], found.size
    assert_empty trace.exits
    assert_equal 0, trace.summary["exits"]
  end

  zjit_only def test_one_fallback_in_k_is_recorded_with_its_weight
    all = traced_by("--zjit-trace-fallbacks").summary["fallbacks"]
    assert_operator all, :>, 20
    [1, 2, 7].each do |rate|
      trace = traced_by("--zjit-trace-fallbacks-sample-rate=#{rate}")
      assert_equal all, trace.summary["fallbacks"]
      assert_equal all / rate, trace.in_category("fallback").size
    end
  end

  zjit_only def test_exits_and_fallbacks_are_sampled_apart
    flags = %w[--zjit-trace-fallbacks --zjit-trace-exits]
    all = traced_by(*flags).summary
    trace = traced_by("--zjit-trace-exits-sample-rate=3", "--zjit-trace-fallbacks-sample-rate=5")
    assert_equal all.values_at("exits", "fallbacks"), trace.summary.values_at("exits", "fallbacks")
    assert_equal all["exits"] / 3, trace.exits.size
    assert_equal all["fallbacks"] / 5, trace.in_category("fallback").size
  end

  def test_all_together_record_what_each_records_alone
    each = %w[--zjit-trace-exits --zjit-trace-compiles --zjit-trace-invalidation]
    each << "--zjit-trace-fallbacks" if JIT == "zjit"
    # Flows are there when their events are. The reason of a recompile exit is unknown without the
    # exit.
    kinds = lambda do |trace|
      found = trace.events.reject { |event| %w[trace counter].include?(event["cat"]) || event["name"] == "recompilation" }
      reasons = found.filter_map { |event| event["name"] if event["cat"] == "recompile_exit" }.uniq << "recompile_exit"
      found.map { |event| [event["cat"], event["cat"] == "invalidation" && reasons.include?(event["name"]) ? "exit" : event["name"], event["ph"]] }
    end
    alone = each.map { |flag| kinds[traced_by(flag)] }
    together = kinds[traced_by(*each)]
    without_addresses = ->(events) { events.map { |cat, name, ph| [cat, name.gsub(/0x\h+/, "0x"), ph] }.tally }
    # With more code, memory is made writable at other times.
    relevant = ->(tally) { tally.reject { |(_, name, _), _| name.start_with?("mark_") } }
    assert_equal relevant.(without_addresses.(alone.flatten(1))), relevant.(without_addresses.(together))
  end

  def test_what_ends_in_an_exception_or_a_fork_leaves_no_span_open
    # The validator checks that; these are programs in which it could happen.
    result = trace("def deep(n) = deep(n + 1)\nbegin\n  deep(0)\nrescue SystemStackError\nend\nProcess.wait(fork { 9.times { [1].each { |x| x.to_s } } })\n",
                   "--zjit-trace-compiles", "--zjit-trace-invalidation")
    refute_empty result.trace.in_category("compile")
  end
end
