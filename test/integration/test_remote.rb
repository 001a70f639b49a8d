# vm-trace start, stop and status, sent to a running program. The socket is the same for each JIT.
#
# Once: the socket is the same for each JIT and base.
require_relative "helper"
require_relative "remote"
require "socket"

class TestRemote < Integration::Test
  include Remote

  def test_a_program_is_traced_from_outside
    beside do |pid, dir|
      assert_equal "1", File.read(File.join(dir, "ready")), "a thread can be seen"
      stat = File.stat(socket(dir, pid))
      assert_equal [true, 0o600], [stat.socket?, stat.mode & 0o777]
      assert_equal [0, "on         false\njit        #{jit("ZJIT")}\n", ""], tell("status", pid)
      status, out, = tell("start", pid, "--file=%p.fxt", "--sample-rate=3", "--max-size=8", "--keep=oldest", "--counter=#{jit("exit_directive_induced")}")
      path = File.join(File.realpath(dir), "#{pid}.fxt")
      assert_equal [0, "#{path}\n"], [status, out]
      assert_match(/\Aon +true$.*^exits +\d+$.*^path +#{path}$/m, tell("status", pid)[1])
      assert_match(/\A\[3, "", "vm-trace: process \d+: already started, into /, tell("start", pid).inspect)
      File.write(File.join(dir, "done"), "")
      wait_for(File.join(dir, "idle"))
      _, out, err = tell("stop", pid) # it sleeps
      assert_empty err
      assert_match(/not started/, tell("stop", pid)[2])
      trace = validated(Trace.new(path), ended: true, recorders: 1)
      assert_equal [3, 8 << 20, "oldest", jit("exit_directive_induced")], trace.settings.values_at("exit_rate", "max_bytes", "keep", "counter")
      assert_equal trace.summary["sampled"], out[/^sampled +(\d+)/, 1].to_i
      assert_match(/unknown option|takes .* counter/, tell("start", pid, "--counter=none")[2])
    end
  end

  # A server waits like this: its main thread sleeps, and the thread that ran last waits for work.
  def test_the_main_thread_sleeps_and_another_one_ran_last
    beside(<<~'RUBY') do |pid, _|
      main = Thread.current
      Thread.new do
        Thread.pass until main.status == "sleep"
        File.write("ready", "")
        Thread::Queue.new.pop
      end
      sleep
    RUBY
      wait_until("the thread waits, too") do
        Dir["/proc/#{pid}/task/*/stat"].all? { |stat| File.read(stat).match?(/\) S /) }
      end
      assert_equal [0, ""], tell("status", pid).values_at(0, 2)
    end
  end

  # Also while the program checks no interrupts.
  def test_memory_is_saved_from_outside
    beside(LOOP.sub("sleep") { %q(/\A(a*)*\1b\z/.match?("a" * 40 + "cb")) }) do |pid, dir|
      assert_match(/nothing is recorded into memory: give start --memory=16/, tell("save", pid, "a.fxt")[2])
      assert_equal [0, "memory\n", ""], tell("start", pid, "--memory=8", "--seconds=60", "--save-at=exit,crash", "--file=unasked.fxt", "--stack=2",
                                                        "--min-free=0")
      assert_match(/^memory +8$/, tell("status", pid)[1])
      assert_match(/can't save to .*no\/a.fxt: No such file/, tell("save", pid, "no/a.fxt")[2])
      File.write(File.join(dir, "done"), "")
      wait_for(File.join(dir, "idle"))
      _, out, err = tell("save", pid, "%p.fxt")
      assert_equal ["", File.join(File.realpath(dir), "#{pid}.fxt")], [err, out[/^path +(.*)/, 1]]
      trace = validated(Trace.new(out[/^path +(.*)/, 1]), recorders: 2)
      assert_equal [out[/^exits +(.*)/, 1].to_i, 60, 8 << 20, 2], [trace.exits.size, *trace.settings.values_at("seconds", "max_bytes", "stack")]
      assert_operator trace.exits.size, :>, 0
    end
  end

  zjit_only def test_forked_children_listen_themselves
    beside(<<~'RUBY', control: "control") do |pid, dir|
      child = fork { File.write("child", Process.pid); sleep }
      at_exit { Process.kill(:KILL, child) }
      sleep 0.01 until File.size?("child")
      File.write("ready", "")
      sleep
    RUBY
      child = File.read(File.join(dir, "child")).to_i
      wait_for(socket(dir, child))
      [pid, child].each { |each| assert_equal 0, tell("status", each)[0] }
      assert_equal 0, tell("start", child, "--file=child.fxt")[0]
      assert_match(/^on +false/, tell("status", pid)[1])
    ensure
      Process.kill(:KILL, child)
    end
  end

  # Garbage, much of it, nothing at all: the program continues and still accepts requests.
  zjit_only def test_what_speaks_another_language_does_no_harm
    beside(control: "%p.sock") do |pid, dir|
      path = File.join(dir, "#{pid}.sock")
      ["", "\0\0", "stop", "start\0exits", "start\0a\0b\0\0", "x" * 100_000, "start\0file\0#{"y" * 5000}\0\0"].each do |text|
        UNIXSocket.open(path) do |peer|
          peer.write(text)
          peer.close_write
          peer.read
        rescue Errno::EPIPE, Errno::ECONNRESET
          # it closed the connection
        end
      end
      assert_equal 0, tell("status", pid)[0]
    end
  end

  # Daemons close all descriptors; then the number belongs to a socket of the program.
  zjit_only def test_descriptor_that_became_the_programs_is_left_to_it
    beside(<<~'RUBY') do |pid, dir|
      require "fcntl"
      require "socket"
      ours = nil
      links = -> { Dir["/proc/self/fd/*"].to_h { |fd| [File.basename(fd).to_i, File.symlink?(fd) ? File.readlink(fd) : ""] } }
      sleep 0.01 until (ours = links.call.key(links.call.values.grep(/socket/).first)) && Dir.children("control").any?
      # A thread has called accept4, on x86-64 and on arm64: it does not look at the number any more.
      accepts = /\A(288|242) #{"0x%x" % ours} /
      sleep 0.01 until Dir["/proc/self/task/*/syscall"].any? { |path| File.read(path).match?(accepts) }
      IO.for_fd(ours).close
      mine = UNIXServer.new("mine")
      mine = UNIXServer.for_fd(mine.fcntl(Fcntl::F_DUPFD, ours)) if mine.fileno != ours
      raise "#{mine.fileno} is not #{ours}" if mine.fileno != ours
      mine.fcntl(Fcntl::F_SETFL, 0) # it is waited at, as servers in C do
      File.write("ready", "")
      sleep 0.01 until File.exist?("go")
      loop { mine.accept.tap { |peer| peer.write("mine") }.close }
    RUBY
      assert_equal 0, tell("status", pid)[0] # it was waiting for this one before
      File.write(File.join(dir, "go"), "")
      assert_equal ["mine"] * 3, 3.times.map { UNIXSocket.open(File.join(dir, "mine"), &:read) }
    end
  end

  zjit_only def test_without_the_variable_there_is_nothing_to_tell
    dir = scratch_dir
    result = run_in(dir, "-e", "puts Dir.children('.').sort, File.readlines('/proc/self/status').grep(/Threads/)",
                    env: { "RUBY_VM_TRACE_CONTROL" => nil })
    with = run_in(dir, "-e", "puts Dir.children('.').grep(/vm-trace/).size, File.exist?('vm-trace.' + $$.to_s)", env: { "RUBY_VM_TRACE_CONTROL" => "." })
    assert_equal %w[.err .out Threads:], result.out.split.first(3)
    assert_equal "1\ntrue\n", with.out
    assert_empty Dir.children(dir).grep(/vm-trace/), "the socket is removed at exit"
    bad = run_in(dir, "-e", "puts 1", env: { "RUBY_VM_TRACE_CONTROL" => "no/folder/%p" })
    refused = %r{\Aruby: RUBY_VM_TRACE_CONTROL: can't listen at #{dir}/no/folder/\d+: No such file}
    assert_equal ["1\n", true], [bad.out, bad.err.match?(refused)]
  end
end
