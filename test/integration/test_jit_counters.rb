# The stream `counters`: counters of ZJIT's statistics by method and line. The reference is what RubyVM::ZJIT.stats
# says in the same run.
require_relative "helper"
Integration.only "zjit"

class TestJitCounters < Integration::Test
  FLAGS = %w[--zjit-call-threshold=2 --vm-trace=counters --vm-trace-file=%p.fxt].freeze

  # Nothing is compiled from where statistics are read to the end of the trace, and the main program is interpreted.
  TAIL = <<~'RUBY'
    stats = RubyVM::ZJIT.stats
    RubyVM::Trace.stop
    stats.each { |name, count| puts "#{name} #{count}" if count.is_a?(Integer) && count > 0 }
  RUBY

  # Sums of others, what the compiler counts, and what is no count.
  NOT_OF_CODE = /\A(?:compile|profile|gc|invalidation)_.*time_ns\z|_bytes\z|_size\z|\Ainline_(?:reject_|method_count)
                 |\A(?:compiled|failed|reprofiled)_iseq_count\z|\Askipped_|\A(?:side_exit|dynamic_send|optimized_send|send
                 |dynamic_[gs]etivar|dynamic_definedivar|compiled_side_exit)_count\z|\A(?:vm|total)_insn_count\z/x

  # What many programs do that compiled code counts: sends of all kinds, variables, constants, exits.
  WORK = <<~'RUBY'
    class Shape
      attr_accessor :size
      def initialize(size) = (@size = size)
      def area = @size * @size
      def grow(by: 1) = (@size += by)
      def each = (i = 0; (yield i; i += 1) while i < 3)
    end
    class Circle < Shape
      def initialize(size) = (super; @round = true)
      def area = super * 3
    end
    class Text
      def area = "x".size + [3, 1, 2].max
    end
    LIMIT = 40
    def area_of(shape) = shape.area
    def sum(shapes)
      total = 0
      shapes.each { |shape| total += area_of(shape) }
      total
    end
    def work(n)
      shapes = [Shape.new(n), Circle.new(2), Text.new, Struct.new(:area).new(1)]
      shapes.first.grow(by: 2)
      shapes.first.each { |i| n += i }
      text = format("%d %s", n, sum(shapes).to_s)
      text << "!" if n < LIMIT
      eval("n + 1") if n % 10 == 0
      n & (2**70) if n == 35
      begin
        raise "x" if n % 7 == 0
      rescue => e
        text << e.message
      end
      defined?(@nothing) || text.sub("1", "2")
    end
  RUBY

  def counted(script, *flags, **options)
    result = run_ruby(script, *FLAGS, *flags, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  def counters(trace)
    trace.in_category("trace").select { |event| event["name"] == "counter" }.map { |event| event["args"] }
  end

  def sums(trace)
    counters(trace).each_with_object(Hash.new(0)) { |counter, sums| sums[counter["counter"]] += counter["hits"] }
  end

  def stats_in(text)
    text.lines.to_h { |line| line.chomp.match(/\A(.+) (\d+)\z/).then { |m| [m[1], Integer(m[2])] } }
        .reject { |name, _| NOT_OF_CODE.match?(name) }
  end

  # By the name of each counter; those that differ are seen.
  def assert_sums(stats, trace)
    refute_empty stats
    of_trace = sums(trace)
    names = stats.keys | of_trace.keys
    of_stats = stats.values_at(*names).zip(names).to_h { |count, name| [name, count || 0] }
    assert_equal of_stats, names.to_h { |name| [name, of_trace[name]] }
  end

  def test_sums_equal_zjits_statistics
    result = counted("#{WORK}\nn = 0\nn += 1 while work(n) && n < 60\n#{TAIL}", "--zjit-stats-quiet")
    stats = stats_in(result.out)
    assert_operator stats.keys.grep(/\A(?:send_fallback|exit)_/).size, :>, 3, stats.keys.join(" ")
    assert_sums stats, result.trace
    assert_equal sums(result.trace).values.sum, result.trace.summary["counted"]
  end

  def test_sums_equal_with_threads
    result = counted("#{WORK}\n4.times.map { |t| Thread.new { 30.times { |n| work(n + t) } } }.each(&:join)\n#{TAIL}",
                     "--zjit-stats-quiet")
    assert_sums stats_in(result.out), result.trace
  end

  # Those that have ended, too.
  def test_sums_equal_with_ractors
    script = <<~'RUBY'
      def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
      def join(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
      Warning[:experimental] = false
      join(Ractor.new { fib(12) })
      3.times.map { Ractor.new { fib(16) } }.each { |ractor| join(ractor) }
      fib(10)
    RUBY
    result = counted(script + TAIL, "--zjit-stats-quiet")
    assert_operator sums(result.trace)["iseq_optimized_send_count"], :>, 3 * 1000
    assert_sums stats_in(result.out), result.trace
  end

  # A child counts from 0.
  def test_a_forked_child_counts_its_own
    script = <<~'RUBY'
      def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
      fib(10)
      before = RubyVM::ZJIT.stats(:iseq_optimized_send_count)
      pid = fork do
        fib(15)
        after = RubyVM::ZJIT.stats(:iseq_optimized_send_count)
        RubyVM::Trace.stop
        puts after - before
      end
      Process.wait(pid)
      RubyVM::Trace.stop
      puts before
    RUBY
    result = counted(script, "--zjit-stats-quiet")
    in_parent = result.trace
    in_child = (result.traces - [in_parent]).first
    traced = [in_child, in_parent].map { |trace| sums(trace)["iseq_optimized_send_count"] }
    assert_equal result.out.split.map(&:to_i), traced
  end

  # Each of these is known: two calls of one method at line 8, and one of a method that many classes have at line 9.
  def test_each_line_has_its_counts
    script = <<~'RUBY'
      class A; def name = 1; end
      class B; def name = 2; end
      class C; def name = 3; end
      class D; def name = 4; end
      class E; def name = 5; end
      def direct(n) = n
      def calls(object)
        direct(direct(0))
        object.name
        nil
      end
      objects = [A.new, B.new, C.new, D.new, E.new, A.new, B.new, C.new, D.new, E.new]
      n = 0
      while n < 1010
        calls(objects[n % 10])
        n += 1
      end
    RUBY
    result = counted(script + TAIL, "--zjit-call-threshold=12", "--zjit-num-profiles=10", "--zjit-stats-quiet",
                     *Integration::NO_INLINING)
    assert_sums stats_in(result.out), result.trace
    lines = counters(result.trace).group_by { |counter| counter["location"] }
    at = lambda do |line, name|
      lines.fetch("Object#calls (script.rb:#{line})").select { |c| name === c["counter"] }.sum { |c| c["hits"] }
    end
    compiled = at[8, /\A(?:inline_)?iseq_optimized_send_count\z/] / 2
    assert_includes 990..1000, compiled
    assert_equal compiled, at[9, /\Asend_fallback_/]
    assert_equal 0, at[8, /\Asend_fallback_/]
    of_calls = lines.select { |location, _| location.start_with?("Object#calls ") }.values.flatten
    assert_equal compiled, of_calls.select { |c| c["counter"].start_with?("send_fallback_") }.sum { |c| c["hits"] }
  end

  # ZJIT's own statistics stay off, and what the code counts is the same.
  def test_without_zjits_statistics
    script = "#{WORK}\nn = 0\nn += 1 while work(n) && n < 60\n"
    with = counted("#{script}#{TAIL}", "--zjit-stats-quiet").trace
    without = counted(script + <<~RUBY)
      p RubyVM::ZJIT.stats_enabled?, RubyVM::ZJIT.stats.key?(:zjit_insn_count)
      RubyVM::Trace.stop
    RUBY
    assert_equal %w[false false], without.out.split
    # Other counters count what statistics themselves do.
    names = sums(with).keys.grep(/\A(?:send_fallback_|exit_|iseq_optimized)/)
    assert_equal sums(with).values_at(*names), sums(without.trace).values_at(*names)
  end

  def test_a_start_in_a_running_program_says_what_to_do
    result = run_ruby("begin; RubyVM::Trace.start(counters: true); rescue => e; puts e.message; end", "--zjit")
    assert_equal "counters are a part of compiled code: start the program with ZJIT and --vm-trace=counters\n", result.out
  end

  def test_full_has_no_counters
    result = run_ruby("1.times {}", "--zjit", "--vm-trace=full", "--vm-trace-file=%p.fxt")
    refute_includes result.trace.settings["flags"].split, "counters"
  end

  def test_only_requested_methods_count
    script = "def foo = 1.then { _1 }\ndef bar = 2.then { _1 }\n5.times { foo; bar }\n"
    result = counted(script + TAIL, "--vm-trace-methods=*foo")
    refute_empty counters(result.trace)
    assert_empty counters(result.trace).map { |counter| counter["location"] }.grep_v(/foo/)
  end

  # What the tool makes of it: the same numbers.
  def test_the_report_has_the_sums
    result = counted("#{WORK}\nn = 0\nn += 1 while work(n) && n < 60\n#{TAIL}", "--zjit-stats-quiet")
    command = [Trace::TOOL, "report", "--counters", "--top=100000", "--format=json", result.trace.path]
    report = JSON.parse(IO.popen(command, &:read))
    assert_equal sums(result.trace), report.fetch("counters").fetch("rows").to_h { |row| [row["counter"], row["hits"]] }
    %w[counters_by_method counters_by_line].each do |table|
      assert_equal sums(result.trace).values.sum, report.fetch(table).fetch("rows").sum { |row| row["hits"] }
    end
  end
end
