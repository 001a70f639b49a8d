# Code that is freed, and memory that is reused: labels and counts stay those of the code that
# exited.
require_relative "helper"

class TestLives < Integration::Test
  # Each round defines a new method, exits in it, and drops it.
  COME_AND_GO = <<~'RUBY'
    rounds = Integer(ARGV.fetch(0))
    rounds.times do |i|
      klass = Class.new
      Object.const_set("K#{i}", klass)
      klass.class_eval("def m#{i}\n::RubyVM::ZJIT.induce_side_exit!\nend", "file#{i}.rb", i + 1)
      object = klass.new
      5.times { object.send("m#{i}") }
      Object.send(:remove_const, "K#{i}")
      GC.start if i % 50 == 49
      GC.compact if ARGV[1] == "compact" && i % 200 == 199
    end
  RUBY

  def assert_each_round_is_its_own(trace, rounds)
    found = trace.exits("DirectiveInduced").map { |event| event["args"]["0"] }.tally
    expected = (0...rounds).map { |i| "K#{i}#m#{i} (file#{i}.rb:#{i + 2})" }
    assert_equal expected, found.keys
    # The first call is not compiled yet, unless its caller's code has it compiled.
    assert_empty found.values.uniq - (JIT == "zjit" ? [4] : [4, 5])
    sites = trace.sites("DirectiveInduced")
    assert_equal expected.sort, sites.map { |site| site["location"] }.sort
    assert_equal found.values.sort, sites.map { |site| site["hits"] }.sort
  end

  def test_methods_that_are_collected_keep_their_labels_and_counts
    assert_each_round_is_its_own(trace(COME_AND_GO, args: ["1000"]).trace, 1000)
  end

  # Only code that is not compiled is collected for sure: the frames below the exiting one. Their
  # memory is reused.
  def test_frames_of_code_that_was_collected_are_not_taken_for_others
    trace = trace(<<~'RUBY').trace
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      3.times { foo }
      3000.times do |i|
        eval("\n" * (i % 7) + "def m#{i % 3}(x) = foo\nm#{i % 3}(1)", nil, "f#{i % 11}.rb")
        GC.start if i % 100 == 99
      end
    RUBY
    found = trace.exits("DirectiveInduced").last(3000).map { |event| event["args"].values_at("1", "2") }
    expected = 3000.times.map do |i|
      ["Object#m#{i % 3} (f#{i % 11}.rb:#{i % 7 + 1})", "block in <main> (f#{i % 11}.rb:#{i % 7 + 2})"]
    end
    assert_equal expected, found
  end

  def test_compaction_changes_no_label
    assert_each_round_is_its_own(trace(COME_AND_GO, args: %w[600 compact]).trace, 600)
  end

  def test_compaction_on_every_collection_changes_no_label
    assert_each_round_is_its_own(trace("GC.auto_compact = true\n" + COME_AND_GO, args: ["300"]).trace, 300)
  end

  def test_code_compiled_and_traced_under_gc_stress_is_right
    script = <<~'RUBY'
      def foo(x) = x > 3 ? x.to_s : (::RubyVM::ZJIT.induce_side_exit!; x)
      5.times { foo(1) }
      GC.stress = true
      20.times { |i| foo(i) }
      eval("def bar = (::RubyVM::ZJIT.induce_side_exit!)\n5.times { bar }")
      GC.stress = false
    RUBY
    trace = trace(script, "--zjit-trace-compiles").trace
    assert_equal ["Object#bar ((eval at script.rb:5):1)", "Object#foo (script.rb:1)"],
                 trace.exits("DirectiveInduced").map { |event| event["args"]["0"] }.uniq.sort
  end

  def test_a_method_defined_anew_under_its_old_name_has_its_own_line
    trace = trace(<<~'RUBY').trace
      200.times do |i|
        eval("def foo = (::RubyVM::ZJIT.induce_side_exit!)", nil, "foo.rb", 10 + i)
        4.times { foo }
        GC.start if i % 20 == 0
      end
    RUBY
    lines = trace.exits("DirectiveInduced").map { |event| event["args"]["0"][/\AObject#foo \(foo\.rb:(\d+)\)\z/, 1].to_i }
    assert_equal (10...210).to_a, lines.uniq
  end

  def test_an_exit_in_a_trap_or_a_finalizer_is_like_any_other
    trace = trace(<<~'RUBY').trace
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      3.times { foo }
      trap(:USR1) { 5.times { foo } }
      10.times { Process.kill(:USR1, $$); sleep 0.001 }
      ObjectSpace.define_finalizer(Object.new, proc { 5.times { foo } })
      TracePoint.new(:call) { }.enable { 3.times { foo } }
      5.times { foo }
    RUBY
    assert_operator trace.exits("DirectiveInduced").size, :>, 20
  end

  # Each eval makes an ISEQ that exits, is recorded with its name, and becomes garbage; its memory
  # is reused.
  EVALS = Integration::LONG ? 300_000 : 20_000
  MANY_EVALS = <<~'RUBY'
    def peak = File.read("/proc/self/status")[/^VmRSS:\s*(\d+)/, 1].to_i
    def foo(x) = x + 1
    60.times { foo(1) }
    BIG = 2**62 - 1
    evals = Integer(ARGV.fetch(0))
    evals.times do |i|
      eval("def caller_#{i % 7}_#{i / 7 % 11}(x) = foo(x)\ncaller_#{i % 7}_#{i / 7 % 11}(BIG)", nil, "f#{i}.rb", i + 1)
      if i == evals / 2
        GC.start
        print peak, " "
      end
    end
    GC.start
    puts peak
  RUBY

  def growth(result) = result.out.split.map(&:to_i).then { |halfway, at_the_end| at_the_end - halfway }

  def assert_each_eval_is_told(result, evals)
    frames = result.trace.exits("FixnumAddOverflow").map { |event| event["args"].values_at("1", "2") }
    assert_equal evals, frames.size
    frames.each_with_index do |found, i|
      expected = ["Object#caller_#{i % 7}_#{i / 7 % 11} (f#{i}.rb:#{i + 1})", "block in <main> (f#{i}.rb:#{i + 2})"]
      assert_equal expected, found unless found == expected
    end
  end

  def test_evals_by_the_ten_thousand_are_each_told_by_their_own_name
    result = trace(MANY_EVALS, args: [EVALS.to_s])
    assert_each_eval_is_told(result, EVALS)
    # Of many more, Ruby itself keeps some.
    untraced = Integration::LONG ? growth(run_ruby(MANY_EVALS, "--zjit-call-threshold=2", args: [EVALS.to_s])) : 0
    assert_operator growth(result) - untraced, :<, 64 * 1024, "KiB more after as many evals again: dead code must not add up"
  end

  # Threads, fibers, evals, classes and ractors come and go while everything is recorded into memory: the
  # program's own memory, as it is from the second quarter of the time on, grows no further.
  SOAK_SECONDS = 1200
  SOAK = <<~'RUBY'
    Warning[:experimental] = false
    seconds, samples, n = Float(ARGV[0]), [], 0
    resident = -> { GC.start; File.read("/proc/self/status")[/^VmRSS:\s*(\d+)/, 1].to_i }
    now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    start = now.()
    while samples.size < 24
      5.times.map do
        Thread.new do
          Thread.current.name = "worker #{n += 1}"
          enum = Enumerator.new { |y| 10.times { |i| y << i } }
          10.times { enum.next }
          Fiber.new { Fiber.yield 1 }.resume
          sleep 0.0005
        end
      end.each(&:join)
      50.times do
        n += 1
        name = :"m#{n % 50}"
        object = Class.new { class_eval("def #{name}(x) = x + 1\ndef self.make = new", "t#{n}.rb", 1) }.make
        12.times { object.__send__(name, 1) }
        object.__send__(name, 2**62 - 1)
      end
      Ractor.new { [1, 2].map { |x| x + 1 } }.then { |r| r.respond_to?(:value) ? r.value : r.take } if n % 3 == 0
      RubyVM::Trace.instant("round", n: n, text: "round #{n}")
      samples << resident.() if now.() - start > seconds * (samples.size + 1) / 24
    end
    puts samples.join(" ")
  RUBY

  def test_memory_levels_off
    return pass unless Integration::LONG
    # A JIT keeps what it has compiled for code that is gone: that has its bound, too.
    [%w[--disable-jit], %w[--zjit --zjit-mem-size=4 --zjit-call-threshold=10]].each do |flags|
      result = run_ruby(SOAK, *flags, "--vm-trace=full", "--vm-trace-memory=4", args: [SOAK_SECONDS.to_s],
                        time_limit: 3 * SOAK_SECONDS)
      assert_predicate result.status, :success?, result.err
      quarters = result.out.split.map(&:to_i).each_slice(6).to_a
      assert_operator quarters[3].max, :<, quarters[1].max * 1.1 + 4096, "#{flags.first}: KiB #{result.out}"
    end
  end

  # Frames are cached by address, and here every address is reused all the time.
  def test_evals_under_auto_compaction_are_each_told_by_their_own_name
    result = trace("GC.auto_compact = true\n" + MANY_EVALS.sub("if i ==", "GC.start if i % 97 == 0\n  if i =="), args: ["2000"])
    assert_each_eval_is_told(result, 2000)
  end

  def test_evals_between_verified_compactions_are_each_told_by_their_own_name
    skip "this Ruby can't move objects" unless run_ruby("GC.compact", "--zjit-call-threshold=2").status.success?
    script = MANY_EVALS.sub("if i ==", "GC.verify_compaction_references(expand_heap: false, toward: :empty) if i % 100 == 50\n  if i ==")
    assert_each_eval_is_told(trace(script, args: ["600"]), 600)
  end

  def test_evals_under_gc_stress_are_each_told_by_their_own_name
    script = MANY_EVALS.sub("evals.times do |i|\n", "evals.times do |i|\n  GC.stress = i % 2 == 0\n").sub("GC.start\nputs", "GC.stress = false\nputs")
    assert_each_eval_is_told(trace(script, args: ["60"]), 60)
  end
end
