# The stream `states`: the time that exits lose, judged by what the program itself measures around
# its work in the same run.
require_relative "helper"

class TestStates < Integration::Test
  STATES = %w[
    compiled exited uncompiled uncompilable reprofiled fallback c_function compiling gc waiting no_cpu blocked unseen
  ].freeze
  NO_STATES = %w[changes left_out].freeze

  # Text that stands for what runs in the frame that it is written in, so that no call is between:
  #   EXIT          an exit, each time, of compiled code; nothing in the interpreter
  #   WORK          a loop, so long that all else is next to nothing
  #   BEGIN_LOST    from now on the time is lost
  #   END_LOST      until now
  #   OTHER(...)    runs something whose time is not lost
  # Where the program can't know whether the code that follows is compiled, an EXIT goes before it.
  MACROS = {
    "EXIT" => "::RubyVM::ZJIT.induce_side_exit!",
    "WORK" => "(i = 0; i += 1 while i < n)",
    "BEGIN_LOST" => "$begin_ns = now",
    "END_LOST" => "$lost_ns += now - $begin_ns"
  }.freeze
  WORK = 150_000
  TIMES = 5

  def expand(text)
    text.gsub(/\bOTHER\((.*)\)$/) { "$other_ns = now; #{$1}; $lost_ns -= now - $other_ns" }
      .gsub(Regexp.union(MACROS.keys), MACROS)
  end

  # `run(n)` is called by the interpreter: the main program runs once, and is not compiled.
  def judged(definitions, work: WORK, times: TIMES) = expand(<<~RUBY)
    def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
    def compiled(n)
      i = 0
      i += 1 while i < n
    end
    $lost_ns = 0
    #{definitions}
    called = 0
    while called < 12
      compiled(1)
      run(0)
      called += 1
    end
    $lost_ns = 0
    called = 0
    while called < #{times}
      run(#{work})
      called += 1
    end
    puts $lost_ns
  RUBY

  FLAGS = ["--zjit-call-threshold=2", "--vm-trace-file=%p.fxt"].freeze

  def record(script, *flags, streams: "states", **options)
    result = run_ruby(script, *FLAGS, "--vm-trace=#{streams}", *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.own_err
    result
  end

  def lost_by_sites(trace) = trace.sites.sum { |site| site.fetch("lost_ns", 0) }

  # A thread's last event by thread id. Its sums are cumulative.
  def last_events(trace)
    trace.in_category("trace").select { |event| event["name"] == "states" }.to_h { |event| [event["tid"], event] }
  end

  # The arguments of these events by thread id.
  def threads(trace) = last_events(trace).transform_values { |event| event["args"] }

  def all_in(trace, state) = threads(trace).values.sum { |args| args.fetch(state, 0) }

  # What must hold for any program.
  def assert_accounts(trace)
    refute_empty threads(trace)
    threads(trace).each_value { |args| assert_empty args.keys - STATES - NO_STATES }
    assert_equal all_in(trace, "exited"), lost_by_sites(trace), "exited, and lost by sites"
    trace.sites.each do |site|
      next unless site["lost_ns"]
      assert_operator site["lost_max_ns"], :<=, site["lost_ns"]
      assert_operator site["lost_max_ns"] * site["hits"], :>=, site["lost_ns"], site.inspect
    end
  end

  NEAR = 0.05
  # Programs measure the CPU time of their thread. The system may stop one between two reads of a clock, of
  # which one is ours and one its own: then it is run again.
  ATTEMPTS = 12

  def near?(expected, is) = (is - expected).abs <= expected * NEAR

  # The block runs a program, and returns [[what the program measured, what the trace has], ...] in ns.
  def assert_near(what)
    found = nil
    ATTEMPTS.times do
      found = yield
      return if found.all? { |expected, is| near?(expected, is) }
    end
    flunk "#{what}, by the program's clock and by the trace, in us: #{found.map { |pair| pair.map { |ns| ns / 1000 } }}"
  end

  def lost_in_main(result) = threads(result.trace).fetch(result.pid).fetch("exited", 0)

  def assert_lost_as_measured(definitions, *flags, **options)
    script = judged(definitions, **options.slice(:work, :times))
    assert_near("lost") do
      result = record(script, *flags, **options.except(:work, :times))
      assert_accounts(result.trace)
      [[result.out.to_i, lost_in_main(result)]]
    end
  end

  # --- what is lost -------------------------------------------------------------------------------

  JUDGED = {
    "in_the_frame" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        END_LOST
      end
    RUBY
    "in_a_caller" => <<~RUBY,
      def leaf(n) = (EXIT; BEGIN_LOST)
      def run(n)
        leaf(n)
        WORK
        END_LOST
      end
    RUBY
    "in_each_caller" => <<~RUBY,
      def leaf(n)
        EXIT; BEGIN_LOST
        WORK
      end
      def middle(n)
        leaf(n)
        WORK
      end
      def run(n)
        middle(n)
        WORK
        END_LOST
      end
    RUBY
    "after_two_exits_of_one_frame" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        EXIT
        WORK
        END_LOST
      end
    RUBY
    "in_a_block" => <<~RUBY,
      def yields = yield
      def run(n)
        BEGIN_LOST
        yields { EXIT; WORK }
        EXIT
        WORK
        END_LOST
      end
    RUBY
    "in_a_block_called_by_c" => <<~RUBY,
      def run(n)
        [3, 1, 2].sort_by { |x| EXIT; BEGIN_LOST; WORK; END_LOST; x }
      end
    RUBY
    "in_a_block_of_each" => <<~RUBY,
      def run(n)
        [1, 2].each { EXIT; BEGIN_LOST; WORK; END_LOST }
      end
    RUBY
    "in_a_rescue_of_the_frame" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        begin
          raise "x"
        rescue
          EXIT
          WORK
        end
        WORK
        END_LOST
      end
    RUBY
    "in_a_rescue_of_a_caller" => <<~RUBY,
      def raises(n)
        EXIT; BEGIN_LOST
        WORK
        raise "x"
      end
      def run(n)
        begin
          raises(n)
        rescue
          EXIT
          WORK
        end
        EXIT
        WORK
        END_LOST
      end
    RUBY
    "in_an_ensure" => <<~RUBY,
      def raises(n)
        EXIT; BEGIN_LOST
        WORK
        raise "x"
      ensure
        EXIT
        WORK
      end
      def run(n)
        begin
          raises(n)
        rescue
          EXIT
        end
        EXIT
        WORK
        END_LOST
      end
    RUBY
    "around_throw" => <<~RUBY,
      def throws(n)
        EXIT
        WORK
        throw :x
      end
      def run(n)
        EXIT; BEGIN_LOST
        catch(:x) { EXIT; WORK; throws(n) }
        WORK
        END_LOST
      end
    RUBY
    "around_break" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        [1, 2].each { EXIT; WORK; break }
        EXIT
        WORK
        END_LOST
      end
    RUBY
    "around_a_return_from_a_block" => <<~RUBY,
      def returns(n)
        [1, 2].each { EXIT; WORK; return 5 }
      end
      def run(n)
        EXIT; BEGIN_LOST
        returns(n)
        EXIT
        WORK
        END_LOST
      end
    RUBY
    "around_a_fiber" => <<~RUBY,
      FIBER = Fiber.new do |n|
        while true
          n = in_fiber(n)
        end
      end
      def in_fiber(n)
        EXIT
        WORK
        Fiber.yield
      end
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        FIBER.resume(n)
        WORK
        END_LOST
      end
    RUBY
    "but_for_compiled_callees" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        OTHER(compiled(n * 20))
        WORK
        OTHER(compiled(n * 20))
        END_LOST
      end
    RUBY
    "but_for_compiled_code_below_an_interpreted_block" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        OTHER([1].each { compiled(n * 20) })
        END_LOST
      end
    RUBY
    "but_for_compiled_code_in_a_fiber" => <<~RUBY,
      def run(n)
        fiber = Fiber.new { compiled(n * 20) }
        EXIT; BEGIN_LOST
        WORK
        OTHER(fiber.resume)
        WORK
        END_LOST
      end
    RUBY
    "but_for_gc" => <<~RUBY,
      KEPT = Array.new(200_000) { |i| "kept \#{i}" }
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        OTHER(GC.start)
        WORK
        END_LOST
      end
    RUBY
    "but_for_sleep" => <<~RUBY,
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        OTHER(sleep(n / 10_000_000.0))
        WORK
        END_LOST
      end
    RUBY
    "but_for_waiting_for_a_queue" => <<~RUBY,
      ASKED, ANSWERED = Thread::Queue.new, Thread::Queue.new
      Thread.new { loop { ANSWERED << sleep(ASKED.pop / 10_000_000.0) } }
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        # The other thread may run at once
        OTHER(begin ASKED << n; ANSWERED.pop end)
        WORK
        END_LOST
      end
    RUBY
    "but_for_waiting_for_the_gvl" => <<~RUBY,
      Thread.new { loop { compiled(20_000) } }
      def run(n)
        EXIT; BEGIN_LOST
        WORK
        OTHER(Thread.pass)
        WORK
        END_LOST
      end
    RUBY
  }.freeze

  JUDGED.each do |name, definitions|
    # A piece of work ends before the thread has to let another one run.
    work = name == "but_for_waiting_for_the_gvl" ? WORK / SLOWNESS : WORK
    define_method("test_time_is_lost_#{name}") { assert_lost_as_measured(definitions, work: work) }
  end

  # Called by itself `depth` times, compiled code below the exit, and work on the way back.
  [1, 5, 50].each do |depth|
    define_method("test_time_is_lost_on_the_way_back_from_depth_#{depth}") do
      assert_lost_as_measured(<<~RUBY, work: WORK * 2 / depth)
        def recurse(depth, n)
          if depth == 0
            EXIT; BEGIN_LOST
          else
            recurse(depth - 1, n)
            WORK
          end
          nil
        end
        def run(n)
          recurse(#{depth}, n)
          WORK
          END_LOST
        end
      RUBY
    end
  end

  def test_each_ractor_loses_its_own_time
    script = expand(<<~'RUBY')
      Warning[:experimental] = false
      def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      def run(n)
        EXIT
        begin_ns = now
        WORK
        now - begin_ns
      end
      # All ractors stop while one compiles or makes another one. So do both before.
      24.times { run(0) }
      ractors = 3.times.map do |number|
        Ractor.new(number) do |m|
          Ractor.receive
          called = lost_ns = 0
          while (called += 1) <= 6
            lost_ns += run(150_000 * (m + 1))
          end
          lost_ns
        end
      end
      ractors.each { |ractor| ractor.send(:go) }
      puts ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    assert_near("lost by ractors") do
      result = record(script, recorders: 4)
      assert_accounts(result.trace)
      lost = threads(result.trace).except(result.pid).values.map { |args| args.fetch("exited", 0) }.sort
      assert_equal 3, lost.size
      result.out.lines.map(&:to_i).sort.zip(lost)
    end
  end

  # Beside a process that computes on the same CPU.
  def test_time_without_a_cpu_is_not_lost
    skip "no taskset (Debian's util-linux)" unless system("taskset", "-c", "0", "true", err: File::NULL)
    busy = Process.spawn("taskset", "-c", "0", "yes", out: File::NULL)
    script = <<~RUBY + judged(JUDGED.fetch("in_the_frame"), times: 20)
      system("taskset", "-pc", "0", $$.to_s, out: File::NULL) or abort "taskset failed"
    RUBY
    assert_near("lost") do
      result = record(script)
      assert_accounts(result.trace)
      no_cpu = threads(result.trace).fetch(result.pid).fetch("no_cpu", 0)
      assert_operator no_cpu, :>, result.out.to_i / 4, "both had the CPU"
      [[result.out.to_i, lost_in_main(result)]]
    end
  ensure
    Process.kill(:KILL, busy) && Process.wait(busy) if busy
  end

  # Short methods that JITs inline: their exit is in the caller's code.
  def test_time_is_lost_by_an_exit_of_an_inlined_callee
    assert_lost_as_measured(<<~RUBY)
      def exits(x) = x + 4611686018427387903
      def run(n)
        exits(1); BEGIN_LOST
        WORK
        END_LOST
      end
    RUBY
  end

  # --- by site, and by exit --------------------------------------------------------------------------

  # The most frequent exit costs the least.
  RANKED = <<~'RUBY'
    def seldom(n) = (EXIT; WORK)
    def sometimes(n) = (EXIT; WORK)
    def often(n) = (EXIT; WORK)
    called = 0
    while called < 3000
      often(1)
      sometimes(called >= 10 ? 10_000 : 0) if called % 10 == 0
      seldom(called >= 500 ? 1_000_000 : 0) if called % 100 == 0
      called += 1
    end
  RUBY

  # The system may stop the program in the exit that costs the least. What the program itself measured decides whether
  # it was as it should be; the trace must agree.
  def record_ranked(streams)
    now = "def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)"
    script = "#{now}\n$lost = Hash.new(0)\n" + RANKED
    script = script.gsub(/^  (often|sometimes|seldom)(\(.*\))( if .*)?$/) do
      "  (from = now; #$1#$2; $lost[#{$1.inspect}] += now - from)#$3"
    end
    script << "puts $lost.values_at('seldom', 'sometimes', 'often')\n"
    ATTEMPTS.times do
      result = record(expand(script), streams: streams)
      return result.trace if result.out.split.map(&:to_i).each_cons(2).all? { |more, less| more > 1.5 * less }
    end
    flunk "the exits never took as long as they should"
  end

  # Names of the methods, the one with the largest number first.
  def ranked(trace, by)
    sites = trace.sites("DirectiveInduced").sort_by { |site| -site[by] }
    sites.map { |site| site["location"][/seldom|sometimes|often/] }
  end

  [1, 97].each do |rate|
    define_method("test_sites_are_ranked_by_time_not_by_count_with_one_exit_in_#{rate}_recorded") do
      trace = record_ranked("states,exits:rate=#{rate}")
      assert_accounts(trace)
      assert_equal %w[often sometimes seldom], ranked(trace, "hits")
      assert_equal %w[seldom sometimes often], ranked(trace, "lost_ns")
    end
  end

  # All exits of this program end before the trace does.
  def test_what_each_exit_lost_adds_up_to_its_site
    trace = record(expand(RANKED), streams: "states,exits:rate=1").trace
    trace.sites("DirectiveInduced").each do |site|
      exits = trace.exits("DirectiveInduced").map { |exit| exit["args"] }
      lost = exits.select { |args| args["0"] == site["location"] }.map { |args| args.fetch("lost_ns") }
      assert_equal site.values_at("hits", "lost_ns", "lost_max_ns"), [lost.size, lost.sum, lost.max], site["location"]
      refute_includes lost, 0
    end
  end

  def test_sums_are_exact_whatever_one_in_k_is_recorded
    [1, 7, 97].each do |rate|
      streams = "states,exits:rate=#{rate}"
      assert_lost_as_measured(JUDGED.fetch("in_each_caller"), streams: streams, work: 2000, times: 1000)
    end
  end

  def test_an_exit_whose_frame_is_open_at_the_end_has_lost_time_at_its_site
    result = record(expand(<<~'RUBY'), streams: "states,exits:rate=1")
      def run(n)
        EXIT
        WORK
        exit if n > 0
      end
      called = 0
      while called < 10
        run(0)
        called += 1
      end
      run(100_000)
    RUBY
    assert_accounts(result.trace)
    assert_operator lost_by_sites(result.trace), :>, 200_000
  end

  # --- interpreted for other reasons ----------------------------------------------------------------

  # Arguments of trace/interpreted of the ISEQs whose labels begin like this.
  def interpreted(trace, label)
    events = trace.in_category("trace").select { |event| event["name"] == "interpreted" }
    events.map { |event| event["args"] }.select { |args| args["iseq"].start_with?(label) }
  end

  # One in 32 calls of a method in C that is short is timed. To read the clock takes longer than the method.
  def test_what_timing_takes_is_no_time_of_methods_in_c
    result = record(<<~'RUBY', "--zjit-call-threshold=30")
      def shift(n)
        i = 0
        (i >> 1; i += 1) while i < n
      end
      10.times { shift(100_000) }
    RUBY
    in_c, around = %w[c_function uncompiled].map { |state| all_in(result.trace, state) }
    assert_operator in_c, :>, 0.05 * around
    assert_operator in_c, :<, 2 * around
  end

  def test_calls_before_compilation_are_uncompiled_and_lose_nothing
    script = expand(<<~'RUBY')
      def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      def cold(n)
        WORK
      end
      spent_ns = called = 0
      while (called += 1) <= 10
        begin_ns = now
        cold(400_000)
        spent_ns += now - begin_ns
      end
      puts spent_ns
    RUBY
    assert_near("interpreted") do
      # `now` is called 20 times. It is not to be compiled, in the time that it measures.
      result = record(script, "--zjit-call-threshold=30")
      assert_accounts(result.trace)
      assert_equal 0, all_in(result.trace, "exited")
      found = interpreted(result.trace, "Object#cold")
      assert_equal [["not compiled yet", 10]], found.map { |args| args.values_at("why", "calls") }
      assert_operator found[0]["first_ns"], :<, found[0]["last_ns"]
      spent_ns = result.out.to_i # of all uncompiled code, most
      [[spent_ns, found[0]["interpreted_ns"]], [spent_ns, [spent_ns, all_in(result.trace, "uncompiled")].min]]
    end
  end

  # --- C functions and fallbacks ----------------------------------------------------------------------

  # The interpreter calls `run`, with a string whose #sum takes much longer than making it. Prints $measured_ns.
  def timed(definitions) = expand(<<~RUBY)
    def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
    $measured_ns = 0
    #{definitions}
    text, called = "x" * 1_000_000, 0
    while called < 5
      run(#{EMULATED ? "'x'" : "text"}, 50)
      called += 1
    end
    #{"$measured_ns = 0" if EMULATED} # there compiling `now` takes more than a second
    called = 0
    while called < 1000 # so often that making the text is next to nothing
      run(text, 200_000) # so long that reading the clock is
      called += 1
    end
    puts $measured_ns
  RUBY

  def test_a_method_in_c_that_the_interpreter_calls_is_not_lost
    script = timed(<<~'RUBY')
      def run(text, n)
        EXIT
        $begin_ns = now; text.sum; $measured_ns += now - $begin_ns
      end
    RUBY
    assert_near("C functions") do
      result = record(script)
      assert_accounts(result.trace)
      assert_operator all_in(result.trace, "exited"), :<, result.out.to_i / 4
      [[result.out.to_i, all_in(result.trace, "c_function")]]
    end
  end

  # A call with a splat is left to the VM. With the flag, compiled code reports fallbacks.
  def record_fallbacks(definitions)
    result = record(timed(definitions), "--zjit-trace-fallbacks")
    refute_empty result.trace.in_category("fallback")
    [result.out.to_i, result.trace]
  end

  zjit_only def test_compiled_code_that_goes_on_after_a_fallback_is_compiled
    assert_near("compiled") do
      measured_ns, trace = record_fallbacks(<<~'RUBY')
        def nothing = nil
        def run(text, n)
          nothing(*[])
          $begin_ns = now
          WORK
          $measured_ns += now - $begin_ns
        end
      RUBY
      assert_operator all_in(trace, "fallback"), :>, 0
      assert_operator all_in(trace, "fallback"), :<, measured_ns / 10
      [[measured_ns, all_in(trace, "compiled")]]
    end
  end

  zjit_only def test_a_method_in_c_that_a_fallback_calls_is_a_c_function
    assert_near("C functions") do
      measured_ns, trace = record_fallbacks(<<~'RUBY')
        def run(text, n)
          $begin_ns = now
          text.sum(*[])
          $measured_ns += now - $begin_ns
        end
      RUBY
      [[measured_ns, all_in(trace, "c_function")]]
    end
  end

  # --- threads: states add up to lives ----------------------------------------------------------------

  LIVES = {
    "one_that_calculates" => <<~RUBY,
      def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
      fib(26)
    RUBY
    "threads" => "4.times.map { Thread.new { 100_000.times { |i| i.to_s }; sleep 0.05 } }.each(&:join)",
    "sockets" => <<~RUBY,
      require 'socket'
      s = TCPServer.new('127.0.0.1', 0)
      t = Thread.new { c = s.accept; 300.times { c.write(c.gets) }; c.close }
      c = TCPSocket.new('127.0.0.1', s.addr[1])
      300.times { c.puts 'x' * 100; c.gets }
      t.join
    RUBY
    "pipes" => <<~RUBY,
      r, w = IO.pipe
      t = Thread.new { begin; loop { r.readpartial(100) }; rescue EOFError; end }
      300.times { w.write('x' * 10); Thread.pass }
      sleep 0.02
      w.close
      t.join
    RUBY
    "fibers" => <<~RUBY,
      e = Enumerator.new { |y| loop { y << 200.times.sum } }
      ts = 2.times.map { Thread.new { f = Fiber.new { loop { Fiber.yield e.size } }; 3000.times { f.resume } } }
      ts.each(&:join)
      2000.times { e.next }
    RUBY
    "fibers_that_run_only_c" => <<~RUBY,
      20.times { e = { 1 => 2, 3 => 4 }.each; e.next; e.next }
      Fiber.new(&method(:sleep)).resume(0.1)
      20.times { |i| i.to_s }
    RUBY
    "ractors" => <<~RUBY,
      Warning[:experimental] = false
      rs = 3.times.map { Ractor.new { 60_000.times { |i| i.to_s }; 1 } }
      rs.each { |r| r.respond_to?(:value) ? r.value : r.take }
    RUBY
    "gc_stress" => <<~RUBY,
      def makes(i) = [i.to_s, Object.new]
      20.times { |i| makes(i) }
      GC.stress = true
      150.times { |i| makes(i) }
      GC.stress = false
    RUBY
    "exceptions" => <<~RUBY,
      def raises(i) = i.odd? ? raise('x') : i
      def rescues(i)
        raises(i)
      rescue
        i.to_s
      ensure
        i.succ
      end
      30_000.times { |i| rescues(i) }
      10_000.times { |i| catch(:x) { throw :x if i.odd? } }
      10_000.times { |i| [1, 2].each { |x| break if x == i % 3 } }
    RUBY
    "deep_recursion" => <<~RUBY,
      def deep(n) = n == 0 ? (4611686018427387903 + 1) : deep(n - 1)
      100.times { deep(3000) }
      def forever(n) = forever(n + 1) + 1
      5.times { begin; forever(0); rescue SystemStackError; end }
    RUBY
    "callbacks_from_c" => <<~RUBY,
      a = Array.new(2000) { |i| i * 7919 % 1000 }
      10.times do
        a.sort_by { |x| -x }
        a.each_with_index { |x, i| x + i }
        a.sort { |x, y| y <=> x }
        a.inject { |x, y| x ^ y }
        a.to_h { |x| [x, 1] }
      end
    RUBY
    "timeouts" => <<~RUBY,
      require 'timeout'
      10.times { begin; Timeout.timeout(0.01) { loop { } }; rescue Timeout::Error; end }
    RUBY
    "a_forked_child" => <<~RUBY,
      f = -> { 30_000.times { |i| i.to_s } }
      f.()
      pid = fork { f.(); Thread.new { f.() }.join }
      Process.wait(pid)
      f.()
    RUBY
    "killed_threads" => <<~RUBY,
      ts = 5.times.map { Thread.new { loop { 10.times.map { |i| i.to_s } } } }
      sleep 0.1
      ts.each(&:kill)
      ts.each(&:join)
      q = Thread::Queue.new
      ts = 3.times.map { Thread.new { q.pop } }
      sleep 0.01
      ts.each(&:kill)
      ts.each(&:join)
    RUBY
    "continuations" => <<~RUBY,
      $VERBOSE = nil
      require 'continuation'
      def again(n) = (k = nil; c = callcc { |cc| k = cc; 0 }; 5000.times { |i| i.to_s }; c < n ? k.call(c + 1) : c)
      5.times { again(20) }
    RUBY
    "tracepoint_enabled_in_the_middle" => <<~RUBY
      def works(n) = n.times { |i| i.to_s }
      5.times { works(20_000) }
      t = TracePoint.new(:line, :call, :return) { }
      t.enable { works(5000) }
      5.times { works(20_000) }
      t.enable(target: method(:works)) { works(5000) }
      works(20_000)
    RUBY
  }.freeze

  # First moment of each thread, by the stream `threads`.
  def lives(trace)
    sql = "SELECT t.tid, MIN(s.ts) FROM thread_state s JOIN thread t USING (utid) WHERE t.tid <> 0 GROUP BY t.tid"
    trace.query(sql).to_h { |row| row.map(&:to_i) }
  end

  # Of short lives, in ns: what lies between the first and last moments of the two streams.
  CLOCKS_DIFFER = 200_000

  # Threads whose states do not add up to their life.
  def wrong_sums(trace)
    begins = lives(trace)
    begins[trace.settings["pid"]] ||= trace.events.first["ts"] # when it does not wait
    last_events(trace).filter_map do |tid, event|
      expected = event["ts"] - begins.fetch(tid)
      sum = event["args"].except(*NO_STATES).values.sum
      margin = [expected / 100, CLOCKS_DIFFER].max
      next if (expected - sum).abs <= margin
      "thread #{tid} lived for #{expected / 1000} us, not #{sum / 1000}: #{event["args"]}"
    end
  end

  LIVES.each do |name, script|
    define_method("test_states_of_#{name}_add_up_to_lives") do
      wrong = []
      ATTEMPTS.times do # on a busy machine a thread may wait for a CPU between those moments
        result = record(script, recorders: 4)
        result.traces.each { |trace| assert_accounts(trace) }
        wrong = result.traces.flat_map { |trace| wrong_sums(trace) }
        return if wrong.empty?
      end
      flunk wrong.join("\n")
    end
  end

  # Slices name the ISEQ of a frame that was there before it moved.
  def test_slices_are_named_across_compaction
    trace = record(<<~RUBY, streams: "states:min=0ns").trace
      def callee(x) = x + 1
      def long(x)
        callee(x)
        GC.compact
        x
      end
      40.times { |i| long(i) }
      # Makes every object move, where this Ruby can.
      if GC.respond_to?(:verify_compaction_references)
        GC.verify_compaction_references(expand_heap: true, toward: :empty)
      end
      long(1)
    RUBY
    slices = trace.in_category("execution")
    names = slices.map { |slice| slice.dig("args", "iseq").to_s[/[^ #]+ \(/] }.tally
    assert_includes names, "long ("
    assert_equal slices.size, slices.count { |slice| slice.dig("args", "iseq") || slice["name"] == "compiling" }
  end
end
