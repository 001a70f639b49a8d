# Filters: several counters, methods, files.
require_relative "helper"

class TestFilters < Integration::Test
  OTHER = <<~'RUBY'
    module Other
      def self.overflow(x) = x + 1
      def self.both(list) = list.each { |x| overflow(x) }
    end
  RUBY
  SCRIPT = <<~'RUBY'
    require_relative "other"
    class Foo
      def overflow(x) = x + 1
      def text(x) = x.size
      def loop_in_block(x) = 3.times { x + 1 }
    end
    foo = Foo.new
    big = 4611686018427387903
    99.times { foo.overflow(1); foo.text("s"); Other.overflow(2); foo.loop_in_block(1) }
    9.times { foo.overflow(big); Other.overflow(big); foo.loop_in_block(big) }
    7.times { foo.text([1]) }
  RUBY

  def filtered(*flags)
    trace(SCRIPT, *NO_INLINING, *flags, files: { "other.rb" => OTHER }).trace
  end

  def places(trace) = trace.exits.map { |exit| exit["args"]["0"][/\A.*(?= \()/] }.uniq.sort

  def test_several_counters_are_traced_together
    overflow, type = JIT == "zjit" ? %w[exit_fixnum_add_overflow exit_guard_type_failure] : %w[opt_plus_overflow guard_send_klass_megamorphic]
    all = filtered
    both = filtered("--zjit-trace-exits=#{overflow},#{type}")
    assert_equal "#{overflow},#{type}", both.settings["counter"]
    one = filtered("--zjit-trace-exits=#{overflow}")
    assert_operator one.exits.size, :>, 0
    assert_operator both.exits.size, :>=, one.exits.size
    assert_operator both.exits.size, :<=, all.exits.size
    if JIT == "zjit"
      other = filtered("--zjit-trace-exits=#{type}")
      assert_operator other.exits.size, :>, 0
      assert_equal one.exits.size + other.exits.size, both.exits.size
    end
  end

  def test_wrong_counter_among_several_is_named
    result = run_in(scratch_dir, "--zjit-trace-exits=#{JIT == "zjit" ? "exit_fixnum_add_overflow" : "opt_plus_overflow"},nosuch", "-e", "1")
    refute_predicate result.status, :success?
    assert_match(/takes names of counters, .*not 'nosuch'/, result.err)
  end

  def test_methods_are_chosen_by_name
    assert_equal ["Foo#overflow"], places(filtered("--zjit-trace-methods=Foo#overflow"))
    assert_equal ["Foo#overflow", "Other.overflow"], places(filtered("--zjit-trace-methods=*overflow"))
    assert_equal ["Foo#overflow", "Foo#text"] & places(filtered), places(filtered("--zjit-trace-methods=Foo#text,Foo#over*")) & %w[Foo#overflow Foo#text]
    trace = filtered("--zjit-trace-methods=Foo#loop*")
    assert_equal ["block in Foo#loop_in_block"], places(trace), "blocks are in their method"
    assert_equal "Foo#loop*", trace.settings["methods"]
  end

  def test_methods_are_chosen_by_file
    assert_equal ["Other.overflow"], places(filtered("--zjit-trace-methods=*other.rb"))
    assert_empty places(filtered("--zjit-trace-methods=nowhere.rb"))
  end

  def test_a_glob_is_needed
    ["", ",", "Foo#*,"].each do |globs|
      result = run_in(scratch_dir, "--zjit-trace-methods=#{globs}", "-e", "1")
      refute_predicate result.status, :success?
      assert_match(/--[yz]jit-trace-methods takes globs of methods or files, .*, not '#{Regexp.escape(globs)}'/, result.err)
    end
  end

  zjit_only def test_compilations_and_invalidations_are_chosen_too
    trace = filtered("--zjit-trace-methods=Foo#text", "--zjit-trace-compiles", "--zjit-trace-invalidation", "--zjit-num-profiles=2")
    whole = trace.in_category("compile").filter_map { |event| event["args"]["iseq"] }.uniq
    assert_equal ["Foo#text (script.rb:4)"], whole
    outermost = 0
    trace.in_category("compile").each do |event|
      assert event["name"].start_with?("text@") || outermost > 0, "a phase of another method: #{event}"
      outermost += event["ph"] == "B" ? 1 : -1
    end
    versions = trace.in_category("invalidation", "reprofile").filter_map { |event| event["args"]["iseq"] }.uniq
    assert_empty versions - whole
  end

  # Code of other methods is that of an untraced run, except for addresses.
  zjit_only def test_other_code_has_no_instruction_of_the_tracer
    script = "def foo(x) = x + 1\ndef bar(x) = x - 1\n30.times { foo(1); bar(1) }\n"
    sizes = lambda do |*flags|
      run_ruby(script, "--zjit-call-threshold=2", "--zjit-trace-compiles", *NO_INLINING, "--zjit-trace-file=%p.fxt", *flags).trace
        .in_category("compile").filter_map { |event| event["args"].values_at("iseq", "version", "exit_bytes") if event["args"]["iseq"] }
        .select { |iseq, *| iseq.match?(/#(foo|bar) /) }.to_h { |iseq, version, bytes| [[iseq[/\w+ /].strip, version], bytes] }
    end
    untraced, traced, chosen = sizes[], sizes["--zjit-trace-exits"], sizes["--zjit-trace-exits", "--zjit-trace-methods=*#foo,*#bar"]
    assert_operator untraced[["foo", 1]], :<, traced[["foo", 1]]
    assert_equal traced, chosen
    return unless Integration.can?(:exit_size)
    # The trace has only compilations that match: the size of bar's code is known from the size of
    # all code.
    bytes = ->(*flags) { run_ruby(script + 'puts RubyVM::ZJIT.stats.values_at(:side_exit_size)', "--zjit-call-threshold=2", "--zjit-stats-quiet",
                                  *NO_INLINING, "--zjit-trace-file=%p.fxt", *flags).out.to_i }
    none, all, foo = bytes["--zjit-trace-exits", "--zjit-trace-methods=nothing"], bytes["--zjit-trace-exits"], bytes["--zjit-trace-exits", "--zjit-trace-methods=*#foo"]
    assert_equal bytes["--zjit-trace-later"], none
    assert_operator none, :<, foo
    assert_operator foo, :<, all
  end
end
