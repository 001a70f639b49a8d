# Exits outside of compiled code: after compile errors and at the entry for exception handlers. The
# sum of the trace equals --zjit-stats.
require_relative "helper"
Integration.only "zjit"

class TestUncompiled < Integration::Test
  STATS = "\nputs RubyVM::ZJIT.stats.select { |key, _| %i[side_exit_count exit_exception_handler].include?(key) || key.start_with?('exit_') }.map { |pair| pair.join('=') }\n"

  # Counts and trace of the same process. Exits after the counts are read are not in them: the
  # printing line itself takes none.
  def counts_and_trace(script, *flags)
    result = trace(script + STATS, "--zjit-stats-quiet", *flags)
    counts = result.out.lines(chomp: true).grep(/=\d+\z/).to_h { |line| line.split("=") }.transform_values(&:to_i)
    [counts, result.trace]
  end

  COMPILE_FAILURE = <<~'RUBY'
    def fails(x)
      ::RubyVM::ZJIT.induce_compile_failure!
      x
    end
    def calls(x) = fails(x)
    i = 0
    while i < 50
      calls(i)
      i += 1
    end
  RUBY

  EXCEPTION_HANDLER = <<~'RUBY'
    def catches
      yield
    rescue => e
      i = 0
      i += 1 while i < 10
      e.message
    end
    def raises = catches { raise "x" }
    50.times { raises }
  RUBY

  BLOCK_BREAKS = <<~'RUBY'
    def breaks = [1, 2, 3].each { |x| break x if x == 2 }
    def throws = catch(:x) { throw :x }
    def returns = [1, 2].each { |x| return x }
    50.times { breaks; throws; returns }
  RUBY

  def test_exits_after_a_compile_error_are_recorded
    counts, trace = counts_and_trace(COMPILE_FAILURE)
    assert_operator counts["exit_compile_error"], :>, 0
    found = trace.exits.select { |event| event["name"].start_with?("CompileError(") }
    assert_equal counts["exit_compile_error"], found.size
    assert_equal ["Object#fails (script.rb:1)"], found.map { |event| event["args"]["0"].sub(/:\d+\)/, ":1)") }.uniq
    assert_equal ["Object#calls (script.rb:5)"], found.map { |event| event["args"]["1"] }.uniq
  end

  def test_the_counter_of_compile_errors_selects_them
    all = counts_and_trace(COMPILE_FAILURE)[0]["exit_compile_error"]
    result = run_ruby(COMPILE_FAILURE, "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", "--zjit-trace-exits=exit_compile_error")
    assert_equal all, result.trace.exits.size
    assert_equal all, result.trace.summary["exits"]
  end

  def test_exits_at_exception_handlers_are_recorded
    counts, trace = counts_and_trace(EXCEPTION_HANDLER)
    assert_operator counts[jit("exit_exception_handler")], :>, 0
    assert_equal counts[jit("exit_exception_handler")], trace.exits("ExceptionHandler").size
  end

  {
    compile_errors: COMPILE_FAILURE,
    exception_handlers: EXCEPTION_HANDLER,
    breaks_and_throws: BLOCK_BREAKS,
    all_of_them: COMPILE_FAILURE + EXCEPTION_HANDLER + BLOCK_BREAKS,
    many_kinds: <<~'RUBY',
      def foo(x) = x.to_s
      def add(x) = x + 1
      def splat(*a, **k, &b) = a.size
      def shape(o) = o.instance_variable_get(:@a)
      class A; attr_accessor :a; def initialize(x) = (@b = 1 if x; @a = 2); end
      30.times { |i| foo(i); add(i); splat(*[i], b: 1) { }; A.new(i.even?).a }
      30.times { |i| foo(:a); add(4_611_686_018_427_387_903); add(1.5); [1, 2].freeze.first }
      30.times { |i| foo(nil); "a#{i}".to_sym; { a: 1 }.each { |k, v| v } }
      class Integer; def foo = 1; end
      30.times { |i| i.foo; (i.zero? ? 1 : nil)&.foo }
    RUBY
  }.each do |name, script|
    [1, 7].each do |rate|
      define_method("test_the_sum_of_#{name}_at_one_in_#{rate}_is_side_exit_count") do
        counts, trace = counts_and_trace(script, "--zjit-trace-exits-sample-rate=#{rate}")
        assert_operator counts["side_exit_count"], :>, 0
        assert_equal counts["side_exit_count"], trace.summary["exits"]
        assert_equal counts["side_exit_count"] / rate, trace.exits.size
      end
    end
  end

  def test_each_counter_selects_as_many_exits_as_it_counts
    script = COMPILE_FAILURE + EXCEPTION_HANDLER + BLOCK_BREAKS
    counts, = counts_and_trace(script)
    counts.select { |name, count| name.start_with?("exit_") && count > 0 }.each do |name, count|
      result = run_ruby(script, "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", "--zjit-trace-exits=#{name}")
      assert_equal count, result.trace.summary["exits"], name
    end
  end
end
