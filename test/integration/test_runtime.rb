# Traces that the program itself starts and stops: RubyVM::Trace.
require_relative "helper"

class TestRuntime < Integration::Test
  WARM = <<~'RUBY'
    def foo = (::RubyVM::ZJIT.induce_side_exit!)
    def sub(x) = x - -4_611_686_018_427_387_900
    10.times { foo; sub(1) }
  RUBY

  def test_each_trace_has_what_happened_while_it_was_on
    result = run_untraced(WARM + <<~'RUBY')
      p RubyVM::Trace.status
      p RubyVM::Trace.start(file: "a.fxt")
      20.times { foo }
      status = RubyVM::Trace.status
      p status.values_at(:on, :jit, :exits, :sampled, :lost, :path), status[:sites]
      a = RubyVM::Trace.stop
      100.times { foo }
      b = RubyVM::Trace.record(file: "b.fxt", exits: :exit_fixnum_sub_overflow) { 30.times { foo; sub(100) } }
      100.times { foo }
      c = RubyVM::Trace.record(file: "c.fxt", sample_rate: 7) { 70.times { foo } }
      [a, b, c].each { |summary| p summary }
    RUBY
    dir = File.realpath(result.dir)
    off, path, on, sites, a, b, c = result.out.lines.map { |line| eval(line) }
    assert_equal({ on: false, jit: jit("ZJIT") }, off)
    assert_equal File.join(dir, "a.fxt"), path
    assert_equal [true, jit("ZJIT"), 20, 20, 0, path], on
    assert_equal [20, 20, 0, path], a.values_at(:exits, :sampled, :lost, :path)
    assert_equal [file(result, "a.fxt").summary["sites"]] * 2, [sites, a[:sites]]
    assert_equal [30, 30, 0], b.values_at(:exits, :sampled, :lost)
    assert_equal [70, 10, 0], c.values_at(:exits, :sampled, :lost)
    counts = %w[a b c].map { |name| file(result, "#{name}.fxt").exits.map { |event| event["name"] }.tally }
    assert_equal [["DirectiveInduced", 20], ["FixnumSubOverflow", 30], ["DirectiveInduced", 10]].map { |name, count| { jit(name) => count } }, counts
    [a, b, c].zip(%w[a b c]) do |summary, name|
      assert_equal summary[:events], file(result, "#{name}.fxt").events.size
    end
    event = file(result, "a.fxt").exits.first
    version = BASE < "ruby-3.4" ? 2 : 1 # the first is that of its first instruction
    assert_equal [%(Object#foo (script.rb:1)), %(block in <main> (script.rb:6)), version],
                 [event["args"]["0"], event["args"]["1"], event["args"]["version"]]
  end

  # Jumps lead where they led before: all executable memory without a file. The first rounds compile
  # what the last one runs.
  def test_code_is_put_back_to_the_byte
    result = run_untraced(WARM + <<~'RUBY')
      def code
        maps = File.readlines("/proc/self/maps").map(&:split).select { |_, mode, _, _, inode, name| mode == "r-xp" && inode == "0" && !name&.start_with?("[v") }
        File.open("/proc/self/mem") { |memory| maps.map { |range,| from, to = range.split("-").map(&:hex); memory.pread(to - from, from) } }
      end
      def round
        before = code
        RubyVM::Trace.start(file: "a.fxt")
        during = code
        10.times { foo; sub(100) }
        RubyVM::Trace.stop
        [before, during, code]
      end
      5.times { round }
      before, during, after = round
      p before.sum(&:size) > 4000, during != before, after == before
    RUBY
    assert_equal %w[true true true], result.out.split
  end

  # A loop that began before the trace is traced, too: its code is the same.
  def test_a_running_loop_is_traced_at_once
    result = run_untraced(WARM + <<~'RUBY')
      def loops
        i = 0
        while i < 30
          RubyVM::Trace.start(file: "a.fxt") if i == 10
          RubyVM::Trace.stop if i == 20
          exits(i)
          i += 1
        end
      end
      def exits(i) = i + 4_611_686_018_427_387_900
      3.times { exits(1) }
      loops
    RUBY
    assert_equal({ jit("FixnumAddOverflow") => 10 }, result.traces.first.exits.map { |event| event["name"] }.tally)
  end

  # Recompile exits with all outcomes, and patch points that become jumps: the same as in a program
  # that is traced by flags.
  ALL_OF_ZJIT = <<~'RUBY'
    def branches(x)
      if x == 1 then x.to_s
      elsif x == 2 then x.to_f
      elsif x == 3 then x.inspect
      elsif x == 4 then x.to_i
      elsif x == 5 then x.hash
      elsif x == 6 then x.chr
      end
    end
    def fails = (::RubyVM::ZJIT.induce_compile_failure!; 1)
    def calls = fails
    def twice(x) = x + x
    def rescues = (begin; raise "x"; rescue; 1; end)
    CONST = 1
    def patched = [CONST, -CONST]
    RUN = -> {
      30.times { branches(0) }
      (1..6).each { |x| 30.times { branches(x) } }
      30.times { branches("s"); calls; twice(1) }
      30.times { twice(1.5) }
      30.times { rescues; send(:fails) }
      30.times { |i|
        send(:patched)
        (Object.send(:remove_const, :CONST); CONST = 2) if [5, 10, 15].include?(i)
        class Integer; def -@ = 0; end if i == 20
      }
    }
  RUBY
  def assert_as_by_flags(everything, *flags)
    by_flags = run_traced(everything + "RUN.()", *flags).trace
    switched = run_untraced(everything + %(RubyVM::Trace.start(file: "a.fxt"); RUN.(); RubyVM::Trace.stop), *flags).trace
    expected, found = [by_flags, switched].map do |trace|
      trace.exits.map { |event| [event["name"].gsub(/0x\h+/, "0x"), *event["args"].values_at("0", "insn", "version", "outcome")] }.tally
    end
    assert_equal expected, found
    expected.keys
  end

  zjit_only def test_the_exits_are_those_of_a_program_traced_by_flags
    exits = assert_as_by_flags(ALL_OF_ZJIT)
    assert_includes exits.map(&:first), jit("CompileError(ParseError(DirectiveInduced))")
    assert_includes exits.map(&:first), "ExceptionHandler"
    if Integration.can?(:recompile_exits)
      assert_empty %w[invalidated profiling version_limit] - exits.map(&:last)
      exits = assert_as_by_flags(ALL_OF_ZJIT, "--zjit-max-versions=1")
    end
    assert(exits.any? { |exit| exit.first.start_with?("PatchPoint(StableConstantNames") })
  end

  # A method with two guards that leave with the same state, and so by one exit; what it is called
  # with: no guard fails, the first, the second; and their counters.
  TWO_GUARDS, *COUNTERS =
    if BASE < "ruby-3.4"
      ["def two(pair) = pair[0] << pair[1]\nNONE, FIRST, SECOND = [1, 2], [1, 3], [2**61, 2]\n", "lshift_amt_changed", "lshift_overflow"]
    else
      ["def two(i) = 'abc'.getbyte(i)\nNONE, FIRST, SECOND = 1, -1, 10\n", "getbyte_idx_negative", "getbyte_idx_out_of_bounds"]
    end

  # All ways to leave YJIT's code: guards, instructions without code, invalidated blocks and frames,
  # a return from C.
  ALL_OF_YJIT = TWO_GUARDS + <<~'RUBY'
    def over(x) = x - -4_611_686_018_427_387_900
    def once = /#{1}/o
    def middle(x) = (a, *b, c = x; b)
    def callee = (yield; 1)
    def stale(x)
      callee { eval("class Integer; def *(o) = 9; end") if x }
      1 * 2
    end
    POINT = TracePoint.new(:c_return) {}
    def watched(a, x) = a.sort_by { |y| POINT.enable if x; y }
    RUN = -> {
      10.times { two(NONE) }
      30.times { |i| two(FIRST) if i % 3 == 0; two(SECOND) if i % 5 == 0; over(i * 20) }
      30.times { over(100); once; middle([1, 2, 3]) }
      30.times { |i| stale(i == 20) }
      30.times { |i| watched([2, 1], i == 20) }
      POINT.disable
      30.times { over(100); two(SECOND) }
    }
  RUBY

  yjit_only def test_the_exits_of_yjit_are_those_of_a_program_traced_by_flags
    reasons = [*COUNTERS, *%w[opt_minus_overflow uncompiled_insn expandarray_splat invalidated_block invalidated_everything traced_cfunc_return]]
    assert_empty reasons - assert_as_by_flags(ALL_OF_YJIT).map(&:first)
    assert_empty reasons - assert_as_by_flags(ALL_OF_YJIT, "--yjit-stats=quiet").map(&:first) # counts in exits
  end

  yjit_only def test_guards_that_share_an_exit_are_told_apart
    result = run_untraced(TWO_GUARDS + <<~RUBY)
      10.times { two(NONE) }
      RUN = -> { 3.times { two(FIRST) }; 5.times { two(SECOND) } }
      #{COUNTERS}.each { |counter| RubyVM::Trace.record(file: "\#{counter}.fxt", exits: counter.to_sym, &RUN) }
      RubyVM::Trace.record(file: "all.fxt", &RUN)
    RUBY
    counts = result.traces.to_h { |trace| [File.basename(trace.path, ".fxt"), trace.exits.map { |event| event["name"] }.tally] }
    first, second = COUNTERS.zip([3, 5])
    assert_equal({ "all" => [first, second].to_h, first[0] => [first].to_h, second[0] => [second].to_h }, counts)
  end

  # Entries of methods that cannot be compiled, and of handlers: old, new and freed ones.
  zjit_only def test_entries_that_only_give_up_are_traced
    result = run_untraced(<<~'RUBY')
      def rescues = (begin; raise "x"; rescue; 1; end)
      def fails = (::RubyVM::ZJIT.induce_compile_failure!; 1)
      def both(n) = n.times { rescues; send(:fails) }
      both(10)
      200.times { eval("->{ begin; raise 'x'; rescue; 1; end }").then { |code| 4.times { code.() } } }
      GC.start
      RubyVM::Trace.start(file: "a.fxt")
      both(20)
      def later = (::RubyVM::ZJIT.induce_compile_failure!; 1)
      5.times { send(:later) }
      RubyVM::Trace.stop
      both(100)
      GC.compact
      RubyVM::Trace.record(file: "b.fxt", exits: :exit_exception_handler, sample_rate: 4) { both(20) }
      RubyVM::Trace.record(file: "c.fxt", exits: :exit_compile_error) { both(7) }
    RUBY
    # Without directives, the counter of compile errors counts handlers, too.
    handlers = Integration.can?(:directives) ? {} : { ["ExceptionHandler", "rescues"] => 7 }
    counts = %w[a b c].map { |name| file(result, "#{name}.fxt").exits.map { |event| [event["name"], event["args"]["0"][/#(\w+)/, 1]] }.tally }
    error = jit("CompileError(ParseError(DirectiveInduced))")
    assert_equal [{ ["ExceptionHandler", "rescues"] => 20, [error, "fails"] => 20, [error, "later"] => 4 },
                  { ["ExceptionHandler", "rescues"] => 5 }, { **handlers, [error, "fails"] => 7 }], counts
  end

  zjit_only def test_a_patch_point_is_traced_whenever_it_became_a_jump
    # In the last version, so the code stays, and exits there for good.
    last = Integration.can?(:recompile_exits) ? ["--zjit-max-versions=1"] : []
    result = run_untraced(<<~RUBY.sub("LAST", last.empty? ? "set(:A); set(:B); set(:C); TEN[:a]; TEN[:b]; TEN[:c]" : ""), *last)
      A = B = C = 1
      def a = A
      def b = B
      def c = C
      def set(name) = (Object.send(:remove_const, name); Object.const_set(name, 2))
      TEN = ->(name) { 10.times { send(name) } }
      TEN[:a]; TEN[:b]; TEN[:c]
      LAST
      set(:A)
      RubyVM::Trace.start(file: "a.fxt")
      TEN[:a]; TEN[:b]
      set(:B)
      TEN[:b]
      RubyVM::Trace.stop
      TEN[:a]; TEN[:b]
      set(:C)
      set(:B)
      RubyVM::Trace.start(file: "b.fxt")
      TEN[:b]; TEN[:c]; set(:C); TEN[:c]
      RubyVM::Trace.stop
      p TEN[:a]
    RUBY
    counts = %w[a b].map { |name| file(result, "#{name}.fxt").exits.map { |event| event["args"]["0"][/#(\w+)/, 1] }.tally }
    assert_equal [{ "a" => 10, "b" => 10 }, { "b" => 10, "c" => 20 }], counts
  end

  def test_bad_use_gets_exceptions_that_say_what_to_do
    result = run_untraced(<<~'RUBY')
      def try
        p yield
      rescue StandardError, NotImplementedError => e
        puts "#{e.class}: #{e.message}"
      end
      try { RubyVM::Trace.stop }
      try { RubyVM::Trace.start(fille: "x") }
      try { RubyVM::Trace.start(exits: :no_such) }
      try { RubyVM::Trace.start(exits: 3) }
      try { RubyVM::Trace.start(exits: false) }
      try { RubyVM::Trace.start(sample_rate: 0) }
      try { RubyVM::Trace.start(max_size: 3) }
      try { RubyVM::Trace.start(keep: :oldest) }
      try { RubyVM::Trace.start(max_size: 8, keep: :best) }
      try { RubyVM::Trace.start(memory: 3) }
      try { RubyVM::Trace.start(seconds: 3) }
      try { RubyVM::Trace.start(memory: 4, seconds: 0) }
      try { RubyVM::Trace.start(memory: 4, save_at: :USR1) }
      try { RubyVM::Trace.start(memory: 4, max_size: 4) }
      try { RubyVM::Trace.start(memory: 4, file: "a.fxt") }
      try { RubyVM::Trace.save("a.fxt") }
      try { RubyVM::Trace.start(file: "no/such/folder.fxt") }
      try { RubyVM::Trace.start(file: ".") }
      try { RubyVM::Trace.start(file: "a\0b") }
      try { RubyVM::Trace.record }
      RubyVM::Trace.start(file: "a.fxt")
      try { RubyVM::Trace.start(file: "b.fxt") }
      try { RubyVM::Trace.save("b.fxt") }
      try { RubyVM::Trace.record(file: "c.fxt") { raise "out" } }
      RubyVM::Trace.stop
      try { RubyVM::Trace.record(file: "c.fxt") { raise "out" } }
      try { RubyVM::Trace.record(file: "d.fxt") { RubyVM::Trace.stop } }
    RUBY
    options = /options are exits:, .*file:/
    [/Error: not started: call RubyVM::Trace.start first/, /ArgumentError: unknown option :fille; #{options}/,
     /ArgumentError: exits: takes .* not "no_such"/, /ArgumentError: exits: takes true or false, not 3/, /ArgumentError: nothing .*#{options}/,
     /ArgumentError: sample_rate: takes/, /ArgumentError: max_size: takes/, /ArgumentError: keep: is for a limited file/,
     /ArgumentError: keep: takes :newest or :oldest/,
     /ArgumentError: memory: takes a number of MiB from 4/, /ArgumentError: seconds: is for .* memory:/, /ArgumentError: seconds: takes/,
     /ArgumentError: save_at: takes .*trap/, /ArgumentError: max_size: is for a file/, /ArgumentError: file: is not written .*save\(path\)/,
     /RuntimeError: nothing is recorded: .*start\(memory: 16\)/, /Error: can't trace to .*folder.fxt: No such file or directory; give file:/,
     /Error: can't trace to .*: it exists and is not a regular file; give file:/, /ArgumentError: .*null/, /LocalJumpError/,
     /Error: already started, into .*a.fxt: call RubyVM::Trace.stop first/,
     /RuntimeError: the trace goes to a file \(.*a.fxt\), not to memory: .*start\(memory: 16\)/, /Error: already started/, /RuntimeError: out/, /\Anil/
    ].zip(result.out.lines) { |expected, line| assert_match(expected, line.to_s) }
    assert_equal %w[a.fxt c.fxt d.fxt], result.traces.map { |trace| File.basename(trace.path) }
  end

  # The flight recorder, several times, with traces to files in between. Each starts empty.
  def test_a_recorder_is_switched_on_and_off
    result = run_untraced(WARM + <<~'RUBY')
      p RubyVM::Trace.start(memory: 4)
      20.times { foo }
      p RubyVM::Trace.save("a.fxt").values_at(:exits, :lost), RubyVM::Trace.status.values_at(:on, :exits, :memory, :path)
      RubyVM::Trace.reset
      3.times { foo }
      RubyVM::Trace.save("b.fxt")
      p RubyVM::Trace.stop.values_at(:exits, :lost, :memory, :path), RubyVM::Trace.status, Dir["/proc/self/maps"].any? { |maps| File.read(maps).include?("memfd:vm_trace") }
      RubyVM::Trace.record(file: "c.fxt") { 5.times { foo } }
      RubyVM::Trace.record(memory: 16, seconds: 3, sample_rate: 7) do
        70.times { foo }
        sleep 3.1
        7.times { foo }
        RubyVM::Trace.save("d.fxt")
      end
      RubyVM::Trace.record(memory: 4, invalidations: true) { foo; RubyVM::Trace.save("e.fxt") }
      RubyVM::Trace.start(memory: 4)
      fork { foo; RubyVM::Trace.save("child.fxt"); RubyVM::Trace.stop; RubyVM::Trace.record(memory: 4) { 4.times { foo }; RubyVM::Trace.save("again.fxt") } }
      Process.wait
      RubyVM::Trace.stop
    RUBY
    expected = { "a" => 20, "b" => 3, "c" => 5, "d" => 1, "e" => 1, "child" => 1, "again" => 4 }
    assert_equal expected, expected.keys.to_h { |name| [name, file(result, "#{name}.fxt").exits.size] }
    assert_equal [20, 3, 77], %w[a b d].map { |name| file(result, "#{name}.fxt").summary["exits"] }
    assert_equal [nil, [20, 0], [true, 20, 4, nil], [3, 0, 4, nil], { on: false, jit: jit("ZJIT") }, false], result.out.lines.map { |line| eval(line) }
    settings = file(result, "d.fxt").settings
    assert_equal [7, 16 << 20, "newest", 3, "save"], settings.values_at("exit_rate", "max_bytes", "keep", "seconds", "snapshot")
  end

  def test_a_recorder_that_was_switched_on_saves_by_itself
    result = run_ruby(WARM + %(RubyVM::Trace.start(memory: 4, save_at: [:exit, :crash], file: "%p.fxt"); 6.times { foo }), "--zjit-call-threshold=2")
    assert_empty result.err
    assert_equal ["exit", 6], [result.trace.settings["snapshot"], result.trace.exits.size]
    crashed = run_ruby(WARM + %(RubyVM::Trace.start(memory: 4, save_at: :crash, file: "a.fxt"); 6.times { foo }; Process.kill(:SEGV, $$); sleep), "--zjit-call-threshold=2", ended: false)
    assert_equal ["memory", 6], [crashed.trace.settings["snapshot"], crashed.trace.exits.size]
    stopped = run_untraced(WARM + %(RubyVM::Trace.record(memory: 4, save_at: :exit, file: "a.fxt") { foo }))
    assert_empty stopped.traces, "the program does not end when the trace does"
  end

  # Threads and ractors save and are killed while the recorder starts and stops: each trace is
  # complete, nothing hangs.
  def test_a_recorder_is_switched_while_others_save
    rounds_and_saves = LONG ? %w[40 2000] : %w[8 300]
    result = run_ruby(WARM + <<~'RUBY', "--zjit-call-threshold=2", "-W:no-experimental", args: rounds_and_saves, recorders: 4)
      ROUNDS, SAVES = ARGV.map { |number| Integer(number) }
      def save(path) = RubyVM::Trace.save(path)
      savers = ->(name) { Thread.new { loop { save("#{name}.fxt") rescue RuntimeError } } }
      threads = [savers["a"], savers["b"], Thread.new { loop { foo } }]
      ractor = Ractor.new do
        SAVES.times { foo; RubyVM::Trace.save("r.fxt") rescue RuntimeError; RubyVM::Trace.reset rescue RuntimeError }
      end
      ROUNDS.times do |i|
        RubyVM::Trace.start(memory: 4 + i % 3, sample_rate: 1 + i % 2)
        20.times { foo }
        save("main.fxt")
        if i % 10 == 3
          threads.shift.kill.join
          threads << savers["c#{i}"]
        end
        RubyVM::Trace.stop
      end
      threads.each(&:kill).each(&:join)
      ractor.value
      RubyVM::Trace.record(memory: 4) { 5.times { foo }; save("last.fxt") }
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal 5, file(result, "last.fxt").exits("DirectiveInduced").size
    assert_includes result.traces.map { |trace| File.basename(trace.path) }, "main.fxt"
  end

  def test_without_a_jit_or_with_flags_it_says_so
    script = <<~'RUBY'
      begin
        RubyVM::Trace.start(file: "a.fxt")
      rescue RubyVM::Trace::Error, NotImplementedError => e
        puts e.message
      end
    RUBY
    without = run_in(scratch_dir, "-e", script)
    assert_match(/\Ano JIT is on .*#{jit("RubyVM::ZJIT")}.enable/, without.out)
    with_flags = run_traced(script + "p RubyVM::Trace.status[:on], RubyVM::Trace.stop[:lost], RubyVM::Trace.status[:on]\n")
    assert_match(/\Aalready started by a flag, into .*\.fxt.*\ntrue\n0\nfalse\n\z/, with_flags.out)
    enabled = run_in(scratch_dir, "-e", "RubyVM::ZJIT.enable; p RubyVM::Trace.record(file: 'a.fxt') { }[:exits]")
    assert_equal "0\n", enabled.out, enabled.err
  end

  # --- after a trace that a flag began: its code keeps its trace points ---

  def by_flag(script, *flags, **options)
    result = run_traced(WARM + script, *flags, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  # Code from before, between and during traces. `exits` counts down in machine code if the flag
  # gave a K.
  ["--zjit-trace-exits-sample-rate=1", "--zjit-trace-exits-sample-rate=5", "--zjit-trace-exits=exit_fixnum_sub_overflow"].each do |flag|
    define_method("test_traces_after_that_of_#{flag}_are_as_any") do
      result = by_flag(<<~'RUBY', flag)
        10.times { foo }
        RubyVM::Trace.stop => { lost: 0 }
        def between = (::RubyVM::ZJIT.induce_side_exit!)
        100.times { foo; between; sub(100) }
        RubyVM::Trace.start(file: "a.fxt", compiles: true, invalidations: true)
        def later = (::RubyVM::ZJIT.induce_side_exit!)
        20.times { foo; between; sub(100) }
        12.times { later }
        p RubyVM::Trace.status[:exits]
        p RubyVM::Trace.stop.values_at(:exits, :sampled, :lost)
        7.times { foo }
        p RubyVM::Trace.record(file: "b.fxt", sample_rate: 3) { 21.times { foo; between } }.values_at(:exits, :sampled, :lost)
        p RubyVM::Trace.record(file: "c.fxt", exits: false, compiles: true) { 9.times { foo } }.values_at(:exits, :sampled)
        RubyVM::Trace.record(memory: 4) { 8.times { foo; between; sub(100) }; RubyVM::Trace.save("d.fxt") }
        fork { RubyVM::Trace.record(file: "e.fxt") { 6.times { foo } } }
        Process.wait
      RUBY
      expected = [%w[between foo later sub].zip([20, 20, 11, 20]).to_h, { "between" => 7, "foo" => 7 }, {}, { "between" => 8, "foo" => 8, "sub" => 8 }, { "foo" => 6 }]
      counts = %w[a b c d e].map { |name| file(result, "#{name}.fxt").exits.map { |event| event["args"]["0"][/#(\w+)/, 1] }.tally.sort.to_h }
      assert_equal expected, counts
      assert_equal ["71", "[71, 71, 0]", "[42, 14, 0]", "[0, 0]"], result.out.lines(chomp: true)
    end
  end

  zjit_only def test_after_a_flag_what_code_can_not_tell_apart_is_refused
    result = by_flag(<<~'RUBY', "--zjit-trace-fallbacks")
      def try = (yield; puts "fine") rescue puts($!.message)
      RubyVM::Trace.stop
      try { RubyVM::Trace.start(exits: :exit_fixnum_sub_overflow, file: "a.fxt") }
      try { RubyVM::Trace.record(exits: false, fallbacks: true, fallbacks_sample_rate: 2, file: "b.fxt") { 10.times { foo; send(:sub, 1) } } }
      try { RubyVM::Trace.record(file: "no/c.fxt") { } }
    RUBY
    assert_match(/\Aa flag had exits of other counters traced.*exits: true\nfine\ncan't trace to .*no\/c.fxt/, result.out)
    b = file(result, "b.fxt")
    assert_equal [0, 2], [b.exits.size, b.settings["fallback_rate"]]
    assert_operator b.summary["fallbacks"], :>, 0
    refused = run_untraced('begin; RubyVM::Trace.start(fallbacks: true); rescue RubyVM::Trace::Error; puts $!.message; end')
    assert_match(/\Afallbacks can be recorded only .*--zjit-trace-fallbacks/, refused.out)
  end

  # Ractors that are made while nothing is recorded also exit; code and methods are freed meanwhile.
  def test_traces_after_that_of_a_flag_under_load
    result = by_flag(<<~'RUBY', "-W:no-experimental", args: [LONG ? "20" : "8"], recorders: 6)
      done = false
      work = -> { foo; sub(100); eval("->(x) { x == 1 ? x.to_s : x.hash }").then { |code| 5.times { |x| code.(x) } } }
      threads = 2.times.map { Thread.new { work.() until done } }
      RubyVM::Trace.stop
      Integer(ARGV[0]).times do |i|
        ractors = 2.times.map { Ractor.new { 300.times { foo } } }
        GC.start
        GC.compact if i % 5 == 0
        RubyVM::Trace.start(file: "#{i % 3}.fxt", sample_rate: 1 + i % 2, invalidations: true)
        20.times { foo }
        ractors.each(&:value) if i.odd?
        RubyVM::Trace.stop => { lost: 0 }
        ractors.each(&:value) if i.even?
      end
      done = true
      threads.each(&:join)
      RubyVM::Trace.record(file: "last.fxt") { 9.times { foo } }
    RUBY
    assert_equal 9, file(result, "last.fxt").exits("DirectiveInduced").size
  end

  # Some are being made, or end, when a trace begins or ends: their events are counted, and go into
  # that trace only.
  def test_ractors_that_come_and_go_while_traces_begin_and_end
    skip "untraced, this Ruby hangs here, and stopping all ractors does not stop one that wakes up meanwhile" if BASE < "ruby-4.0"
    result = run_untraced(WARM + <<~'RUBY', "-W:no-experimental", recorders: 1000)
      done = false
      born = -> { 8.times.map { Ractor.new { 5.times { foo }; Ractor.new { 3.times { foo } }.value } }.each(&:value) }
      busy = 3.times.map { Thread.new { born.() until done } }
      20.times do |i|
        RubyVM::Trace.start(file: "#{i}.fxt")
        foo
        sleep 0.02
        lost, loss = RubyVM::Trace.stop.values_at(:lost, :loss)
        raise "#{lost} events lost: #{loss}" if lost > 0 && loss != "the disk was too slow, and the program did not wait for it"
      end
      done = true
      busy.each(&:join)
    RUBY
    assert_equal 20, result.traces.size
  end

  # Threads and ractors exit and compile all the time; GC, compaction and forks come in between.
  # Each trace has at least the exits of its own thread, exactly those of the sample rate, and
  # nothing lost; children continue with theirs.
  if BASE >= "ruby-4.0"
    def test_start_and_stop_under_load = start_and_stop_under_load(ractors: 2, forks: true)
  else # a child of the unpatched Ruby hangs if another ractor was about to stop all ractors, as compiling does
    def test_start_and_stop_under_load_with_ractors = start_and_stop_under_load(ractors: 2, forks: false)
    def test_start_and_stop_under_load_with_forks = start_and_stop_under_load(ractors: 0, forks: true)
  end

  def start_and_stop_under_load(ractors:, forks:)
    rounds = LONG ? 250 : 12 # a round waits some 0.3 s for threads that calculate
    every = LONG ? 2500 : 50 # calls: ZJIT frees no code, and what it compiles has a limit
    result = run_ruby(WARM + <<~RUBY, "--zjit-call-threshold=2", "-W:no-experimental", args: [rounds.to_s], recorders: 4)
      def mine = (::RubyVM::ZJIT.induce_side_exit!)
      10.times { mine }
      WORK = ->(i) {
        foo
        sub(i % 300)
        if i % #{every} == 0 && i < 100 * #{every} # there is to be an end of code that is to be patched
          compiled = eval("->(x) { x == 1 ? x.to_s : x == \#{i} ? x.hash : x.to_f }")
          12.times { |x| compiled.(x) }
        end
      }
      done = false
      threads = 2.times.map { Thread.new { i = 0; WORK.(i += 1) until done } }
      ractors = #{ractors}.times.map { Ractor.new { i = 0; (foo; sub(i % 300); i += 1) until Ractor.main? || i > 200_000 } }
      rounds = ARGV[0].to_i
      rounds.times do |i|
        rate = i.odd? ? 7 : 1
        path = "\#{i % 5}.fxt"
        RubyVM::Trace.start(file: path, sample_rate: rate, compiles: i.even?, invalidations: true, max_size: (8 if i % 3 == 0))
        20.times { mine }
        GC.start if i % 10 == 0
        GC.compact if i % 25 == 0
        if #{forks} && i % 20 == 5
          Process.wait(fork {
            30.times { mine }
            RubyVM::Trace.stop if i % 40 == 5
            RubyVM::Trace.record(file: "child.fxt") { 3.times { mine } } if i % 40 == 5
          })
          raise "child" unless $?.success?
        end
        summary = RubyVM::Trace.stop
        raise summary.inspect if summary[:exits] < 20 || (i % 3 != 0 && summary[:lost] > 0)
        # Each ractor counts down for itself.
        raise summary.inspect if i % 3 != 0 && (summary[:exits] - summary[:sampled] * rate).abs > 6 * 4
      end
      done = true
      (threads + ractors).each(&:value)
      Ractor.new { RubyVM::Trace.record(file: "ractor.fxt") { 9.times { foo } } }.value => { lost: 0 }
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal 9, file(result, "ractor.fxt").exits("DirectiveInduced").size
    assert_operator result.traces.size, :>=, 5 + 1 + (forks ? 2 : 0)
    assert_equal 3, file(result, "child.fxt").exits("DirectiveInduced").size if forks
  end
end
