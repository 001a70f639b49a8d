# A recompile exit says what it led to.
require_relative "helper"
Integration.only "zjit", :recompile_exits

class TestOutcomes < Integration::Test
  # The branches have no profile when `foo` is compiled: calls there make ZJIT recompile. Strings
  # fail a guard that every version has.
  BRANCHES = <<~'RUBY'
    def foo(x)
      if x == 1 then x.to_s
      elsif x == 2 then x.to_f
      elsif x == 3 then x.inspect
      elsif x == 4 then x.to_i
      elsif x == 5 then x.hash
      elsif x == 6 then x.chr
      end
    end
    i = 0
    while i < 30
      foo(0)
      i += 1
    end
    (1..6).each { |x| 30.times { foo(x) } }
    30.times { foo("s") }
  RUBY

  def outcomes(trace)
    trace.in_category("recompile_exit").map { |event| event["args"]["outcome"] }
  end

  # The instruction is profiled in the interpreter five times, then the next exit there invalidates.
  def test_an_exit_is_profiled_before_it_invalidates
    assert_equal %w[profiling] * 5 + %w[invalidated], outcomes(trace(BRANCHES).trace).first(6)
  end

  def test_with_reprofile_iseq_an_exit_for_want_of_a_profile_invalidates_at_once
    assert_equal "invalidated", outcomes(trace(BRANCHES, "--zjit-reprofile-iseq").trace).first
  end

  def test_only_recompile_exits_have_an_outcome
    trace = trace(BRANCHES + "def bar = (::RubyVM::ZJIT.induce_side_exit!)\n9.times { bar }\n").trace
    assert_empty trace.in_category("side_exit").select { |event| event["args"]["outcome"] }
    refute_empty trace.in_category("side_exit")
    refute_empty outcomes(trace)
  end

  def test_a_version_is_invalidated_once
    trace = trace(BRANCHES).trace
    invalidated = trace.in_category("recompile_exit").select { |event| event["args"]["outcome"] == "invalidated" }
    versions = invalidated.map { |event| event["args"]["version"] }
    assert_equal (1..versions.size).to_a, versions
  end

  def test_exits_of_the_last_version_allowed_say_that_there_is_no_more
    trace = trace(BRANCHES, "--zjit-max-versions=1").trace
    assert_includes outcomes(trace), "version_limit"
    refute_includes outcomes(trace), "invalidated"
  end

  def test_with_more_versions_allowed_the_limit_comes_later
    [3, 4, 5].each do |versions|
      trace = trace(BRANCHES, "--zjit-max-versions=#{versions}").trace
      found = trace.in_category("recompile_exit").select { |event| event["args"]["0"].start_with?("Object#foo ") }
      assert_equal versions - 1, found.count { |event| event["args"]["outcome"] == "invalidated" }
      limited = found.select { |event| event["args"]["outcome"] == "version_limit" }
      refute_empty limited
      assert_equal [versions], limited.map { |event| event["args"]["version"] }.uniq
      assert_equal found.last(limited.size), limited, "after the limit there is nothing else"
    end
  end

  # A frame below a C function continues in its old code, and exits there later.
  def test_exits_of_a_version_that_still_runs_after_its_invalidation_say_so
    trace = trace(<<~'RUBY').trace
      def foo(n, x)
        [0].max_by { |y| foo(n - 1, x); 0 } if n > 0
        x > 5 ? x.to_s : x
      end
      30.times { foo(3, 1) }
      foo(50, 6)
      foo(50, 6)
    RUBY
    found = outcomes(trace)
    assert_includes found, "already_invalidated"
    assert_operator found.index("already_invalidated"), :>, found.index("invalidated")
    late = trace.in_category("recompile_exit").select { |event| event["args"]["outcome"] == "already_invalidated" }
    cause = trace.in_category("recompile_exit").select { |event| event["args"]["outcome"] == "invalidated" }
    assert_empty late.map { |event| event["args"]["version"] }.uniq - cause.map { |event| event["args"]["version"] }
  end

  # What the exit caused is written before it, but is later.
  def test_the_exit_stands_before_what_it_caused
    trace = trace(BRANCHES, "--zjit-trace-compiles").trace
    foo = /\A(Object#)?foo[ @]/
    caused = trace.in_category("recompile_exit").select { |event| event["args"].values_at("outcome", "0").join(" ") =~ /\Ainvalidated Object#foo/ }
    compiled = trace.in_category("compile").select { |event| event["ph"] == "B" && event["name"] =~ foo }.drop(1)
    assert_equal caused.size, compiled.size
    caused.zip(compiled) { |cause, effect| assert_operator cause["ts"], :<, effect["ts"] }
  end

  def test_sampled_recompile_exits_have_outcomes_and_weights
    all = trace(BRANCHES).trace
    sampled = trace(BRANCHES, "--zjit-trace-exits-sample-rate=2").trace
    assert_equal all.summary["exits"], sampled.summary["exits"], "sampling must not change what recompiles"
    assert_equal outcomes(all).each_slice(2).filter_map { |slice| slice[1] }, outcomes(sampled)
    assert_operator outcomes(sampled).uniq.size, :>, 1
  end
end
