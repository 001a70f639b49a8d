# However a process begins and ends, its trace is its own and can be read.
#
# Once for each base: fork and exec are the base's.
require_relative "helper"
require_relative "extension"

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
        w.autoclose = false # the pipe closes when the process is no more, and its trace has ended
        Process.daemon(true, true)
        9.times { foo }
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

  # --- extensions that fork by themselves ---

  DIRECT = <<~'C'
    #include <ruby.h>
    #include <spawn.h>
    #include <sys/wait.h>
    #include <unistd.h>
    extern char **environ;
    static char *const echo[] = { "echo", "other", NULL };
    static VALUE direct_fork(VALUE self) { return INT2NUM(fork()); }
    static VALUE direct_vfork(VALUE self) {
      pid_t pid = vfork();
      if (pid == 0) { execve("/bin/echo", echo, environ); _exit(1); }
      return INT2NUM(pid);
    }
    static VALUE direct_spawn(VALUE self) {
      pid_t pid;
      return posix_spawn(&pid, "/bin/echo", NULL, NULL, echo, environ) == 0 ? INT2NUM(pid) : Qnil;
    }
    static VALUE direct_fork_and_exec(VALUE self) {
      pid_t pid = fork();
      if (pid == 0) { execve("/bin/echo", echo, environ); _exit(1); }
      return INT2NUM(pid);
    }
    void Init_direct(void) {
      VALUE module = rb_define_module("Direct");
      rb_define_singleton_method(module, "fork", direct_fork, 0);
      rb_define_singleton_method(module, "vfork", direct_vfork, 0);
      rb_define_singleton_method(module, "spawn", direct_spawn, 0);
      rb_define_singleton_method(module, "fork_and_exec", direct_fork_and_exec, 0);
    }
  C

  # The child continues in Ruby, like one of Ruby's own fork.
  def test_a_child_that_an_extension_forks_writes_its_own_file
    result = trace(FOO + <<~'RUBY', "-r#{Extension.build("direct", "direct.c" => DIRECT)}")
      10.times { foo }
      $stdout.sync = true
      pid = Direct.fork
      if pid == 0
        20.times { foo }
        pid = Direct.fork
        if pid == 0
          7.times { foo }
          exit
        end
        Process.wait(pid)
        3.times { foo }
        exit
      end
      5_000.times { foo }
      Process.wait(pid)
      raise unless $?.success?
      Process.wait(fork { 11.times { foo } })
    RUBY
    own, children = result.traces.partition { |trace| trace.settings["pid"] == result.pid }
    assert_equal [[5012], [7, 11, 23]], [own, children].map { |traces| traces.map { |trace| trace.exits("DirectiveInduced").size }.sort }
    result.traces.each do |trace|
      assert_equal [[trace.settings["pid"]] * 2], trace.events.map { |event| event.values_at("pid", "tid") }.uniq
    end
  end

  def test_a_recorder_in_a_child_that_an_extension_forks_is_its_own
    result = run_ruby(FOO + <<~'RUBY', "--zjit-call-threshold=2", "--zjit-trace-exits", "--zjit-trace-memory=4", "-r#{Extension.build("direct", "direct.c" => DIRECT)}")
      10.times { foo }
      pid = Direct.fork
      if pid == 0
        20.times { foo }
        RubyVM::Trace.save("child.fxt")
        exit
      end
      Process.wait(pid)
      5.times { foo }
      RubyVM::Trace.save("own.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal({ "child.fxt" => 20, "own.fxt" => 17 }, result.traces.to_h { |trace| [File.basename(trace.path), trace.exits("DirectiveInduced").size] })
  end

  def test_programs_that_an_extension_starts_leave_the_trace_alone
    result = trace(FOO + <<~'RUBY', "-r#{Extension.build("direct", "direct.c" => DIRECT)}")
      $stdout.sync = true
      50.times do
        %i[vfork spawn fork_and_exec].each do |start|
          foo
          Process.wait(Direct.send(start))
          raise unless $?.success?
        end
      end
    RUBY
    assert_equal ["other\n"] * 150, result.out.lines
    assert_equal [result.pid], pids(result)
    assert_equal 152, result.trace.exits("DirectiveInduced").size
  end

  # --- processes that have the same flags, and so the same path, from RUBYOPT ---

  INHERITED = "--disable=gems --zjit-call-threshold=2 --zjit-trace-exits"

  # Runs `script` with inner.rb beside it, which exits 20 times, as do its own children down to the
  # depth in its argument.
  def inherited(script, path: "t.fxt", **options)
    inner = FOO + <<~'RUBY'
      20.times { foo }
      depth = ARGV[0].to_i
      system(ENV["RUBY"], "inner.rb", (depth - 1).to_s, exception: true) if depth > 0
      30.times { foo }
    RUBY
    result = run_ruby(script, files: { "inner.rb" => inner },
                      env: { "RUBYOPT" => "#{INHERITED}#{" --zjit-trace-file=#{path}" if path}", "RUBY" => Integration::RUBY }, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  # [the parent's, all others'] exits. The parent's file is complete and in its place.
  def exits_of_parent_and_others(result)
    own, others = result.traces.partition { |trace| trace.settings["pid"] == result.pid }
    assert_equal ["t.fxt"], own.map { |trace| File.basename(trace.path) }
    others.each { |trace| assert_equal "t.fxt.#{trace.settings["pid"]}", File.basename(trace.path) }
    assert_equal others.size, result.err.scan(/^#{jit("ZJIT")}: \S+\/t\.fxt is kept: another process is writing it; the trace goes to \S+\/t\.fxt\.\d+$/).size, result.err
    [own, others].map { |traces| traces.map { |trace| trace.exits("DirectiveInduced").size } }
  end

  RUN_INNER = {
    system: "system(ENV['RUBY'], 'inner.rb')", backticks: "`\#{ENV['RUBY']} inner.rb`", spawn: "Process.wait(spawn(ENV['RUBY'], 'inner.rb'))",
    popen: "IO.popen([ENV['RUBY'], 'inner.rb']).read", fork_and_exec: "Process.wait(fork { exec(ENV['RUBY'], 'inner.rb') })",
    kept_descriptors: "Process.wait(spawn(ENV['RUBY'], 'inner.rb', close_others: false))"
  }.freeze

  RUN_INNER.each do |name, run|
    define_method("test_a_ruby_started_by_#{name}_leaves_the_parents_file_alone") do
      result = inherited(FOO + "10.times { foo }\n#{run}\n7.times { foo }\n#{run}\n")
      assert_equal [[19], [52, 52]], exits_of_parent_and_others(result)
    end
  end

  def test_rubies_nested_three_deep_each_have_a_file
    result = inherited(FOO + "system(ENV['RUBY'], 'inner.rb', '2')\n10.times { foo }\n")
    assert_equal [[12], [52] * 3], exits_of_parent_and_others(result)
  end

  def test_many_rubies_at_once_each_have_a_file
    result = inherited(FOO + "8.times { spawn(ENV['RUBY'], 'inner.rb') }\nProcess.waitall\n")
    assert_equal [[2], [52] * 8], exits_of_parent_and_others(result)
  end

  # The parent ends first, and its file stays: the daemon has its own file by then.
  def test_a_ruby_that_a_daemon_starts_leaves_the_daemons_file_alone
    result = inherited(FOO + <<~'RUBY', ended: false)
      r, w = IO.pipe
      if fork
        w.close
        r.read
      else
        r.close
        Process.daemon(true, true)
        9.times { foo }
        system(ENV["RUBY"], "inner.rb")
        9.times { foo }
      end
    RUBY
    assert_equal [2, 18, 52], result.traces.map { |trace| trace.exits("DirectiveInduced").size }.sort
  end

  # The file from before exec is neither written any more nor stale.
  def test_exec_into_a_ruby_with_the_same_flags_keeps_what_was_written
    result = inherited(FOO + "10.times { foo }\nexec(ENV['RUBY'], 'inner.rb')\n", ended: false)
    assert_equal({ "t.fxt" => 12, "t.fxt.#{result.pid}" => 52 },
                 result.traces.to_h { |trace| [File.basename(trace.path), trace.exits("DirectiveInduced").size] })
    assert_match(/t\.fxt is kept: this process wrote it before exec; the trace goes to \S+t\.fxt\.#{result.pid}$/, result.err)
  end

  def test_exec_again_and_again_keeps_all_traces
    again = FOO + "20.times { foo }\nn = ARGV[0].to_i\nexec(ENV['RUBY'], 'script.rb', (n + 1).to_s) if n < 3\n"
    result = inherited(again, ended: false)
    assert_equal ["", ".#{result.pid}", ".#{result.pid}.2", ".#{result.pid}.3"], result.traces.map { |trace| trace.path[/\.fxt(.*)/, 1] }.sort
    assert_equal [22] * 4, result.traces.map { |trace| trace.exits("DirectiveInduced").size }
  end

  def test_exec_keeps_the_file_at_the_default_path
    result = inherited(FOO + "10.times { foo }\nexec(ENV['RUBY'], 'inner.rb')\n", path: nil)
    files = ["", ".#{result.pid}"].map { |suffix| "/tmp/perfetto-#{result.pid}.fxt#{suffix}" }
    assert_equal [12, 52], files.map { |file| Trace.new(file).validate(ended: false).exits("DirectiveInduced").size }
  ensure
    FileUtils.rm_f(files) if files
  end

  def test_the_file_of_a_writer_that_was_killed_is_replaced
    killed = "def foo = (::RubyVM::ZJIT.induce_side_exit!)\n50.times { foo }\nProcess.kill(:KILL, $$)\n"
    result = run_ruby(<<~'RUBY', files: { "killed.rb" => killed, "next.rb" => FOO + "10.times { foo }\n" }, env: { "RUBY" => Integration::RUBY })
      flags = %w[--zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-file=t.fxt]
      system(ENV["RUBY"], *flags, "killed.rb")
      puts File.stat("t.fxt").size
      system(ENV["RUBY"], *flags, "next.rb")
    RUBY
    assert_operator result.out.to_i, :>, 0
    assert_equal ["t.fxt"], result.traces.map { |trace| File.basename(trace.path) }
    assert_equal 12, result.trace.exits("DirectiveInduced").size
    refute_match(/is kept/, result.err)
  end

  # Each container has its own pid 1, and both have the same /tmp.
  def test_two_containers_with_one_folder_each_have_a_file
    skip "only root can make a pid namespace" unless Process.uid.zero? && system("unshare", "--pid", "--fork", "true", err: File::NULL)
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), jit(FOO + <<~'RUBY'))
      puts $$
      $stdout.flush
      $stdin.read
      10.times { foo }
    RUBY
    flags = [*INHERITED.split, "--zjit-trace-file=perfetto-%p.fxt"].map { |flag| jit(flag) }
    runs = 2.times.map do
      io = IO.popen([Integration::ENVIRONMENT, "unshare", "--pid", "--fork", "--", Integration::RUBY, *flags, "script.rb",
                     { chdir: dir, err: File.join(dir, ".err") }], "r+")
      assert_equal "1\n", io.gets # it writes by now
      io
    end
    runs.each do |io|
      io.close_write
      io.read
      io.close
    end
    files = Dir[File.join(dir, "*.fxt*")].sort
    assert_equal %w[perfetto-1.fxt perfetto-1.fxt.1], files.map { |file| File.basename(file) }
    assert_equal [12, 12], files.map { |file| validated(Trace.new(file)).exits("DirectiveInduced").size }
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

  # Each process exits in a method with its number, so that an event in a wrong file, or in two,
  # would show.
  NUMBERED = <<~'RUBY'
    BIG = 2**62 - 1
    def own(number) = (eval("def exit_#{number}(x) = x + 1\n40.times { exit_#{number}(1) }"); number)
    def exits(number, times) = times.times { __send__("exit_#{number}", BIG) }
  RUBY

  # {number => exits} of all files of the run; each file has only its own pid.
  def numbered(result)
    result.traces.each_with_object(Hash.new(0)) do |trace, sums|
      trace.exits("FixnumAddOverflow").each { |event| sums[event["args"]["0"][/\AObject#exit_(\d+) /, 1].to_i] += 1 }
      assert_equal [trace.settings["pid"]], trace.events.map { |event| event["pid"] }.uniq
    end
  end

  def test_forks_of_forks_ten_deep_have_each_event_once
    result = trace(NUMBERED + <<~'RUBY')
      11.times { |n| own(n) }
      def descend(n)
        exits(n, 100 + n)
        if n < 10
          Process.wait(fork { descend(n + 1) })
          exits(n, 10)
        end
      end
      descend(0)
    RUBY
    assert_equal 11, result.traces.size
    assert_equal 11.times.to_h { |n| [n, 100 + n + (n < 10 ? 10 : 0)] }, numbered(result)
  end

  def test_forks_in_a_loop_while_the_parent_exits_have_each_event_once
    result = trace(NUMBERED + <<~'RUBY')
      41.times { |n| own(n) }
      exits(0, 50)
      (1..40).each do |n|
        fork { exits(n, n) }
        exits(0, 20)
        Process.wait if n > 4
      end
      Process.waitall
    RUBY
    assert_equal 41, result.traces.size
    assert_equal (1..40).to_h { |n| [n, n] }.merge(0 => 50 + 20 * 40), numbered(result)
  end

  # The child has one thread, and not the one that traced first.
  def test_forks_from_threads_have_each_event_once_on_the_childs_only_thread
    result = trace(NUMBERED + <<~'RUBY')
      9.times { |n| own(n) }
      busy = Thread.new { loop { exits(0, 1); sleep 0.0001 } }
      threads = (1..8).map { |n| Thread.new { exits(n, 30); Process.wait(fork { exits(n, 200) }); exits(n, 3) } }
      threads.each(&:join)
      busy.kill.join
    RUBY
    assert_equal 9, result.traces.size
    counts = numbered(result)
    assert_equal (1..8).to_h { |n| [n, 233] }, counts.except(0)
    children = result.traces.reject { |trace| trace.settings["pid"] == result.pid }
    children.each { |child| assert_equal [child.settings["pid"]], child.events.map { |event| event["tid"] }.uniq }
  end

  # Streams that need threads begin a child's trace before CRuby knows the id of the child's thread.
  def test_a_childs_first_events_are_on_its_own_thread
    result = trace("3.times { Process.wait(fork { sleep 0.02 }) }", "--vm-trace=threads,samples:1ms")
    assert_equal 4, result.traces.size
    result.traces.each { |trace| assert_equal [trace.settings["pid"]], trace.events.map { |event| event["tid"] }.uniq }
  end

  def test_a_fork_from_a_fiber_or_a_trap_is_like_any_other
    result = trace(NUMBERED + <<~'RUBY')
      3.times { |n| own(n) }
      Fiber.new { exits(0, 5); Process.wait(fork { exits(1, 50) }); exits(0, 5) }.resume
      trap(:USR1) { Process.wait(fork { exits(2, 60) }) }
      Process.kill(:USR1, $$)
      Process.waitall
      exits(0, 5)
    RUBY
    assert_equal({ 0 => 15, 1 => 50, 2 => 60 }, numbered(result))
  end

  # Even if the program keeps descriptors open.
  def test_no_started_program_inherits_the_trace
    result = run_traced(NUMBERED + <<~'RUBY', ended: false)
      own(0)
      exits(0, 10)
      list = "readlink /proc/self/fd/*; true"
      $stdout.sync = true
      system(list, close_others: false)
      Process.wait(spawn(list, close_others: false))
      IO.popen([{}, "sh", "-c", list, close_others: false]) { |io| puts io.read }
      # This one writes a file of its own first.
      Process.wait(fork { exits(0, 10); exec("sh", "-c", list, close_others: false) })
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_operator result.out.lines.size, :>=, 12
    refute_includes result.out, ".fxt"
    assert_equal({ 0 => 20 }, numbered(result))
  end

  # Workers end in three ways, one dies at once; a new one takes its place.
  SERVER = <<~'RUBY'
    require "socket"
    own(0)
    (1..9).each { |n| own(n) }
    told, ready = IO.pipe
    server = TCPServer.new("127.0.0.1", 0)
    port = server.addr[1]
    work = lambda do |n|
      trap(:TERM) { exit }
      trap(:USR1) { exits(n, 7); ready.syswrite("x") }
      ready.syswrite("x")
      loop do
        client = server.accept
        times = client.gets.to_i
        exits(n, times)
        client.puts "#{n} #{$$} #{times}"
        client.close
      end
    end
    workers = (1..8).to_h { |n| [fork { work.(n) }, n] }
    told.read(8)
    served = Hash.new(0)
    request = lambda do |times|
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.puts times
        n, _, done = socket.gets.split.map(&:to_i)
        served[n] += done
      end
    end
    200.times { |i| request.(10 + i % 5); exits(0, 1) }
    victim = workers.keys.first
    Process.kill(:KILL, victim)
    Process.wait(victim)
    workers.delete(victim)
    workers[fork { work.(9) }] = 9
    told.read(1)
    # Each waits in accept: its handler runs there.
    workers.each_key { |pid| Process.kill(:USR1, pid) }
    told.read(workers.size)
    100.times { |i| request.(10) }
    workers.each_key.with_index { |pid, i| Process.kill(%i[TERM INT QUIT TERM HUP TERM][i % 6], pid) }
    Process.waitall
    exits(0, 5)
    puts victim, served.map { |pair| pair.join("=") }.join(" ")
  RUBY

  # By $0 and by setproctitle, which differ in what Ruby remembers; longer than the arguments, and not at all.
  def test_processes_are_told_apart_by_their_titles
    titles = ["worker 1", "shop: worker 2 [busy] #{"é" * 400}"]
    result = trace(FOO + <<~RUBY)
      fork { $0 = #{titles[0].dump}; foo }
      fork { Process.setproctitle(#{titles[1].dump}); foo }
      foo
      Process.waitall
    RUBY
    names = result.traces.map { |trace| trace.query("SELECT name FROM process WHERE pid > 0")[0][0] }
    assert_equal ["ruby", titles[0], titles[1].byteslice(0, 256).scrub("")].sort, names.sort
    out, = Open3.capture2(Trace::TOOL, "report", "--format=json", *result.traces.map(&:path))
    rows = JSON.parse(out)["processes"]["rows"].to_h { |process| [process["pid"], process["title"]] }
    assert_nil rows.fetch(result.pid)
    assert_equal names.sort - ["ruby"], rows.values.compact.sort
  end

  def test_a_preforking_server_has_each_workers_exits_in_the_workers_own_file
    result = run_traced(NUMBERED + SERVER, ended: false)
    assert_predicate result.status, :success?, result.err
    victim, served = result.out.lines(chomp: true)
    served = served.split.to_h { |pair| pair.split("=").map(&:to_i) }
    # The worker that is killed may have served nobody: then it took no exit and made no file.
    assert_equal served.key?(1) ? 10 : 9, result.traces.size
    counts = numbered(result)
    assert_equal 205, counts.delete(0)
    victims = result.traces.find { |trace| trace.settings["pid"] == victim.to_i }
    assert_equal served.fetch(1, 0), counts[1].to_i, "worker 1, which was killed"
    assert_equal served.fetch(1, 0), victims ? victims.exits("FixnumAddOverflow").size : 0
    (2..9).each { |n| assert_equal served.fetch(n, 0) + 7, counts[n], "worker #{n}: served and trapped" }
  end

  def test_sigsegv_leaves_a_trace_that_can_be_read
    result = run_traced(FOO + "10.times { foo }\nProcess.kill(:SEGV, $$)\nsleep\n", ended: false)
    refute_predicate result.status, :success?
    assert_operator result.trace.exits("DirectiveInduced").size, :>=, 10
  end
end
