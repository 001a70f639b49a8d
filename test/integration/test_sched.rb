# The kernel's scheduler: which CPU each thread has, and when it waits for one. The reference is the kernel's own count
# of both (/proc/PID/task/TID/schedstat).
#
# Once: the kernel's events are the same for each JIT and base.
require_relative "perf"

class TestSched < Integration::Test
  include Perf

  # A program that runs in bursts of some ms between two markers, and prints what the kernel counted there.
  BURSTS = <<~'RUBY'
    # The kernel brings its count of a thread that runs up to date at a tick, at a switch, and where someone reads the
    # thread's clock.
    def count
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      File.read("/proc/thread-self/schedstat").split.map(&:to_i)
    end
    # A marker, and the counts of that moment: no switch comes between.
    def mark(name)
      loop do
        counts = count
        RubyVM::Trace.instant(name)
        return counts if count[2] == counts[2]
      end
    end
    others = ARGV[0] == "beside" ? 3.times.map { fork { loop { } } } : []
    sleep 0.05
    from = mark("from")
    30.times { 200_000.times { }; sleep 0.002 }
    to = mark("to")
    Process.kill(:KILL, *others) if others.any?
    puts to.zip(from).map { |a, b| a - b }, others
  RUBY

  def bursts(*args, before: [])
    result = record(BURSTS, "sched,markers", args: args, before: before, ended: false)
    trace = result.traces.find { |found| found.in_category("marker").any? }
    from, to = %w[from to].map { |name| trace.in_category("marker").select { |event| event["name"] == name }.last["ts"] }
    slices = named(trace, "sched", "main CPU").filter_map do |event|
      ns = [event["ts"] + event["dur"], to].min - [event["ts"], from].max
      event.merge("ns" => ns) if ns.positive?
    end
    [slices, result.out.split.map(&:to_i)]
  end

  # Before all programs of the usual class, if the test may: each switch costs some us that the two clocks count
  # differently, and on a machine with much to do there are hundreds.
  BEFORE_OTHERS = %w[chrt -f 1].then { |words| system(*words, "true", err: File::NULL) ? words : [] }

  # The kernel's count of a thread leaves out what the hypervisor or an interrupt takes while it runs or waits; its
  # switches do not show that. Then bursts run again, some times.
  def undisturbed_bursts(*args, **options)
    5.times.lazy.map { bursts(*args, **options) }.find do |slices, (run, waited, switches)|
      [[run, on_cpus(slices)], [run + waited, slices]].all? do |counted, found|
        (counted - sum(found)).abs <= tolerance(1, counted, switches)
      end
    end || bursts(*args, **options)
  end

  def on_cpus(slices) = slices.select { |slice| slice["name"].start_with?("CPU ") }
  def sum(slices) = slices.sum { |slice| slice["ns"] }

  # The kernel's clock of a runqueue does not advance while the CPU wakes up, so some us of a switch
  # may count as either.
  CLOCK_NS = 30_000

  def tolerance(percent, expected, switches) = expected * percent / 100.0 + switches * CLOCK_NS

  def assert_within(percent, expected, found, switches, what)
    assert_in_delta expected, found, tolerance(percent, expected, switches),
                    "#{what}: #{expected} by the kernel, #{found} here, #{switches} switches"
  end

  def test_time_on_cpus_is_what_the_kernel_counted
    slices, (run, _, switches) = undisturbed_bursts(before: BEFORE_OTHERS)
    on = on_cpus(slices)
    assert_within 1, run, sum(on), switches, "running"
    assert_in_delta switches, on.size, 2
    on.each { |slice| assert_equal "CPU #{slice["args"]["cpu"]}", slice["name"] }
  end

  def test_time_that_a_thread_waits_for_a_cpu
    on_one_cpu = { before: ["taskset", "-c", "0"] }
    slices, (run, waited, switches, *burners) = undisturbed_bursts("beside", **on_one_cpu)
    on = on_cpus(slices)
    waits = slices - on
    assert_within 1, run + waited, sum(slices), switches, "running and waiting"
    assert_within 1, run, sum(on), switches, "running"
    assert_operator waited, :>, run / 4
    refute_empty preempted_by(waits)
    # Other programs may take the CPU, too, and sometimes only they do.
    named = 5.times.any? do
      found = (preempted_by(waits) & burners).any?
      waits, (_, _, _, *burners) = bursts("beside", **on_one_cpu) unless found
      found
    end
    assert named, "no burner is ever named"
  end

  # Who took the CPU from a thread that could have run on.
  def preempted_by(slices)
    preempted = slices.select { |slice| slice["args"]["why"] == "preempted" }
    preempted.map { |slice| slice["args"]["other"]&.[](/ (\d+)\z/, 1).to_i }
  end

  def test_slices_of_a_thread_do_not_overlap
    trace = record(<<~'RUBY', "sched", "-W0").trace
      threads = 20.times.map { Thread.new { 10.times { 1000.times { }; sleep 0.001 } } }
      Ractor.new { 10.times { sleep 0.001 } }.then { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      threads.each(&:join)
    RUBY
    tracks = by_thread(trace, "sched")
    assert_operator tracks.size, :>=, 21
    tracks.each_value do |slices|
      slices.each_cons(2) { |a, b| assert_operator a["ts"] + a["dur"], :<=, b["ts"] }
    end
  end

  def test_without_privileges_preemptions_are_known
    skip "kernel.perf_event_paranoid is above 2" if File.read("/proc/sys/kernel/perf_event_paranoid").to_i > 2
    dir = scratch_dir
    File.chmod(0o777, dir)
    File.write(File.join(dir, "script.rb"), BURSTS)
    result = run_in(dir, "--vm-trace=sched,markers", "--vm-trace-file=%p.fxt", "script.rb", "beside",
                    command: ["taskset", "-c", "0", *NOBODY, Integration::RUBY, "--disable=gems"])
    assert_predicate result.status, :success?, result.err
    trace = validate_all(result, ended: false).traces.find { |found| found.in_category("marker").any? }
    slices = named(trace, "sched", "main CPU")
    waits = slices.reject { |slice| slice["name"].start_with?("CPU ") }
    assert_operator slices.size, :>, 30
    refute_empty waits
    waits.each { |slice| assert_equal %w[cpu why], slice["args"].keys }
  end

  # The limit of descriptors is the process's, and its children inherit it.
  def test_the_limit_of_descriptors_is_not_touched
    skip_without_strace
    strace = ["sh", "-c", "ulimit -Sn 256; exec strace -f -q -e trace=prlimit64,setrlimit -o limits \"$@\"", "sh"]
    result = record("puts 1", "sched", before: strace)
    assert_equal "1\n", result.out
    assert_empty result.err.lines.grep(/sched/)
    assert_empty File.readlines(File.join(result.dir, "limits")).grep(/RLIMIT_NOFILE, \{/)
  end

  def test_what_cannot_start_is_named
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), "puts 1")
    few = ["sh", "-c", "ulimit -n 6; exec \"$@\"", "sh", RUBY, "--disable=gems"]
    skip "this Ruby needs more descriptors to run at all" unless run_in(dir, "script.rb", command: few).out == "1\n"
    run = run_in(dir, "--vm-trace=sched", "--vm-trace-file=%p.fxt", "script.rb", command: few)
    assert_equal "1\n", run.out
    # It depends on the descriptors that this Ruby has open whether a check before the start notices, or the start.
    assert_match(/(?:no sched are traced|can't trace sched): Too many open files; (?:raise|running untraced)/, run.err)
    assert_empty Dir[File.join(dir, "*.fxt")]

    [["--vm-trace=sched,syscalls,gc", %w[gc]],
     [jit("--zjit-trace-exits"), "--vm-trace=sched,gc", %w[exits gc]]].each do |*flags, streams|
      flags << "--vm-trace-file=#{flags.size}.fxt"
      run = run_in(dir, *flags, "-e", "GC.start; puts 1", command: few)
      assert_equal "1\n", run.out
      assert_match(/no sched are traced: Too many open files/, run.err)
      trace = Trace.new(File.join(dir, "#{flags.size - 1}.fxt"))
      assert_equal streams, trace.settings["flags"].split & %w[exits gc sched syscalls]
      assert_operator trace.summary["gc_collections"], :>, 0
    end
  end
end
