# All outputs of the tool agree on traces of real programs, with each other and with an independent reader: whatever
# was recorded, and however it was sampled, the sums of all tables equal the summary.
#
# Once for each JIT: the tool adds them up.
require_relative "helper"
require_relative "../tool/consistency"

class TestSums < Integration::Test
  # Each has inlined methods, blocks, classes that share a method, and recompilations.
  PROGRAMS = {
    "erb" => <<~'RUBY',
      require "erb"
      60.times do |n|
        items = Array.new(10) { |i| { name: i.odd? ? "a#{i}" : :symbol, n: n.odd? ? i.to_f : i } }
        ERB.new("<% items.each do |i| %><li><%= i[:name] %> <%= i[:n] + 1 %></li><% end %>").result(binding)
      end
    RUBY
    "optparse" => <<~'RUBY',
      require "optparse"
      25.times do |n|
        parser = OptionParser.new { |p| p.on("-a", "--all") {}; p.on("-n", "--name=X", String) {}; p.on("--count=N", Integer) {} }
        begin
          parser.parse(n % 7 == 0 ? %w[--nonsense] : %w[-a --name=3 x --count=4 y])
        rescue OptionParser::ParseError
        end
        parser.help
      end
    RUBY
    "delegate" => <<~'RUBY',
      require "delegate"
      300.times { |n| d = SimpleDelegator.new([[1, 2], "ab", { a: 1 }][n % 3]); d.size; d.to_a rescue d.inspect; d == d.__getobj__; d.hash + 1 }
      300.times { |n| a, b = (n % 50 == 49 ? n : [n, 1]); b.to_s + a.to_s }
    RUBY
    "time" => <<~'RUBY',
      require "time"
      300.times { |n| Time.parse("2026-0#{1 + n % 9}-1#{n % 10} 10:00:0#{n % 10} UTC").iso8601; begin; Time.parse("never"); rescue ArgumentError; end }
    RUBY
    "shellwords" => <<~'RUBY',
      require "shellwords"
      300.times { |n| Shellwords.split("a 'b c' d\\ e \"f#{n}\" " * (1 + n % 5)).map { |w| Shellwords.escape(w) }.join(" ") }
    RUBY
    "uri" => <<~'RUBY',
      require "uri"
      60.times do |n|
        u = URI.parse("http://user@host#{n}:80#{n % 10}/a/b?c=#{n}#d")
        u.path += "x"
        u.to_s
        URI.join("http://h/a/b", "../c").route_to("http://h/z")
      end
    RUBY
    "pp" => <<~'RUBY',
      require "pp"
      class Point; def initialize(x) = @x = x; end
      12.times do |n|
        PP.pp({ a: [1, 2.5, nil, "x" * n], b: { c: Point.new(n) }, d: (n.odd? ? :e : [n] * 20) }, +"", 40)
      end
    RUBY
    "forwardable" => <<~'RUBY',
      require "forwardable"
      class Queue2; extend Forwardable; def_delegators :@list, :push, :shift, :size; def initialize = @list = []; end
      class Shape; def area = 0; def twice = area + area; end
      class Square < Shape; def initialize(a) = @a = a; def area = @a * @a; end
      class Circle < Shape; def initialize(r) = (@name = :circle; @r = r); def area = @r * 3.14; end
      q = Queue2.new
      600.times { |n| q.push(n.odd? ? Square.new(n) : Circle.new(n)); q.shift.twice if q.size > 10 }
      500.times { |n| [4, 2.0, 2**62 - 1][n % 3] + n; catch(:done) { [1, 2].each { |i| throw :done if i == 2 } } }
    RUBY
    "ractors and threads" => <<~'RUBY',
      def work(n) = n.times.sum { |i| i % 3 == 0 ? i.to_f : i } + (4611686018427387903 + n).hash % 2
      4.times.map { |t| Thread.new { 60.times { |n| work(n + t) } } }.each(&:join)
    RUBY
    "demo" => File.read(File.join(ROOT, "examples/demo.rb")).gsub("6000", "500").gsub("6_000", "500"),
  }.freeze
  # YJIT exits rarely in these; here it exits, too.
  OVERFLOW = "def sum_of(a, b) = a + b\n20.times { |n| sum_of(n, 1) }\n40.times { |n| sum_of(4_611_686_018_427_387_903, n + 1) }\n"
  FLAGS = %w[--zjit-call-threshold=5 --zjit-trace-compiles --zjit-trace-invalidation].freeze
  FLAGS_OF_ZJIT = JIT == "zjit" ? %w[--zjit-trace-fallbacks --zjit-trace-fallbacks-sample-rate=3].freeze : [].freeze

  PROGRAMS.each do |name, script|
    define_method("test_all_tables_sum_up_to_the_same_of_#{name}") do
      (name == PROGRAMS.keys.first ? [1, 13] : [1]).each do |rate|
        run = trace(script + OVERFLOW, *FLAGS, *FLAGS_OF_ZJIT, "--zjit-trace-exits-sample-rate=#{rate}")
        assert_operator run.trace.summary["exits"], :>, 0, "it has to exit for this to be a test"
        assert_consistent(run.trace.path, of: "one in #{rate}")
      end
    end
  end

  def assert_consistent(*paths, of: paths)
    assert_equal "", Consistency.disagreements(Trace::TOOL, *paths).join("\n"), of
  end

  # Threads wait for each other and block, fibers and a forked child work, garbage is collected.
  ALL_STREAMS = <<~'RUBY'
    def work(n) = n.times.sum { |i| i % 3 == 0 ? i.to_f : i } + (4611686018427387903 + n).hash % 2
    def serve(queue)
      while (n = queue.pop)
        work(3 + n % 5)
        Array.new(20) { |i| "#{i}" * 8 }
        sleep 0.001 if n % 5 == 0
        GC.start(full_mark: n.even?) if n % 9 == 0
      end
    end
    def all(threads)
      queue = Queue.new
      workers = threads.times.map { Thread.new { serve(queue) } }
      30.times { |n| queue << n; Fiber.new { work(n) }.resume }
      threads.times { queue << nil }
      workers.each(&:join)
    end
    all(3)
    Process.wait(fork { all(2) })
    all(1)
  RUBY
  # Parts of the life of a trace: at their borders threads run, wait, block, collect and are in calls.
  PARTS = [[0.2, 0.6], [0.45, 0.55], [0.5, 1.1]].freeze

  def test_all_outputs_agree_on_all_streams
    [{}, SHARED_NATIVE_THREADS].each do |env|
      run = trace(ALL_STREAMS, "--vm-trace=full,samples:1ms,allocations:4K", env: env)
      paths = run.traces.map(&:path)
      assert_equal 2, paths.size
      paths.each { |path| assert_consistent(path) }
      [paths, [merged(paths, run.dir)]].each { |files| assert_consistent(*files) } if env.empty?
      PARTS.each { |from, to| assert_consistent(part(run.trace.path, from, to), of: "from #{from} to #{to} of #{env}") }
    end
  end

  def merged(paths, dir)
    File.join(dir, "merged").tap { |out| assert system(Trace::TOOL, "merge", "-o", out, *paths) }
  end

  # since, until: shares of the time from the first to the last event.
  def part(path, since, til)
    span, = JSON.parse(IO.popen([Trace::TOOL, "report", "--format=json", "--table=time_span", path], &:read))["time_span"]["rows"]
    length = span["last_ns"] - span["first_ns"]
    times = { since: since, until: til }.map { |name, share| "--#{name}=#{(share * length).round}ns" }
    "#{path}.part".tap { |out| assert system(Trace::TOOL, "cut", *times, "-o", out, path, err: File::NULL) }
  end
end
