# What the integration tests share: running a script under the patched Ruby in a temporary folder,
# its trace checked.
#
# The environment says what to test: BASE the patched Ruby, JIT one of its JITs (see jit.rb),
# VM_TRACE the tool.
require "minitest/autorun"
require "fileutils"
require "tmpdir"
require_relative "../waiting"
require_relative "jit"
require_relative "trace"

module Integration
  include Waiting

  BUILD = File.join(ROOT, "build", BASE)

  RUBY = File.join(BUILD, "ruby")
  RUBY_SRC = File.join(BUILD, "src")
  RUBY_OBJ = File.join(BUILD, "obj")
  # Threads share native ones. A program that ends so crashes now and then in CRuby itself: while
  # the main thread exits, a native thread switches to a stack that is gone (an unpatched 4.0.5 with
  # 200 threads: 5 of 500 runs; the patched one: 7 of 500). Such a run is repeated, at most twice.
  SHARED_NATIVE_THREADS = { "RUBY_MN_THREADS" => "1" }.freeze
  ATTEMPTS_WITH_SHARED_NATIVE_THREADS = 3
  # On an emulated processor (make check-arm64).
  EMULATED = !ENV["EMULATED"].to_s.empty?
  # The tracer has nothing but POSIX (make check-posix), and refuses what that is too little for.
  POSIX = ENV["PLATFORM"] == "posix"
  REFUSED_BY_POSIX = /^(?!vm_trace: the trace has no ).*(?:samples need Linux|perf_event_open, which Linux has)/
  # A run that takes longer hangs, even on a slow and busy machine.
  TIME_LIMIT = PATIENCE_SECONDS
  # How many times as long a program takes there, at least.
  SLOWNESS = EMULATED ? 10 : 1
  # What lies beyond so many standard errors happens once in a billion times.
  STANDARD_ERRORS = 6.2
  # `make check-all`: the same tests, with more of everything.
  LONG = !ENV["LONG"].to_s.empty?
  # A file system in memory: there no busy disk makes a trace lose events. It is used as long as so much memory
  # stays free for others.
  MEMORY = "/dev/shm"
  MEMORY_TO_LEAVE_MIB = 2048
  ASK_AGAIN_SECONDS = 5
  # What the files of a test take, if it does not say otherwise.
  USUAL_MIB = 256
  # Nothing from the user's environment or from bundler.
  ENVIRONMENT = %w[RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE RUBY_VM_TRACE RUBY_VM_TRACE_CONTROL]
                .to_h { |name| [name, nil] }
    .merge("LC_ALL" => "C.UTF-8").freeze

  # What the tracer says of a system with a slow clock.
  SLOW_CLOCK = "the system does not use the processor's time-stamp counter:"

  class StillRunning < StandardError; end

  # `traces` holds the validated trace of each process that wrote one.
  Run = Struct.new(:status, :out, :err, :traces, :dir, :pid, keyword_init: true) do
    # The only trace, or that of the process that was started.
    def trace
      return traces.first if traces.size == 1
      traces.find { |trace| trace.settings["pid"] == pid } or raise "no trace of #{pid} in #{dir}: #{Dir.children(dir)}"
    end

    # Lines on stderr that neither the tracer wrote, as it always does, nor a system with a slow clock, or without the
    # kernel's streams of a preset.
    def own_err
      err.lines.grep_v(/\A[YZ]JIT: (tracing to|wrote|#{SLOW_CLOCK}) /)
         .grep_v(/\Avm_trace: the trace has no (?:syscalls|sched#{"|samples" if POSIX}): /).join
    end

    # The main thread can end the process well while another one prints that it crashed.
    def crashed? = status.signaled? || err.include?("[BUG]")
    def tracer_lines = err.lines.grep(/\A[YZ]JIT: /)
  end

  def setup
    super
    @dirs = []
  end

  def teardown
    @dirs.each { |dir| FileUtils.rm_rf(dir) }
    super
  end

  # Run `script` untraced unless `flags` say otherwise. Each trace left in the folder is validated.
  #   ended, recorders: see Trace#validate
  #   files: { name => text } to put beside the script
  def run_ruby(script, *flags, args: [], env: {}, files: {}, name: "script.rb", time_limit: TIME_LIMIT, ended: true, recorders: 1)
    attempts = env >= SHARED_NATIVE_THREADS ? ATTEMPTS_WITH_SHARED_NATIVE_THREADS : 1
    begin
      dir = scratch_dir
      files.merge(name => script).each { |file, text| File.binwrite(File.join(dir, file), jit(text)) }
      result = run_in(dir, *flags, name, *args, env: env, time_limit: time_limit)
    end while result.crashed? && (attempts -= 1) > 0
    validate_all(result, ended: ended, recorders: recorders)
  end

  # The same, traced: each process writes <folder>/<pid>.fxt. `flags` come after the usual ones, and
  # win.
  def run_traced(script, *flags, **options)
    run_ruby(script, "--zjit-call-threshold=2", "--zjit-trace-exits", "--zjit-trace-file=%p.fxt", *flags, **options)
  end

  # The program has no trace flag, succeeds and prints nothing on stderr. Returns its run.
  def run_untraced(script, *flags, **options)
    result = run_ruby(script, "--zjit-call-threshold=2", *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err
    result
  end

  # The trace of that name that a run has left.
  def file(result, name) = result.traces.find { |trace| File.basename(trace.path) == name } || flunk("no #{name}")

  # As run_traced; the program must succeed and print nothing on stderr. Returns its run.
  def trace(script, *flags, **options)
    result = run_traced(script, *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.own_err
    result
  end

  # The same for everything that a program can do in a few lines, while each allocation collects. A
  # collection in the middle of writing an event would leave the file invalid.
  def trace_under_stress(*flags)
    result = run_traced(<<~RUBY, "--zjit-trace-compiles", "--zjit-trace-invalidation", *flags)
      T = RubyVM::Trace
      def foo(n) = (::RubyVM::ZJIT.induce_side_exit!; T.instant("n", n: n, text: n.to_s))
      4.times { |i| foo(i) }
      GC.stress = true
      30.times { |i| T.span("span \#{i}", i: i.to_s) { foo(i) } }
      Thread.new { Thread.current.name = "other"; foo(1); eval("def bar\#{1} = foo(2); bar1; bar1; bar1") }.join
      GC.stress = false
    RUBY
    assert_predicate result.status, :success?, result.err
    result
  end

  # `command`: runs instead of the patched Ruby.
  def run_in(dir, *arguments, env: {}, time_limit: TIME_LIMIT, command: [RUBY, "--disable=gems", *COMPATIBILITY])
    out, err = %w[.out .err].map { |name| File.join(dir, name) }
    arguments = arguments.map { |argument| jit(argument) }
    env = env.transform_values { |value| value && jit(value) }
    pid = Process.spawn(ENVIRONMENT.merge(env), *command, *arguments,
                        in: File::NULL, out: out, err: err, chdir: dir, pgroup: true)
    status = wait(pid, time_limit)
    refusal = read(err)[REFUSED_BY_POSIX] if POSIX
    skip refusal if refusal
    Run.new(status: status, out: read(out), err: read(err), traces: [], dir: dir, pid: pid)
  end

  # What the tracer calls a disk: POSIX does not tell where a file is.
  def full_disk(mount) = POSIX ? "the disk" : mount

  def skip_without_strace
    skip "strace is not installed" unless system("strace", "-V", out: File::NULL, err: File::NULL)
  end

  # Runs what follows until it has taken so much processor time, which is the same on a busy machine.
  def cpu_limit(seconds) = ["sh", "-c", "ulimit -t #{seconds}; exec \"$@\"", "sh"]
  def out_of_cpu?(status) = [Signal.list["XCPU"], Signal.list["KILL"]].include?(status.termsig)

  # Ends the whole process group of a program that does not end by itself.
  def wait(pid, time_limit)
    waiter = Process.detach(pid)
    return waiter.value if waiter.join(time_limit)
    threads = threads_of_group(pid)
    Process.kill(:KILL, -pid)
    waiter.join
    raise StillRunning, "still running after #{time_limit} s:\n#{threads.join("\n")}"
  end

  # What hangs: a line for each thread of a process group.
  def threads_of_group(pgid)
    Dir["/proc/[0-9]*/task/*"].filter_map do |task|
      state, _, group, *rest = File.read("#{task}/stat").rpartition(")").last.split
      next unless group.to_i == pgid
      user, system = rest.values_at(8, 9)
      "#{task.delete_prefix("/proc/")} #{File.read("#{task}/comm").chomp} #{state}, ticks #{user} + #{system}, " \
        "wchan #{File.read("#{task}/wchan")}, system call #{File.read("#{task}/syscall").chomp}"
    rescue SystemCallError
      nil # it has ended, or is not ours
    end
  end

  def validate_all(result, ended: true, recorders: 1)
    result.traces = Dir[File.join(result.dir, "*.fxt*")].sort.map do |path|
      validated(Trace.new(path), ended: ended, recorders: recorders)
    end
    result
  end

  def validated(trace, **options)
    trace.validate(**options)
  rescue Trace::Invalid => e
    flunk e.message
  end

  # In memory, if there is enough for files of `mib` MiB.
  def scratch_dir(mib: USUAL_MIB) = temporary_dir(Integration.memory?(mib) ? MEMORY : nil)

  # For a test of what only a disk does, or whose files are too large for memory.
  def scratch_dir_on_disk = temporary_dir(nil)

  def temporary_dir(parent) = Dir.mktmpdir("vm-trace-test-", parent).tap { |dir| @dirs << dir }

  # Tests run programs and load libraries from their folders, so it must not be mounted noexec, as Docker does it.
  def self.memory?(mib)
    @usable = File.writable?(MEMORY) && programs_may_run_in?(MEMORY) if @usable.nil?
    return false unless @usable
    # To ask takes a process: once in a while is enough.
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    @free_mib, @asked = free_mib, now if @asked.nil? || now > @asked + ASK_AGAIN_SECONDS
    @free_mib >= MEMORY_TO_LEAVE_MIB + mib
  end

  def self.programs_may_run_in?(folder)
    mounts = File.readlines("/proc/self/mounts").map(&:split).select { |_, mounted| mounted == folder }
    mounts.any? && !mounts.last[3].split(",").include?("noexec")
  end

  # The file system may be larger than the memory that is there, or that a container may have.
  def self.free_mib
    room_kib = IO.popen(["df", "-Pk", MEMORY], &:read).lines.last.split[3].to_i
    available_kib = File.read("/proc/meminfo")[/^MemAvailable: +(\d+)/, 1].to_i
    limit, used = %w[max current].map { |name| Integer(File.read("/sys/fs/cgroup/memory.#{name}"), exception: false) }
    [room_kib, available_kib, *((limit - used) / 1024 if limit)].min / 1024
  rescue Errno::ENOENT # no limits here
    [room_kib, available_kib].min / 1024
  end

  def read(path) = File.read(path, encoding: "UTF-8").scrub

  class Test < Minitest::Test
    include Integration
    make_my_diffs_pretty!

    def self.zjit_only(name) = (remove_method name unless JIT == "zjit")
    def self.yjit_only(name) = (remove_method name unless JIT == "yjit")
    # Removes a test where the JIT lacks a feature (jit.rb).
    def self.with(feature, name) = (remove_method name unless Integration.can?(feature))
  end
end
