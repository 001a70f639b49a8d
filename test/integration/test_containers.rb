# Processes as containers have them: other pids, mounts, users and clocks than those of whoever asks. As root only.
#
# Once: the kernel's namespaces are the same for each JIT and base.
require_relative "helper"
require_relative "remote"

class TestContainers < Integration::Test
  include Remote

  NOBODY = 65_534

  def setup
    super
    usable = Process.uid == 0 && system("unshare", "--mount", "--pid", "--fork", "true", err: File::NULL)
    skip "this needs root and unshare(1), for namespaces" unless usable
  end

  # Runs the block beside a script in namespaces of its own, with its pid here and its folder. `mounts`: commands.
  def contained(mounts, script = LOOP, control:)
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), jit(script))
    Dir.mkdir(File.join(dir, "private"))
    File.chmod(0o777, dir)
    shell = ["sh", "-ec", "mount -t proc proc /proc; #{mounts}; exec \"$@\"", "sh"]
    outer = Process.spawn(ENVIRONMENT.merge("RUBY_VM_TRACE_CONTROL" => control),
                          "unshare", "--mount", "--pid", "--fork", "--kill-child", *shell,
                          RUBY, "--disable=gems", jit("--zjit-call-threshold=2"), "script.rb",
                          chdir: dir, err: File.join(dir, "err"))
    wait_for(File.join(dir, "ready"))
    pid = File.read("/proc/#{outer}/task/#{outer}/children").to_i
    wait_until("it listens") { tell("status", pid)[0] == 0 }
    yield pid, dir
    assert_empty File.read(File.join(dir, "err"))
  ensure
    Process.kill(:KILL, pid) if pid # that of a changed user outlives its parent
    if outer
      Process.kill(:KILL, outer)
      Process.wait(outer)
    end
  end

  # The folder of sockets is on a file system that only the container has, and a link there leads to it.
  def test_a_program_in_a_container_is_asked_by_its_pid_outside
    contained("mount -t tmpfs tmpfs private; mkdir private/sockets; ln -s $PWD/private/sockets private/link",
              control: "private/link") do |pid, dir|
      assert_empty Dir.children(File.join(dir, "private"))
      own_pid = File.read("/proc/#{pid}/status")[/^NSpid:.*\t(\d+)$/, 1]
      refute_equal pid, own_pid.to_i
      assert_equal [0, "#{File.realpath(dir)}/private/#{own_pid}.fxt\n", ""], tell("start", pid, "--file=private/%p.fxt")
      assert_equal 0, tell("top", pid, "--count=1")[0]
      File.write(File.join(dir, "done"), "")
      wait_for(File.join(dir, "idle"))
      assert_equal [0, ""], tell("stop", pid).values_at(0, 2)
      FileUtils.cp("/proc/#{pid}/root#{File.realpath(dir)}/private/#{own_pid}.fxt", File.join(dir, "copy.fxt"))
      assert_operator validated(Trace.new(File.join(dir, "copy.fxt")), ended: true).summary["exits"], :>, 0

      assert_equal [0, "memory\n", ""], tell("start", pid, "--memory=8")
      status, out, err = tell("top", pid, "--count=1") # it saves where both can reach
      assert_equal [0, ""], [status, err]
      assert_includes out, pid.to_s
    end
  end

  # As servers do that turn into daemons: the socket is where it would have been.
  def test_a_relative_folder_is_relative_to_where_the_program_began
    daemon = nil
    beside(<<~'RUBY' + LOOP) do |_, dir|
      fork do
        Process.daemon(false, true)
        File.write("#{__dir__}/daemon", Process.pid)
        sleep 0.1 until File.exist?("#{__dir__}/done")
      end
      sleep 0.01 until File.size?("daemon")
    RUBY
      daemon = File.read(File.join(dir, "daemon")).to_i
      wait_until("the daemon listens") { File.socket?(socket(dir, daemon)) }
      assert_equal "/", File.readlink("/proc/#{daemon}/cwd")
      assert_equal [0, ""], tell("status", daemon).values_at(0, 2)
      File.write(File.join(dir, "done"), "")
      wait_until("the daemon takes its socket away") { !File.exist?(socket(dir, daemon)) }
    end
  ensure
    Process.kill(:KILL, daemon) rescue Errno::ESRCH if daemon
  end

  # Its user has changed, and with it, who may read its environment.
  def test_root_asks_a_program_that_is_root_no_more
    contained("mkdir -m 1777 private/sockets", "Process::Sys.setgid(#{NOBODY}); Process::Sys.setuid(#{NOBODY})\n" \
              "$0 = 'a title ' * 500\nFile.write('private/sockets/uid', Process.uid)\n#{LOOP}",
              control: "private/sockets") do |pid, dir|
      assert_equal NOBODY.to_s, File.read(File.join(dir, "private/sockets/uid"))
      assert_equal [0, "memory\n", ""], tell("start", pid, "--memory=8")
      assert_equal [0, ""], tell("top", pid, "--count=1").values_at(0, 2)
      assert_empty Dir["/tmp/vm-trace-*"].select { |folder| File.lstat(folder).uid == NOBODY rescue false }
      assert_equal 0, tell("stop", pid)[0]
    end
  end

  def run_with(script, *flags, unshare:)
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), script)
    run = run_in(dir, *flags, "script.rb", command: ["unshare", *unshare, RUBY, "--disable=gems"])
    validate_all(run, ended: true, recorders: 1)
  end

  def test_where_nothing_can_be_written_the_program_runs_all_the_same
    read_only = ["--mount", "sh", "-ec", "mount -o remount,ro,bind /; exec \"$@\"", "sh"]
    run = run_with("puts :ran", "--zjit-trace-exits", unshare: read_only)
    assert_equal [true, "ran\n"], [run.status.success?, run.out]
    assert_match(%r{/tmp/perfetto-\d+\.fxt.*Read-only file system}, run.err)
  end
end
