# System calls: each one is recorded, on the track of what made it. The reference is strace, which watches the same run.
#
# Once: the kernel's events are the same for each JIT and base.
require_relative "perf"

class TestSyscalls < Integration::Test
  include Perf

  # In strace's output: "PID name(arguments) = result", in two lines where others come in between.
  class Strace
    Call = Struct.new(:name, :result)
    OUTPUT = "strace.txt"
    COMMAND = ["strace", "-f", "-o", OUTPUT].freeze

    # Calls by thread id.
    def initialize(dir)
      @calls = Hash.new { |calls, tid| calls[tid] = [] }
      File.foreach(File.join(dir, OUTPUT)) do |line|
        tid, text = line.scrub.split(" ", 2)
        if (name = text[/\A(\w+)\(/, 1]) then @calls[tid.to_i] << Call.new(name, result(text))
        elsif text.start_with?("<... ") then @calls[tid.to_i].last.result = result(text)
        end
      end
    end

    def [](tid) = @calls[tid]

    private

    # A number, or an errno; strace prints numbers that are addresses or masks in hexadecimal.
    def result(text)
      value = text[/\) += (.*)/, 1] or return
      value[/\A-1 (E\w+)/, 1] || Integer(value[/\A-?(0x)?\h+/] || "?", exception: false)
    end
  end

  def results(events) = events.map { |event| event["args"].values_at("errno", "result").compact.first }

  # The longest part of `all`, from some place on, that `part` begins with. It must be all of `part`.
  def assert_part(all, part, message)
    from = (0..all.size).find { |i| all[i, part.size] == part }
    return from if from
    i = (0..all.size).max_by { |start| part.zip(all[start..]).take_while { |a, b| a == b }.size }
    same = part.zip(all[i..]).take_while { |a, b| a == b }.size
    flunk "#{message}: after #{same} of #{part.size} the trace has #{part[same, 4]}, strace #{all[i + same, 4]}"
  end

  PROGRAM = <<~'RUBY'
    $natives = []
    worker = Thread.new do
      $natives << Thread.current.native_thread_id
      Thread.current.name = "worker"
      5.times { File.read("/proc/self/stat"); sleep 0.001 }
    end
    10.times { File.exist?("/nonexistent"); File.stat("/") }
    fiber = Fiber.new { 5.times { File.stat("/tmp"); Fiber.yield } }
    5.times { fiber.resume }
    r, w = IO.pipe
    w << "x" * 100
    r.readpartial(10)
    Process.wait(fork { 3.times { File.stat("/etc") } })
    worker.join
    3.times.map { Thread.new { $natives << Thread.current.native_thread_id; File.stat("/usr") } }.each(&:join)
    sleep 0.001 while $natives.any? { |tid| File.exist?("/proc/self/task/#{tid}") } # the native threads end, too
    STDOUT.syswrite("done\n")
  RUBY
  ATTEMPTS = 10

  # On a busy machine the kernel now and then loses records, and says so: then once more.
  def recorded_without_loss
    ATTEMPTS.times do |i|
      result = record(PROGRAM, "syscalls", before: Strace::COMMAND)
      return result if i == ATTEMPTS - 1 || result.traces.all? { |trace| trace.summary["lost"] == 0 }
    end
  end

  def test_names_order_and_results_are_those_of_strace
    skip_without_strace
    result = recorded_without_loss
    assert_equal "done\n", result.out
    strace = Strace.new(result.dir)
    assert_equal 2, result.traces.size
    result.traces.each do |trace|
      assert_equal 0, trace.summary["lost"]
      by_native = trace.in_category("syscall").group_by do |event|
        event["tid"] >= 3 << 29 ? trace.settings["pid"] : event["tid"]
      end
      by_native.each do |tid, events|
        events = events.sort_by { |event| event["ts"] }
        all = strace[tid]
        from = assert_part(all.map(&:name), names(events), "thread #{tid}")
        all[from, events.size].zip(results(events)).each_with_index do |(call, found), i|
          next if call.result.nil? || found.nil? # it never returned, or the trace ended before
          assert_equal call.result, found, "result of #{call.name}, the #{i}th of thread #{tid}"
        end
        # All threads but the main one begin and end while the trace is on.
        next if tid == trace.settings["pid"] || events.none? { |event| event["thread"].match?(/worker|Thread/) }
        assert_equal all.size, events.size, "thread #{tid}"
      end
    end
    trace = result.traces.max_by { |found| found.in_category("syscall").size }
    assert_operator trace.in_category("syscall").size, :>, 100
    assert_equal trace.in_category("syscall").size, trace.summary["syscalls"]
  end

  def test_arguments_have_their_names_and_values
    trace = record(<<~'RUBY', "syscalls").trace
      file = File.open("file", "w", 0o640)
      file.syswrite("12345")
      file.close
      File.stat("missing") rescue 0
      STDOUT.syswrite("#{file.inspect}")
    RUBY
    main = named(trace, "syscall", "main")
    opened = main.find { |event| event["name"] == "openat" && event["args"]["mode"] == 0o640 }
    assert_equal(-100, opened["args"]["dfd"]) # AT_FDCWD
    written = main[main.index(opened)..].find { |event| event["name"] == "write" }
    assert_equal [opened["args"]["result"], 5, 5], written["args"].values_at("fd", "count", "result")
    assert_match(/\A0x\h+\z/, written["args"]["buf"])
    assert_includes main.map { |event| event["args"]["errno"] }, "ENOENT"
    ended = trace.in_category("syscall").select { |event| event["args"].key?("ended") }
    ended.each { |event| assert_includes ["after the trace", "never"], event["args"]["ended"] }
  end

  # Each lies inside the call of the method that made it, as CRuby's own code has it.
  def test_calls_of_the_system_lie_inside_the_calls_that_made_them
    trace = record(<<~'RUBY', "syscalls,calls").trace
      def look = File.exist?("/nonexistent")
      def ask = Process.getpgid(0)
      fiber = Fiber.new { 50.times { look; Fiber.yield } }
      200.times { look; ask }
      50.times { fiber.resume; ask }
      Thread.new { 50.times { look } }.join
    RUBY
    rows = trace.query(<<~SQL)
      SELECT s.name, p.name, count(*) FROM slice s JOIN slice p ON s.parent_id = p.id
      WHERE s.category = 'syscall' AND s.name IN ('getpgid') OR s.name LIKE '%stat%' AND p.name = 'File.exist?'
      GROUP BY 1, 2
    SQL
    assert_includes rows, ["getpgid", "Process.getpgid", "250"]
    assert_equal 300, rows.select { |_, caller, _| caller == "File.exist?" }.sum { |row| row[2].to_i }
    overlaps = trace.query(<<~SQL)
      SELECT s.name, p.name FROM slice s JOIN slice p ON s.parent_id = p.id
      WHERE s.category = 'syscall' AND p.category = 'call' AND s.ts + s.dur > p.ts + p.dur
    SQL
    assert_empty overlaps
    fibers = trace.in_category("syscall").select { |event| event["thread"] == "main fiber 1" }
    assert_equal 50, fibers.count { |event| event["args"]["errno"] == "ENOENT" }
  end

  # It and the calls around it are open at the cut, and begin with the next piece.
  def test_a_system_call_over_a_cut_stays_inside_the_calls_that_made_it
    script = <<~'RUBY'
      def nap = sleep
      def outer = nap
      main = Thread.current
      Thread.new do
        Thread.pass until main.stop?
        sleep 0.001 until File.read("/proc/#{Process.pid}/stat").match?(/\) S /)
        RubyVM::Trace.save
        sleep 0.4
        main.wakeup
      end
      outer
    RUBY
    result = record(script, nil, "--vm-trace=calls,syscalls", "--vm-trace-spool=spool", "--vm-trace-spool-every=1h")
    _, second = Dir[File.join(result.dir, "spool/*.fxt")].sort.map { |path| Trace.new(path).tap(&:validate) }
    sql = <<~SQL
      SELECT a.name FROM slice s, ancestor_slice(s.id) a WHERE s.id =
        (SELECT s.id FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid)
         WHERE s.category = 'syscall' AND t.name = 'main' AND dur > 300000000) ORDER BY a.depth
    SQL
    around = second.query(sql).flatten.map { |name| name[/\A\S+/] }
    assert_equal %w[<main> Object#outer Object#nap Kernel#sleep], around.last(4)
  end

  def test_ractors_and_200_threads
    trace = record(<<~'RUBY', "syscalls", "-W0").trace
      threads = 200.times.map { |i| Thread.new { Thread.current.name = "t#{i}"; 2.times { Process.getpgid(0) } } }
      threads.each(&:join)
      ractors = 4.times.map { Ractor.new { 3.times { Process.getpgid(0) } } }
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    calls = trace.in_category("syscall").select { |event| event["name"] == "getpgid" }
    assert_equal 0, trace.summary["lost"]
    by_name = calls.group_by { |event| event["thread"] }.transform_values(&:size)
    assert_equal 412, calls.size
    200.times { |i| assert_equal 2, by_name["t#{i}"], "t#{i}" }
    assert_equal 4, by_name.count { |name, n| name.start_with?("Ractor #") && n == 3 }
  end

  def test_start_and_stop_at_run_time
    result = record(<<~'RUBY', nil)
      T = RubyVM::Trace
      go, gone = Queue.new, Queue.new
      sleeping = Thread.new { Thread.current.name = "sleeping"; go.pop; Process.getpgid(0); gone << 1; sleep }
      asleep = -> { File.read("/proc/self/task/#{sleeping.native_thread_id}/stat").match?(/\) S /) }
      3.times { Process.getpgid(0) }
      2.times do |i|
        T.start(syscalls: true, file: "#{i}.fxt")
        4.times { Process.getpgid(0) }
        if i == 0
          go << 1
          gone.pop
        end
        sleep 0.001 until sleeping.stop? && asleep.()
        status = T.stop
        puts status[:syscalls].positive?, status[:lost]
        3.times { Process.getpgid(0) }
      end
    RUBY
    assert_equal %w[true 0] * 2, result.out.split
    first, second = result.traces
    assert_equal 4, names(named(first, "syscall", "main")).count("getpgid")
    assert_equal 1, names(named(first, "syscall", "sleeping")).count("getpgid")
    assert_equal 4, names(named(second, "syscall", "main")).count("getpgid")
    assert_equal ["futex"], names(trace_open(first, "sleeping"))
  end

  # Those that had begun when the recording ended.
  def trace_open(trace, thread)
    named(trace, "syscall", thread).select { |event| event["args"]["ended"] == "after the trace" }
  end

  def test_flight_recorder_saves_what_has_just_happened
    result = record(<<~'RUBY', nil)
      T = RubyVM::Trace
      T.start(syscalls: true, memory: 16)
      10.times { Process.getpgid(0) }
      T.save("saved.fxt")
      T.reset
      sleep 0.001
      5.times { Process.getpgid(0) }
      T.save("later.fxt")
      T.stop
    RUBY
    later, saved = result.traces.sort_by(&:path)
    assert_equal 10, saved.in_category("syscall").count { |event| event["name"] == "getpgid" }
    assert_equal 5, later.in_category("syscall").count { |event| event["name"] == "getpgid" }
  end

  # What the third one has done is in its file before it dies.
  def test_children_that_fork_exec_or_die
    result = record(<<~'RUBY', "syscalls", args: [Trace::TOOL], ended: false)
      pids = [fork { 2.times { Process.getpgid(0) } }, fork { Process.getpgid(0); exec "true" },
              fork { Process.getpgid(0); sleep }]
      killed = pids.last
      sleep 0.01 until File.exist?("#{killed}.fxt") && `#{ARGV[0]} dump #{killed}.fxt 2>/dev/null`.include?('"getpgid"')
      Process.kill(:KILL, killed)
      pids.each { |pid| Process.wait(pid) }
      system("true") or abort
      puts pids
    RUBY
    counts = result.out.split.map do |pid|
      trace = result.traces.find { |found| found.settings["pid"] == pid.to_i }
      trace.in_category("syscall").count { |event| event["name"] == "getpgid" }
    end
    assert_equal [2, 1, 1], counts
    assert_equal 4, result.traces.size
  end

  # The reader of the kernel's records sleeps most of the time.
  def test_exec_writes_what_is_pending
    5.times do
      trace = record('200.times { Process.getpgid(0) }; exec "true"', "syscalls", ended: false).trace
      assert_equal 200, trace.in_category("syscall").count { |event| event["name"] == "getpgid" }
    end
  end

  def test_shorter_ones_are_left_out_and_counted
    trace = record("100.times { Process.getpgid(0) }; sleep 0.02", "syscalls:min=10ms").trace
    assert_operator trace.summary["syscalls_left_out"], :>, 100
    assert_includes names(trace.in_category("syscall")), "futex"
    trace.in_category("syscall").each { |event| assert_operator event["dur"], :>=, 10_000_000 }
  end

  def test_program_has_the_same_descriptors_signals_and_limits
    script = <<~'RUBY'
      puts Dir.children("/proc/self/fd").size, Process.getrlimit(:NOFILE).inspect
      puts File.read("/proc/self/status")[/^Sig(Blk|Ign|Cgt).*/m].lines.first(3)
      trap(:URG) { puts "urgent" }
      Process.kill(:URG, Process.pid)
      sleep 0.01
    RUBY
    traced, other = %w[syscalls,sched markers].map { |streams| record(script, streams).out }
    assert_equal other, traced
    assert_includes traced, "urgent"
  end

  def test_records_that_the_kernel_lost_are_reported
    result = record(<<~'RUBY', "syscalls", before: ["taskset", "-c", "0"], ended: false)
      reader = Dir.children("/proc/self/task").find { |tid| File.read("/proc/self/task/#{tid}/comm") == "vm_trace\n" }
      system("renice", "19", "-p", reader, out: File::NULL)
      system("chrt", "--idle", "-p", "0", reader, out: File::NULL)
      burner = fork { loop { } }
      40_000.times { Process.getpgid(0) }
      Process.kill(:KILL, burner)
      system("chrt", "--other", "-p", "0", reader, out: File::NULL) # the end waits for it
      system("renice", "0", "-p", reader, out: File::NULL)
    RUBY
    trace = result.traces.max_by { |found| found.in_category("syscall").size }
    found = trace.in_category("syscall").count { |event| event["name"] == "getpgid" }
    lost = trace.summary["lost"]
    skip "the reader was fast enough" if lost.zero?
    assert_operator found + lost, :>=, 40_000
    assert_includes result.err, "the kernel's buffers were full"
  end

  # The kernel gives the times of its own clocks.
  def test_in_a_time_namespace
    trace = record('RubyVM::Trace.instant("begin"); sleep 0.02; RubyVM::Trace.instant("end")', "markers,syscalls,sched",
                   before: %w[unshare --time --boottime=100000 --monotonic=-5000 --fork]).trace
    from, to = trace.in_category("marker").map { |event| event["ts"] }
    assert_operator from, :>, 100_000e9
    within = trace.in_category("syscall").select { |call| from < call["ts"] && call["ts"] + call["dur"].to_f < to }
    assert_equal 1, within.count { |call| call["dur"] >= 20e6 }
    on_cpu = trace.in_category("sched").select { |event| event["name"].start_with?("CPU") }
    assert_equal [true], on_cpu.map { |event| (event["ts"] - from).abs < 1e9 }.uniq
  end
end

class TestSyscallsRefused < Integration::Test
  include Perf

  def test_user_without_the_privilege_is_told_which_and_runs_on
    skip "kernel.perf_event_paranoid is below 2" if File.read("/proc/sys/kernel/perf_event_paranoid").to_i < 2
    dir = scratch_dir
    File.chmod(0o777, dir)
    File.write(File.join(dir, "script.rb"), "RubyVM::Trace.instant('x'); puts :done")
    result = run_in(dir, "--vm-trace=syscalls,markers", "--vm-trace-file=%p.fxt", "script.rb",
                    command: [*WITH_TRACEFS, *NOBODY, Integration::RUBY, "--disable=gems"])
    assert_predicate result.status, :success?, result.err
    assert_equal "done\n", result.out
    remedy = "as root, sysctl kernel.perf_event_paranoid=1, or give Ruby CAP_PERFMON"
    assert_match(/no syscalls are traced: kernel.perf_event_paranoid is \d; #{remedy}$/, result.err)
    assert_equal 1, validate_all(result).trace.in_category("marker").size
  end

  def test_start_raises_with_the_reason
    skip "kernel.perf_event_paranoid is below 2" if File.read("/proc/sys/kernel/perf_event_paranoid").to_i < 2
    dir = scratch_dir
    File.chmod(0o777, dir)
    File.write(File.join(dir, "script.rb"), <<~RUBY)
      begin
        RubyVM::Trace.start(syscalls: true)
      rescue RubyVM::Trace::Error => e
        puts e.message
      end
    RUBY
    result = run_in(dir, "script.rb", command: [*NOBODY, Integration::RUBY, "--disable=gems"])
    assert_match(/\Akernel.perf_event_paranoid is/, result.out)
  end
end
