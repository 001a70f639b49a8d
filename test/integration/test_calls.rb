# Calls: every frame is a slice, from its beginning to its end, with compiled code and without. Judged by
# TracePoint in another, untraced run, and by the backtraces of exits.
require_relative "helper"
require_relative "call_kinds"

class TestCalls < Integration::Test
  include CallKinds
  FILE = "--vm-trace-file=%p.fxt"
  JIT_FLAGS = ["--zjit", "--zjit-call-threshold=2"].freeze
  # What one method does, with what VMs do wrong: jumps out of blocks and out of C, and frames that go on.
  PROGRAM = <<~RUBY
    class Foo
      def initialize(a) = @a = a
      def each = yield(@a)
      def self.make(a) = new(a)
      def method_missing(name, *args) = name == :ghost ? args : super
      def respond_to_missing?(*) = true
      define_method(:defined) { |x| x.to_s }
    end
    module Extra; def each(...) = super; end
    class Bar < Foo; include Extra; def each(&block) = super(&block); end
    def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
    def raises(n) = n == 0 ? raise("x") : raises(n - 1)
    def rescues(n)
      raises(n)
    rescue
      inner_of_rescue
    ensure
      inner_of_ensure
    end
    def inner_of_rescue = ::RubyVM::ZJIT.induce_side_exit!
    def inner_of_ensure = 2
    def breaks(a) = a.each { |x| break x if x == 2 }
    def returns(a)
      a.each { |x| [x].each { |y| ::RubyVM::ZJIT.induce_side_exit!; return y if y == 2 } }
    end
    def throws(n) = catch(:done) { deeper(n) }
    def deeper(n) = n == 0 ? throw(:done, ::RubyVM::ZJIT.induce_side_exit!) : deeper(n - 1)
    def rest(*a, k: 1, **o, &b) = b ? b.call(a.size) : k
    def retries
      n = 0
      begin
        n += 1
        raises(1) if n < 3
      rescue
        retry
      end
      n
    end
    def run(i)
      fib(4)
      rescues(i % 3)
      breaks([1, 2, 3])
      returns([1, 2, 3])
      throws(i % 4)
      Foo.make(i).each { |x| x }
      Bar.make(i).each { |x| x }
      Bar.new(i).ghost(1, 2)
      Bar.new(i).defined(i)
      rest(1, 2, k: 3) { |n| n }
      rest(*[1, 2])
      retries
      [3, 1, 2].sort_by { |x| -x }.map(&:to_s)
      eval("fib(i % 2)")
      Integer("x") rescue 0
      [1, 2].inject { |a, b| a.public_send(:+, b) }
      Fiber.new { Fiber.yield(fib(1)); fib(2) }.then { |f| f.resume; f.resume if i.odd? }
      [[1, 2], [3, 4]].each { |a, b| next if a == 1; fib(1) }
      Comparable.instance_method(:clamp).bind_call(i, 1, 2)
      class << self; self; end
      Class.new(Foo) { def each = super }.new(i).each { |x| x }
    end
  RUBY
  ROUNDS = "40.times { |i| run(i) }\n"

  # Counts the calls of a program in the words of the trace, and prints them.
  JUDGE = <<~'RUBY'.lines.map(&:strip).join(" ") + "\n"
    counts = Hash.new(0);
    owner = lambda { |klass| klass.singleton_class? ? "#{klass.inspect[/\A#<Class:(.*)>\z/m, 1]}." : "#{klass.name}#" };
    point = TracePoint.new(:call, :b_call, :c_call, :class) { |tp|
      next if tp.path != __FILE__ && tp.event != :c_call;
      next if tp.event == :b_call && tp.method_id == :defined;
      key = tp.event == :c_call ? "#{owner.(tp.defined_class)}#{tp.callee_id}"
        : "#{tp.event == :b_call ? :block : tp.event}:#{tp.lineno}";
      counts[key] += 1 };
    at_exit { point.disable; File.binwrite("counts", Marshal.dump(counts)) };
    point.enable;
  RUBY

  def calls(trace) = trace.in_category("call")

  # By the same keys as JUDGE: the place of what is written in the script; the name of a method in C, or of
  # one of <internal:...>, which TracePoint may call one in C.
  def place(event)
    name = event["name"]
    return name unless name =~ / \((.*):(\d+)\)\z/m
    path, line = $1, $2
    return name if path.start_with?("(eval")
    return name.sub(/ \(.*\z/m, "") if path.start_with?("<internal:")
    "#{call_kind(name)}:#{line}"
  end

  def traced(script, *flags, streams: "calls", **options)
    result = run_ruby(script, *flags, "--vm-trace=#{streams}", FILE, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  # The judge's line numbers are those of the program, for it comes last on one line.
  def expected
    result = run_ruby(PROGRAM + JUDGE + ROUNDS)
    assert_predicate result.status, :success?, result.err
    Marshal.load(File.binread(File.join(result.dir, "counts")))
  end

  def counts_in(trace)
    counted = calls(trace).select { |event| call_kind(event["name"]) }
    counted.map { |event| place(event) }.tally
  end

  def assert_same_ruby_calls(expected, counts, message)
    ours, theirs = [counts, expected].map { |all| all.select { |key, _| key.match?(/\A(?:call|block):/) } }
    last = PROGRAM.lines.size # the judge and what calls the program come after it
    ours, theirs = [ours, theirs].map { |all| all.select { |key, _| key[/\d+/].to_i <= last } }
    assert_equal theirs.sort, ours.sort, message
  end

  def test_counts_are_those_of_tracepoint
    judged = expected
    [[], JIT_FLAGS, ["--zjit", "--zjit-call-threshold=30"]].each do |flags|
      result = traced(PROGRAM + "\n" + ROUNDS, *flags)
      assert_same_ruby_calls judged, counts_in(result.trace), flags.join(" ")
      assert_equal calls(result.trace).size, result.trace.summary["calls"]
    end
  end

  def test_methods_in_c_are_those_of_tracepoint_where_nothing_replaces_them
    judged = expected
    counts = counts_in(traced(PROGRAM + "\n" + ROUNDS).trace)
    names = %w[Kernel#raise Kernel#catch Kernel#throw Kernel#eval Enumerable#sort_by Enumerable#inject
               Fiber#resume UnboundMethod#bind_call Comparable#clamp]
    assert_equal judged.slice(*names), counts.slice(*names)
    assert_equal names.sort, counts.slice(*names).keys.sort
  end

  # The slices of each track, and which of them are open at a time, outermost first.
  def open_at(slices, ns)
    slices.select { |call| call["ts"] <= ns && ns < call["ts"] + call["dur"] }
      .sort_by { |call| call["ts"] }.map { |call| call["name"] }
  end

  def without_place(label) = label.sub(/ \((?:[^()]|\(eval[^()]*\))*\)\z/, "")

  def test_backtrace_of_each_exit_is_the_slices_that_are_open
    result = run_traced(PROGRAM + "\n" + ROUNDS, "--vm-trace=calls")
    assert_predicate result.status, :success?, result.err
    exits = result.trace.exits
    assert_operator exits.size, :>, 100
    slices = calls(result.trace).group_by { |event| event["tid"] }
    exits.each do |exit|
      labels, left_out = Trace.frames(exit)
      next if left_out > 0
      open = open_at(slices.fetch(exit["tid"]), exit["ts"]).grep_v(/\A(?:rescue|ensure) in /)
      assert_equal labels.reverse.map { |label| without_place(label) }, open.map { |label| without_place(label) },
                   "at an exit of #{exit["name"]}, #{exit["ts"]}"
    end
  end

  # Two slices of a track are one inside the other, or one after the other, and begin at different times.
  def assert_nested(trace)
    calls(trace).group_by { |event| event["tid"] }.each_value do |slices|
      ends = []
      slices.sort_by { |call| call["ts"] }.each_cons(2) { |one, other| assert_operator one["ts"], :<, other["ts"] }
      slices.sort_by { |call| call["ts"] }.each do |call|
        ends.pop while ends.any? && ends.last <= call["ts"]
        assert_operator call["ts"] + call["dur"], :<=, ends.last, call.inspect if ends.any?
        ends << call["ts"] + call["dur"]
      end
    end
  end

  def test_slices_nest_through_threads_that_are_killed_timeouts_and_fibers
    [[], JIT_FLAGS].each do |flags|
      result = traced(<<~RUBY, *flags)
        require "timeout"
        def spin(n) = n == 0 ? (spins(true); loop { work(1); sleep 0.0005 }) : spin(n - 1)
        def spins(now) = Thread.current.thread_variable_set(:spins, now)
        def spins?(thread = Thread.current) = thread.thread_variable_get(:spins)
        def work(n) = [n].map { |x| x + 1 }
        timeouts = 0
        while timeouts < 3
          spins(false)
          Timeout.timeout(0.02) { spin(3) } rescue 0
          timeouts += 1 if spins?
        end
        threads = 3.times.map { Thread.new { spin(2) } }
        sleep 0.001 until threads.all? { |thread| spins?(thread) }
        threads.each(&:kill).each(&:join)
        raiser = Thread.new { spin(2) rescue work(2) }
        sleep 0.001 until spins?(raiser)
        raiser.raise("x")
        raiser.join
        fibers = 5.times.map { |i| Fiber.new { work(i); Fiber.yield; spin(1) if i == 9; raise "f" if i == 3 } }
        fibers.each { |f| f.resume }
        fibers.each { |f| f.resume rescue 0 }
        e = [1, 2, 3].each
        e.next; e.next
        work(3)
      RUBY
      assert_nested(result.trace)
      names = calls(result.trace).map { |event| without_place(event["name"]) }.tally
      assert_operator names["Object#spin"], :>=, 4 * 3 + 3 * 3 + 3
      assert_operator calls(result.trace).map { |event| event["tid"] }.uniq.size, :>=, 5
    end
  end

  # One thread runs one fiber at a time: own times of all its fibers are no more than it lived.
  def test_fibers_that_wait_have_no_own_time
    [[], JIT_FLAGS].each do |flags|
      result = traced(<<~RUBY, *flags)
        from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        def wait_here = Fiber.yield
        fibers = 50.times.map { Fiber.new { wait_here; wait_here } }
        2.times { fibers.each(&:resume); sleep 0.1 }
        fibers.first(10).each(&:resume)
        puts Process.clock_gettime(Process::CLOCK_MONOTONIC) - from
      RUBY
      out, = Open3.capture2(Trace::TOOL, "report", "--calls", "--format=json", "--top=1000", result.trace.path)
      own = JSON.parse(out)["calls"]["rows"].reject { |row| row["method"] == "(outside recorded calls)" }
      lived_ns = result.out.to_f * 1_000_000_000
      assert_operator own.sum { |row| row["own_ns"] }, :<, 1.5 * lived_ns
      suspended = calls(result.trace).select { |event| event["name"] == "(fiber suspended)" }
      assert_operator suspended.sum { |event| event["dur"] }, :>, 50 * 200_000_000
      assert_nested(result.trace)
    end
  end

  # What follows a call in compiled code is no part of it.
  def test_a_call_ends_where_compiled_code_returns
    result = traced(<<~RUBY, *JIT_FLAGS)
      def leaf(n) = n
      def spin(n)
        leaf(n)
        i = 0
        i += 1 while i < n
      end
      31.times { spin(10_000) }
    RUBY
    median = lambda do |method|
      calls(result.trace).filter_map { |event| event["dur"] if without_place(event["name"]) == method }.sort[15]
    end
    assert_operator median["Object#leaf"] * 10, :<, median["Object#spin"]
  end

  def test_callcc
    result = traced(<<~RUBY)
      require "continuation"
      def again(n) = (c = callcc { |cc| cc }; [c, n])
      n = 0
      c, = again(1)
      n += 1
      c.call(c) if n < 3
      again(2)
    RUBY
    assert_nested(result.trace)
  end

  def test_short_calls_are_left_out_and_counted
    result = traced(<<~RUBY, *JIT_FLAGS, streams: "calls:min=1ms")
      def short(n) = n == 3 ? 4 : n.to_s
      def long = (1000.times { |i| short(i) }; sleep 0.003)
      3.times { long }
    RUBY
    named = calls(result.trace).group_by { |event| without_place(event["name"]) }
    assert_equal 3, named["Object#long"].size
    assert_operator named.fetch("Object#short", []).size, :<, 300 # the machine may be busy
    left_out = calls(result.trace).sum { |event| event["args"].fetch("left_out", 0) }
    assert_operator left_out, :>=, 3 * 1500
    assert_operator result.trace.summary["calls_left_out"], :>=, left_out
  end

  def test_depth
    result = traced(<<~RUBY, *JIT_FLAGS, streams: "calls:depth=3")
      def down(n) = n == 0 ? 0 : down(n - 1)
      down(50)
    RUBY
    assert_equal 2, calls(result.trace).count { |event| event["name"].start_with?("Object#down") } # and <main>
  end

  def test_methods_chooses
    result = traced("def one(n) = two(n)\ndef two(n) = n == 3 ? 4 : n.to_s\n20.times { |i| one(i) }\n",
                    *JIT_FLAGS, "--vm-trace-methods=*#two")
    assert_equal({ "Object#two" => 20 }, calls(result.trace).map { |event| without_place(event["name"]) }.tally)
  end

  def test_starts_and_stops_in_a_running_program
    [[], JIT_FLAGS].each do |flags|
      result = run_ruby(<<~RUBY, *flags)
        def inner(n) = [n].map { |x| x + 1 }
        def outer(n) = inner(n)
        def nested(n) = n == 0 ? (RubyVM::Trace.start(calls: true, exits: false, file: "late.fxt"); outer(1)) : nested(n - 1)
        100.times { |i| outer(i) }
        2.times do |i|
          RubyVM::Trace.record(calls: true, exits: false, file: "\#{i}.fxt") { 50.times { |n| outer(n) } }
          100.times { |n| outer(n) }
        end
        nested(3)
        outer(2)
        RubyVM::Trace.stop
      RUBY
      assert_predicate result.status, :success?, result.err
      traces = result.traces.to_h { |trace| [File.basename(trace.path), trace] }
      %w[0.fxt 1.fxt].each do |name|
        counts = calls(traces.fetch(name)).map { |event| without_place(event["name"]) }.tally
        assert_equal [50, 50, 50], counts.values_at("Object#outer", "Object#inner", "block in Object#inner"), flags.inspect
      end
      late = calls(traces.fetch("late.fxt"))
      before = late.select { |event| event["args"]["began"] == "before the trace" }
      outermost = before.sort_by { |event| event["ts"] }.first(5)
      assert_equal %w[<main>] + ["Object#nested"] * 4, outermost.map { |event| without_place(event["name"]) }
      assert_equal 2, late.count { |event| without_place(event["name"]) == "Object#outer" }
      assert_nested(traces.fetch("late.fxt"))
    end
  end

  # Both look at methods in C where CRuby tests for hooks: one that comes or goes leaves the other as it is, and
  # ractors that begin meanwhile are recorded, too.
  def test_hooks_of_tracepoint_come_and_go_beside_the_stream
    result = run_ruby(<<~'RUBY', "--disable-jit", "-W0", "--vm-trace=calls", "--vm-trace-file=%p.fxt", recorders: 2)
      def work = 50.times { "a".upcase }
      work
      seen = Hash.new(0)
      point = TracePoint.new(:c_call, :c_return) { |tp| seen[[tp.event, tp.method_id]] += 1 }
      point.enable
      work
      point.disable
      work
      p seen.values_at([:c_call, :upcase], [:c_return, :upcase])
      Ractor.new { 30.times { "a".downcase } }.then { |r| r.respond_to?(:value) ? r.value : r.take }
    RUBY
    assert_equal "[50, 50]\n", result.out, result.err
    names = calls(result.trace).map { |event| event["name"] }.tally
    assert_equal [150, 30], names.values_at("String#upcase", "String#downcase")
  end

  def test_calls_that_are_open_at_the_end
    trace = traced("def last = exit!(0)\ndef ends = exit\nends\n", *JIT_FLAGS).trace
    open = calls(trace).select { |event| event["args"]["ended"] }
    assert_empty open.map { |event| event["name"] }.grep(/nothing/)
    assert_nested(trace)
  end

  def test_forked_children_record_their_own_calls
    result = traced(<<~RUBY, *JIT_FLAGS)
      def work(n) = n == 3 ? 4 : n.to_s
      work(1)
      pid = fork { 30.times { |i| work(i) } }
      Process.wait(pid)
      work(2)
    RUBY
    assert_equal 2, result.traces.size
    counts = result.traces.to_h do |trace|
      work = calls(trace).select { |event| event["name"].start_with?("Object#work") }
      [trace.settings["pid"] == result.pid, work.size]
    end
    assert_equal({ true => 2, false => 30 }, counts)
  end

  def test_ractors_record_calls_side_by_side
    result = traced(<<~RUBY, *JIT_FLAGS, recorders: 4)
      Warning[:experimental] = false
      def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
      rs = 3.times.map { Ractor.new { 5.times { fib(12) }; GC.start } }
      rs.each { |r| r.respond_to?(:value) ? r.value : r.take }
    RUBY
    fibs = calls(result.trace).select { |event| event["name"].start_with?("Object#fib") }
    counts = fibs.map { |event| event["tid"] }.tally
    assert_equal [5 * 465] * 3, counts.values
    assert_nested(result.trace)
  end

  def test_under_gc_stress_and_compaction
    result = traced(<<~RUBY, *JIT_FLAGS)
      def work(n) = [n].map { |x| x.to_s }
      5.times { |i| work(i) }
      GC.stress = true
      10.times { |i| work(i); eval("def late\#{i} = work(\#{i})"); send(:"late\#{i}") }
      GC.stress = false
      GC.compact if GC.respond_to?(:compact)
      5.times { |i| work(i) }
    RUBY
    assert_equal 30, calls(result.trace).count { |event| without_place(event["name"]) == "Object#work" }
    assert_nested(result.trace)
  end

  def test_flight_recorder_has_the_open_calls_of_a_snapshot
    result = run_ruby(<<~RUBY, *JIT_FLAGS)
      T = RubyVM::Trace
      def work(n) = n == 3 ? 4 : n.to_s
      def request(path)
        T.reset
        20.times { |i| work(i) }
        T.save(path)
      end
      T.start(memory: 16, calls: true, exits: false)
      50.times { |i| work(i) }
      request("a.fxt")
      request("b.fxt")
      T.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    result.traces.each do |trace|
      named = calls(trace).group_by { |event| without_place(event["name"]) }
      assert_equal 20, named["Object#work"].size, trace.path
      assert_equal "after the trace", named["Object#request"].first["args"]["ended"]
      assert_equal "before the trace", named["Object#request"].first["args"]["began"]
      assert_nested(trace)
    end
    assert_equal 2, result.traces.size
  end

  # What a JIT does with PROGRAM: [compiled ISEQs, exits], and the run.
  def stats(*flags, before: "")
    script = before + PROGRAM + "\n" + ROUNDS + <<~RUBY
      s = ::RubyVM::ZJIT.stats
      exits = s[:side_exit_count] || s[:invalidation_count]
      puts s.fetch(:compiled_iseq_count), exits - s.fetch(:exit_interrupt, 0) # the timer's
    RUBY
    result = run_ruby(script, *JIT_FLAGS, "--zjit-stats=quiet", *flags)
    assert_predicate result.status, :success?, result.err
    [result.out.lines.map(&:to_i), result]
  end

  # Of methods that a JIT replaces by what they return. They have frames when the program begins traced.
  RETURN_ONLY = 4

  def test_same_exits_and_compilations_as_untraced
    (iseqs, exits), = stats
    (later_iseqs, later_exits), = stats(before: "RubyVM::Trace.start(calls: true, exits: false, file: 'a.fxt'); ")
    assert_equal iseqs, later_iseqs
    assert_in_delta exits, later_exits, 5
    (traced_iseqs, traced_exits), = stats("--vm-trace=calls", FILE)
    assert_includes iseqs..iseqs + RETURN_ONLY, traced_iseqs
    assert_in_delta exits, traced_exits, 5
  end

  FRAMELESS = <<~RUBY
    class Foo
      def itself_ = self
      def five = 5
      def leaf(s) = s.ascii_only?
      def replaced(a) = Integer === a
    end
    def run(foo, s) = 100.times { foo.itself_; foo.five; foo.leaf(s); foo.replaced(1) }
  RUBY

  # From its beginning, a program's calls have frames that a JIT could do without; later, code stays as it
  # was compiled.
  def test_calls_without_a_frame_are_recorded_from_the_beginning
    begun = traced(FRAMELESS + "5.times { run(Foo.new, 'x') }\n", *JIT_FLAGS).trace
    counts = calls(begun).map { |event| without_place(event["name"]) }.tally
    assert_equal [500] * 4, counts.values_at("Foo#itself_", "Foo#five", "Foo#leaf", "String#ascii_only?")
    later = run_ruby(<<~RUBY, *JIT_FLAGS)
      #{FRAMELESS}
      5.times { run(Foo.new, 'x') }
      RubyVM::Trace.record(calls: true, exits: false, file: 'a.fxt') { run(Foo.new, 'x') }
    RUBY
    counts = calls(later.trace).map { |event| without_place(event["name"]) }.tally
    assert_equal [100, 0], ["Foo#leaf", "Foo#five"].map { |name| counts.fetch(name, 0) }
  end

  # Judged by the JIT's own counters, which count the same while the program runs.
  def test_methods_in_c_that_a_jit_replaces_are_counted
    script = FRAMELESS + <<~RUBY
      5.times { run(Foo.new, 'x') }
      replaced = -> do
        s = ::RubyVM::ZJIT.stats
        %i[inline_cfunc_optimized_send_count num_send_cfunc_inline].sum { |name| s[name].to_i }
      end
      puts replaced.(), RubyVM::Trace.status[:calls_replaced], replaced.()
    RUBY
    result = traced(script, *JIT_FLAGS, "--zjit-stats=quiet")
    before, replaced, after = result.out.lines.map(&:to_i)
    assert_operator before, :>, 450
    assert_includes before..after, replaced
    assert_operator result.trace.summary["calls_replaced"], :>=, replaced
    assert_equal 0, traced(script.lines.first(8).join).trace.summary.fetch("calls_replaced", 0)
  end

  def test_unknown_options
    result = run_ruby("1", "--vm-trace=calls:min=fast")
    refute_predicate result.status, :success?
    assert_includes result.err, "calls takes min=DURATION (such as 1us) and depth=N, not \"min=fast\""
  end
end
