# However a program dies, its file loads and holds every event up to the last one; and the program
# dies as it does untraced.
#
# Once: the file is the module's.
require_relative "helper"

class TestSuddenDeath < Integration::Test
  parallelize_me! # each test waits for processes of its own

  KILLS = Integration::LONG ? 200 : 30
  # Half of the kills come within this time after the start, the others after at most so many exits.
  WITHIN_S = 0.15
  WITHIN_EXITS = 200_000
  # Before each exit the program writes its number into a shared mapping, which survives it: the
  # number of exits that had begun when it died.
  COUNTING = <<~'RUBY'
    Warning[:experimental] = false
    counter = IO::Buffer.map(File.open("counter", "r+"), 8)
    def foo(x) = x + 1
    60.times { foo(1) }
    BIG = 2**62 - 1
    n = 0
    while true
      n += 1
      counter.set_value(:u64, 0, n)
      foo(BIG)
      eval("def bar#{n % 50}(x) = x.to_s\n3.times { bar#{n % 50}(1) }") if n % 1000 == 0
    end
  RUBY

  def counter_in(dir) = File.binread(File.join(dir, "counter")).unpack1("Q")

  # Kills it after so many exits and `delay` seconds. Returns how many had begun then.
  def kill_after(exits, delay, dir)
    File.write(File.join(dir, "script.rb"), jit(COUNTING))
    File.binwrite(File.join(dir, "counter"), [0].pack("Q"))
    flags = %w[--zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-compiles --zjit-trace-file=t.fxt].map { |flag| jit(flag) }
    pid = Process.spawn(Integration::ENVIRONMENT, Integration::RUBY, "--disable=gems", *flags, "script.rb",
                        chdir: dir, in: File::NULL, out: File::NULL, err: File::NULL)
    wait_until("#{exits} exits", every: 0.0005) { counter_in(dir) >= exits }
    sleep delay
    Process.kill(:KILL, pid)
    Process.wait(pid)
    counter_in(dir)
  end

  # Counted by the tool, because the traces are large.
  def recorded(file)
    sql = "SELECT COUNT(*) FROM slice WHERE name = '#{jit("FixnumAddOverflow")}'"
    out, err, status = Open3.capture3(Trace::TOOL, "query", file, sql)
    assert_predicate status, :success?, err
    out.lines.last.to_i
  end

  def test_sigkill_at_any_instant_leaves_a_file_that_holds_every_exit_up_to_the_last
    seed = Integer(ENV["KILL_SEED"] || Random.new_seed % 2**32)
    random = Random.new(seed)
    puts "  KILL_SEED=#{seed}"
    dir = scratch_dir
    file = File.join(dir, "t.fxt")
    lengths = KILLS.times.map do |n|
      # At least one is killed long after it began to record, the others at random.
      exits = n == 1 ? WITHIN_EXITS / 2 : n.odd? ? random.rand(1..WITHIN_EXITS) : 0
      delay = random.rand * (exits > 0 ? 0.001 : WITHIN_S)
      begun = kill_after(exits, delay, dir)
      which = "kill #{n} of seed #{seed}, after #{exits} exits and #{delay} s, #{begun} exits begun"
      # Killed before the file was written, or even made.
      next assert_equal(0, begun, which) if !File.exist?(file) || File.empty?(file)
      out, err, status = Open3.capture3(Trace::TOOL, "check", file)
      assert_predicate status, :success?, "#{which}: #{err}"
      assert_match(/: ok: /, out)
      assert_includes [begun, begun - 1], recorded(file), which if begun > 0
      begun
    ensure
      FileUtils.rm_f(file)
    end
    assert_operator lengths.grep(Integer).max, :>=, WITHIN_EXITS / 2, "it was never killed while it recorded"
  end

  WARM = "def foo(x) = x + 1\n30.times { foo(1) }\ndef exits(n) = n.times { foo(4_611_686_018_427_387_903) }\nexits(1000)\n"
  DEATHS = {
    exit_bang: "exit!(3)",
    kill_of_itself: "Process.kill(:KILL, $$)\nsleep",
    sigterm: "Process.kill(:TERM, $$)\nsleep",
    sighup_in_a_thread: "Thread.new { Process.kill(:HUP, $$) }\nsleep",
    sigquit: "Process.kill(:QUIT, $$)\nsleep",
    uncaught_exception: "def deep(n) = n == 0 ? raise(ArgumentError, 'oops') : deep(n - 1)\ndeep(20)",
    exception_with_a_cause: "begin\n  raise 'one'\nrescue\n  raise IOError, 'two'\nend",
    abort_in_at_exit: "at_exit { exits(100)\nabort 'at the end' }\nexit 0",
    exit_in_at_exit: "at_exit { exit 7 }\nraise 'first'",
    thread_killed_while_it_exits: "t = Thread.new { loop { exits(10)\nsleep 0.0001 } }\nsleep 0.05\nt.kill\nt.join\np t.status",
    exception_raised_in_a_thread_while_it_exits: "t = Thread.new { t = Thread.current\nt.report_on_exception = false\nloop { exits(10)\nsleep 0.0001 } }\nsleep 0.05\nt.raise('x')\n" \
                                                 "begin\n  t.join\nrescue => e\n  p e.message\nend",
    main_thread_killed: "Thread.new { exits(100)\nThread.main.kill }\nsleep",
    exit_while_threads_exit: "4.times { Thread.new { loop { exits(10)\nsleep 0.0001 } } }\nsleep 0.05\nexit 4",
    stack_overflow: "def down(n) = down(n + 1) + foo(1)\ndown(0)",
    stack_overflow_caught: "def down(n)\n  foo(4_611_686_018_427_387_903)\n  down(n + 1)\nend\nbegin\n  down(0)\nrescue SystemStackError => e\n  p e.class\nend",
    no_memory_error: "begin\n  'x' * (1 << 60)\nrescue NoMemoryError, ArgumentError => e\n  p e.class\nend\nexits(100)",
    throw_without_catch: "throw :nowhere",
    exec_of_nothing: "exec '/nonexistent/program'",
  }.freeze

  # After a normal end it must also have a summary.
  ABRUPT = %i[exit_bang kill_of_itself].freeze

  DEATHS.each do |name, ending|
    define_method("test_#{name}_ends_as_untraced_and_leaves_a_valid_trace") do
      untraced = run_ruby(WARM + ending, "--zjit-call-threshold=2")
      traced = run_traced(WARM + ending, ended: !ABRUPT.include?(name))
      outcome = ->(run) { [run.status.exitstatus, run.status.termsig, run.out, run.own_err] }
      assert_equal outcome.(untraced), outcome.(traced)
      assert_operator traced.trace.exits("FixnumAddOverflow").size, :>=, 1000
    end
  end

  # Addresses, times and maps of a crash report differ. Its first line, its parts and the Ruby
  # backtraces stay.
  def report(err)
    lines = err.lines(chomp: true)
    told = lines.grep(/\A-- |\[BUG\]|\A\[NOTE\]|\A\[IMPORTANT\]|script\.rb:\d+:in /).map { |line| line.gsub(/0x\h+/, "0x").sub(/ at 0x/, "") }
    told.reject { |line| line.start_with?("ruby ") }
  end

  # Each takes seconds, because Ruby looks up the lines of its C functions.
  REPORTED = Integration::LONG ? { segv: 11, abrt: 6, bus: 7, ill: 4 } : { segv: 11 }

  REPORTED.each do |signal, number|
    define_method("test_sig#{signal}_ends_with_rubys_own_report_and_leaves_a_valid_trace") do
      ending = "def crash = Process.kill(:#{signal.upcase}, $$)\ndef outer = crash\nouter\nsleep 5"
      untraced = run_ruby(WARM + ending, "--zjit-call-threshold=2")
      traced = run_traced(WARM + ending, ended: false)
      assert_equal [untraced.status.termsig, untraced.out], [traced.status.termsig, traced.out]
      assert_includes [6, number], traced.status.termsig
      assert_equal report(untraced.err), report(traced.own_err), traced.err
      assert_operator report(traced.err).size, :>, 5, traced.err if signal == :segv
      assert_equal 1, traced.tracer_lines.size, "it says where it traces to, and nothing more"
      assert_operator traced.trace.exits("FixnumAddOverflow").size, :>=, 1000
    end
  end

  # Memory runs out: Ruby raises NoMemoryError or dies, the tracer does neither itself.
  def test_out_of_memory_ends_as_untraced_and_leaves_a_valid_trace
    skip "an emulator reserves more addresses than any limit" if Integration::EMULATED
    ending = "kept = []\nbegin\n  loop { exits(10)\n  kept << 'x' * 20_000_000 }\nrescue NoMemoryError => e\n  kept = nil\n  p e.class\nend\nexits(100)\nputs 'end'\n"
    untraced, traced = [%w[--zjit-call-threshold=2], %w[--zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-file=t.fxt]].map do |flags|
      dir = scratch_dir
      File.write(File.join(dir, "script.rb"), WARM + ending)
      # Address space: ZJIT reserves much of it and uses little.
      run_in(dir, *flags, "script.rb", command: ["prlimit", "--as=#{1 << 30}", Integration::RUBY, "--disable=gems"])
    end
    skip "no program that sets limits (prlimit)" if untraced.status.exitstatus == 127
    assert_equal [0, "NoMemoryError\nend\n"], [untraced.status.exitstatus, untraced.out], untraced.err
    assert_equal [0, "NoMemoryError\nend\n"], [traced.status.exitstatus, traced.out], traced.err
    validate_all(traced)
    assert_operator traced.trace.exits("FixnumAddOverflow").size, :>=, 1100
  end
end
