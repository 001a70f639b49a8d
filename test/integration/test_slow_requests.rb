# gem/lib/vm_trace/slow_requests.rb: the Rack middleware that saves traces of slow requests,
# in servers with threads and in servers that fork.
#
# Once: the middleware is written in Ruby.
require_relative "helper"

class TestSlowRequests < Integration::Test
  parallelize_me! # each test waits for processes of its own

  MIDDLEWARE = File.join(Integration::ROOT, "gem/lib/vm_trace.rb")
  GEMS = ENV.fetch("RACK_GEMS", "/usr/share/rubygems-integration/all/gems")
  WEBRICK = ["/usr/lib/ruby/vendor_ruby/webrick.rb", "/usr/share/rubygems-integration/all/gems/webrick-*/lib/webrick.rb"].freeze
  # A request takes as long as it says, on a clock of its own, and `work` is what its trace shows.
  SCRIPT = <<~'RUBY'
    class Clocked < VmTrace::SlowRequests
      def self.new(app, **options) = super(app, path: true, **options)
      def now = Thread.current[:ms] ||= 0.0
    end
    def work = [Process.pid].join # more than a JIT replaces by its result
    APP = lambda do |env|
      work
      Thread.current[:ms] = Thread.current[:ms].to_f + env["ms"]
      env["then"]&.call
      [200, {}, [env["PATH_INFO"]]]
    end
    def request(app, id, ms, path: "/#{id}", **env)
      _, _, body = app.call({ "PATH_INFO" => path, "HTTP_X_REQUEST_ID" => id.to_s, "ms" => ms, **env.transform_keys(&:to_s) })
      body == [path] or abort "answered #{body}"
    end
    # Until so many traces have been saved.
    def saved(count, dir = ".")
      30_000.times do
        return if Dir[File.join(dir, "slow-*.fxt")].size >= count
        sleep 0.01
      end
      abort "only #{Dir.children(dir)} were saved"
    end
  RUBY

  def serve(script, *flags, **options)
    result = run_ruby(SCRIPT + script, "--zjit-call-threshold=2", "-r", MIDDLEWARE, *flags, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  def ids(result) = result.traces.map { |trace| File.basename(trace.path)[/ms-(.*)\.fxt/, 1] }
  def named(result, id) = result.traces[ids(result).index(id) || flunk("no trace of #{id}, but of #{ids(result)}\n#{result.err}")]
  def work(trace) = trace.events.count { |event| event["cat"] == "call" && event["name"].start_with?("Object#work ") }
  def paths(trace) = trace.events.filter_map { |event| event["args"]["path"] if event["name"] == "request" }.uniq

  def test_those_that_took_longer_than_the_threshold_are_saved
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", ms: 100)
      5.times { |i| request(app, "before-#{i}", 100) }
      request(app, "slow", 100.5)
      saved(1)
      5.times { |i| request(app, "after-#{i}", 99) }
      request(app, "last", 3000)
    RUBY
    assert_equal %w[last slow], ids(result).sort
    assert_empty result.own_err
    %w[slow last].each { |id| assert_equal [1, ["/#{id}"]], [work(named(result, id)), paths(named(result, id))], id }
    assert_match(/\Aslow-\d{8}T\d{6}\.\d{6}-#{result.pid}-3000ms-last\.fxt\z/, File.basename(named(result, "last").path))
  end

  # The limit is that of the last ten requests that are complete, and there is none before.
  def test_those_above_the_percentile_are_saved
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", percentile: 90, last: 10)
      [1, 10, 2, 3, 4, 5, 6, 7, 8, 9].each { |ms| request(app, "first-#{ms}", ms) }
      [1, 9, 9.5, 1, 20, 20, 20, 20, 20, 20].each_with_index { |ms, i| request(app, "second-#{i}", ms) }
      [20, 21].each { |ms| request(app, "third-#{ms}", ms) }
    RUBY
    assert_equal ["second-2", *(4..9).map { |i| "second-#{i}" }, "third-21"], ids(result).sort
  end

  def test_both_limits_have_to_be_exceeded
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", ms: 5, percentile: 50, last: 2)
      [1, 1, 2, 5, 6].each { |ms| request(app, ms, ms) }
    RUBY
    assert_equal %w[6], ids(result)
  end

  def test_the_newest_files_are_kept_and_files_of_others
    result = serve(<<~'RUBY', files: { "slow-mine" => "x", "slow-20200101T000000.000000-1-9ms-old.fxt" => "" })
      app = Clocked.new(APP, folder: ".", ms: 1, files: 3)
      7.times do |i|
        request(app, i, 2)
        sleep 0.01 until Dir["*ms-#{i}.fxt"].any?
      end
    RUBY
    assert_equal %w[4 5 6], ids(result).sort
    assert_path_exists File.join(result.dir, "slow-mine")
  end

  # The recording goes on: what is in one piece is in no other, and nothing is reset.
  def test_without_a_folder_they_are_pieces_of_the_spool
    flags = %w[--vm-trace=calls,markers --vm-trace-spool=spool --vm-trace-spool-every=24h --vm-trace-quiet]
    result = serve(<<~'RUBY', *flags)
      app = Clocked.new(APP, ms: 100)
      pieces = -> { Dir["spool/*-slow.fxt"].size }
      [1, 2].each do |n|
        request(app, "fast-#{n}", 10)
        request(app, "slow-#{n}", 200)
        sleep 0.01 until pieces.() == n
      end
    RUBY
    one, two = Dir[File.join(result.dir, "spool/*-slow.fxt")].sort.map { |path| Trace.new(path) }
    assert_equal [%w[/fast-1 /slow-1], %w[/fast-2 /slow-2]], [paths(one), paths(two)]
    assert_empty result.own_err
  end

  def test_without_folder_and_spool_nothing_is_recorded_and_a_line_says_so
    result = serve("app = Clocked.new(APP, ms: 100)\n3.times { request(app, 1, 200) }\n")
    assert_equal 1, result.err.scan("slow requests are not recorded: give folder:, or start ruby with --vm-trace-spool").size
    assert_empty result.traces
  end

  def test_the_path_is_recorded_only_if_asked_for
    result = serve(<<~'RUBY')
      request(VmTrace::SlowRequests.new(APP, folder: ".", ms: -1), "x", 1, path: "/reset/secret")
      saved(1)
    RUBY
    span = named(result, "x").events.find { |event| event["name"] == "request" && event["ph"] == "E" }
    assert_equal({ "request_id" => "x", "status" => 200 }, span["args"])
    refute_includes File.binread(named(result, "x").path), "secret"
  end

  def test_ids_cannot_lead_elsewhere
    result = serve(<<~'RUBY')
      Dir.mkdir("50%p")
      app = Clocked.new(APP, folder: "50%p", ms: 1)
      request(app, "../../%n/\0\xff b\n", 2)
      request(app, "header", 2, "action_dispatch.request_id": "rails")
      request(app, "x" * 1000, 2)
      app.call({ "ms" => 2 })
      saved(4, "50%p")
      puts Dir.children("50%p").map { |name| name[/ms-(.*)\.fxt/, 1] }.sort
    RUBY
    assert_equal [".._..__n____b_", "rails", "x" * 64, ""].sort, result.out.lines(chomp: true)
  end

  # --- threads ---

  def test_others_do_not_reset_what_a_running_request_has_recorded
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", ms: 100)
      others = -> { Thread.new { 20.times { |i| request(app, "other-#{i}", 1) } }.join }
      request(app, "slow", 200, then: others)
      saved(1)
      request(app, "alone", 200)
    RUBY
    assert_equal 21, work(named(result, "slow"))
    assert_includes paths(named(result, "slow")), "/slow"
    assert_equal 1, work(named(result, "alone"))
  end

  def test_the_next_request_does_not_reset_what_waits_to_be_saved
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", ms: 100)
      8.times { |i| request(app, "slow-#{i}", 200); request(app, "fast", 1) }
    RUBY
    assert_equal 8, result.traces.size
    8.times { |i| assert_includes paths(named(result, "slow-#{i}")), "/slow-#{i}" }
  end

  def test_requests_of_many_threads_are_answered_and_saved
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", ms: 100, files: 1000)
      threads = Array.new(5) do |n|
        Thread.new do
          30.times do |i|
            after = -> { i % 7 == 0 ? sleep(0.001) : Thread.pass }
            request(app, "#{n}-#{i}", i % 10 == 5 ? 200 : 1, then: after)
          end
        end
      end
      threads.each(&:join)
    RUBY
    assert_equal Array.new(5) { |n| [5, 15, 25].map { |i| "#{n}-#{i}" } }.flatten.sort, ids(result).sort
    ids(result).each { |id| assert_includes paths(named(result, id)), "/#{id}" }
  end

  # A thread that dies in the middle of a request is no request that runs.
  def test_a_killed_thread_does_not_stop_resets
    result = serve(<<~'RUBY')
      class Killed < Clocked
        def enter = super.tap { Thread.current.kill if Thread.current[:die] }
      end
      app = Killed.new(APP, folder: ".", ms: 100)
      Thread.new { Thread.current[:die] = true; request(app, "killed", 1) }.join
      request(app, "before", 1)
      request(app, "slow", 200)
    RUBY
    assert_equal [1, ["/slow"]], [work(named(result, "slow")), paths(named(result, "slow"))]
  end

  # --- processes ---

  # Before the fork a request was answered, and another one goes on.
  def test_each_worker_records_for_itself
    result = serve(<<~'RUBY', recorders: 1)
      app = Clocked.new(APP, folder: ".", ms: 100)
      request(app, "parent", 1)
      go, done = Queue.new, Queue.new
      running = Thread.new { request(app, "running", 200, then: -> { done << 1; go.pop }) }
      done.pop
      workers = Array.new(2) do |n|
        fork do
          3.times { |i| request(app, "fast", 1) }
          request(app, "worker-#{n}", 200)
        end
      end
      workers.each { |pid| Process.wait(pid); $?.success? or abort }
      go << 1
      running.join
      puts Process.pid, workers
    RUBY
    pids = result.out.split
    assert_equal %w[running worker-0 worker-1], ids(result).sort
    %w[running worker-0 worker-1].zip(pids) do |id, pid|
      trace = named(result, id)
      assert_equal [pid.to_i, 1, ["/#{id}"]], [trace.settings["pid"], work(trace), paths(trace)]
      assert_includes File.basename(trace.path), "-#{pid}-"
    end
  end

  # --- what goes wrong does not reach the application ---

  def test_exceptions_pass_and_slow_ones_are_saved
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: ".", ms: 100)
      begin
        request(app, "raises", 200, then: -> { raise IOError, "mine" })
      rescue IOError => e
        puts e.message
      end
      puts catch(:async) { request(app, "throws", 200, then: -> { throw :async, "thrown" }) }
      app.freeze
      request(app, "frozen", 200)
    RUBY
    assert_equal %w[mine thrown], result.out.split
    assert_equal %w[frozen raises throws], ids(result).sort
  end

  def test_without_a_recorder_requests_pass_through
    result = serve(<<~'RUBY')
      RubyVM.send(:remove_const, :Trace)
      app = Clocked.new(APP, folder: ".", ms: 1)
      app.equal?(APP) or abort "the middleware is there"
      3.times { |i| request(app, i, 2) }
    RUBY
    assert_equal ["vm_trace: this Ruby has no RubyVM::Trace.span_begin, so nothing is traced: use one with vm_trace's patches\n", []],
                 [result.err, result.traces]
  end

  def test_what_cannot_be_recorded_is_reported_once
    { "Clocked.new(APP, folder: '.', ms: 1, record: { memory: 4, dreams: true })" => /unknown option :dreams/,
      "RubyVM::Trace.start(markers: true, exits: false, file: 'other.fxt'); Clocked.new(APP, folder: '.', ms: 1)" =>
        /not to memory/,
    }.each do |app, message|
      result = serve("app = begin #{app} end\n3.times { |i| request(app, i, 2) }")
      assert_equal 1, result.own_err.lines.size
      assert_match(/\Avm_trace: slow requests are not recorded: .*#{message}/, result.own_err)
      assert_empty ids(result).compact
    end
  end

  def test_what_cannot_be_saved_is_reported_and_the_next_one_is_saved
    result = serve(<<~'RUBY')
      app = Clocked.new(APP, folder: "later", ms: 1)
      request(app, "lost", 2)
      sleep 0.01 until app.instance_variable_get(:@queue).num_waiting == 1
      Dir.mkdir("later")
      request(app, "kept", 2)
      saved(1, "later")
      puts Dir.children("later")
    RUBY
    assert_match(/-kept\.fxt$/, result.out)
  end

  # --- a real server ---

  def test_rack_and_webrick
    rack = Dir.glob(File.join(GEMS, "rack-2*/lib")).first or skip "needs Rack: package ruby-rack"
    webrick = Dir.glob(WEBRICK).first or skip "needs WEBrick: package ruby-webrick"
    result = serve(<<~'RUBY', "-I", rack, "-I", File.dirname(webrick))
      require "rack"
      require "rack/handler/webrick"
      require "net/http"
      app = Rack::Builder.new do
        use Rack::Lint
        use VmTrace::SlowRequests, folder: ".", ms: 500, path: true
        use Rack::Lint
        run(lambda do |env|
          work
          sleep 1 if env["PATH_INFO"] == "/slow"
          [200, { "Content-Type" => "text/plain" }, [env["PATH_INFO"]]]
        end)
      end.to_app
      ready = Queue.new
      server = Thread.new do
        quiet = { AccessLog: [], Logger: WEBrick::Log.new(File::NULL) }
        Rack::Handler::WEBrick.run(app, Port: 0, Host: "127.0.0.1", **quiet) { |made| ready << made }
      end
      made = ready.pop
      port = made.listeners.first.addr[1]
      get = ->(path) { Net::HTTP.start("127.0.0.1", port) { |http| http.get(path, "X-Request-Id" => path.delete("/")) }.body }
      slow = Thread.new { get.("/slow") }
      answers = Array.new(4) { |n| Thread.new { Array.new(10) { |i| get.("/#{n}-#{i}") } } }.map(&:value)
      p answers.flatten.size, slow.value
      sleep 0.01 until Dir["slow-*ms-slow.fxt"].any? # on a busy machine others take as long
      made.shutdown
      server.join
    RUBY
    assert_equal ["40", '"/slow"'], result.out.split
    assert_includes paths(named(result, "slow")), "/slow"
  end
end
