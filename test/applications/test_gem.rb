# The gem vm_trace (gem/): as users add it to their Gemfile, in Sinatra, on Puma. Rails and Sidekiq are in their own files.
require_relative "helper"

class TestGem < Applications::Test
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  SECRET = "s3cret"
  REQUESTS = [["POST", "/notes", { title: SECRET, body: SECRET }], ["GET", "/notes/0?token=#{SECRET}"], ["GET", "/broken"],
              ["GET", "/none/#{SECRET}"], ["GET", "/wait"]].freeze

  def sinatra(lines)
    dir = application("sinatra")
    add_gem(dir)
    config = File.join(dir, "config.ru")
    File.write(config, "require \"vm_trace\"\n#{lines}\n#{File.read(config)}")
    dir
  end

  def trace_of(outcome, pid = nil)
    Trace.new(outcome.traces.find { |trace| pid.nil? || trace["path"].include?(pid.to_s) }["path"])
  end

  # What only the source of the application names is in the trace, in spite of what requests bring.
  each_jit "requests" do |jit|
    dir = sinatra("use VmTrace::Requests")
    untraced = serve(dir, jit, *PUMA) { |server| ask(server.port, REQUESTS) }
    traced = serve(dir, jit, *PUMA, traced: "markers,threads") { |server| ask(server.port, REQUESTS) }
    assert_equal untraced.answers, traced.answers
    refute_includes traced.out + untraced.out, "vm_trace: "
    trace = trace_of(traced)
    assert_equal [["POST", "POST /notes", 303], ["GET", "GET /notes/:id", 200], ["GET", "GET /broken", 500], ["GET", nil, 404],
                  ["GET", "GET /wait", 200]],
                 spans(trace).map { |_, args,| args.values_at("method", "endpoint", "status") }.last(5)
    refute_includes File.binread(trace.path), SECRET
  end

  # Workers record for themselves from their first request on, and save what was slow.
  def test_slow_requests_of_workers
    dir = sinatra("use VmTrace::SlowRequests, folder: \"traces\", ms: 5, record: { memory: 4, markers: true, exits: false }")
    served = serve(dir, "none", *PUMA, env: { "WORKERS" => "2" }) do |server|
      wait_until("two workers") { server.out.scan(/Worker \d \(PID: \d+\) booted/).size == 2 }
      wait_until("both have saved a trace", every: 0.05) do
        ask_from(4, server.port, [["GET", "/wait"]])
        server.traces.map { |path| File.basename(path)[/\Aslow-[^-]+-(\d+)-/, 1] }.uniq.size == 2
      end
    end
    refute_includes served.out, "vm_trace: "
    check_traces(Dir[File.join(dir, "traces/*.fxt")])
    spans = Dir[File.join(dir, "traces/*.fxt")].flat_map { |path| spans(Trace.new(path)) }
    assert_includes spans.map { |_, args,| args["endpoint"] }, "GET /wait"
  end

  # The interpreter that runs the tests has no patches.
  def test_another_ruby_says_it_once_and_does_nothing
    script = <<~'RUBY'
      require "vm_trace"
      app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
      [VmTrace::Requests.new(app), VmTrace::SlowRequests.new(app, folder: "nowhere", ms: 1)].each { |made| made.equal?(app) or abort "it is there" }
      p VmTrace.start(markers: true), VmTrace.span("x", a: 1) { 5 }, VmTrace::Notifications.subscribe
    RUBY
    out, err, status = Open3.capture3({ "RUBYOPT" => nil }, RbConfig.ruby, "-w", "-I#{GEM}/lib", "-e", script)
    skip "this Ruby is patched" if system(RbConfig.ruby, "-e", "exit defined?(RubyVM::Trace) != nil")
    assert_equal ["false\n5\nnil\n", true], [out, status.success?], err
    assert_equal ["vm_trace: this Ruby has no RubyVM::Trace.span_begin, so nothing is traced: use one with vm_trace's patches\n"],
                 err.lines
  end

  # ActiveSupport's events end in any order, or not at all; a trace may begin and end meanwhile.
  def test_spans_nest_whatever_order_their_ends_have
    result = run_ruby(<<~'RUBY', "-I#{GEM}/lib", "-r", "vm_trace")
      S, T = VmTrace::Spans, RubyVM::Trace
      a, b, c = Array.new(3) { Object.new }
      before = Object.new
      S.open(before, "before")
      T.start(markers: true, exits: false, file: "one.fxt")
      S.close(before, x: 1)
      S.open(a, "a")
      S.open(b, "b")
      Fiber.new { S.close(a, other: 1); S.open(c, "fiber"); S.close(c) }.resume
      S.open(c, "c")
      S.close(a, x: 1)
      S.close(c, x: 2)
      S.close(b, x: 3)
      S.open(Object.new, "left")
      S.open(a, "left too")
      T.stop
      T.start(markers: true, exits: false, file: "two.fxt")
      S.close(a, x: 4)
      VmTrace.span("raises", x: 5) { raise IOError, "mine" } rescue p $!.message, $!.backtrace.size
      p VmTrace.span("breaks") { break 7 }
      p Thread.current[:vm_trace_open] # keeps no key of a trace that is over
      T.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    one, two = %w[one two].map { |name| result.traces.find { |trace| File.basename(trace.path, ".fxt") == name } }
    assert_equal [["fiber", {}, []], ["c", {}, %w[a b]], ["b", {}, %w[a]], ["a", { "x" => 1 }, []]], spans(one)
    assert_equal [["raises", { "x" => 5, "error" => "IOError" }, []], ["breaks", {}, []]], spans(two)
    assert_equal ["\"mine\"", "7", "[]"], result.out.lines(chomp: true).values_at(0, 2, 3)
  end

  # Nothing that stood in quotes, or behind a comment, becomes the name of a table.
  def test_of_a_query_there_is_the_verb_and_the_table
    queries = {
      %(SELECT "notes".* FROM "notes" WHERE x = 'from bob') => %w[SELECT notes],
      "select `a`.`b`, COUNT(*) from `shop`.`notes` where c = 5" => %w[SELECT notes],
      "SELECT 'a FROM bob'" => ["SELECT", nil],
      %(SELECT "a\\" FROM bob" FROM t) => ["SELECT", nil],
      %(SELECT "a"" FROM bob") => ["SELECT", nil],
      "SELECT 1 -- FROM bob" => ["SELECT", nil],
      "SELECT $$ FROM bob $$" => ["SELECT", nil],
      "/* bob */ /*x*/ UPDATE notes SET a = 'from bob'" => %w[UPDATE notes],
      "/* FROM bob" => [nil, nil],
      %(INSERT INTO "notes" ("a") VALUES ('bob')) => %w[INSERT notes],
      "DELETE FROM notes" => %w[DELETE notes],
      "BEGIN immediate TRANSACTION" => ["BEGIN", nil],
      "bob" => [nil, nil],
      "SELECT \xff FROM bob" => [nil, nil],
    }
    out, status = Open3.capture2e(RbConfig.ruby, "-w", "-I#{GEM}/lib", "-rvm_trace", "-rjson", "-e", <<~'RUBY', stdin_data: Marshal.dump(queries.keys))
      puts JSON.generate(Marshal.load($stdin.binmode).map { |sql| VmTrace::Notifications.sql_begun({ sql: sql }).values_at(:verb, :table) })
    RUBY
    assert_predicate status, :success?, out
    assert_equal queries.values, JSON.parse(out)
  end
end
