# What only YJIT has: its ways to leave compiled code, by name; its compilations and invalidations;
# code GC; its other tracer.
#
# For Ruby 4: the YJIT of Ruby 3.3 has other counters, and its counting Ruby code
# exits, too. The tests that run for every JIT have what both share.
require_relative "helper"
Integration.only "yjit"
Integration.except "ruby-3.3", "its YJIT has other counters"

class TestYjit < Integration::Test
  COUNTS = "STDOUT.puts RubyVM::YJIT.runtime_stats.values_at(:side_exit_count, :exit_from_branch_stub, :traced_cfunc_return).join(' ')\n"
  BIG = 4_611_686_018_427_387_903

  # Traced; YJIT's own count is the sum of all exits.
  def counted(script, *flags)
    result = trace(script + COUNTS, "--yjit-stats=quiet", *flags)
    assert_equal result.out.split.sum(&:to_i), result.trace.summary["exits"], result.out
    result.trace
  end

  def reasons(trace) = trace.exits.map { |event| event["name"] }.tally
  def places(trace, reason) = trace.exits(reason).map { |event| event["args"].values_at("insn", "0") }.uniq

  def test_a_guard_that_fails_has_the_name_of_its_counter
    trace = counted("def foo(x) = x + 1\n5.times { foo(1) }\n7.times { foo(#{BIG}) }\n")
    assert_equal({ "opt_plus_overflow" => 7 }, reasons(trace))
    assert_equal [["opt_plus", "Object#foo (script.rb:1)"]], places(trace, "opt_plus_overflow")
  end

  def test_an_instruction_without_code_is_uncompiled_insn
    trace = counted("def foo(x) = /\#{x}/o\n6.times { foo(1) }\n")
    assert_equal({ "uncompiled_insn" => 5 }, reasons(trace))
    assert_equal [["once", "Object#foo (script.rb:1)"]], places(trace, "uncompiled_insn")
  end

  def test_a_case_without_code_has_the_name_of_its_counter
    trace = counted("def foo(x) = (a, *b, c = x; b)\n6.times { foo([1, 2, 3]) }\n")
    assert_equal({ "expandarray_splat" => 5 }, reasons(trace))
    assert_equal [["expandarray", "Object#foo (script.rb:1)"]], places(trace, "expandarray_splat")
  end

  def test_a_return_into_an_invalidated_block_is_invalidated_block
    trace = counted(<<~'RUBY')
      def callee = (yield; 1)
      def foo(x)
        callee { eval("class Integer; def +(o) = 9; end") if x }
        1 + 2
      end
      5.times { foo(false) }
      foo(true)
    RUBY
    assert_equal({ "invalidated_block" => 1 }, reasons(trace))
    assert_equal [["pop", "Object#foo (script.rb:3)"]], places(trace, "invalidated_block")
  end

  def test_a_tracepoint_makes_the_frames_of_compiled_code_exit
    trace = counted(<<~'RUBY')
      $point = TracePoint.new(:c_return) {}
      def foo(a, x) = a.sort_by { |y| $point.enable if x; y }
      5.times { foo([2, 1], false) }
      foo([2, 1], true)
      $point.disable
    RUBY
    assert_equal %w[invalidated_everything traced_cfunc_return], reasons(trace).keys.sort
    assert_equal ["Object#foo (script.rb:2)"], places(trace, "traced_cfunc_return").map(&:last)
    assert_equal [0], trace.exits("traced_cfunc_return").map { |event| event["args"]["version"] }
  end

  FILL_THE_MEMORY = <<~'RUBY'
    3000.times do |i|
      eval("def m#{i}(x)\n" + (1..20).map { |j| "x = x + #{j} if x.to_i > #{j}" }.join("\n") + "\nend\n4.times { m#{i}(3.5) }; 4.times { m#{i}(40) }")
    end
  RUBY

  def test_a_stub_that_can_not_be_compiled_is_exit_from_branch_stub
    trace = counted(FILL_THE_MEMORY, "--yjit-exec-mem-size=1")
    assert_equal %w[exit_from_branch_stub], reasons(trace).keys
  end

  # Machine code is freed and overwritten many times; the counts stay exact.
  def test_code_gc_ends_the_sites_of_the_code_that_it_frees
    trace = counted(FILL_THE_MEMORY, "--yjit-exec-mem-size=1", "--yjit-code-gc")
    assert_includes reasons(trace), "invalidated_everything"
    trace = counted(<<~RUBY)
      def foo(x) = x + 1
      def bar(x) = foo(x)
      3.times do |round|
        5.times { bar(1) }
        (round + 2).times { bar(#{BIG}) }
        RubyVM::YJIT.code_gc
      end
    RUBY
    events = trace.events.map { |event| event["name"] }
    sites = trace.sites("opt_plus_overflow")
    assert_operator sites.size, :>=, 3, "each round has sites of its own"
    assert_equal 9, sites.sum { |site| site["hits"] }
    assert_operator events.index("site"), :<, events.rindex("opt_plus_overflow"), "the first are told when their code is freed"
  end

  def test_what_is_counted_apart_at_one_instruction_has_sites_of_its_own
    trace = counted(<<~RUBY)
      class Odd; def +(other) = 0; end
      def foo(x) = x + 1
      5.times { foo(1) }
      kinds = [1, 1.5, "s", [], Odd.new, Class.new(Odd).new, Class.new(Odd).new, Class.new(Odd).new, Class.new(Odd).new]
      20.times { kinds.each { |x| foo(x) rescue 0 } }
      9.times { foo(#{BIG}) }
    RUBY
    sites = trace.sites.select { |site| site["insn"] == "opt_plus" && site["location"] == "Object#foo (script.rb:2)" }
    assert_includes sites.map { |site| site["reason"] }, "opt_plus_overflow"
    assert_equal reasons(trace).slice(*sites.map { |site| site["reason"] }),
                 sites.group_by { |site| site["reason"] }.transform_values { |same| same.sum { |site| site["hits"] } }
  end

  def test_an_exit_in_code_that_was_compiled_from_the_middle_of_a_method_is_recorded
    trace = counted("def foo(n, x)\n  while n > 0\n    x + 1 if n == 1\n    n -= 1\n  end\nend\n9.times { foo(50, #{BIG}) }\n")
    assert_equal [["opt_plus", "Object#foo (script.rb:3)"]], places(trace, "opt_plus_overflow")
  end

  def spans(trace, category) = trace.in_category(category).group_by { |event| event["ph"] }.values_at("B", "E")

  # The branch for other classes is written anew, just before a jump to an exit.
  def test_a_jump_to_an_exit_behind_a_branch_that_gets_a_target_stays_traced
    result = run_ruby(<<~'RUBY', "--yjit-call-threshold=2")
      def equal(a) = a == :b
      RubyVM::Trace.start(file: "started.fxt")
      10.times { equal(:b) }
      10.times { equal(1) }
      equal(nil)
      def plus(a) = a + 1
      10.times { plus(1) }
      10.times { plus(1.5) }
      p Array.new(3) { equal(1) }, RubyVM::Trace.stop[:exits]
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal ["[false, false, false]", 13], [result.out.lines.first.chomp, result.out.lines.last.to_i]
    assert_equal({ "guard_send_not_fixnums" => 13 }, reasons(result.trace))
  end

  def test_a_compilation_says_iseq_version_and_bytes
    begun, ended = spans(trace("def foo(x) = x ? x.to_s : 2\n9.times { |i| foo(i == 8 ? nil : i) }\n", "--yjit-trace-compiles").trace, "compile")
    assert_equal begun.size, ended.size
    assert_includes begun.map { |event| event["name"] }, "foo@script.rb:1"
    foo = ended.select { |event| event["name"] == "foo@script.rb:1" }.map { |event| event["args"] }
    assert_equal ["Object#foo (script.rb:1)"], foo.map { |arguments| arguments["iseq"] }.uniq
    assert(foo.all? { |arguments| arguments["version"] > 0 && arguments["code_bytes"] > 0 })
  end

  {
    "invalidate_method_lookup" => ["def bar = 1\ndef foo = bar\n5.times { foo }\n", "def bar = 2"],
    "invalidate_bop_redefined" => ["def foo(x) = x + 1\n5.times { foo(1) }\n", "class Integer; def +(other) = 3; end"],
    "invalidate_constant_state_bump" => ["A = 1\ndef foo = A\n5.times { foo }\n", "B = 2; Object.send(:remove_const, :A); A = 3"],
    "invalidate_no_singleton_class" => ["def foo(a) = a.size\n5.times { foo([1]) }\n", "a = []; def a.size = 2"],
    "invalidate_ractor_spawn" => ["A = +'x'\ndef foo = A\n5.times { foo }\n", "$VERBOSE = nil; Ractor.new { }.value"],
    "invalidate_ep_escape" => ["def foo(x) = (y = 1; binding if x; y)\n5.times { foo(false) }\n", "foo(true)"],
    "invalidate_everything" => ["def foo = 1\n5.times { foo }\n", "TracePoint.new(:line) {}.enable {}"],
  }.each do |reason, (before, cause)|
    define_method("test_#{reason}_is_a_duration_with_the_backtrace") do
      result = trace(before + "# here\n" * 3 + cause + "\n", "--yjit-trace-invalidation", "-W:no-experimental", recorders: 2)
      begun, ended = spans(result.trace, "invalidation")
      assert_equal begun.size, ended.size
      assert_includes begun.map { |event| event["name"] }, reason
      line = before.lines.size + 4
      frames = begun.find { |event| event["name"] == reason }.then { |event| Trace.named_frames(event) }
      assert(frames.any? { |frame| frame.end_with?("(script.rb:#{line})") } || reason == "invalidate_ep_escape", frames.inspect)
    end
  end

  def test_the_other_tracer_is_as_it_was
    script = "def foo(x) = x + 1\n5.times { foo(1) }\n7.times { foo(#{BIG}) }\nl = RubyVM::YJIT.exit_locations\n" \
             "puts l[:frames].values.map { |f| f[:name] }.sort.join(' '), l[:raw].size\n"
    alone = run_ruby(script, "--yjit-call-threshold=2", "--yjit-trace-exits", "--yjit-stats=quiet")
    assert_match(/\bObject#foo\b.*\n\d+\n\z/m, alone.out)
    assert_empty alone.traces
    both = run_traced(script, "--yjit-trace-exits", "--yjit-stats=quiet")
    assert_equal alone.out, both.out
    assert_equal 7, both.trace.exits("opt_plus_overflow").size
  end

  # Sizes of machine code, as the process prints them.
  SIZES = "puts RubyVM::YJIT.runtime_stats.values_at(:inline_code_size, :outlined_code_size, :code_region_size).join(' ')"

  def sizes(*flags)
    result = run_ruby(TestYjit::FILL_THE_MEMORY.sub("3000", "30") + SIZES, "--yjit-call-threshold=2", *flags)
    assert_predicate result.status, :success?, result.err
    result.out.split.map(&:to_i)
  end

  def test_no_code_is_added_where_no_exit_is_traced
    plain = sizes
    assert_operator plain.min, :>, 1000
    assert_equal plain, sizes("--yjit-trace-compiles", "--yjit-trace-invalidation", "--yjit-trace-file=%p.fxt")
    assert_equal plain, sizes("--yjit-trace-side-exits", "--yjit-trace-file=nowhere/t.fxt"), "the file can't be made"
    assert_equal plain, sizes("--yjit-trace-side-exits=code_gc_count", "--yjit-trace-file=%p.fxt"), "a counter of no exit"
    assert_operator sizes("--yjit-trace-side-exits", "--yjit-trace-file=%p.fxt").sum, :>, plain.sum
  end
end
