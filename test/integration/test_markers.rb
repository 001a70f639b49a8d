# RubyVM::Trace.span, .instant and .counter, and --vm-trace=LIST: judged by what the program counted itself, and by extensions in C.
#
# Once for each base: no compiled code takes part.
require_relative "helper"
require_relative "extension"

class TestMarkers < Integration::Test
  T = "T = RubyVM::Trace\n"
  FLAGS = ["--vm-trace=markers", "--vm-trace-file=%p.fxt"].freeze

  # Own lines of a program, without those of --vm-trace.
  def own(text) = text.lines.grep_v(/\A(vm_trace|[YZ]JIT): /).join

  def mark(script, *flags, **options)
    result = run_ruby(T + script, *FLAGS, *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty own(result.err)
    result
  end

  def markers(trace) = trace.in_category("marker")
  def of(trace, name) = markers(trace).select { |event| event["name"] == name }

  def test_every_kind_of_argument_without_a_jit
    trace = mark(<<~RUBY).trace
      T.instant("all", text: "größer", sym: :symbol, int: -5, large: 2**62, low: -2**63 + 1, huge: 2**70, float: 2.5, yes: true, no: false, none: nil, other: Object.new)
      T.instant(:plain)
      T.counter("queue", 5)
      T.counter(:queue, 7.5)
    RUBY
    all = of(trace, "all").fetch(0)
    assert_equal({ "text" => "größer", "sym" => "symbol", "int" => -5, "large" => 2**62, "low" => -2**63 + 1, "huge" => (2**70).to_s, "float" => 2.5,
                   "yes" => true, "no" => false, "none" => nil, "other" => "Object" }, all["args"])
    assert_equal [["i", {}]], of(trace, "plain").map { |event| [event["ph"], event["args"] || {}] }
    assert_equal [5, 7.5], of(trace, "queue").map { |event| event["args"]["value"] }
    assert_equal "main", all["thread"]
    assert_equal ["markers", "none"], trace.settings.values_at("flags", "jit")
    assert_equal 4, trace.summary["markers"]
  end

  # However the block is left; and each on the thread that ran it.
  def test_spans_end_however_they_are_left
    result = mark(<<~RUBY)
      p T.span("value", id: 3) { 42 }
      begin
        T.span("raise") { raise "x" }
      rescue => e
        p e.message
      end
      p catch(:out) { T.span("throw") { throw :out, 1 } }
      p [1].each { |x| T.span("break") { break x } }
      def leave = T.span("return") { return 7 }
      p leave
      thread = Thread.new { T.span("kill") { Thread.current.name = "killed"; sleep } }
      Thread.pass until thread.stop?
      thread.kill.join
      Fiber.new { T.span("fiber") { Fiber.yield } }.resume # never goes on
    RUBY
    assert_equal "42\n\"x\"\n1\n[1]\n7\n", result.out
    trace = result.trace
    %w[value raise throw break return kill].each { |name| assert_equal %w[B E], of(trace, name).map { |event| event["ph"] }, name }
    assert_equal %w[B], of(trace, "fiber").map { |event| event["ph"] }
    assert_equal({ "id" => 3 }, of(trace, "value").first["args"])
    refute_equal of(trace, "value").first["tid"], of(trace, "kill").first["tid"]
  end

  # Where no block can be. The end adds arguments, and ends spans of its own trace only.
  def test_spans_begin_and_end_without_a_block
    result = run_ruby(T + <<~RUBY)
      p T.markers?, T.span_begin("before")
      T.start(markers: true, exits: false, file: "one.fxt")
      old = T.span_begin("old", id: 1)
      other = T.span_begin(:other)
      p T.markers?, T.span_end(:other, other)
      T.span_end("old", old, status: 200)
      Process.wait(fork { T.span_end("old", old) })
      left = T.span_begin("left")
      T.stop
      T.start(markers: true, exits: false, file: "two.fxt")
      T.span_end("left", left, status: 1)
      T.span_end("nothing", nil, status: 2)
      T.instant("alone")
      T.stop
    RUBY
    assert_equal ["false", "nil", "true", "nil"], result.out.split, result.err
    one, two = %w[one two].map { |name| result.traces.find { |trace| File.basename(trace.path) == "#{name}.fxt" } }
    assert_equal [["B", "old", { "id" => 1 }], ["B", "other", {}], ["E", "other", {}], ["E", "old", { "status" => 200 }], ["B", "left", {}]],
                 markers(one).map { |event| [event["ph"], event["name"], event["args"] || {}] }
    assert_equal %w[alone], markers(two).map { |event| event["name"] }
  end

  def test_all_threads_and_ractors_are_counted_as_the_program_counts
    result = mark(<<~RUBY, recorders: 5)
      Warning[:experimental] = false
      def many(name, n) = n.times { |i| RubyVM::Trace.instant(name, i: i) }
      many("main", 1000)
      Array.new(3) { |k| Thread.new { many("thread \#{k}", 500) } }.each(&:join)
      Array.new(4) { |k| Ractor.new(k) { |j| many("ractor \#{j}", 2000) } }.map(&:value)
    RUBY
    trace = result.trace
    counts = markers(trace).group_by { |event| event["name"] }.transform_values(&:size)
    assert_equal({ "main" => 1000, **(0..2).to_h { |k| ["thread #{k}", 500] }, **(0..3).to_h { |k| ["ractor #{k}", 2000] } }, counts)
    assert_equal 1000 + 1500 + 8000, trace.summary["markers"]
    assert_equal (0...2000).to_a, of(trace, "ractor 2").map { |event| event["args"]["i"] }
  end

  def test_arguments_that_do_not_fit_are_counted
    trace = mark(%(T.instant("many", **(1..40).to_h { |i| [:"k\#{i}", i] })\n)).trace
    assert_equal({ **(1..14).to_h { |i| ["k#{i}", i] }, "left_out" => 26 }, of(trace, "many").fetch(0)["args"])
  end

  def test_beside_the_exits_that_a_flag_of_the_jit_traces
    result = run_traced(T + <<~RUBY, "--vm-trace=markers")
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      60.times { |i| T.span("call", i: i) { foo } }
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = result.trace
    assert_equal 120, of(trace, "call").size
    assert_operator trace.exits.size, :>, 40
    assert_equal "exits markers", trace.settings["flags"]
  end

  def test_vm_trace_takes_exits_of_the_jit_that_is_on
    result = run_ruby(T + <<~RUBY, "--zjit-call-threshold=2", "--vm-trace=exits:rate=3,markers", "--vm-trace-file=%p.fxt")
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      60.times { T.instant("call"); foo }
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = result.trace
    assert_equal [3, jit("ZJIT"), "exits markers"], trace.settings.values_at("exit_rate", "jit", "flags")
    assert_equal 60, of(trace, "call").size
    assert_operator trace.summary["exits"], :>, 40
    assert_equal trace.summary["exits"] / 3, trace.summary["sampled"]
  end

  def test_what_waits_for_a_jit_is_said_and_the_rest_is_traced
    result = mark(%(T.instant("x")\n), "--vm-trace=exits,compiles")
    assert_match(/^vm_trace: exits, compiles: no JIT is on: start/, result.err)
    assert_match(/wrote no exits \(no JIT was on\), /, result.err)
    assert_equal 1, of(result.trace, "x").size
  end

  def test_at_run_time_without_a_jit
    result = run_ruby(T + <<~RUBY)
      T.instant("before")
      T.span("half") do
        T.start(markers: true, file: "%p.fxt")
        T.instant("within")
      end
      T.span("open") { p T.stop.slice(:markers, :lost) }
      T.instant("after")
      begin
        T.start(markers: true, exits: true)
      rescue NotImplementedError => e
        puts e.message
      end
    RUBY
    assert_match(/\A\{:?markers(=>|: )2, :?lost(=>|: )0\}\nno JIT is on /, result.out, result.err)
    assert_equal %w[within open], markers(result.trace).map { |event| event["name"] }
  end

  def test_flight_recorder
    result = run_ruby(T + <<~RUBY, "--vm-trace=markers", "--vm-trace-memory=4")
      200_000.times { |i| T.instant("i", i: i) }
      T.reset
      10.times { |i| T.span("new", i: i) { T.counter("c", i) } }
      T.save("saved.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = result.traces.fetch(0)
    assert_equal [20, 10, 0], [of(trace, "new").size, of(trace, "c").size, of(trace, "i").size]
    assert_equal [30, 0], trace.summary.values_at("markers", "lost")
  end

  def test_forked_children_have_their_own
    result = mark(<<~RUBY, ended: true)
      T.span("around") do
        T.instant("parent")
        Process.wait(fork { T.instant("child") })
      end
    RUBY
    child = result.traces.find { |trace| trace.settings["pid"] != result.pid }
    assert_equal %w[child], markers(child).map { |event| event["name"] } # the span began in the parent
    assert_equal %w[around parent around], markers(result.trace).map { |event| event["name"] }
  end

  def test_options_come_from_the_environment_too
    result = run_ruby(%(#{T}T.instant("x")\n), env: { "RUBYOPT" => "--vm-trace=markers --vm-trace-file=%p.fxt --vm-trace-quiet" })
    assert_empty result.err
    assert_equal 1, of(result.trace, "x").size
  end

  STREAMS = "exits, fallbacks, compiles, invalidations, markers, threads, fibers, gc, allocations, states, calls, " \
            "syscalls, sched, samples, counters"

  def test_wrong_options_are_one_line
    {
      "--vm-trace=marks" =>
        /\A--vm-trace: there is no stream "marks"; streams are: #{STREAMS}; presets are: default, profile, full\n\z/,
      "--vm-trace=exits:every=2" => /\A--vm-trace: exits takes rate=N, counter=NAME, samples, not "every=2"\n\z/,
      "--vm-trace" => /\A--vm-trace takes names of streams with commas between them: exits, .*\n\z/,
      "--vm-trace-fiel=x" => /\Athere is no option --vm-trace-fiel; options are: --vm-trace=LIST, and --vm-trace-methods, -file, .*\n\z/,
      "--vm-trace-max-size=0" => /\A--vm-trace-max-size takes a number of MiB from 4 .*\n\z/
    }.each do |option, message|
      result = run_ruby("p 1", option)
      assert_equal [1, ""], [result.status.exitstatus, result.out], option
      assert_match message, result.err
    end
    result = run_ruby("p 1", "--vm-trace-memory=4")
    assert_equal "1\n", result.out
    assert_match(/\Avm_trace: nothing is traced: give --vm-trace=LIST, too/, result.err)
    # Of what is not on, or not in this base, the program does not die.
    result = run_ruby("p 1", "--vm-trace=fallbacks")
    assert_equal ["1\n", "vm_trace: no fallbacks are traced: fallbacks can be recorded only in a program that was " \
                         "started with ZJIT and --zjit-trace-fallbacks\n"],
                 [result.out, result.err]
  end

  def test_misuse_raises_and_hurts_no_trace
    trace = mark(<<~RUBY).trace
      [-> { T.instant }, -> { T.instant(1) }, -> { T.instant("a", 2) }, -> { T.counter("c", "x") }, -> { T.span("no block") },
       -> { T.span_begin }, -> { T.span_begin(1) }, -> { T.span_end("a") }, -> { T.span_end("a", "b") }, -> { T.span_end("a", 1, 2) }].each do |call|
        call.call
        warn "no error"
      rescue ArgumentError, TypeError, LocalJumpError
      end
    RUBY
    assert_empty markers(trace)
  end

  EXTENSION = <<~C
    #include "ruby/ruby.h"
    #include "ruby/vm_trace.h"
    static const rb_vm_trace_marker *work, *step, *level;
    static VALUE run(VALUE self, VALUE count)
    {
        rb_vm_trace_span span = rb_vm_trace_marker_begin(work);
        for (int i = 0; i < NUM2INT(count); i++) rb_vm_trace_marker_instant(step);
        rb_vm_trace_marker_counter(level, -4);
        rb_vm_trace_marker_end(work, span);
        return Qnil;
    }
    void Init_marks(void)
    {
        work = rb_vm_trace_marker_name("work");
        step = rb_vm_trace_marker_name("step");
        level = rb_vm_trace_marker_name("level");
        rb_define_global_function("marks", run, 1);
    }
  C

  def test_extension_marks
    path = Extension.build("marks", "marks.c" => EXTENSION)
    trace = mark("require #{path.dump}\nmarks(500)\n").trace
    assert_equal %w[B E], of(trace, "work").map { |event| event["ph"] }
    assert_equal 500, of(trace, "step").size
    assert_equal(-4, of(trace, "level").first["args"]["value"])
    assert_empty run_ruby("require #{path.dump}\nmarks(5)\n").err
  end
end
