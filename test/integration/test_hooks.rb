# RUBY_INTERNAL_EVENT_JIT_EXIT and RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT: extensions in C that
# subscribe to exits, those in examples/ and one that tries to do harm.
require_relative "helper"
require_relative "extension"
Integration.except "ruby-3.3", "ruby-3.4", "its hook lists are those of one ractor, so exits have no events"

class TestHooks < Integration::Test
  # Hooks by name: each keeps what was reported to it, and then may do something itself.
  HOOKS = <<~'C'
    #include <ruby/ruby.h>
    #include <ruby/debug.h>
    #define EVENTS (RUBY_INTERNAL_EVENT_JIT_EXIT | RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT)
    static VALUE told, todo, point;
    static unsigned long count, other;

    static void
    remember(void)
    {
        rb_trace_arg_t *exit = rb_tracearg_from_tracepoint(Qnil);
        count++;
        if (!RTEST(told)) return;
        rb_ary_push(told, rb_ary_new_from_args(9, rb_tracearg_jit_exit_reason(exit), rb_tracearg_jit_exit_insn(exit), rb_tracearg_jit_exit_version(exit),
            rb_tracearg_jit_exit_outcome(exit), rb_tracearg_jit_name(exit), rb_tracearg_path(exit), rb_tracearg_lineno(exit), rb_tracearg_method_id(exit),
            rb_funcall(rb_tracearg_instruction_sequence(exit), rb_intern("label"), 0)));
        if (RTEST(todo)) rb_proc_call(todo, rb_ary_new());
    }

    static void on_event(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) { remember(); }
    static void on_point(VALUE tracepoint, void *data) { remember(); }
    static void on_gc(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) { other++; }
    static void on_both(VALUE tracepoint, void *data)
    {
        if (rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint)) & EVENTS) remember(); else other++;
    }

    static VALUE add(VALUE self) { rb_add_event_hook(on_event, EVENTS, Qnil); return Qnil; }
    static VALUE add_gc(VALUE self) { rb_add_event_hook(on_gc, RUBY_INTERNAL_EVENT_GC_ENTER, Qnil); return Qnil; }
    static void on_object(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) { other++; }
    static VALUE add_objects(VALUE self) { rb_add_event_hook(on_object, RUBY_INTERNAL_EVENT_NEWOBJ, Qnil); return Qnil; }
    static VALUE drop_objects(VALUE self) { return INT2FIX(rb_remove_event_hook(on_object)); }
    static VALUE drop(VALUE self) { return INT2FIX(rb_remove_event_hook(on_event)); }
    static VALUE enable(VALUE self) { rb_tracepoint_enable(point = rb_tracepoint_new(0, EVENTS, on_point, NULL)); return Qnil; }
    static VALUE both(VALUE self) { rb_tracepoint_enable(point = rb_tracepoint_new(0, EVENTS | RUBY_INTERNAL_EVENT_GC_ENTER, on_both, NULL)); return Qnil; }
    static VALUE recompiles(VALUE self) { rb_tracepoint_enable(point = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT, on_point, NULL)); return Qnil; }
    static VALUE disable(VALUE self) { rb_tracepoint_disable(point); return Qnil; }
    static VALUE counted(VALUE self) { unsigned long n = count; count = 0; return ULONG2NUM(n); }
    static VALUE others(VALUE self) { return ULONG2NUM(other); }
    static VALUE set_log(VALUE self, VALUE to) { return told = to; }
    static VALUE set_todo(VALUE self, VALUE to) { return todo = to; }

    void
    Init_hooks(void)
    {
        VALUE m = rb_define_module("Hooks");
        rb_gc_register_address(&told); rb_gc_register_address(&todo); rb_gc_register_address(&point);
        told = todo = point = Qnil;
    #define F(name, function, argc) rb_define_singleton_method(m, name, function, argc)
        F("add", add, 0); F("add_gc", add_gc, 0); F("add_objects", add_objects, 0); F("drop_objects", drop_objects, 0); F("drop", drop, 0); F("enable", enable, 0); F("both", both, 0); F("recompiles", recompiles, 0);
        F("disable", disable, 0); F("count", counted, 0); F("others", others, 0); F("log=", set_log, 1); F("todo=", set_todo, 1);
    }
  C
  WARM = "def foo = (::RubyVM::ZJIT.induce_side_exit!)\ndef sub(x) = x - -4_611_686_018_427_387_900\n20.times { foo; sub(1) }\n"

  def hooks = Extension.build("hooks", { "hooks.c" => HOOKS })

  def example(name)
    files = Dir[File.join(ROOT, "examples", name, "*")].to_h { |path| [File.basename(path), File.read(path)] }
    files.each_value { |text| assert_operator text.lines.size, :<, 100 }
    Extension.build(name, files)
  end

  def run_hooks(script, *flags, extension: hooks, **options)
    result = run_ruby(script, "--zjit-call-threshold=2", "-r#{extension}", "-W:no-experimental", *flags, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  def lines(script, *flags, **options) = run_hooks(WARM + script, *flags, **options).tap { |result| assert_empty result.err }.out.lines.map { |line| eval(line) }

  def test_hooks_are_told_of_each_exit_while_they_are_there
    assert_equal [0, 30, 0, 30, 30, 60, 30, 0], lines(<<~'RUBY')
      p Hooks.count
      Hooks.add
      30.times { foo }
      p Hooks.count
      Hooks.drop
      30.times { foo }
      p Hooks.count
      Hooks.enable
      30.times { foo }
      p Hooks.count
      Hooks.disable
      RubyVM::Trace.start(file: "a.fxt", sample_rate: 10)
      Hooks.add
      30.times { foo }
      p Hooks.count
      Hooks.enable
      30.times { foo }
      p Hooks.count # two hooks
      RubyVM::Trace.stop => { exits: 60, sampled: 6, lost: 0 }
      Hooks.drop
      30.times { foo }
      p Hooks.count
      Hooks.disable
      30.times { foo }
      p Hooks.count
    RUBY
  end

  # Warmed up by calls without argument, then called with true.
  EXITS = {
    "zjit" => <<~'RUBY',
      def branches(x)
        if x == 1 then x.to_s
        elsif x == 2 then x.to_f
        end
      end
      def fails = (::RubyVM::ZJIT.induce_compile_failure!; 1)
      def calls = fails
      def twice(x) = x + x
      def all(exit = false)
        return branches(0), calls, twice(1) unless exit
        (1..2).each { |x| 30.times { branches(x) } }
        30.times { twice(1.5) }
        3.times { calls }
      end
    RUBY
    "yjit" => <<~'RUBY'
      def byte(i) = "abc".getbyte(i)
      def once = /#{1}/o
      POINT = TracePoint.new(:c_return) {}
      def watched(a, x) = a.sort_by { |y| POINT.enable if x; y }
      def all(exit = false)
        return byte(1), once, watched([2, 1], false) unless exit
        3.times { byte(-1); byte(10) }
        5.times { once }
        watched([2, 1], true)
        POINT.disable
      end
    RUBY
  }.freeze

  # Code that a flag had count down to one in K calls at every exit while there are hooks, in
  # ractors that are made later, too. Also exits without code of their own: of a stub whose method
  # cannot be compiled, and in code that all methods share.
  def test_they_are_told_of_each_exit_of_code_that_a_flag_samples
    [1, 7].each do |rate|
      flags = ["--zjit-trace-exits", "--zjit-trace-exits-sample-rate=#{rate}", "--zjit-trace-file=%p.fxt"]
      result = run_hooks(WARM + EXITS[JIT] + <<~'RUBY', *flags, recorders: 4)
        30.times { all }
        Ractor.new { 5.times { foo } }.value
        exits = -> { RubyVM::Trace.status[:exits] }
        early = Ractor.new { Ractor.receive; 30.times { foo } }
        before = exits.()
        Hooks.add
        30.times { foo }
        all(true)
        early.send(1)
        early.value
        Ractor.new { 30.times { foo } }.value
        Hooks.drop
        puts Hooks.count, exits.() - before
        before = exits.(), RubyVM::Trace.status[:sampled]
        1000.times { foo }
        puts exits.() - before[0], RubyVM::Trace.status[:sampled] - before[1], Hooks.count
      RUBY
      told, exits, later, sampled, told_later = result.out.lines.map(&:to_i)
      assert_operator exits, :>=, 90
      assert_equal exits, told, "one in #{rate}"
      assert_equal 0, told_later
      assert_includes 1000..1010, later # the lines around the calls may exit
      assert_includes later / rate..(later.to_f / rate).ceil, sampled
    end
  end

  def test_they_are_told_what_the_trace_has
    result = run_hooks(WARM + EXITS[JIT] + <<~'RUBY')
      30.times { all }
      Hooks.log = log = []
      Hooks.add
      RubyVM::Trace.start(file: "a.fxt")
      sub(100)
      3.times { foo }
      all(true)
      RubyVM::Trace.stop
      Hooks.drop
      log.each { |one| p one }
    RUBY
    told = result.out.lines.map { |line| eval(line) }
    recorded = result.trace.exits.map do |event|
      args = event["args"]
      path, line = args["0"].match(/\((.*):(\d+)\)\z/).captures
      label = args["0"][/\A(.*) \(/, 1]
      [event["name"], args["insn"], args["version"], args["outcome"]&.to_sym, jit("ZJIT"), path, line.to_i, label[/#(\w+)\z/, 1]&.to_sym, label[/#(\w+)\z/, 1] || label]
    end
    assert_equal recorded, told
    outcomes, reasons = { "zjit" => [Integration.can?(:recompile_exits) ? %i[profiling invalidated] : [nil], [jit("CompileError(ParseError(DirectiveInduced))")]],
                          "yjit" => [[nil], %w[getbyte_idx_negative getbyte_idx_out_of_bounds uncompiled_insn traced_cfunc_return]] }[JIT]
    assert_empty outcomes - told.map { |one| one[3] }
    assert_empty reasons - told.map(&:first)
  end

  with :recompile_exits, def test_recompile_exits_can_be_had_alone
    assert_equal [0, true], lines(<<~'RUBY')
      Hooks.recompiles
      10.times { foo }
      p Hooks.count
      def branches(x) = x == 1 ? x.to_s : 0
      10.times { branches(0) }
      10.times { branches(1) }
      p Hooks.count > 0
    RUBY
  end

  # Exits, raises, removes itself, adds another, switches tracing, blocks, collects and compacts,
  # compiles.
  HARM = {
    "exits" => "foo; sub(100)", "raises" => "raise 'in a hook'", "throws" => "throw :out", "removes itself" => "Hooks.drop",
    "removes itself and stops" => "Hooks.drop; RubyVM::Trace.stop if RubyVM::Trace.status[:on]",
    "adds another" => "Hooks.drop; Hooks.add", "switches" => "RubyVM::Trace.status[:on] ? RubyVM::Trace.stop : RubyVM::Trace.start(file: 'b.fxt')",
    "blocks" => "sleep 0.001; Thread.pass", "collects" => "GC.start; GC.compact", "compiles" => "eval('def new(x) = x + 1; 9.times { new(1) }')",
    "breaks off" => "Fiber.new { Fiber.yield }.resume", "redefines" => "eval('def foo2 = 1'); Object.send(:remove_const, :K) rescue 0; K = 1 rescue 0",
  }.freeze

  def test_nothing_that_a_hook_does_does_harm
    HARM.each do |name, code|
      [false, true].each do |file|
        result = run_hooks(WARM + <<~RUBY)
          K = 1
          def deep(n) = n == 0 ? (foo; sub(100)) : deep(n - 1) + 1
          3.times { deep(3) }
          Hooks.log = []
          Hooks.todo = -> { #{code} }
          RubyVM::Trace.start(file: "a.fxt") if #{file}
          Hooks.add
          found = 5.times.map { deep(20) }
          Thread.new { deep(5) }.join
          Hooks.drop
          Hooks.todo = nil
          RubyVM::Trace.stop if RubyVM::Trace.status[:on]
          20.times { foo; sub(100) }
          p found.uniq == [4_611_686_018_427_387_900 + 100 + 20], $!
        RUBY
        assert_equal "true\nnil\n", result.out, "#{name}: #{result.err}"
        said = { "raises" => /in a hook \(RuntimeError\)/, "throws" => /uncaught throw :out/ }[name]
        said ? assert_match(said, result.err) : assert_empty(result.err, name)
      end
    end
  end

  def test_a_thread_that_is_killed_in_a_hook_dies
    assert_equal [true, false, 1], lines(<<~'RUBY')
      Hooks.log = log = []
      Hooks.todo = -> { Thread.current.kill unless Thread.current == Thread.main }
      Hooks.add
      after = false
      thread = Thread.new { foo; sleep; after = true }
      p thread.join.equal?(thread), after, log.size
    RUBY
  end

  def test_hooks_in_all_ractors_while_they_come_and_go
    assert_equal [true], lines(<<~'RUBY', recorders: 4)
      ractors = 3.times.map { Ractor.new { 50_000.times { foo; sub(300) } } }
      threads = 2.times.map { Thread.new { 50_000.times { foo; sub(300) } } }
      100.times do |i|
        Hooks.add
        RubyVM::Trace.record(file: "a.fxt") { foo } if i % 10 == 0
        Hooks.enable
        foo
        Hooks.drop
        GC.start if i % 20 == 0
        Hooks.disable
      end
      (ractors + threads).each(&:value)
      p Hooks.count >= 200
    RUBY
  end

  # Hooks of new objects run in one ractor while those of exits run in others. All are counted, so
  # that the last one to leave is the last.
  def test_hooks_of_other_internal_events_run_in_other_ractors_meanwhile
    assert_equal [[1, 1], :fine], lines(<<~'RUBY')
      5.times do
        Hooks.add
        Hooks.add_objects
        ractors = 2.times.map { Ractor.new { 300_000.times { foo } } }
        500_000.times { Object.new }
        ractors.each(&:value)
        @dropped = [Hooks.drop, Hooks.drop_objects]
      end
      p @dropped
      # Refused while there are hooks.
      RubyVM::Trace.record(file: "a.fxt", exits: :exit_fixnum_sub_overflow) { sub(100) }
      p :fine
    RUBY
  end

  def test_they_listen_before_the_jit_is_on
    result = run_in(scratch_dir, "-r#{hooks}", "-e", "Hooks.add; RubyVM::ZJIT.enable; #{WARM.tr("\n", ";")} 50.times { foo }; p Hooks.count > 0")
    assert_equal ["true\n", ""], [result.out, result.err]
  end

  def test_the_example_that_counts
    result = run_hooks(WARM + "class A; def b = (::RubyVM::ZJIT.induce_side_exit!); end\na = A.new\n40.times { a.b }\n10.times { foo }\n" \
                              "ExitCounter.counts['A#b DirectiveInduced'] >= 30 or raise", extension: example("exit_counter"))
    assert_match(/\A\d+ A#b #{Regexp.escape(jit("DirectiveInduced"))}\n.*^\d+ Object#foo #{Regexp.escape(jit("DirectiveInduced"))}$/m, result.err)
  end

  def test_all_methods_of_the_example_that_counts
    result = run_hooks(WARM + <<~'RUBY', extension: example("exit_counter"))
      name = "Object#foo DirectiveInduced"
      count = -> { ExitCounter.counts.fetch(name) }
      before = count.call
      7.times { foo }
      p count.call - before
      # In other ractors and threads, with new names, and the GC in between.
      2000.times { |i| eval("def m#{i} = (::RubyVM::ZJIT.induce_side_exit!); 4.times { m#{i} }") if i % 100 == 0 }
      before = count.call
      others = 3.times.map { Ractor.new { 2000.times { |i| foo; GC.start if i % 500 == 0; eval("def r#{i} = (::RubyVM::ZJIT.induce_side_exit!); 4.times { r#{i} }") if i % 100 == 0 } } }
      others << Thread.new { 2000.times { foo } }
      others.each(&:value)
      p count.call - before, ExitCounter.counts.keys.grep(/Object#[mr]\d+ /).size
      p ExitCounter.stop, ExitCounter.stop
      before = ExitCounter.counts
      9.times { foo }
      p ExitCounter.counts == before, ExitCounter.singleton_methods.sort
    RUBY
    assert_equal [7, 8000, 40, nil, nil, true, %i[counts stop]], result.out.lines.map { |line| eval(line) }
    assert_equal 41, result.err.lines.grep(/\A\d+ Object#\w+ #{Regexp.escape(jit("DirectiveInduced"))}$/).size
  end

  # It has no methods. Each line has its own count, whichever ractor exits there, and warns once.
  def test_the_example_that_warns_in_several_ractors
    result = run_hooks(WARM + <<~'RUBY', extension: example("exit_alarm"), env: { "EXIT_ALARM" => "20" })
      ractors = 3.times.map { Ractor.new { 30_000.times { foo } } }
      30_000.times { sub(300) }
      ractors.each(&:value)
      15.times { eval("def few = (::RubyVM::ZJIT.induce_side_exit!)\n3.times { few }") }
    RUBY
    assert_equal %w[1 2], result.err.scan(/script.rb:(\d): more than 20 JIT exits a second/).flatten.sort, result.err
    unknown = run_hooks(WARM + "1200.times { foo }", extension: example("exit_alarm"), env: { "EXIT_ALARM" => "many" })
    assert_match(/script.rb:1: more than 1000 JIT exits a second/, unknown.err)
  end

  def test_the_example_that_warns
    result = run_hooks(WARM + "2000.times { foo }\n20.times { sub(300) }", extension: example("exit_alarm"), env: { "EXIT_ALARM" => "100" })
    assert_match(/\A\S*script.rb:1: warning: script.rb:1: more than 100 JIT exits a second: #{Regexp.escape(jit("DirectiveInduced"))} at \w+\n\z/, result.err)
  end

  def test_hooks_of_other_internal_events_are_not_disturbed
    counts = lines(<<~'RUBY')
      Hooks.both
      Hooks.add_gc
      10.times { foo }
      2.times { GC.start }
      p Hooks.count, Hooks.others >= 4
      Hooks.disable
      10.times { foo }
      GC.start
      p Hooks.count, Hooks.others >= 5
    RUBY
    assert_equal [10, true, 0, true], counts
  end
end
