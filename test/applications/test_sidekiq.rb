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

  def redis! = system("redis-server", "--version", out: File::NULL, err: File::NULL) || skip("redis-server is not installed")

  each_jit "jobs" do |jit|
    redis!
    dir = application("sidekiq")
    assert_equal results(dir, jit), results(dir, jit, traced: STREAMS)
  end

  # With the gem vm_trace: a span for each job, without its arguments.
  def test_jobs_with_gem
    redis!
    dir = application("sidekiq")
    add_gem(dir)
    File.write(File.join(dir, "app.rb"), <<~'RUBY', mode: "a")
      require "vm_trace/sidekiq"
      Sidekiq.configure_server do |config|
        config.on(:startup) { VmTrace.start(markers: true, exits: false, file: "traces/%p.fxt") }
      end
    RUBY
    results(dir, "none")
    reports = check_traces(Dir[File.join(dir, "traces/*.fxt")])
    jobs = reports.flat_map { |report| spans(Trace.new(report["path"])) }.select { |name,| name == "sidekiq Count" }
    assert_equal JOBS, jobs.map { |_, args,| args.fetch("job_id") }.uniq.size
    assert_equal [%w[Count default]], jobs.map { |_, args,| args.values_at("endpoint", "queue") }.uniq
    assert_equal ["ArgumentError"], jobs.filter_map { |_, args,| args["error"] }
    assert_equal %w[endpoint job_id queue], jobs.flat_map { |_, args,| args.keys - ["error"] }.uniq.sort
  end
end
