# A running program with a control socket, for tests that send it requests.
require_relative "helper"
require "io/wait"
require "open3"

module Remote
  include Integration

  LOOP = <<~'RUBY'
    def foo = (::RubyVM::ZJIT.induce_side_exit!)
    10.times { foo }
    File.write("ready.new", Thread.list.size)
    File.rename("ready.new", "ready")
    foo until File.exist?("done")
    File.write("idle", "")
    sleep unless File.exist?("end")
  RUBY

  # Runs the block beside the program, with its pid and folder.
  def beside(script = LOOP, control: "control", flags: ["--zjit-call-threshold=2"])
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), jit(script))
    Dir.mkdir(File.join(dir, "control"))
    env = ENVIRONMENT.merge("RUBY_VM_TRACE_CONTROL" => control)
    pid = Process.spawn(env, RUBY, "--disable=gems", *flags.map { |flag| jit(flag) }, "script.rb", chdir: dir, err: File.join(dir, "err"))
    wait_for(File.join(dir, "ready"))
    wait_for(control.include?("/") || !File.directory?(File.join(dir, control)) ? File.join(dir, control.sub("%p", pid.to_s)) : socket(dir, pid))
    yield pid, dir
  ensure
    begin
      Process.kill(:KILL, pid)
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      # it has ended, and was waited for
    end
    assert_empty File.read(File.join(dir, "err"))
  end

  # Reads what a terminal shows until the text is there.
  def await(terminal, pattern)
    seen = +""
    wait_until("#{pattern} in the terminal", every: 0) do
      seen << terminal.readpartial(65_536).force_encoding("UTF-8") if terminal.wait_readable(0.1)
      seen.match?(pattern)
    end
    seen
  rescue Minitest::Assertion => e
    flunk "#{e.message}: #{seen.inspect}"
  end

  def socket(dir, pid) = File.join(dir, "control", "vm-trace.#{pid}")

  def tell(*words)
    out, err, status = Open3.capture3({ "RUBY_VM_TRACE_CONTROL" => nil }, Trace::TOOL, *words.map(&:to_s))
    [status.exitstatus, out, err]
  end
end
