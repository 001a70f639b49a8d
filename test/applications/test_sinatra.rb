# Sinatra on Puma: threads of one process, and a restart. What is not about compiled code has one JIT in `make check`.
require_relative "helper"

class TestSinatra < Applications::Test
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  WRITES = Array.new(20) { |i| ["POST", "/notes", { title: "<Note #{i}>", body: "so many words " * i }] }.freeze
  READS = (%w[/ /broken /wait /none] + Array.new(21) { |i| "/notes/#{i}" }).map { |path| ["GET", path] }.freeze

  def drive(server) = ask(server.port, WRITES) + ask_from(3, server.port, READS * 3)

  each_jit "threads" do |jit|
    dir = application("sinatra")
    untraced = serve(dir, jit, *PUMA) { |server| drive(server) }
    traced = serve(dir, jit, *PUMA, traced: "full,exits:rate=1") { |server| drive(server) }
    assert_equal untraced.answers, traced.answers
    assert_equal [untraced.status.termsig, 1], [traced.status.termsig, traced.traces.size]
  end

  # From outside, while requests are answered.
  each_jit "start_and_stop_from_outside", short: %w[yjit] do |jit|
    dir = application("sinatra")
    streams = jit == "none" ? "threads,samples:1ms" : STREAMS
    served = serve(dir, jit, *PUMA, env: { "RUBY_VM_TRACE_CONTROL" => "control" }) do |server|
      wait_for(File.join(dir, "control", "vm-trace.#{server.pid}"))
      before = drive(server)
      with_control(dir) do
        vm_trace!("start", server.pid, "--vm-trace=#{streams}", "--file=#{dir}/traces/outside.fxt")
        during = ask_from(3, server.port, READS)
        assert_match(/on/, vm_trace!("status", server.pid))
        assert_includes vm_trace!("top", server.pid, "--count=1"), server.pid.to_s
        vm_trace!("stop", server.pid)
        [before, during, ask_from(3, server.port, READS)]
      end
    end
    assert_equal served.answers[1], served.answers[2]
    assert_equal 1, check_traces(Dir[File.join(dir, "traces/*")]).size
  end

  # The same process executes Puma again: it ends one trace and begins another.
  each_jit "restart", short: %w[zjit] do |jit|
    dir = application("sinatra")
    traced = serve(dir, jit, *PUMA, traced: STREAMS) do |server|
      first = drive(server)
      server.signal(:USR2)
      wait_until("Puma has started again") { server.out.scan("Use Ctrl-C to stop").size == 2 }
      await_answer(server, "/")
      assert_equal first, drive(server)
    end
    assert_equal 2, traced.traces.size
    assert_equal 1, traced.traces.map { |trace| pid(trace) }.uniq.size
  end

  each_jit("phased_restart", short: %w[yjit]) { |jit| restart_in_phases(application("sinatra"), jit, *PUMA, READS) }
end
