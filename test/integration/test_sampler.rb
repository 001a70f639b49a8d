# Samples of time: what threads do, and where. The references are the clocks of the program itself, what other streams
# measure exactly in the same run, and the system's own count of CPU time.
# Alone: what else runs on the CPUs takes time from the threads.
require_relative "helper"
require_relative "extension"

class TestSampler < Integration::Test
  FRAMES = <<~SQL
    WITH RECURSIVE frames(sample, site, depth) AS (
      SELECT s.id, s.callsite_id, c.depth FROM stack_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id
        WHERE s.source = 'ruby.samples'
      UNION ALL
        SELECT sample, c.parent_id, frames.depth - 1 FROM frames JOIN stack_profile_callsite c ON c.id = site
        WHERE frames.depth > 0)
    SELECT s.id, s.ts, t.tid, COALESCE(t.name, ''), COALESCE(a.name, ''), k.name, w.value, f.name
    FROM frames JOIN stack_sample s ON s.id = sample JOIN stack_profile_callsite c ON c.id = site
      JOIN stack_profile_frame f ON f.id = c.frame_id
      JOIN stack_sample_task_context x ON x.id = s.task_context_id JOIN thread t USING (utid)
      LEFT JOIN stack_sample_async_context a ON a.id = x.async_context_id
      JOIN stack_sample_counter w ON w.stack_sample_id = s.id
      JOIN stack_sample_counter_track k ON k.id = w.track_id AND k.name NOT IN ('wall time', 'CPU time')
    ORDER BY s.id, frames.depth
  SQL
  MS = 1_000_000

  # `frames`: names, outermost first. `ns`: what it represents.
  Sample = Struct.new(:ts, :tid, :thread, :fiber, :state, :ns, :frames) do
    def in?(method) = frames.include?(method)
  end

  def samples(trace)
    trace.query(FRAMES).group_by(&:first).values.map do |rows|
      _, ts, tid, thread, fiber, state, ns, = rows.first
      Sample.new(ts.to_i, tid.to_i, thread, fiber, state, ns.to_f.to_i, rows.map(&:last))
    end
  end

  def sample(script, options = "samples:1ms", *flags, **others)
    result = run_ruby(script, *flags, "--vm-trace=#{options}", "--vm-trace-file=%p.fxt", **others)
    assert_predicate result.status, :success?, result.err
    result
  end

  def ms(samples) = samples.sum(&:ns) / MS.to_f

  # Four standard errors of a share, of samples of about that many ns.
  def margin(share, total_ns, period_ns = MS) = 4 * Math.sqrt(share * (1 - share) * period_ns / total_ns) + 0.01

  BURN = <<~'RUBY'
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def burn(seconds)
      from = now
      100.times { } while now - from < seconds
      now - from
    end
  RUBY

  # What each state is, by the clock of the program.
  STATES = BURN + <<~'RUBY'
    def collect(seconds)
      from = now
      GC.start while now - from < seconds
    end
    def blocks = sleep(0.3)
    other = Thread.new do
      Thread.current.name = "other"
      sleep 0.4
      burn 0.2
    end
    blocks
    from = now
    burn 0.4
    collect 0.2
    other.join
    puts now - from
  RUBY

  def test_states_of_threads
    result = sample(STATES, "samples:1ms,threads")
    of_main, of_other = samples(result.trace).partition { |found| found.tid == result.pid }
    assert_equal ["other"], of_other.map(&:thread).uniq
    assert_in_delta 300, ms(of_main.select { |found| found.in?("Object#blocks") }), 30
    asleep = of_main.select { |found| found.in?("Object#blocks") && found.state != "waiting" && found.ns > 2 * MS }
    assert_equal ["blocked"], asleep.map(&:state).uniq
    collected = of_main.select { |found| found.in?("Object#collect") && found.frames.last == "GC.start" }
    assert_operator ms(collected.select { |found| found.state == "gc" }), :>, 0.6 * ms(collected)
    # Both want the GVL for 0.2 s. How long they waited for it is in the states of threads.
    sql = "SELECT SUM(dur) FROM thread_state WHERE state IN ('R', 'R+', 'W')"
    waited = result.trace.query(sql).first.first.to_i / MS.to_f
    waits = samples(result.trace).select { |found| found.state == "waiting" }
    assert_operator waited, :>, 50
    assert_in_delta waited, ms(waits), 0.1 * waited + 15
    # All the time of a thread is in its samples.
    assert_in_delta 1000 * (0.3 + result.out.to_f), ms(of_main.select { |found| found.in?("<main>") }), 40
    summary = result.trace.summary
    assert_equal samples(result.trace).size, summary["sample_records"]
    # A missed period counts once, but one or two threads were there in it.
    looks, missed = summary["samples"], summary.fetch("samples_late", 0)
    about = 0.1 * looks + 20
    assert_includes (looks + missed - about)..(looks + 2 * missed + about), ms(samples(result.trace))
  end

  # Calls are measured exactly in the same run.
  CALLS = BURN + <<~'RUBY'
    def short = burn(0.001)
    def long = burn(0.003)
    def both(n) = n.times { short; long; short }
    def outer = both(150)
    outer
  RUBY

  def test_samples_agree_with_the_durations_of_calls
    trace = sample(CALLS, "samples:1ms,calls:min=100us").trace
    found = samples(trace).select { |one| one.in?("Object#outer") }
    total = found.sum(&:ns)
    sql = "SELECT name, SUM(dur) FROM slice WHERE category = 'call' GROUP BY 1"
    durations = trace.query(sql).to_h { |name, ns| [name[/\A\S+/], ns.to_f] }
    exact = durations.fetch("Object#outer")
    assert_in_delta exact, total, 0.02 * exact
    %w[Object#short Object#long Object#both].each do |method|
      share = durations.fetch(method) / exact
      assert_in_delta share, found.select { |one| one.in?(method) }.sum(&:ns).fdiv(total), margin(share, exact), method
    end
  end

  def test_cpu_time_is_what_the_system_counted
    script = BURN + <<~'RUBY'
      require "zlib" rescue nil
      def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      from = cpu
      thread = Thread.new { Thread.current.name = "other"; 200_000.times { [] }; sleep 0.3; puts cpu }
      burn 0.3
      sleep 0.3
      thread.join
      puts cpu - from
    RUBY
    result = sample(script, "samples:cpu,1ms")
    other, main = result.out.split.map { |text| text.to_f * 1000 }
    of_main, of_other = samples(result.trace).partition { |found| found.tid == result.pid }
    assert_equal "cpu", result.trace.settings["samples_clock"]
    assert_in_delta main, ms(of_main.select { |found| found.in?("<main>") }), 0.05 * main + 5
    assert_in_delta other, ms(of_other), 0.05 * other + 5
    assert_empty samples(result.trace).select { |found| %w[waiting no_cpu].include?(found.state) }
  end

  def test_fibers_are_async_contexts_of_their_thread
    script = BURN + <<~'RUBY'
      $inside = 0
      def inside = 5.times { $inside += burn(0.01); Fiber.yield }
      fiber = Fiber.new { inside }
      5.times { fiber.resume; burn(0.01) }
      p $inside
    RUBY
    result = sample(script)
    burning = samples(result.trace).select { |found| found.in?("Object#burn") }
    inside, outside = burning.partition { |found| found.in?("Object#inside") }
    assert_equal [result.pid], (inside + outside).map(&:tid).uniq
    assert_equal [""], outside.map(&:fiber).uniq
    assert_equal 1, inside.map(&:fiber).uniq.size
    assert_match(/\AFiber |fiber/i, inside.first.fiber)
    assert_in_delta 1000 * result.out.to_f, ms(inside), 15
  end

  # A signal anywhere in a deep stack.
  def test_of_a_deep_stack_the_middle_is_left_out
    script = BURN + <<~'RUBY'
      def deep(n) = n == 0 ? burn(0.1) : even(n - 1)
      def even(n) = n == 0 ? burn(0.1) : (n.odd? ? deep(n - 1) : third(n - 1))
      def third(n) = n == 0 ? burn(0.1) : deep(n - 1)
      deep(3000)
    RUBY
    found = samples(sample(script).trace).select { |one| one.in?("Object#burn") }
    refute_empty found
    assert_equal ["<main>"], found.map { |one| one.frames.first }.uniq
    assert_operator found.map { |one| one.frames.size }.max, :<=, 200
  end

  RACTORS = <<~'RUBY'
    workers = 3.times.map do |i|
      Ractor.new(i) do |n|
        def self.spin(seconds)
          from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          Array.new(10) { |k| k.to_s } while Process.clock_gettime(Process::CLOCK_MONOTONIC) - from < seconds
        end
        spin(0.2)
        n
      end
    end
    workers.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
  RUBY

  def test_threads_of_all_ractors
    trace = sample(RACTORS, recorders: 4).trace
    spinning = samples(trace).select { |found| found.frames.any? { |frame| frame.end_with?("spin") } }
    spinning = spinning.group_by(&:tid)
    assert_equal 3, spinning.size
    spinning.each_value { |found| assert_in_delta 200, ms(found), 60 }
  end

  def test_200_threads
    script = BURN + <<~'RUBY'
      200.times.map { |i| Thread.new { sleep 0.2; burn(0.001); Thread.current.name = i.to_s } }.each(&:join)
    RUBY
    found = samples(sample(script, recorders: 2).trace)
    slept = found.select { |one| one.state == "blocked" && one.frames.last == "Kernel#sleep" }.group_by(&:tid)
    assert_equal 200, slept.size
    slept.each_value { |of_thread| assert_in_delta 200, ms(of_thread), 100 }
  end

  def test_a_child_is_sampled_and_exec_goes_on
    script = BURN + <<~'RUBY'
      def child = burn(0.1)
      pid = fork { child }
      burn 0.1
      Process.wait(pid)
      exec("true")
    RUBY
    result = sample(script, ended: false)
    child, parent = result.traces.partition { |trace| trace.settings["pid"] != result.pid }
    assert_in_delta 100, ms(samples(child.first).select { |found| found.in?("Object#child") }), 40
    burning = samples(parent.first).select { |found| found.in?("Object#burn") && found.frames.last != "Process.wait" }
    assert_in_delta 100, ms(burning), 40
  end

  def test_a_killed_program_leaves_its_samples
    script = BURN + "burn(0.5)\nProcess.kill(:KILL, $$)\n"
    result = run_ruby(script, "--vm-trace=samples:1ms", "--vm-trace-file=%p.fxt", ended: false)
    assert_predicate result.status, :signaled?
    assert_in_delta 450, ms(samples(result.trace).select { |found| found.in?("Object#burn") }), 100
  end

  def test_start_and_stop_while_the_program_runs
    script = BURN + <<~'RUBY'
      sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
      def sampled = burn(0.1)
      def not_sampled = burn(0.1)
      Thread.pass until sleeper.stop?
      not_sampled
      2.times do |i|
        RubyVM::Trace.start(samples: "1ms", exits: false, file: "#{i}.fxt")
        sampled
        RubyVM::Trace.stop
        not_sampled
      end
    RUBY
    result = run_ruby(script)
    assert_predicate result.status, :success?, result.err
    assert_equal 2, result.traces.size
    result.traces.each do |trace|
      of_main, of_sleeper = samples(trace).partition { |found| found.tid == result.pid }
      assert_in_delta 100, ms(of_main.select { |found| found.in?("Object#sampled") }), 30
      assert_empty of_main.select { |found| found.in?("Object#not_sampled") }
      assert_in_delta 100, ms(of_sleeper), 30
      assert_equal [["blocked"], ["sleeper"]], [of_sleeper.map(&:state).uniq, of_sleeper.map(&:thread).uniq]
    end
  end

  def test_a_flight_recorder_has_what_came_before_it_is_saved
    script = BURN + <<~'RUBY'
      RubyVM::Trace.start(memory: 8, samples: "1ms", exits: false)
      def first = burn(0.1)
      def second = burn(0.1)
      waiting = Thread.new { Thread.current.name = "waiting"; sleep }
      first
      RubyVM::Trace.save("a.fxt")
      second
      RubyVM::Trace.save("b.fxt")
      RubyVM::Trace.stop
    RUBY
    result = run_ruby(script, ended: false)
    assert_predicate result.status, :success?, result.err
    a, b = %w[a b].map { |name| samples(result.traces.find { |trace| trace.path.end_with?("/#{name}.fxt") }) }
    assert_in_delta 100, ms(a.select { |found| found.in?("Object#first") }), 30
    assert_in_delta 100, ms(b.select { |found| found.in?("Object#second") }), 30
    assert_equal a.select { |found| found.in?("Object#first") }, b.select { |found| found.in?("Object#first") }
  end

  # --- what the program must not notice ---

  # It has the GVL while it sleeps in the kernel, as few extensions do.
  SLEEPS = <<~C
    #include <ruby.h>
    #include <time.h>
    #include <errno.h>
    static VALUE
    sleep_with_gvl(VALUE self, VALUE ms)
    {
        struct timespec time = { 0, NUM2LONG(ms) * 1000000 };
        return nanosleep(&time, NULL) == 0 ? Qtrue : INT2NUM(errno);
    }
    void Init_sleeps(void) { rb_define_global_function("sleep_with_gvl", sleep_with_gvl, 1); }
  C

  # Blocked without the GVL, never. With it only at the begin of the call, when a signal is already on its way:
  # with a signal for each sample all of these would be interrupted, 30 times in 3 ms.
  def test_system_calls_go_on
    library = Extension.build("sleeps", "sleeps.c" => SLEEPS)
    script = BURN + <<~RUBY
      require #{library.dump}
      p 100.times.count { sleep_with_gvl(3) == true }
      # With as many threads as there are chances, blocked in calls that a signal would end.
      threads = 50.times.map { Thread.new { 20.times.all? { from = now; sleep(0.005); now - from >= 0.005 } } }
      p threads.map(&:value).uniq
    RUBY
    result = sample(script, "samples:100us")
    whole, without_gvl = result.out.lines(chomp: true)
    assert_operator whole.to_i, :>=, 60
    assert_equal "[true]", without_gvl
    slept = samples(result.trace).select { |found| found.state == "no_cpu" }
    assert_operator ms(slept), :>, 150
  end

  def test_a_program_that_handles_the_signal_keeps_it
    script = BURN + <<~'RUBY'
      got = 0
      trap("URG") { got += 1 }
      begin
        RubyVM::Trace.start(samples: "1ms", exits: false, file: "a.fxt")
        puts "started"
      rescue => error
        puts error.message
      end
      burn 0.1
      5.times { Process.kill(:URG, $$); burn(0.01) }
      puts got
    RUBY
    result = run_ruby(script)
    assert_match(/SIGURG/, result.out)
    assert_equal "5", result.out.lines.last.chomp
  end

  def test_a_handler_that_comes_later_is_not_called_by_samples
    script = BURN + <<~'RUBY'
      burn 0.05
      got = 0
      trap("URG") { got += 1 }
      burn 0.1
      5.times { Process.kill(:URG, $$); burn(0.01) }
      puts got
    RUBY
    assert_includes 5..6, sample(script).out.to_i # one may have been on its way
  end

  # --- compiled code ---

  COMPILED = BURN + <<~'RUBY'
    def hot(n) = n < 2 ? n : hot(n - 1) + hot(n - 2)
    def cold(seconds)
      from = now
      eval("def cold_#{$n = $n.to_i + 1}(a) = [a, a].sum { |x| x + 1 }; cold_#{$n}(1)") while now - from < seconds
    end
    40.times { hot(25) }
    cold(0.3)
    40.times { begin; [1].each { hot(15); raise ArgumentError }; rescue ArgumentError; end }
  RUBY

  def test_compiled_and_interpreted_are_what_the_stream_of_states_measured
    skip "#{BASE} has no JIT here" unless JIT
    result = run_ruby(COMPILED, "--#{JIT.downcase}", "--#{JIT.downcase}-call-threshold=5",
                      "--vm-trace=samples:1ms,states", "--vm-trace-file=%p.fxt")
    assert_predicate result.status, :success?, result.err
    found = samples(result.trace).select { |one| one.tid == result.pid && %w[compiled interpreted].include?(one.state) }
    states = result.trace.in_category("trace").select { |event| event["name"] == "states" }
    states.map! { |event| event["args"] }
    compiled = states.sum { |args| args["compiled"].to_i }
    names = %w[exited uncompiled uncompilable reprofiled c_function]
    interpreted = states.sum { |args| names.sum { |name| args[name].to_i } }
    hot = found.select { |one| one.in?("Object#hot") && one.frames.last == "Object#hot" }
    assert_operator hot.select { |one| one.state == "compiled" }.sum(&:ns), :>, 0.7 * hot.sum(&:ns)
    refute_equal 0, compiled
    share = compiled.fdiv(compiled + interpreted)
    total = found.sum(&:ns)
    sampled = found.select { |one| one.state == "compiled" }.sum(&:ns).fdiv(total)
    assert_in_delta share, sampled, margin(share, total) + 0.1
  end

  # --- refused ---

  def test_wrong_options_are_errors
    {
      "samples:1us" => "1us", "samples:11s" => "11s", "samples:fast" => "fast", "samples:cpu:0ms" => "0ms"
    }.each do |option, wrong|
      result = run_ruby("puts 1", "--vm-trace=#{option}")
      refute_predicate result.status, :success?
      assert_equal "--vm-trace: samples takes cpu (else wall-clock time), a period from 100us to 10s (such as 1ms), " \
                   "not \"#{wrong}\"\n", result.err.lines.first
    end
  end
end
