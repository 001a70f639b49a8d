# Samples of time: what threads do, and where. The references are the clocks of the program itself, what other streams
# measure exactly in the same run, and the system's own count of CPU time. All of them see what a busy machine does to
# the program. What it does to the sampler is in `samples_late`: how far samples may be off grows with that.
#
# Once for each base: a sample reads the base's frames; test_single_step has those of each pair.
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

  # What a share of the samples may be off by. The more of the time is in few of them, the less they say.
  def margin(share, samples)
    of_time = samples.sum { |one| one.ns**2 } / samples.sum(&:ns).to_f**2
    STANDARD_ERRORS * Math.sqrt(share * (1 - share) * of_time) + 0.01
  end

  # What the samples of `times` stretches of time may be off by, in ms. A look at the threads stands for all the time
  # since the look before, also for what was before a stretch begins. Two looks are 1.25 ms apart, and more where the
  # sampler was late. And the system may stop a thread between two steps of which one is known to the sampler, one to
  # the program: for less than `slack` ms.
  def blur(trace, found = nil, times: 1, slack: 20) = 1.25 * (2 * times + late(trace, found)) + slack

  # Periods that the sampler missed. A program that was killed has no summary: then it is as its running threads saw it.
  def late(trace, found)
    summary = trace.in_category("trace").find { |event| event["name"] == "summary" }
    return summary["args"].fetch("samples_late", 0) if summary
    found.reject { |one| %w[blocked waiting].include?(one.state) }.sum { |one| [one.ns / MS - 1, 0].max }
  end

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
    from = now
    go = Queue.new
    other = Thread.new do
      Thread.current.name = "other"
      go.pop
      burn 0.2
    end
    blocks
    go << 1
    burn 0.4
    collect 0.2
    other.join
    puts now - from
  RUBY

  def test_states_of_threads
    result = sample(STATES, "samples:1ms,threads")
    of_main, of_other = samples(result.trace).partition { |found| found.tid == result.pid }
    assert_equal ["other"], of_other.map(&:thread).uniq
    slept = blocked_ms(result.trace, "Kernel#sleep").fetch(result.pid)
    assert_operator slept, :>=, 300
    asleep = of_main.select { |found| found.in?("Object#blocks") && found.state == "blocked" }
    assert_in_delta slept, ms(asleep), blur(result.trace)
    collected = of_main.select { |found| found.in?("Object#collect") && found.frames.last == "GC.start" }
    collected.reject! { |found| found.state == "waiting" }
    assert_operator ms(collected.select { |found| found.state == "gc" }), :>, 0.6 * ms(collected)
    # Both want the GVL for 0.2 s. How long they waited for it is in the states of threads.
    sql = "SELECT SUM(dur) FROM thread_state WHERE state IN ('R', 'R+', 'W')"
    waited = result.trace.query(sql).first.first.to_i / MS.to_f
    waits = samples(result.trace).select { |found| found.state == "waiting" }
    assert_operator waited, :>, 50
    assert_in_delta waited, ms(waits), 0.1 * waited + blur(result.trace)
    # All the time of a thread is in its samples.
    assert_in_delta 1000 * result.out.to_f, ms(of_main.select { |found| found.in?("<main>") }), blur(result.trace)
    summary = result.trace.summary
    assert_equal samples(result.trace).size, summary["sample_records"]
    assert_in_delta life_ms(result.trace, "other"), ms(of_other), blur(result.trace)
    # Each moment that was due stands for a period, also where the sampler came late.
    assert_in_delta summary["samples"], ms(samples(result.trace)), 1
  end

  # By thread id, how long threads were blocked in a method, as the stream `threads` has it.
  def blocked_ms(trace, method)
    sql = "SELECT tid, SUM(dur) FROM slice s JOIN thread_track t ON t.id = s.track_id JOIN thread USING (utid) " \
          "WHERE s.category = 'blocked' AND s.name = '#{method}' GROUP BY 1"
    trace.query(sql).to_h { |tid, ns| [tid.to_i, ns.to_f / MS] }
  end

  # From the first to the last state that `threads` has of it.
  def life_ms(trace, thread)
    sql = "SELECT MAX(ts + dur) - MIN(ts) FROM thread_state JOIN thread USING (utid) " \
          "WHERE name = '#{thread}' AND dur >= 0"
    trace.query(sql).first.first.to_f / MS
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
    assert_in_delta exact, total, 0.02 * exact + MS * blur(trace, slack: 3)
    %w[Object#short Object#long Object#both].each do |method|
      share = durations.fetch(method) / exact
      assert_in_delta share, found.select { |one| one.in?(method) }.sum(&:ns).fdiv(total), margin(share, found), method
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
    assert_in_delta main, ms(of_main.select { |found| found.in?("<main>") }), 0.05 * main + blur(result.trace, slack: 3)
    assert_in_delta other, ms(of_other), 0.05 * other + blur(result.trace, slack: 3)
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
    assert_in_delta 1000 * result.out.to_f, ms(inside), blur(result.trace, times: 5, slack: 3)
  end

  # Bursts of CPU time that are as short as the period, with sleeps between: each counts where the thread used it.
  def test_cpu_time_of_short_bursts_is_not_that_of_the_sleep_behind_them
    result = sample(<<~'RUBY', "samples:cpu,1ms")
      def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      def work(till) = (nil while cpu < till)
      puts Array.new(200) { sleep 0.002; from = cpu; work(from + 0.001); cpu - from }.sum
    RUBY
    used = 1000 * result.out.to_f
    found = samples(result.trace)
    assert_in_delta used, ms(found.select { |one| one.in?("Object#work") }), 0.15 * used
    assert_operator ms(found.select { |one| one.in?("Kernel#sleep") }), :<, 0.2 * used
  end

  # The start of a program: squeeze computes in C, without the GVL; cpu is the thread's CPU time.
  def squeezing(bytes) = <<~RUBY
    require "zlib"
    def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    TEXT = Random.new(1).bytes(#{bytes})
    def squeeze = Zlib.deflate(TEXT, 9)
  RUBY

  # A method in C that computes without the GVL, in many pieces.
  def test_cpu_time_without_the_gvl_is_that_of_the_method_that_took_it
    script = <<~'RUBY'
      from = cpu
      30.times { squeeze; sleep 0.003 }
      puts cpu - from
    RUBY
    result = sample(squeezing(300_000) + script, "samples:cpu,1ms")
    used = 1000 * result.out.to_f
    squeezed, others = samples(result.trace).partition { |one| one.in?("Object#squeeze") }
    assert_operator ms(squeezed), :>, 0.7 * used
    assert_operator ms(squeezed.select { |one| one.state == "without_gvl" }), :>, 0.6 * used
    assert_operator ms(others.select { |one| one.in?("Kernel#sleep") }), :<, 0.3 * used
  end

  # The same by wall-clock time: it is no wait. CPU time tells how much of it had a CPU.
  def test_c_that_computes_without_the_gvl_is_not_blocked
    script = <<~'RUBY'
      from = cpu
      3.times { squeeze }
      used = cpu - from
      sleep 0.3
      puts used
    RUBY
    result = sample(squeezing(3_000_000) + script, "samples:1ms,threads")
    found, used = samples(result.trace), 1000 * result.out.to_f
    squeezed = found.select { |one| one.in?("Object#squeeze") && one.state == "without_gvl" }
    assert_in_delta used, ms(squeezed), 0.1 * used + blur(result.trace, times: 3)
    slept = found.select { |one| one.frames.last == "Kernel#sleep" && one.tid == result.pid }
    assert_operator ms(slept.select { |one| one.state == "blocked" }), :>, 0.95 * ms(slept)
  end

  # Applications have hundreds of frames. Each of 1,900 methods is in all stacks of what it calls.
  def test_stacks_of_2000_frames_are_whole
    script = "1900.times { |i| eval(\"def m\#{i} = m\#{i + 1}\") }\n#{BURN}def m1900 = burn(0.05)\nm0\n"
    found = samples(sample(script).trace).select { |one| one.in?("Object#burn") }
    refute_empty found
    found.each { |one| assert_equal Array.new(1901) { |i| "Object#m#{i}" }, one.frames.grep(/#m\d/) }
  end

  # A signal anywhere in a deeper stack.
  def test_of_a_deeper_stack_the_middle_is_left_out
    script = BURN + <<~'RUBY'
      5000.times { |i| eval("def m#{i} = m#{i + 1}") }
      def m5000 = burn(0.05)
      m0
    RUBY
    found = samples(sample(script).trace).select { |one| one.in?("Object#burn") }
    refute_empty found
    assert_equal ["<main>"], found.map { |one| one.frames.first }.uniq
    found.each do |one|
      assert_includes 1938..2001, one.frames.size
      outer, inner = one.frames.slice_after("(frames left out)").map { |frames| frames.grep(/#m\d/) }
      assert_equal Array.new(outer.size) { |i| "Object#m#{i}" }, outer
      assert_equal Array.new(inner.size) { |i| "Object#m#{5000 - i}" }, inner.reverse
    end
  end

  # How long each of them spins, and when it has done so since all of them began to be made, in ms.
  RACTORS = <<~'RUBY'
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
    began = now
    workers = 3.times.map do |i|
      Ractor.new(i) do |n|
        def self.spin(seconds)
          from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          Array.new(10) { |k| k.to_s } while Process.clock_gettime(Process::CLOCK_MONOTONIC) - from < seconds
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          [1000 * (now - from), 1000 * now]
        end
        spin(0.2)
      end
    end
    spun = workers.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    spun.each { |ms, ended| puts [ms, ended - began].join(" ") }
  RUBY

  def test_threads_that_a_child_does_not_have_are_not_sampled_there
    result = sample(<<~'RUBY')
      threads = Array.new(4) { Thread.new { sleep } }
      Thread.pass until threads.all?(&:stop?)
      Process.wait(fork do
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) - start < 0.6
      end)
    RUBY
    child = result.traces.find { |trace| trace.settings["pid"] != result.pid }
    states = samples(child).group_by(&:state).transform_values { |of_state| ms(of_state) }
    assert_operator states.fetch("blocked", 0), :<, states.values.sum / 2, states.to_s
  end

  # The last of the files takes far longer than all others.
  def test_a_file_that_is_parsed_is_told_from_others
    files = [1000, 1000, 100_000].each_with_index.to_h { |size, i| ["file#{i}.rb", "[#{(["[1, [2], { a: 3 }]"] * size).join(", ")}]\n"] }
    trace = sample("3.times { |i| RubyVM::InstructionSequence.compile_file(\"file\#{i}.rb\") }\n", "samples:cpu:1ms", files: files).trace
    out, = Open3.capture2(Trace::TOOL, "report", "--format=json", trace.path)
    methods = JSON.parse(out).dig("samples_by_method", "rows").filter_map { |row| row["method"] }
    assert_equal "<parsing> (file2.rb)", methods.grep(/file\d/).first, methods.join(", ")
  end

  def test_threads_of_all_ractors
    result = sample(RACTORS, recorders: 4)
    trace = result.trace
    spinning = samples(trace).select { |found| found.frames.any? { |frame| frame.end_with?("spin") } }
    spinning = spinning.group_by(&:tid)
    assert_equal 3, spinning.size
    # What a thread has waited for a processor before its first sample is in that.
    least, most = result.out.lines.map { |line| line.split.map(&:to_f) }.transpose.map(&:sort)
    spinning.values.map { |found| ms(found) }.sort.zip(least, most) do |sampled, spun, lived|
      assert_includes spun - blur(trace)..lived + blur(trace), sampled
    end
  end

  def test_200_threads
    script = BURN + <<~'RUBY'
      200.times.map { |i| Thread.new { sleep 0.2; burn(0.001); Thread.current.name = i.to_s } }.each(&:join)
    RUBY
    trace = sample(script, "samples:1ms,threads", recorders: 2).trace
    found = samples(trace)
    slept = found.select { |one| one.state == "blocked" && one.frames.last == "Kernel#sleep" }.group_by(&:tid)
    assert_equal 200, slept.size
    expected = blocked_ms(trace, "Kernel#sleep")
    assert_empty slept.keys - expected.keys
    assert_operator expected.values_at(*slept.keys).min, :>=, 200
    slept.each { |tid, found| assert_in_delta expected[tid], ms(found), blur(trace, slack: 80), "thread #{tid}" }
    all = expected.values_at(*slept.keys).sum
    assert_in_delta all, ms(slept.values.flatten), 0.02 * all + 200 * blur(trace, slack: 0)
  end

  def test_a_child_is_sampled_and_exec_goes_on
    script = BURN + <<~'RUBY'
      def child = burn(0.1)
      $stdout.sync = true
      pid = fork { puts "child #{child}" }
      puts "parent #{burn(0.1)}"
      Process.wait(pid)
      exec("true")
    RUBY
    result = sample(script, ended: false)
    measured = result.out.lines.to_h { |line| line.split.then { |who, seconds| [who, 1000 * seconds.to_f] } }
    child, parent = result.traces.partition { |trace| trace.settings["pid"] != result.pid }.map(&:first)
    in_child, in_parent = samples(child), samples(parent)
    assert_in_delta measured["child"], ms(in_child.select { |found| found.in?("Object#child") }), blur(child)
    burning = in_parent.select { |found| found.in?("Object#burn") && found.frames.last != "Process.wait" }
    assert_in_delta measured["parent"], ms(burning), blur(parent, in_parent)
  end

  def test_a_killed_program_leaves_its_samples
    script = BURN + <<~'RUBY'
      burn(0.01) until RubyVM::Trace.status[:samples] > 0 # the sampler has begun
      def last = burn(0.5)
      puts last
      $stdout.flush
      Process.kill(:KILL, $$)
    RUBY
    result = run_ruby(script, "--vm-trace=samples:1ms", "--vm-trace-file=%p.fxt", ended: false)
    assert_predicate result.status, :signaled?
    found = samples(result.trace)
    # The last ones may be missing.
    expected = 1000 * result.out.to_f - 50
    assert_in_delta expected, ms(found.select { |one| one.in?("Object#last") }), blur(result.trace, found, slack: 90)
  end

  def test_start_and_stop_while_the_program_runs
    script = BURN + <<~'RUBY'
      sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
      def sampled = burn(0.1)
      def not_sampled = burn(0.1)
      Thread.pass until sleeper.stop?
      not_sampled
      2.times do |i|
        from = now
        RubyVM::Trace.start(samples: "1ms", exits: false, file: "#{i}.fxt")
        took = sampled
        RubyVM::Trace.stop
        puts [took, now - from].join(" ")
        not_sampled
      end
    RUBY
    result = run_ruby(script)
    assert_predicate result.status, :success?, result.err
    assert_equal 2, result.traces.size
    measured = result.out.lines.map { |line| line.split.map { |seconds| 1000 * seconds.to_f } }
    result.traces.sort_by(&:path).zip(measured) do |trace, (took, session)|
      of_main, of_sleeper = samples(trace).partition { |found| found.tid == result.pid }
      assert_in_delta took, ms(of_main.select { |found| found.in?("Object#sampled") }), blur(trace)
      assert_empty of_main.select { |found| found.in?("Object#not_sampled") }
      assert_includes took - blur(trace)..session + blur(trace), ms(of_sleeper)
      assert_equal [["blocked"], ["sleeper"]], [of_sleeper.map(&:state).uniq, of_sleeper.map(&:thread).uniq]
    end
  end

  def test_a_flight_recorder_has_what_came_before_it_is_saved
    script = BURN + <<~'RUBY'
      RubyVM::Trace.start(memory: 8, samples: "1ms", exits: false)
      def first = burn(0.1)
      def second = burn(0.1)
      waiting = Thread.new { Thread.current.name = "waiting"; sleep }
      puts first
      RubyVM::Trace.save("a.fxt")
      puts second
      RubyVM::Trace.save("b.fxt")
      RubyVM::Trace.stop
    RUBY
    result = run_ruby(script, ended: false)
    assert_predicate result.status, :success?, result.err
    of_a, of_b = result.traces.sort_by(&:path)
    a, b = samples(of_a), samples(of_b)
    first, second = result.out.lines.map { |line| 1000 * line.to_f }
    assert_in_delta first, ms(a.select { |found| found.in?("Object#first") }), blur(of_a)
    assert_in_delta second, ms(b.select { |found| found.in?("Object#second") }), blur(of_b)
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

  # A thread that could run, and has no CPU, does not run: here it shares one with a process that computes. What the
  # thread used is what its CPU clock says.
  def test_a_thread_without_a_cpu_does_not_run
    skip "no taskset (Debian's util-linux)" unless system("taskset", "-c", "0", "true", err: File::NULL)
    busy = Process.spawn("taskset", "-c", "0", "yes", out: File::NULL)
    script = BURN + <<~'RUBY'
      system("taskset", "-pc", "0", $$.to_s, out: File::NULL) or abort "taskset failed"
      cpu = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }
      def spin(cpu, seconds) = (from = cpu.call; nil while cpu.call - from < seconds)
      from, used = now, cpu.call
      spin(cpu, 0.5)
      puts now - from, cpu.call - used
    RUBY
    result = sample(script)
    wall, used = result.out.split.map { |text| text.to_f * 1000 }
    without, ran = samples(result.trace).select { |found| found.in?("Object#spin") }.partition { |found| found.state == "no_cpu" }
    assert_operator wall, :>, 1.5 * used, "both had the CPU"
    assert_in_delta used, ms(ran), 0.15 * used + 20
    assert_in_delta wall - used, ms(without), 0.15 * wall + blur(result.trace, slack: 40)
  ensure
    Process.kill(:KILL, busy) && Process.wait(busy) if busy
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
    result = sample(script)
    assert_includes 5..6, result.out.to_i # one may have been on its way
    assert_operator result.trace.summary["samples_unhandled"], :>, 10
    report, = Open3.capture2(Trace::TOOL, "report", "--all", result.trace.path)
    assert_match(/^ *no stacks +at \d+ looks of the sampler, while the program handled SIGURG itself/, report)
  end

  # The sampler has a table of descriptors of its own, with one for each thread that it looks at.
  def test_threads_that_have_ended_leave_no_descriptors
    result = sample(BURN + <<~'RUBY')
      before = Dir.children("/proc/self/fd").size
      60.times { Thread.new { burn(0.003) }.join }
      burn(0.01)
      samplers = Dir["/proc/self/task/*"].select { |task| File.read("#{task}/comm") == "vm_trace\n" }
      p samplers.map { |task| Dir.children("#{task}/fd").size }.max, Dir.children("/proc/self/fd").size - before
    RUBY
    of_sampler, of_program = result.out.lines.map(&:to_i)
    assert_includes 1..20, of_sampler
    assert_equal 0, of_program
  end

  # The sampler is stopped with the program.
  def test_periods_that_were_missed_are_counted
    result = sample(BURN + <<~'RUBY')
      burn 0.1 # the sampler has begun
      Process.wait(spawn("kill -STOP #{$$}; sleep 0.3; kill -CONT #{$$}"))
      burn 0.1
    RUBY
    assert_operator result.trace.summary["samples_late"], :>, 100
  end

  # One that cannot answer for a while is asked again when it has.
  def test_a_thread_that_blocks_the_signal_for_a_while
    blocker = Extension.build("blocker", { "blocker.c" => <<~'C' })
      #include <ruby.h>
      #include <signal.h>
      static VALUE
      mask(VALUE self, VALUE block)
      {
          sigset_t set;
          sigemptyset(&set);
          sigaddset(&set, SIGURG);
          pthread_sigmask(RTEST(block) ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
          return Qnil;
      }
      void Init_blocker(void) { rb_define_global_function("mask", mask, 1); }
    C
    result = sample(BURN + <<~RUBY)
      require #{blocker.dump}
      def before = burn(0.1)
      def during = burn(0.4)
      def after = burn(0.4)
      before
      mask(true)
      during
      mask(false)
      after
    RUBY
    found = samples(result.trace)
    in_after = found.select { |one| one.in?("Object#after") }
    # The first sample after it may have all the time in which there was none.
    assert_operator in_after.size, :>, 5
    assert_empty found.select { |one| one.frames.size < 2 && one.ns > 50 * MS }
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
    assert_in_delta share, sampled, margin(share, found) + 0.1
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
