# vm-trace top: what it shows of programs that run, in a terminal and without one.
#
# Once: the tool reads these traces.
require_relative "helper"
require_relative "remote"
require "open3"
require "terminal"

class TestTop < Integration::Test
  include Remote

  # Exits 500 times, in a thread of its own, and then sleeps.
  SCRIPT = <<~'RUBY'
    def foo = (::RubyVM::ZJIT.induce_side_exit!)
    def other(n) = n + 1
    30.times { foo; other(1) }
    GC.start
    Thread.new { Thread.current.name = "waits"; Thread::Queue.new.pop }
    File.write("ready", Thread.list.size)
    sleep
  RUBY
  FLAGS = ["--zjit-call-threshold=2", "--vm-trace=exits,states,threads,gc,samples:1ms", "--vm-trace-file=%p.fxt",
           "--vm-trace-quiet"].freeze

  def top(*arguments)
    Open3.capture3({ "COLUMNS" => "80" }, Trace::TOOL, "top", *arguments.map(&:to_s))
  end

  # Paths that any process has open.
  def open_files
    Dir["/proc/[0-9]*/fd/*"].filter_map { |link| File.readlink(link) rescue nil }
  end

  def assert_table(out)
    assert_match(/^  exits +[\d.,]+\/s/, out)
    seconds = out[/: the last ([\d.]+) s$/, 1].to_f
    rate = out[/^  exits +([\d.,]+)\/s/, 1].delete(",").to_f
    assert_in_delta 29, rate * seconds, 29 * 0.2 + rate * 0.05 + seconds * 0.06, out # one or two calls are not compiled yet
    assert_match(/^Exits, most (lost time|frequent) first.*\n +exits\/s .*reason +method\n +[\d.,]+ .*Object#foo/, out)
    assert_match(/^  threads +\d+% running, .*% waiting for GVL, \d+% blocked/, out)
    assert_match(/^  GC +[\d.]+ pauses\/s/, out)
    assert_match(/^ .*% +\d+ +waits +Thread::Queue#pop$/, out)
    assert_empty out.lines.select { |line| line.chomp.size > 80 }
  end

  def test_a_program_that_writes_a_trace
    beside(SCRIPT, flags: FLAGS) do |pid, dir|
      sleep 1 # so that a tenth of a second, which is what it shows, is not much
      out, err, status = top("--count=1", "--window=1000", pid)
      assert_equal ["", 0], [err, status.exitstatus]
      assert_match(/\A#{pid}: the last/, out)
      assert_table(out)
      # The folder has the same.
      assert_table(top("--count=1", "--window=1000", dir).first)
      assert_equal 2, top("--count=2", "--interval=10ms", dir).first.scan("the last").size
    end
  end

  # The last moments are another matter.
  def test_only_the_window_counts
    beside(SCRIPT, flags: FLAGS) do |pid, _|
      sleep 0.5
      out, = top("--count=1", "--window=200ms", pid)
      assert_match(/^  exits +0\/s$/, out)
      refute_match(/^Exits/, out)
      assert_match(/the last 0\.2 s/, out)
    end
  end

  # It records until top ends, and is as before then.
  def test_a_program_that_records_nothing
    beside(SCRIPT.sub("sleep\n", "loop { other(1); sleep 0.01 }\n")) do |pid, _|
      out, err, status = top("--count=2", "--interval=300ms", pid)
      assert_equal ["", 0], [err, status.exitstatus]
      assert_match(/^  threads .*% blocked/, out)
      assert_match(/^What to change first .*\n +at least +at most +cause\n.* blocked in Kernel#sleep/, out)
      assert_match(/^on +false$/, tell("status", pid)[1])
      # Those of other tests are open, or about to be.
      wait_until("its folder is gone") { (Dir["/tmp/vm-trace-*/top.fxt"] - open_files).empty? }
      # Also when it is interrupted.
      reader, writer = IO.pipe
      client = Process.spawn(Trace::TOOL, "top", pid.to_s, out: writer)
      reader.gets
      Process.kill(:INT, client)
      Process.wait(client)
      assert_match(/^on +false$/, tell("status", pid)[1])
    end
  end

  # For some seconds, a string of 20 kB is kept each millisecond, and as much is garbage.
  KEEPS = <<~'RUBY'
    class Cache; def store = (@kept ||= []) << "v" * 20_000; end
    cache = Cache.new
    File.write("ready", "")
    3_000.times { cache.store; 10.times { "temp" * 1_000 }; sleep 0.001 }
    GC.start
    loop { sleep 0.01 }
  RUBY

  def test_what_is_alive_without_a_jit
    beside(KEEPS, flags: []) do |pid, _|
      out, = top("--count=30", "--interval=100ms", "--alive", pid)
      last = out[/.*^(#{pid}: the last.*)/m, 1]
      assert_match(/^  memory +[\d.]+ MB ± [\d.]+ [kM]?B alive, [\d.]+ MB of it by malloc$/, last)
      assert_match(/^Alive, most bytes first.*\n +bytes .*\n +([\d,]+) .* String +(String#\*|Cache#store)/, last)
      assert_operator last[/^Alive.*\n.*\n +([\d,]+)/, 1].delete(",").to_i, :>, 1_000_000
      assert_empty last.lines.select { |line| line.chomp.size > 80 }
    end
  end

  def test_a_program_that_records_into_memory
    flags = ["--zjit-call-threshold=2", "--vm-trace=exits,threads,gc", "--vm-trace-memory=16", "--vm-trace-quiet"]
    beside(SCRIPT, flags: flags) do |pid, _|
      sleep 1
      assert_table(top("--count=1", "--window=1000", pid).first)
      assert_match(/^on +true$/, tell("status", pid)[1])
    end
  end

  # What it says then, and that it goes on: the program may record again.
  def test_a_recording_that_someone_else_stops
    beside(SCRIPT, flags: ["--zjit-call-threshold=2", "--vm-trace=exits", "--vm-trace-memory=16", "--vm-trace-quiet"]) do |pid, _|
      reader, writer = IO.pipe
      client = Process.spawn(Trace::TOOL, "top", "--interval=100ms", pid.to_s, out: writer)
      writer.close
      assert_match(/: the last [\d.]+ s$/, reader.gets)
      assert_equal 0, tell("stop", pid).first
      line = reader.gets until line&.match?(/not recorded any more/)
      assert_match(/\A#{pid}: not recorded any more: process #{pid}: nothing is recorded into memory: give start/, line)
      Process.kill(:INT, client)
      assert_equal 0, Process.wait2(client).last.exitstatus
    end
  end

  def test_a_program_that_ends
    pid = Process.spawn(ENVIRONMENT, RUBY, "--vm-trace=threads", "--vm-trace-file=t.fxt", "--vm-trace-quiet",
                        "-e", "File.write('ready', ''); sleep 0.01 until File.exist?('seen')",
                        chdir: (dir = scratch_dir))
    wait_for(File.join(dir, "ready"))
    waiter = Process.detach(pid)
    Open3.popen3({ "COLUMNS" => "80" }, Trace::TOOL, "top", "--interval=50ms", pid.to_s) do |_, out, err, client|
      assert_match(/the last/, out.gets)
      File.write(File.join(dir, "seen"), "")
      rest = Thread.new { out.read }
      assert_equal ["vm-trace: process #{pid} has ended\n", 0], [err.read, client.value.exitstatus]
      rest.join
    end
    waiter.join
  end

  def test_what_cannot_be_shown
    assert_equal ["", "vm-trace: /nonesuch: No such file or directory\n"], top("/nonesuch").first(2)
    pid = Process.spawn("sleep", "60")
    wait_until("it runs") { File.read("/proc/#{pid}/cmdline").start_with?("sleep") }
    assert_match(/\Avm-trace: process #{pid} takes no requests: start it with RUBY_VM_TRACE_CONTROL/, top(pid)[1])
    Process.kill(:KILL, pid)
    Process.wait(pid)
    assert_match(/\A\S+: nothing is recorded yet$/, top("--count=1", scratch_dir).first)
  end

  # --- in a terminal ---

  # Types into a shell.
  def in_shell
    Terminal.open do |terminal|
      side = terminal.side
      pid = Process.spawn({ "TERM" => "xterm", "PS1" => "ready> ", "HISTFILE" => nil }, "setsid", "-c", "-w", "bash",
                          "--norc", "--noediting", "-i", in: side, out: side, err: side)
      await(terminal.keys, /ready> /)
      yield terminal.keys
      terminal.keys.write("exit\n")
      terminal.wait(pid)
    end
  end

  def in_terminal(*arguments, **size)
    Terminal.open(**size) do |terminal|
      side = terminal.side
      settings = `stty -g < #{side.path}`
      pid = Process.spawn({ "TERM" => "xterm" }, "setsid", "-c", "-w", Trace::TOOL, "top", *arguments.map(&:to_s),
                          in: side, out: side, err: side)
      yield terminal.keys
      status = terminal.wait(pid).last
      assert_equal settings, `stty -g < #{side.path}`, "the terminal is as before"
      return status
    end
  end

  def test_keys
    beside(SCRIPT, flags: FLAGS) do |pid, _|
      status = in_terminal("--window=1000", "--interval=100ms", pid) do |terminal|
        seen = await(terminal, /q: quit/)
        assert_match(/\A\e\[\?1049h\e\[\?25l/, seen)
        assert_match(/Exits, most lost time first/, seen)
        terminal.write("s")
        await(terminal, /Exits, most frequent first/)
        terminal.write("/queue")
        seen = await(terminal, /\/queue_/)
        seen = await(terminal, /\e\[H.*\/queue_/m)
        screen = seen[seen.rindex("\e[H")..]
        assert_match(/Thread::Queue#pop/, screen)
        refute_match(/Object#foo/, screen)
        terminal.write("\r")
        await(terminal, /search queue/)
        terminal.write("\e")
        await(terminal, /Object#foo/)
        terminal.write(" ")
        await(terminal, /space: go on/)
        terminal.winsize = [40, 120]
        terminal.write(" q")
        await(terminal, /\e\[\?25h\e\[\?1049l\z/)
      end
      assert_equal 0, status.exitstatus
    end
  end

  # In a shell with job control, which gets the terminal as it gave it.
  def test_ctrl_z_gives_the_terminal_back_until_it_goes_on
    beside(SCRIPT, flags: FLAGS) do |pid, _|
      in_shell do |terminal|
        terminal.write("#{Trace::TOOL} top --window=1000 --interval=100ms #{pid}\n")
        assert_match(/\e\[\?1049h/, await(terminal, /q: quit/))
        terminal.write("\x1a")
        assert_match(/\e\[\?7h\e\[\?25h\e\[\?1049l.*Stopped/m, await(terminal, /Stopped.*ready> /m))
        terminal.write("stty -a\n")
        assert_match(/ icanon /, await(terminal, /ready> /))
        terminal.write("fg\n")
        assert_match(/\e\[\?1049h.*\e\[H.*Object#foo/m, await(terminal, /\e\[\?1049h.*q: quit/m))
        terminal.write("s")
        await(terminal, /Exits, most frequent first/)
        terminal.write("\x1a")
        await(terminal, /\e\[\?1049l.*ready> /m)
        terminal.write("bg\n")
        await(terminal, /ready> /)
        # It stops in the background, without a character on the shell's screen.
        shown = +""
        wait_until("it is stopped again") do
          terminal.write("jobs -l\n")
          (shown << await(terminal, /ready> /)).match?(/Stopped.*tty/)
        end
        refute_match(/\e\[\?1049h/, shown)
        terminal.write("fg\n")
        await(terminal, /\e\[\?1049h.*q: quit/m)
        terminal.write("q")
        await(terminal, /\e\[\?1049l.*ready> /m)
      end
    end
  end

  # The numbers of what a terminal of so many columns shows are whole: the screen cuts lines.
  def test_numbers_are_whole_in_a_narrow_terminal
    beside(SCRIPT, flags: FLAGS) do |pid, dir|
      trace = Dir[File.join(dir, "*.fxt")].first
      long = File.join(dir, "a folder with a long name", "trace of a process with a long name.fxt")
      FileUtils.mkdir_p(File.dirname(long))
      FileUtils.cp(trace, long)
      [80, 60, 50, 40].each do |columns|
        [pid.to_s, long].each do |source|
          out, = Open3.capture2({ "COLUMNS" => columns.to_s }, Trace::TOOL, "top", "--count=1", "--window=1000", source)
          out.force_encoding("UTF-8")
          assert_empty out.lines.select { |line| line.chomp.size > columns }, columns
          assert_match(/: the last [\d.]+ s$/, out)
          assert_match(/running.* GC .* GVL .*blocked.*\n( +[\d.]+%){4} /, out)
          assert_match(/longest [\d.]+ [mu]?s$/, out)
        end
      end
      in_terminal("--window=1000", pid, rows: 16, columns: 50) do |terminal|
        seen = await(terminal, /q: quit/)
        assert_match(/Threads/, seen)
        terminal.write("q")
        await(terminal, /\e\[\?1049l/)
      end
    end
  end

  def test_ctrl_c_ends_it_and_restores_the_terminal
    beside(SCRIPT, flags: FLAGS) do |pid, _|
      in_terminal(pid) do |terminal|
        await(terminal, /q: quit/)
        terminal.write("\x03")
        await(terminal, /\e\[\?1049l/)
      end
    end
  end
end
