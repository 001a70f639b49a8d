# However a process begins and ends, its trace is its own and can be read.
require_relative "helper"

class TestProcesses < Integration::Test
  FOO = "def foo = (::RubyVM::ZJIT.induce_side_exit!)\n3.times { foo }\n"

  def pids(result) = result.traces.map { |trace| trace.settings["pid"] }

  def test_a_forked_child_writes_its_own_file_and_the_parents_stays_whole
    result = trace(FOO + <<~'RUBY')
      10.times { foo }
      pid = fork do
        20.times { foo }
      end
      Process.wait(pid)
      30.times { foo }
      puts pid
    RUBY
    child_pid = result.out.to_i
    assert_equal [result.pid, child_pid].sort, pids(result).sort
    child = result.traces.find { |trace| trace.settings["pid"] == child_pid }
    assert_equal [20, [child_pid]], [child.exits("DirectiveInduced").size, child.events.map { |event| event["tid"] }.uniq]
    exits = result.trace.exits("DirectiveInduced")
    assert_equal [result.pid], exits.map { |event| event["pid"] }.uniq
    assert_equal 30, exits.last(30).size
    assert_equal 4, result.tracer_lines.size, "each process says where it traces to and what it wrote"
  end

  def test_a_forked_child_without_a_percent_p_adds_its_pid
    result = trace(FOO + "pid = fork { 20.times { foo } }\nProcess.wait(pid)\nputs pid\n", "--zjit-trace-file=one.fxt")
    assert_equal ["one.fxt", "one.fxt.#{result.out.chomp}"], result.traces.map { |trace| File.basename(trace.path) }
  end

  def test_a_child_that_exits_nowhere_leaves_no_file
    result = trace(FOO + "Process.wait(fork { Process.exit!(0) })\n")
    assert_equal [result.pid], pids(result)
  end

  def test_children_of_children_each_have_a_file
    result = trace(FOO + <<~'RUBY')
      Process.wait(fork do
        5.times { foo }
        Process.wait(fork do
          6.times { foo }
          Process.wait(fork { 7.times { foo } })
        end)
      end)
    RUBY
    counts = result.traces.reject { |trace| trace.settings["pid"] == result.pid }.map { |trace| trace.exits("DirectiveInduced").size }
    assert_equal [5, 6, 7], counts.sort
  end

  def test_many_children_at_once_each_have_a_whole_file
    result = trace(FOO + "16.times { |n| fork { (100 + n).times { foo } } }\nProcess.waitall\n")
    counts = result.traces.reject { |trace| trace.settings["pid"] == result.pid }.map { |trace| trace.exits("DirectiveInduced").size }
    assert_equal (100...116).to_a, counts.sort
  end

  def test_children_of_a_program_with_busy_threads_are_traced
    result = trace(FOO + <<~'RUBY')
      stop = false
      threads = 3.times.map { Thread.new { (foo; sleep 0.0001) until stop } }
      10.times { Process.wait(fork { 20.times { foo } }) }
      stop = true
      threads.each(&:join)
    RUBY
    children = result.traces.reject { |trace| trace.settings["pid"] == result.pid }
    assert_equal [20], children.map { |trace| trace.exits("DirectiveInduced").size }.uniq
    assert_equal 10, children.size
  end

  def test_a_sampled_child_begins_to_count_anew
    result = trace(FOO + "7.times { foo }\nProcess.wait(fork { 25.times { foo } })\n", "--zjit-trace-exits-sample-rate=10")
    child = result.traces.find { |trace| trace.settings["pid"] != result.pid }
    assert_equal [25, 2], child.summary.values_at("exits", "sampled")
  end

  def test_a_daemon_writes_its_own_file
    result = run_traced(FOO + <<~'RUBY')
      5.times { foo }
      r, w = IO.pipe
      if fork
        w.close
        r.read
      else
        r.close
        Process.daemon(true, true)
        9.times { foo }
        # Its pipe closes when it is gone.
      end
    RUBY
    daemon = result.traces.find { |trace| trace.exits("DirectiveInduced").size == 9 }
    assert daemon, "#{result.traces.map { |trace| trace.exits.size }} #{result.err}"
  end

  def test_exec_leaves_a_trace_that_can_be_read
    result = run_traced(FOO + "10.times { foo }\nexec('echo', 'other')\n", ended: false)
    assert_equal "other\n", result.out
    assert_operator result.trace.exits("DirectiveInduced").size, :>=, 10
  end

  def test_a_failed_exec_goes_on_tracing
    result = trace(FOO + "begin\n  exec('/nonexistent')\nrescue SystemCallError\n  7.times { foo }\nend\n")
    assert_operator result.trace.exits("DirectiveInduced").size, :>=, 7
  end

  def test_system_and_backticks_leave_the_trace_alone
    result = trace(FOO + "system('true')\n`echo`\nProcess.wait(spawn('true'))\n8.times { foo }\n")
    assert_equal [result.pid], pids(result)
  end

  def test_an_inherited_descriptor_is_not_the_traces
    result = trace(FOO + "puts `ls -l /proc/self/fd`\n")
    refute_match(/\.fxt/, result.out)
  end

  def test_exit_bang_leaves_a_trace_that_can_be_read
    result = run_traced(FOO + "10.times { foo }\nexit!(3)\n", ended: false)
    assert_equal 3, result.status.exitstatus
    assert_operator result.trace.exits("DirectiveInduced").size, :>=, 10
  end

  {
    exit: ["exit(4)", 4], abort: ["abort('sorry')", 1], an_uncaught_exception: ["raise 'oops'", 1],
    an_exception_in_at_exit: ["at_exit { raise 'late' }", 1], a_throw: ["throw :nothing", 1],
    system_exit_in_a_thread: ["Thread.new { exit(5) }.join", 5], an_interrupt_of_itself: ["Process.kill(:INT, $$); sleep", nil],
    sigterm: ["Process.kill(:TERM, $$); sleep", nil],
  }.each do |name, (ending, status)|
    define_method("test_#{name}_ends_the_trace_in_good_order") do
      result = run_traced(FOO + "10.times { foo }\nat_exit { 5.times { foo } }\n#{ending}\n")
      status ? assert_equal(status, result.status.exitstatus) : assert_predicate(result.status, :signaled?)
      assert_operator result.trace.exits("DirectiveInduced").size, :>=, 15
      assert_equal 2, result.tracer_lines.size, result.err
    end
  end

  def test_the_program_ends_with_the_status_it_has_untraced
    ["exit 42", "exit!(43)", "abort", "raise 'x'", "Process.kill(:TERM, $$); sleep", "Process.kill(:KILL, $$); sleep"].each do |ending|
      traced, untraced = [run_traced(ending, ended: false), run_ruby(ending, "--zjit-call-threshold=2")].map { |run| run.status }
      assert_equal [untraced.exitstatus, untraced.termsig], [traced.exitstatus, traced.termsig], ending
    end
  end

  # At whatever instruction it dies, what was written loads.
  def test_sigkill_in_the_middle_loses_nothing_that_was_written
    6.times do |round|
      dir = scratch_dir
      File.write(File.join(dir, "script.rb"), jit(FOO) + <<~'RUBY')
        n = 0
        loop do
          foo
          n += 1
          $stdout.syswrite("#{n}\n") if n % 10 == 0
          sleep 0.001 if n % 1000 == 0
        end
      RUBY
      out = File.join(dir, "out")
      flags = %w[--zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-compiles --zjit-trace-file=t.fxt].map { |flag| jit(flag) }
      pid = Process.spawn(Integration::ENVIRONMENT, Integration::RUBY, "--disable=gems", *flags, "script.rb", chdir: dir, out: out, err: File::NULL)
      sleep 0.01 until File.size?(out) && File.size(out) > 1500 * round
      Process.kill(:KILL, pid)
      Process.wait(pid)
      trace = validated(Trace.new(File.join(dir, "t.fxt")), ended: false)
      told = File.read(out).lines(chomp: true).last.to_i
      # What it told on its standard output was in the trace before.
      assert_operator trace.exits("DirectiveInduced").size, :>=, told
    end
  end

  def test_sigsegv_leaves_a_trace_that_can_be_read
    result = run_traced(FOO + "10.times { foo }\nProcess.kill(:SEGV, $$)\nsleep\n", ended: false)
    refute_predicate result.status, :success?
    assert_operator result.trace.exits("DirectiveInduced").size, :>=, 10
  end
end
