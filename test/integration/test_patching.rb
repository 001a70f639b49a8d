# Much compiled code: it is patched when a trace starts and stops, while others run and compile, and while it is freed.
# All else of traces that a program starts is in test_runtime.
require_relative "helper"

class TestPatching < Integration::Test
  COMPILES = <<~'RUBY'
    N = 400
    N.times { |i| eval "def m#{i}(x, y) = (a = x + #{i}; b = a * 2; [a, b, y].max + b - a + x)" }
    N.times { |i| 5.times { |k| send(:"m#{i}", k, i) } }
  RUBY

  # Compiled code is patched in pieces. In between others run, compile and exit; what they compile is patched as well.
  def test_others_run_while_code_is_patched
    room = BASE < "ruby-3.4" ? [] : ["--zjit-mem-size=512"]
    # With YJIT so many methods take many pieces, too.
    methods, late = JIT == "yjit" ? [1000, 100] : [2500, 200]
    result = run_untraced(<<~'RUBY', *room, args: [methods, late].map(&:to_s), recorders: 3)
      N, LATE = ARGV.map { |number| Integer(number) }
      many = (1..40).map { |i| "x += #{i}" }.join("; ")
      N.times { |i| eval "def m#{i}(x) = (#{many}; ::RubyVM::ZJIT.induce_side_exit!; #{i})" }
      N.times.each_slice(50) { |slice| eval "def from#{slice[0]} = (#{slice.map { |i| "m#{i}(1)" }.join("; ")})" }
      run = ->(*) { (0...N).step(50) { |i| send(:"from#{i}") } }
      4.times(&run)
      late, ends, ran = 0, false, 0
      other = Thread.new do
        until ends
          if late < LATE
            eval "def late#{late}(x) = (#{many}; ::RubyVM::ZJIT.induce_side_exit!; x)"
            eval "def from_late#{late} = late#{late}(1)"
            4.times { send(:"from_late#{late}") }
            late += 1
          end
          ran += 1
          Thread.pass
        end
      end
      Thread.pass until ran > 10
      2.times do |round|
        all = ran
        RubyVM::Trace.start(file: "#{round}.fxt")
        started = ran - all
        Thread.pass until late == LATE
        run.()
        # After an interrupt the interpreter may make the first of these calls, and the code is not run.
        LATE.times { |i| 3.times { send(:"from_late#{i}") } }
        all = ran
        RubyVM::Trace.stop => { lost: 0 }
        p started > 0, ran > all
        run.()
      end
      ends = true
      other.join
      RubyVM::Trace.record(file: "2.fxt", exits: false, markers: true, &run)
    RUBY
    assert_equal ["true\n"] * 4, result.out.lines
    2.times do |round|
      names = file(result, "#{round}.fxt").exits("DirectiveInduced").map { |event| event.dig("args", "0") }
      exits = names.map { |name| name[/#(m|late)\d+/] }.tally
      assert_empty methods.times.to_h { |i| ["#m#{i}", exits["#m#{i}"]] }.reject { |_, count| count == 1 }
      of_late = exits.select { |name,| name.start_with?("#late") }
      assert_empty late.times.map { |i| "#late#{i}" } - of_late.keys
      assert_operator of_late.values.min, :>=, 1
    end
    assert_empty file(result, "2.fxt").exits
  end

  # How often the process changes the protection of pages.
  def protections(*flags)
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), COMPILES)
    ruby = [Integration::RUBY, "--disable=gems", *Integration::COMPATIBILITY]
    result = run_in(dir, "--zjit-call-threshold=2", *flags, "script.rb",
                    command: [*%w[strace -f -q -e trace=mprotect -o calls], *ruby])
    assert_predicate result.status, :success?, result.err
    File.foreach(File.join(dir, "calls")).count { |line| line.include?("mprotect(") }
  end

  # They take up to 100 us each in some virtual machines, so a stub that is made meanwhile must not need any.
  def test_methods_that_are_compiled_while_exits_are_traced_need_no_more_system_calls
    skip_without_strace
    untraced, traced = protections, protections("--vm-trace=exits", "--vm-trace-file=t.fxt")
    assert_operator untraced, :>, 500
    assert_in_delta untraced, traced, untraced / 50 + 50
  end

  # YJIT's own count of all exits. In 3.3 the first includes those of stubs.
  COUNTS = [:side_exit_count, *(:exit_from_branch_stub if BASE >= "ruby-3.4"), :traced_cfunc_return].freeze
  COUNTED = "def counted = RubyVM::YJIT.runtime_stats.values_at(*#{COUNTS.inspect}).sum\n".freeze

  # Code is freed and overwritten, invalidated, runs out of memory: the sum of all traces is YJIT's
  # own count. Where an mprotect takes 20 us, each program takes minutes.
  yjit_only def test_the_counts_are_exact_while_code_gc_frees_what_is_traced
    limit = 4 * Integration::TIME_LIMIT
    [%w[--yjit-exec-mem-size=1], %w[--yjit-exec-mem-size=4 --yjit-code-gc]].each do |size, gc|
      rounds = Integration::LONG ? 9 : gc ? 2 : 4
      flags = ["--yjit-stats=quiet", size, *gc]
      result = run_untraced(COUNTED + <<~'RUBY', *flags, args: [rounds.to_s], time_limit: limit)
        rounds = ARGV[0].to_i
        def grow(i)
          additions = (1..20).map { |j| "x = x + #{j} if x.to_i > #{j}" }.join("\n")
          eval("def m#{i}(x)\n#{additions}\nend\n4.times { m#{i}(3.5) }; 4.times { m#{i}(40) }")
        end
        def exit(x) = x + 4_611_686_018_427_387_900
        found = []
        rounds.times do |round|
          RubyVM::Trace.start(file: "#{round}.fxt")
          before = counted
          200.times { |i| grow(round * 200 + i); exit(i) }
          RubyVM::YJIT.code_gc if round == rounds / 2 && RubyVM::YJIT.runtime_stats[:code_gc_count] > 0
          after = counted
          found << [RubyVM::Trace.stop[:exits], after - before]
          50.times { |i| grow(10_000 + round * 50 + i); exit(300) }
        end
        p found.sum(&:last) > rounds * 500 / 9, found.reject { |traced, counted| (0..9) === traced - counted }
        p RubyVM::YJIT.runtime_stats[:code_gc_count]
      RUBY
      many, wrong, freed = result.out.lines.map { |line| eval(line) }
      assert_equal [true, []], [many, wrong]
      assert_equal !gc.nil?, freed > rounds * 10 / 9
      names = result.traces.flat_map { |trace| trace.exits.map { |event| event["name"] } }
      assert_includes names, gc ? "invalidated_everything" : "exit_from_branch_stub"
    end
  end
end
