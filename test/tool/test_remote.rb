# vm-trace start, stop, status and save with foreign programs, whose replies cannot be trusted.
# test/integration/test_remote.rb tests them with a traced Ruby.
require_relative "tool_helper"
require "rbconfig"

class TestRemote < Minitest::Test
  include ToolHelper

  # A process with a socket like a traced Ruby's; it runs the code with the connection as `peer`.
  def beside(code, control: nil)
    Dir.mktmpdir do |dir|
      script = <<~RUBY
        require "socket"
        server = UNIXServer.new(ARGV[0].sub("%p", $$.to_s))
        File.write(ARGV[1], "")
        loop { peer = server.accept; request = peer.readpartial(8192); #{code}; peer.close }
      RUBY
      pattern = control || "#{dir}/%p.sock"
      pid = Process.spawn({ "RUBY_VM_TRACE_CONTROL" => pattern }, RbConfig.ruby, "--disable=gems", "-e", script, pattern, "#{dir}/ready", chdir: dir)
      sleep 0.01 until File.exist?("#{dir}/ready")
      yield pid, dir
    ensure
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  def assert_told(status, out, err, *arguments)
    result = tool(*arguments.map(&:to_s))
    assert_equal [status, out], [result.status, result.out], result.err
    assert_match(err, result.err)
  end

  def test_lines_of_an_answer_stay_lines_and_all_else_is_shown
    beside('peer.write("ok\n\e[2Jon  true\r\npath \xff\u202e/x\n")') do |pid|
      assert_told 0, "\\x1B[2Jon  true\\r\npath \\xFF\\u202E/x\n", /\A\z/, "status", pid
    end
  end

  def test_errors_are_shown_likewise
    beside('peer.write("error\n\e]0;title\anot started")') do |pid|
      assert_told 3, "", /\Avm-trace: process \d+: \\x1B\]0;title\\x07not started\n\z/, "stop", pid
    end
  end

  def test_a_nul_ends_no_answer
    beside('peer.write("ok\na\0b\n")') { |pid| assert_told 0, "a\\x00b\n", /\A\z/, "status", pid }
  end

  def test_an_answer_is_waited_for_no_longer_than_asked
    beside("sleep") do |pid|
      assert_told 3, "", /\Avm-trace: process \d+ did not answer within 1 s \(--timeout=SECONDS waits longer\); it may still carry out the request\n\z/,
                  "status", "--timeout=1", pid
    end
  end

  def test_an_answer_that_comes_drop_by_drop_is_no_answer
    beside('peer.write("ok\n"); loop { peer.write("x"); sleep 0.1 }') do |pid|
      assert_told 3, "", /did not answer within 1 s/, "save", "-t1", pid
    end
  end

  def test_an_answer_in_parts_is_one
    beside('peer.write("ok"); sleep 0.2; peer.write("\nin"); sleep 0.2; peer.write(" parts\n")') do |pid|
      assert_told 0, "in parts\n", /\A\z/, "status", pid
    end
  end

  def test_an_answer_that_never_ends_is_cut
    beside('peer.write("ok\n" + "x" * 100_000) rescue Errno::EPIPE') do |pid|
      result = tool("status", pid.to_s)
      assert_equal 0, result.status
      assert_operator result.out.size, :<=, 8192
    end
  end

  def test_other_answers_and_none
    beside('peer.write("HTTP/1.1 400 Bad Request\r\n\e[1m")') do |pid|
      assert_told 3, "", /\Avm-trace: process \d+ sent an answer that no traced Ruby sends: does another program use RUBY_VM_TRACE_CONTROL\?\n\z/, "status", pid
    end
    beside("") { |pid| assert_told 3, "", /process \d+ ended, or closed the connection without an answer/, "status", pid }
  end

  def test_paths_in_messages_are_shown_too
    pid = Process.spawn({ "RUBY_VM_TRACE_CONTROL" => "/no\e[31mwhere/%p" }, "sleep", "60")
    sleep 0.01 until File.read("/proc/#{pid}/environ").include?("where")
    assert_told 3, "", %r{\Avm-trace: process #{pid} does not listen at /no\\x1B\[31mwhere/#{pid}: No such file}, "status", pid
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_a_process_that_is_not_there
    free = File.read("/proc/sys/kernel/pid_max").to_i # the first number that no process has
    %w[start stop status save].each { |command| assert_told 3, "", /\Avm-trace: no process #{free}\n\z/, command, free }
    assert_told 2, "", /give exactly one process id/, "status", "9" * 60
  end
end
