# Sidekiq, with a Redis of the test's own.
# Level: all. Minutes.
require_relative "helper"

class TestSidekiq < Applications::Test
  JOBS = 60

  def with_redis(dir)
    port = free_port
    pid = Process.spawn("redis-server", "--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                        chdir: dir, [:out, :err] => File::NULL)
    wait_until("Redis answers") { TCPSocket.new("127.0.0.1", port).close || true rescue SystemCallError }
    yield port.to_s
  ensure
    if pid
      Process.kill(:TERM, pid)
      Process.wait(pid)
    end
  end

  # What jobs have left, when all have run.
  def results(dir, jit, traced: nil)
    FileUtils.rm_rf(File.join(dir, "results"))
    Dir.mkdir(File.join(dir, "results"))
    with_redis(dir) do |redis|
      env = { "REDIS_PORT" => redis }
      push = "require './app'; #{JOBS}.times { |i| Count.perform_async(i, %w[some words] * (i % 5) + [i.to_s]) }"
      pushed = run_command(dir, jit, "bundle", "exec", "ruby", "-e", push, env: env)
      assert_predicate pushed.status, :success?, pushed.out
      served = serve(dir, jit, *%w[bundle exec sidekiq -r ./app.rb -c 3], traced: traced, env: env, ready: nil) do
        wait_until("all jobs have run") { Dir.children(File.join(dir, "results")).size == JOBS - 1 }
      end
      assert_includes served.out, "broken on purpose"
      Dir[File.join(dir, "results/*")].sort.to_h { |path| [path, File.read(path)] }
    end
  end

  each_jit "jobs" do |jit|
    skip "redis-server is not installed" unless system("redis-server", "--version", out: File::NULL, err: File::NULL)
    dir = application("sidekiq")
    assert_equal results(dir, jit), results(dir, jit, traced: STREAMS)
  end
end
