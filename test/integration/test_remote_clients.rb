# Many clients of the control socket at once, slow ones, and clients that come when the program
# ends: none delays or harms the program or another client.
#
# Once: the socket is the same for each JIT and base.
require_relative "helper"
require_relative "extension"
require_relative "remote"
require "socket"
require "timeout"

Integration.only "zjit" # the JIT makes no difference here

class TestRemoteClients < Integration::Test
  include Remote

  PATIENCE = Integration::PATIENCE_SECONDS # a client that is delayed by others waits for ever
  STATUS = "status\0\0"

  # Everything up to the end of the connection, which must come.
  def reply_of(peer) = Timeout.timeout(PATIENCE) { peer.read }

  def ask(path, request)
    UNIXSocket.open(path) do |peer|
      peer.write(request)
      reply_of(peer)
    end
  end

  # A program that continues in C after its VM has ended.
  LATE = <<~'C'
    #include <ruby/ruby.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static void linger(void)
    {
        fclose(fopen("late", "w"));
        for (int i = 0; i < 30000 && access("go", F_OK) != 0; i++) usleep(1000);
    }
    void Init_late(void) { atexit(linger); }
  C

  def test_requests_after_the_end_of_the_vm_are_refused
    late = Extension.build("late", { "late.c" => LATE })
    beside(LOOP.sub("sleep", "0"), flags: ["-r#{late}"]) do |pid, dir|
      before = UNIXSocket.new(socket(dir, pid))
      # It was accepted, and continues after the VM has ended.
      before.write("stat")
      assert_match(/^on +false/, tell("status", pid)[1])
      File.write(File.join(dir, "done"), "")
      wait_for(File.join(dir, "late"))
      before.write("us\0\0")
      assert_match(/\Aerror\n(the program is ending|.*has to come within 2 seconds)\n\z/, reply_of(before))
      refute_path_exists socket(dir, pid)
      assert_match(/\A\[3, "", "vm-trace: process \d+ does not listen at /, tell("status", pid).inspect)
      File.write(File.join(dir, "go"), "")
      assert_predicate Process.detach(pid).value, :success?
    end
  end

  # Requests come again and again while programs begin and end.
  def test_a_storm_of_requests_to_programs_that_end
    dir = scratch_dir
    done = false
    replies = Queue.new
    clients = 4.times.map do
      Thread.new do
        until done
          begin
            path = Dir[File.join(dir, "vm-trace.*")].first
            replies << ask(path, STATUS) if path
          rescue Errno::ENOENT, Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EPIPE
            # it ended
          end
        end
      end
    end
    answered = Thread.new do
      wait_until("a client is served") { replies.size > 0 }
      File.write(File.join(dir, "answered"), "")
    end
    (LONG ? 200 : 20).times do |i|
      first = "sleep 0.001 until File.exist?('answered')" if i == 0
      forks = "fork { }; Process.wait" if i % 4 == 0
      result = run_in(dir, "-e", "#{first}; 20.times { sleep 0.001 }; at_exit { sleep 0.005 }; #{forks}",
                      env: { "RUBY_VM_TRACE_CONTROL" => "." })
      assert_equal [true, ""], [result.status.success?, result.err]
    end
    done = true
    [*clients, answered].each(&:join)
    kinds = Array.new(replies.size) { replies.pop }.tally
    assert_empty kinds.keys - ["ok\non         false\njit        \n", "error\nthe program is ending\n", ""]
    assert_operator kinds.fetch("ok\non         false\njit        \n"), :>, 0
  end

  def test_clients_that_send_a_byte_now_and_then_delay_nobody
    beside do |pid, dir|
      slow = 12.times.map { UNIXSocket.new(socket(dir, pid)) }
      feeder = Thread.new { loop { slow.each { |peer| peer.write("s") rescue nil }; sleep 0.2 } }
      Timeout.timeout(PATIENCE) { 10.times { assert_equal 0, tell("status", pid)[0] } }
      slow.each { |peer| assert_match(/\Aerror\n.* has to come within 2 seconds\n\z/, reply_of(peer)) }
    ensure
      feeder.kill
    end
  end

  def test_clients_that_do_not_read_delay_nobody
    beside do |pid, dir|
      peers = 40.times.map { UNIXSocket.new(socket(dir, pid)).tap { |peer| peer.write(STATUS) } }
      Timeout.timeout(PATIENCE) { 3.times { assert_equal 0, tell("status", pid)[0] } }
      peers.each { |peer| assert_match(/\Aok\non +false\n/, reply_of(peer)) }
    end
  end

  # More than are served at once: each gets its own reply.
  def test_many_clients_at_once
    beside do |pid, dir|
      assert_equal 0, tell("start", pid, "--memory=4")[0]
      requests = 8.times.flat_map { |i| [[STATUS, /\Aok\non +true\n/], ["save\0#{i}.fxt\0\0", /\Aok\nevents .*\/#{i}.fxt\n\z/m], ["x\0\0", /\Aerror\nunknown request/]] }
      threads = requests.map { |request, expected| Thread.new { [ask(socket(dir, pid), request), expected] } }
      threads.each { |thread| thread.value.then { |reply, expected| assert_match(expected, reply) } }
      validated(Trace.new(File.join(dir, "7.fxt")), recorders: 2)
    end
  end

  # status answers while a large memory is saved; stop waits for that, and the main thread
  # continues.
  def test_requests_during_a_save
    beside(<<~'RUBY') do |pid, dir|
      def foo = (::RubyVM::ZJIT.induce_side_exit!)
      10.times { foo }
      RubyVM::Trace.start(memory: 64)
      500_000.times { foo }
      File.write("ready", "")
      foo until File.exist?("end")
    RUBY
      saves = 3.times.map { |i| Thread.new { tell("save", pid, "#{i}.fxt") } }
      sleep 0.001 while Dir[File.join(dir, "*.fxt*")].empty?
      5.times { assert_match(/^on +true/, tell("status", pid)[1]) }
      stopped = tell("stop", pid)
      assert_equal [0, ""], stopped.values_at(0, 2)
      # Requests that had not begun are refused.
      saved = saves.map(&:value).select { |status, _, error| status == 0 || flunk(error) unless error.match?(/nothing is recorded/) }
      refute_empty saved
      Dir[File.join(dir, "*.fxt")].each { |path| validated(Trace.new(path), recorders: 2) }
      assert_equal saved.size, Dir[File.join(dir, "*.fxt*")].size
    end
  end

  # While the main thread hangs, requests that need it wait, and others are served.
  def test_a_save_beside_clients_that_wait_for_a_program_that_hangs
    beside(LOOP.sub("sleep") { %q(/\A(a*)*\1b\z/.match?("a" * 40 + "cb")) }) do |pid, dir|
      assert_equal 0, tell("start", pid, "--memory=8")[0]
      File.write(File.join(dir, "done"), "")
      wait_for(File.join(dir, "idle"))
      waiting = 5.times.map { UNIXSocket.new(socket(dir, pid)).tap { |peer| peer.write(STATUS) } }
      assert_equal 0, tell("save", pid, "a.fxt")[0]
      waiting.each { |peer| assert_match(/\A(error\nthe program's main thread did not come .* Nothing was done.|ok\non.*)\n\z/m, reply_of(peer)) }
    end
  end

  # A child that was forked while a client was served has a copy of its connection.
  def test_a_client_sees_the_end_though_a_child_lives
    beside(<<~'RUBY') do |pid, dir|
      File.write("ready", "")
      sockets = -> { Dir["/proc/self/fd/*"].count { |fd| File.symlink?(fd) && File.readlink(fd).start_with?("socket") } }
      sleep 0.001 until sockets.call >= 2
      child = fork { File.write("child.new", Process.pid); File.rename("child.new", "child"); sleep }
      at_exit { Process.kill(:KILL, child) }
      sleep 0.01 until File.exist?("end")
    RUBY
      peer = UNIXSocket.new(socket(dir, pid))
      wait_for(File.join(dir, "child"))
      peer.write(STATUS)
      assert_match(/\A(ok|error)\n/, reply_of(peer))
    ensure
      child = File.join(dir, "child")
      Process.kill(:KILL, File.read(child).to_i) if File.exist?(child)
    end
  end

  def test_a_socket_that_another_process_made_is_left_to_it
    beside(control: "%p.sock") do |pid, dir|
      path = File.join(dir, "#{pid}.sock")
      File.delete(path)
      UNIXServer.open(path) do
        %w[end done].each { |name| File.write(File.join(dir, name), "") }
        assert_predicate Process.detach(pid).value, :success?
        assert File.socket?(path)
      end
    end
  end
end
