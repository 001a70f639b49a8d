# The stream `threads`: judged by CRuby's public thread events, which an extension records in the
# same run, and by what must hold for any program.
#
# Once for each base: threads are the base's.
require_relative "helper"
require_relative "extension"

class TestGVL < Integration::Test
  FLAGS = ["--vm-trace=threads", "--vm-trace-file=%p.fxt"].freeze
  REFERENCE = File.read(File.join(__dir__, "gvl_reference.c"))

  # Programs whose threads are all in `THREADS`, so that the reference knows their addresses.
  HEAD = <<~'RUBY'
    require "timeout"
    require "monitor"
    require "socket"
    Warning[:experimental] = false
    THREADS = [Thread.current]
    def thread(&block) = Thread.new(&block).tap { |thread| THREADS << thread }
    def busy(seconds)
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    end
  RUBY
  PROGRAMS = {
    "busy" => "3.times.map { thread { busy(0.25) } }.each(&:join)",
    "queue" => "q, r = Thread::Queue.new, Thread::Queue.new\nt = thread { 500.times { r << q.pop } }\n500.times { q << 1; r.pop }\nt.join",
    "sized_queue" => "q = Thread::SizedQueue.new(1)\nt = thread { 200.times { q.pop } }\n200.times { q << 1 }\nt.join",
    "mutex" => "m = Thread::Mutex.new\n4.times.map { thread { 50.times { m.synchronize { sleep 0.0002 } } } }.each(&:join)",
    "condition" => "m, c, n = Thread::Mutex.new, Thread::ConditionVariable.new, 0\n" \
                   "t = thread { 100.times { |i| m.synchronize { c.wait(m) until n > i } } }\n" \
                   "100.times { m.synchronize { n += 1; c.signal } }\nt.join",
    "monitor" => "m = Monitor.new\n3.times.map { thread { 30.times { m.synchronize { m.synchronize { sleep 0.0003 } } } } }.each(&:join)",
    "sleep" => "3.times.map { |i| thread { 20.times { sleep 0.001 } } }.each(&:join)",
    "pipe" => "r, w = IO.pipe\nt = thread { begin; loop { r.readpartial(100) }; rescue EOFError; end }\n" \
              "300.times { w.write('x' * 10); Thread.pass }\nw.close\nt.join",
    "socket" => "s = TCPServer.new('127.0.0.1', 0)\nt = thread { c = s.accept; c.write(c.gets); c.close }\n" \
                "c = TCPSocket.new('127.0.0.1', s.addr[1])\nc.puts 'x' * 1000\nc.read\nt.join",
    "file" => "t = thread { 200.times { File.read(__FILE__) } }\n200.times { File.write('out', 'x') }\nt.join",
    "timeout" => "5.times { begin; Timeout.timeout(0.005) { sleep }; rescue Timeout::Error; end }",
    "wait" => "t = thread { 3.times { system('true') } }\nProcess.wait(spawn('sleep 0.01'))\nt.join",
    "killed" => "q = Thread::Queue.new\nts = 5.times.map { thread { q.pop } }\n" \
                "Thread.pass until ts.all?(&:stop?)\nts.each(&:kill)\nts.each(&:join)",
    "raised" => "t = thread { begin; sleep; rescue => e; e; end }\nThread.pass until t.stop?\nt.raise('x')\nt.join",
    "stop" => "t = thread { 50.times { Thread.stop } }\nuntil t.join(0.0005)\n  t.wakeup rescue nil\nend",
    "pass" => "3.times.map { thread { 300.times { Thread.pass } } }.each(&:join)",
    "fiber_scheduler" => "require #{File.join(Integration::RUBY_SRC, "test/fiber/scheduler").dump}\n" \
                         "r, w = IO.pipe\nt = thread do\n  Fiber.set_scheduler(Scheduler.new)\n" \
                         "  5.times { |i| Fiber.schedule { 10.times { sleep 0.0005 * i; Thread.pass }; r.read(1) } }\nend\n" \
                         "5.times { sleep 0.002; w << 'x' }\nt.join"
  }.freeze

  # Where the reference's own events do not follow the GVL: it is called before a wait that then
  # does not happen, because an interrupt came.
  INTERRUPTED = %w[timeout killed raised stop].freeze

  def reference = Extension.build("gvl_reference", { "gvl_reference.c" => REFERENCE })

  def record(script, *flags, **options)
    result = run_ruby(script, *FLAGS, *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err.lines.grep_v(/\Avm_trace: /)
    result
  end

  # [tid, thread, state, ts, dur, cpu], in the order of time.
  def states(trace)
    trace.query("SELECT t.tid, t.name, s.state, s.ts, s.dur, s.cpu FROM thread_state s JOIN thread t USING (utid) WHERE t.tid <> 0 ORDER BY s.ts")
      .map { |tid, thread, state, ts, dur, cpu| [tid.to_i, thread, state, ts.to_i, dur.to_i, cpu&.to_i] }
  end

  # Whoever holds the GVL of a ractor is alone.
  def assert_one_runs_at_a_time(trace)
    runs = trace.query("SELECT cpu, ts, dur, utid FROM sched WHERE utid IN (SELECT utid FROM thread WHERE tid <> 0) ORDER BY cpu, ts").map { |row| row.map(&:to_i) }
    refute_empty runs
    runs.each_cons(2) do |(cpu, ts, dur, utid), (next_cpu, next_ts, _, next_utid)|
      next if cpu != next_cpu
      assert_operator dur, :>=, 0, "thread #{utid} runs on, and #{next_utid} runs, too"
      assert_operator ts + dur, :<=, next_ts
    end
  end

  # Each state begins where the one before it ends, and nobody runs without having been runnable.
  def assert_lives_are_whole(trace)
    states(trace).group_by(&:first).each_value do |life|
      life.each_cons(2) do |(_, thread, state, ts, dur), (_, _, following, next_ts)|
        assert_equal ts + dur, next_ts, "#{thread}: #{state}, then #{following}"
        assert_includes({ "S" => %w[W], "R" => %w[Running], "W" => %w[Running], "Running" => %w[S R X] }.fetch(state), following, thread)
      end
    end
  end

  def assert_sound(trace)
    assert_one_runs_at_a_time(trace)
    assert_lives_are_whole(trace)
    blocked = trace.in_category("blocked")
    begun = blocked.select { |event| event["ph"] == "B" }
    assert_equal states(trace).count { |state| state[2] == "S" }, begun.size
    assert_empty begun.select { |event| event["name"].empty? || event["name"] == "(no method)" }
  end

  PROGRAMS.each do |name, program|
    define_method("test_#{name}_as_the_public_events_report_it") do
      script = "#{HEAD}GVLReference.start\nRubyVM::Trace.instant('start')\n#{program}\nseen = GVLReference.stop\n" \
               "ids = THREADS.to_h { |t| [GVLReference.address(t), THREADS.index(t)] }\n" \
               "THREADS.each_with_index { |t, i| t.name = \"t\#{i}\" unless i == 0 }\n" \
               "seen.each { |event, thread, ns| puts [event, ids[thread], ns].join(' ') if ids[thread] }\n"
      result = record(script, "-r#{reference}", "--vm-trace=threads,markers")
      assert_sound(result.trace)
      compare_with_reference(result, name)
    end
  end

  # The events of each thread as the trace has them, from its states.
  def events_of(life)
    life.flat_map do |_, _, state, ts, _|
      case state
      when "Running" then [["resumed", ts]]
      when "S", "X" then [["suspended", ts]]
      when "R" then [["suspended", ts], ["ready", ts]]
      when "W" then [["ready", ts]]
      end
    end
  end

  # The trace's clock and the system's, at most, in ns.
  CLOCKS_DIFFER = 20_000

  # Waits for the GVL, in ns.
  def waits(events)
    events.each_cons(2).filter_map do |(event, ns), (following, end_ns)|
      end_ns - ns if event == "ready" && following == "resumed"
    end
  end

  # CRuby reports a thread that goes to sleep as suspended before it looks for interrupts. An interrupt keeps the thread
  # awake without an event; the next event is that the thread is suspended again.
  def with_unreported_runs(events)
    events.each_with_index.flat_map do |(event, ns), i|
      again = event == "suspended" && i > 0 && events[i - 1].first == event
      [*([["ready", ns], ["resumed", ns]] if again), [event, ns]]
    end
  end

  def compare_with_reference(result, name)
    seen = result.out.lines.map(&:split).group_by { |_, thread| thread }
    lives = states(result.trace).group_by(&:first).values.sort_by { |life| life.first[3] }
    compared = 0
    start = result.trace.query("SELECT ts FROM slice WHERE name = 'start'").first.first.to_i
    seen.each do |thread, events|
      from, to = events.map { |event| event.last.to_i }.minmax
      times = with_unreported_runs(events.map { |event, _, ns| [event, ns.to_i] })
      # The thread whose events are the reference's, by the times of its first runs.
      runs = times.filter_map { |event, ns| ns if event == "resumed" }.first(20)
      next if runs.empty?
      life = lives.min_by do |states|
        begun = states.filter_map { |_, _, state, ts, _| ts if state == "Running" }
        begun.empty? ? Float::INFINITY : runs.sum { |ns| begun.map { |ts| (ts - ns).abs }.min }
      end
      # Each public event comes before ours, but for that.
      if INTERRUPTED.include?(name)
        assert_operator events_of(life).count { |_, ns| ns.between?(from, to) }, :<=, times.size
      else
        ours = events_of(life).drop_while { |event, ns| ns < start || event != times.first.first }.first(times.size)
        assert_equal times.map(&:first), ours.map(&:first), "thread #{thread} of #{name}"
        # The two take their times one after the other, so each wait differs, but not all of them by much. In between, a
        # thread may lose its CPU for some milliseconds: in a few of them.
        theirs, own = waits(times).zip(waits(ours)).sort_by { |reference, ns| reference - ns }[0..-4].transpose.map(&:sum)
        assert_operator own, :>=, theirs / 2 if theirs && theirs > 5_000_000
      end
      compared += 1
    end
    assert_operator compared, :>, 0
  end

  # --- who, and on which track ------------------------------------------------------------------

  def wakers(trace)
    trace.query("SELECT t.name, w.name FROM thread_state s JOIN thread t USING (utid) " \
                "LEFT JOIN thread w ON w.utid = s.waker_utid WHERE s.state = 'W' ORDER BY s.ts")
  end

  def test_a_thread_that_is_woken_by_another_says_by_whom
    trace = record(<<~'RUBY').trace
      q, main = Thread::Queue.new, Thread.current
      t = Thread.new { Thread.current.name = "consumer"; 10.times { q.pop }; Thread.pass until main.stop? }
      10.times { Thread.pass until q.empty? && q.num_waiting == 1; q << 1 }
      t.join
    RUBY
    assert_equal({ "main" => 11 }, wakers(trace).filter_map { |woken, waker| waker if woken == "consumer" && waker != woken }.tally) # once when it was made
    assert_equal 1, wakers(trace).count(%w[main consumer]) # join
    assert_equal 1, trace.in_category("blocked").count { |event| event["ph"] == "B" && event["name"] == "Thread#join" }
  end

  # A stack is written where it blocked for a millisecond or more; the method always is.
  def test_the_end_of_a_long_block_has_the_callers
    trace = record("def inner = sleep(0.01)\ndef outer = inner\nouter\nIO.pipe.last.write('x')\n").trace
    begun, ended = trace.in_category("blocked").drop_while { |event| event["name"] != "Kernel#sleep" }
    assert_equal ["Kernel#sleep", { "0" => "Kernel#sleep (script.rb:1)" }], begun.values_at("name", "args")
    assert_equal({ "1" => "Object#inner (script.rb:1)", "2" => "Object#outer (script.rb:2)", "3" => "<main> (script.rb:3)" },
                 ended["args"].transform_values { |label| Integration::OWNERS_IN_BACKTRACES ? label : label.sub(/\A(?=inner|outer)/, "Object#") })
    write = trace.in_category("blocked").find { |event| event["name"] == "IO#write" }
    assert_kind_of Integer, write["args"]["fd"]
  end

  # Its time slice is 100 ms.
  def test_a_preempted_thread_says_where_it_was
    trace = record(<<~'RUBY').trace
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def greedy(stop) = (nil while now < stop)
      go = Thread::Queue.new
      threads = 2.times.map { |i| Thread.new { Thread.current.name = "t#{i}"; go.pop; greedy(now + 0.4) } }
      2.times { go << 1 }
      threads.each(&:join)
    RUBY
    preempted = trace.in_category("preempted")
    assert_operator preempted.size, :>=, 2
    preempted.each do |event|
      assert_match(/\At\d\z/, event["thread"])
      assert_operator event["args"].values.grep(/greedy \(script.rb:2\)/).size, :>=, 1, event.inspect
    end
  end

  def test_ractors_are_cpus_and_their_threads_have_tracks_of_their_own
    skip "untraced, this Ruby hangs here: threads that sleep in ractors" if Integration::BASE < "ruby-4.0"
    trace = record(<<~'RUBY', recorders: 4).trace
      Warning[:experimental] = false
      rs = 3.times.map do |i|
        Ractor.new(i) do |n|
          2.times.map { |k| Thread.new { Thread.current.name = "r#{n} t#{k}"; 20.times { sleep 0.0005 } } }.each(&:join)
        end
      end
      rs.each { |r| r.respond_to?(:value) ? r.value : r.take }
    RUBY
    assert_one_runs_at_a_time(trace)
    assert_lives_are_whole(trace)
    cpus = states(trace).filter_map { |tid, thread, state, _, _, cpu| [thread[/\Ar\d/], cpu, tid] if state == "Running" && thread =~ /\Ar\d t\d/ }
    assert_equal 6, cpus.map(&:last).uniq.size
    assert_empty cpus.select { |_, _, tid| tid < 2**30 }
    assert_equal 3, cpus.map { |name, cpu, _| [name, cpu] }.uniq.size
    refute_includes cpus.map { |row| row[1] }, 0
    assert_equal [0], states(trace).filter_map { |_, thread, state, _, _, cpu| cpu if thread == "main" && state == "Running" }.uniq
  end

  def test_threads_that_share_native_ones
    trace = record(<<~'RUBY', env: SHARED_NATIVE_THREADS).trace
      20.times.map { |i| Thread.new { Thread.current.name = "t#{i}"; r, w = IO.pipe; 5.times { sleep 0.001; w << "x"; r.read(1) } } }.each(&:join)
    RUBY
    assert_sound(trace)
    slept = states(trace).select { |_, thread, state| state == "S" && thread.start_with?("t") }
    assert_equal 20, slept.map(&:first).uniq.size
    assert_operator slept.size, :>=, 20 * 5
  end

  # --- the loader's lock ------------------------------------------------------------------------

  # A library whose constructor ends when the file `go` is there, or after 20 s: then it makes the file `late`.
  SLOW_LIBRARY = <<~'C'
    #include <fcntl.h>
    #include <unistd.h>
    static void make(const char *name) { close(open(name, O_CREAT | O_WRONLY, 0600)); }
    __attribute__((constructor)) static void begin(void)
    {
        make("begun");
        for (int i = 0; access("go", F_OK) != 0; i++) {
            if (i == 20000) make("late");
            if (i == 20000) break;
            usleep(1000);
        }
    }
  C

  # Opens a library on a native thread of its own. Naps without the GVL in a function that has a name.
  OPENER = <<~'C'
    #include <ruby.h>
    #include <ruby/thread.h>
    #include <dlfcn.h>
    #include <pthread.h>
    #include <unistd.h>
    __attribute__((visibility("default"))) void *opener_naps(void *ignored) { usleep(1000); return ignored; }
    static VALUE opener_nap(VALUE self) { rb_thread_call_without_gvl(opener_naps, NULL, NULL, NULL); return Qnil; }
    static void *run(void *path) { return dlopen(path, RTLD_NOW); }
    static VALUE opener_open(VALUE self, VALUE path)
    {
        pthread_t thread;
        return pthread_create(&thread, NULL, run, strdup(StringValueCStr(path))) == 0 ? Qtrue : Qfalse;
    }
    void Init_opener(void)
    {
        rb_define_singleton_method(rb_define_module("Opener"), "open", opener_open, 1);
        rb_define_singleton_method(rb_define_module("Opener"), "nap", opener_nap, 0);
    }
  C

  # A constructor holds the loader's lock. Meanwhile functions are named in which no thread has blocked before.
  def test_threads_go_on_while_a_library_is_opened
    opener = Extension.build("opener", "opener.c" => OPENER)
    slow = Extension.build("slow", "slow.c" => SLOW_LIBRARY)
    result = record(<<~RUBY)
      require #{opener.dump}
      File.write("lock", "")
      Opener.open(#{slow.dump})
      Thread.pass until File.exist?("begun")
      r, w = IO.pipe
      Thread.new { w << "x" }
      IO.select([r], nil, nil, 20)
      r.readpartial(1)
      File.open("lock") { |file| file.flock(File::LOCK_EX) }
      Process.wait(fork { exit! })
      Opener.nap
      File.write("go", "")
      p File.exist?("late")
    RUBY
    assert_equal "false\n", result.out
    assert_includes result.trace.in_category("blocked").map { |event| event["args"]["function"] }, "opener_naps"
  end

  # --- barriers ---------------------------------------------------------------------------------

  # Two ractors that never block while the main one collects.
  BUSY_RACTORS = <<~RUBY
    Warning[:experimental] = false
    ractors = 2.times.map do |i|
      Ractor.new(i) do |n|
        Thread.current.name = "busy \#{n}"
        stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + #{0.4 * Integration::SLOWNESS}
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
      end
    end
  RUBY
  ALL_END = "ractors.each { |r| r.respond_to?(:value) ? r.value : r.take }\n"

  # [from when the other ractors had stopped, to the end of the collection, by whom]
  def stopped_worlds(trace)
    trace.query("SELECT b.ts + b.dur, p.ts + p.dur, tid FROM slice b JOIN slice p ON p.id = b.parent_id " \
                "JOIN thread_track t ON t.id = b.track_id JOIN thread USING (utid) " \
                "WHERE b.category = 'gc' AND b.name = 'barrier' AND p.dur > 0").map { |row| row.map(&:to_i) }
  end

  # In ns, at most.
  def ran_in_a_world_that_another_had_stopped(trace)
    running = states(trace).select { |state| state[2] == "Running" }
    worlds = stopped_worlds(trace)
    assert_operator worlds.size, :>=, 10
    worlds.flat_map do |from, to, by|
      running.map { |tid, _, _, ts, dur| tid == by ? 0 : [to, ts + dur].min - [from, ts].max }
    end.max
  end

  def test_a_thread_that_stops_for_the_barrier_of_another_ractor_is_blocked_in_it
    collects = "texts = Array.new(100_000) { |i| i.to_s }\n20.times { GC.start }\n"
    trace = record(BUSY_RACTORS + collects + ALL_END, "--vm-trace=threads,gc", recorders: 4).trace
    assert_one_runs_at_a_time(trace)
    assert_lives_are_whole(trace)
    assert_operator ran_in_a_world_that_another_had_stopped(trace), :<, CLOCKS_DIFFER
    blocked = trace.in_category("blocked").select { |event| event["name"] == "barrier" && event["ph"] == "B" }
    assert_empty ["busy 0", "busy 1"] - blocked.map { |event| event["thread"] }
    assert_empty blocked.flat_map { |event| event["args"].to_h.keys }
    lives = states(trace).group_by(&:first).values.select { |life| life.first[1].start_with?("busy") }
    waits = lives.flat_map { |life| life.each_cons(2).filter_map { |a, b| b if a[2] == "S" && b[2] == "W" } }
    assert_equal [1], waits.map { |wait| wait[4] }.uniq, "it has the GVL"
    assert_includes wakers(trace).select { |woken,| woken.start_with?("busy") }.map(&:last), "main"
  end

  # It gets the GVL at once, but does not run in a stopped world.
  def test_a_thread_that_is_woken_while_the_world_is_stopped_waits
    skip "a thread that is woken runs in a world that is stopped" if Integration::BASE < "ruby-4.0"
    trace = record(<<~RUBY, "--vm-trace=threads,gc", recorders: 3).trace
      Warning[:experimental] = false
      ractors = 2.times.map { Ractor.new { 120.times { GC.start; i = 0; i += 1 while i < 3000 } } }
      zeros, buffer = File.open("/dev/zero"), String.new
      1500.times { zeros.sysread(1_000_000, buffer) }
      #{ALL_END}
    RUBY
    assert_one_runs_at_a_time(trace)
    assert_lives_are_whole(trace)
    assert_operator ran_in_a_world_that_another_had_stopped(trace), :<, CLOCKS_DIFFER
  end

  # Whoever starts or stops a trace stops the world for it.
  def test_start_and_stop_while_ractors_stop_for_barriers
    result = run_ruby(<<~RUBY, recorders: 4)
      #{BUSY_RACTORS}
      10.times do |i|
        RubyVM::Trace.start(threads: true, gc: true, file: "\#{i}.fxt")
        2.times { GC.start }
        RubyVM::Trace.stop
      end
      #{ALL_END}
    RUBY
    assert_predicate result.status, :success?, result.err
    stopped = result.traces.select { |trace| trace.in_category("blocked").any? { |event| event["name"] == "barrier" } }
    refute_empty stopped
    stopped.each { |trace| assert_one_runs_at_a_time(trace) }
    result.traces.each { |trace| assert_lives_are_whole(trace) }
  end

  # --- the life of a trace -------------------------------------------------------------------------

  def test_a_killed_program_shows_what_its_threads_blocked_in
    result = run_ruby("t = Thread.new { Thread.current.name = 'stuck'; Thread::Queue.new.pop }\nThread.pass until t.stop?\nsleep 0.005\nProcess.kill(:KILL, $$)\nsleep",
                      *FLAGS, ended: false)
    life = states(result.trace).select { |_, thread| thread == "stuck" }
    assert_equal ["S", -1], life.last.values_at(2, 4)
    open = result.trace.in_category("blocked").select { |event| event["thread"] == "stuck" }
    assert_equal [["B", "Thread::Queue#pop"]], open.last(1).map { |event| event.values_at("ph", "name") }
  end

  def test_a_child_traces_the_thread_that_forked
    result = record(<<~'RUBY')
      Thread.new do
        pid = fork do
          sleep 0.002
          main = Thread.current
          Thread.new { Thread.pass until main.stop?; sleep 0.001 }.join
        end
        Process.wait(pid)
      end.join
    RUBY
    assert_equal 2, result.traces.size
    result.traces.each { |trace| assert_sound(trace) }
    child = result.traces.find { |trace| trace.settings["pid"] != result.pid }
    assert_equal %w[Kernel#sleep Thread#join Kernel#sleep].sort, child.in_category("blocked").filter_map { |event| event["name"] if event["ph"] == "B" }.sort
  end

  def test_a_child_that_only_execs_makes_no_file
    result = record("Process.wait(fork { exec('true') })")
    assert_equal 1, result.traces.size
  end

  # Threads that block when a trace starts, and others that run.
  def test_start_and_stop_while_threads_block_and_run
    result = run_ruby(<<~'RUBY')
      q = Thread::Queue.new
      blocked = Thread.new { Thread.current.name = "blocked"; 3.times { q.pop } }
      Thread.pass until blocked.stop?
      runs = 0
      busy = Thread.new { Thread.current.name = "busy"; loop { runs += 1; Thread.pass } }
      2.times do |i|
        RubyVM::Trace.start(threads: true, file: "#{i}.fxt")
        before = runs
        sleep 0.001 until runs > before + 10
        q << 1
        sleep 0.001 until q.empty? && q.num_waiting == 1
        RubyVM::Trace.stop
        sleep 0.002
      end
      q << 1
      blocked.join
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal 2, result.traces.size
    result.traces.each do |trace|
      assert_one_runs_at_a_time(trace)
      assert_lives_are_whole(trace)
      assert_operator states(trace).count { |_, thread, state| thread == "busy" && state == "Running" }, :>, 0
      assert_equal 1, states(trace).count { |_, thread, state| thread == "blocked" && state == "Running" }
    end
  end

  # A wait that lasts over a reset begins with it, and is the same thread's only one.
  def test_a_wait_goes_on_after_a_reset
    result = run_ruby(<<~'RUBY', "--vm-trace=threads:min=0ns", "--vm-trace-memory=4", recorders: 1)
      def now = Process.clock_gettime(Process::CLOCK_BOOTTIME, :nanosecond)
      def stops = Thread.stop
      waiting = Thread.new { stops }.tap { |thread| thread.name = "waiting" }
      Thread.pass until waiting.stop?
      sleep 0.005
      before = now
      RubyVM::Trace.reset
      after = now
      sleep 0.01
      woken = now
      waiting.run
      waiting.join
      RubyVM::Trace.save("saved.fxt")
      puts before, after, woken
    RUBY
    assert_predicate result.status, :success?, result.err
    before, after, woken = result.out.lines.map(&:to_i)
    trace = Trace.new(File.join(result.dir, "saved.fxt"))
    trace.validate
    assert_one_runs_at_a_time(trace)
    begins, ends = trace.events.select { |event| event["cat"] == "blocked" && event["name"] == "Thread.stop" }
    assert_equal %w[B E], [begins, ends].map { |event| event["ph"] }
    assert_includes before..(after + 20_000), begins["ts"] # a reset begins a few us later
    assert_operator ends["ts"], :>=, woken
    assert_match(/\AObject#stops /, ends["args"]["1"])
    assert_equal %w[S W Running], states(trace).filter_map { |_, thread, state| state if thread == "waiting" }.first(3)
  end

  # What is older than the reset is not in it.
  def test_a_flight_recorder_keeps_the_states_since_the_reset
    result = run_ruby(<<~'RUBY', "--vm-trace=threads", "--vm-trace-memory=4", recorders: 2)
      10.times { sleep 0.0005 }
      RubyVM::Trace.reset
      5.times { sleep 0.001 }
      RubyVM::Trace.save("saved.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = Trace.new(File.join(result.dir, "saved.fxt"))
    assert_one_runs_at_a_time(trace)
    assert_equal 5, states(trace).count { |_, thread, state| thread == "main" && state == "S" }
  end

  def test_a_limited_file_keeps_the_newest_states
    result = record("200.times { 2000.times { Thread.pass }; sleep 0 }\nThread.new { 20_000.times { Thread.pass } }.join", "--vm-trace-max-size=4")
    assert_one_runs_at_a_time(result.trace)
  end
end
