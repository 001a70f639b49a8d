# Tracing does not change what it observes: the same exits, compilations and invalidations, traced
# or not.
require_relative "helper"

class TestObserverEffect < Integration::Test
  # Read by the process at its end: all counters of --zjit-stats except those of time, memory and
  # frames written, which differ from run to run; of calls by name, because a traced exit calls
  # other C functions (and YJIT's lists of the most frequent ones change where counts are equal);
  # and YJIT's counters of machine instructions, which are more, and of cached contexts, which are
  # found by address.
  PRINT = <<~'RUBY'
    at_exit do
      counts = RubyVM::ZJIT.stats.reject { |key, _| key.match?(/time|bytes|size|_ns\z|page_count|\Accall_|_calls\z|\Avm_write_|\Atemp_|_x86_|exec_mem|context_cache/) }
      File.write("counts", counts.map { |key, value| "#{key}=#{value}" }.join("\n"))
    end
  RUBY

  FLAGS = {
    "every exit" => %w[--zjit-trace-exits],
    "one in 97" => %w[--zjit-trace-exits-sample-rate=97],
    "states" => %w[--vm-trace=states],
    "everything" => ["--zjit-trace-exits", "--zjit-trace-compiles", "--zjit-trace-invalidation", *("--zjit-trace-fallbacks" if JIT == "zjit")],
  }.freeze

  # Our programs, beside those of CRuby's benchmark folder.
  OWN = {
    polymorphic: <<~'RUBY',
      def show(x) = x.to_s
      def pick(x)
        if x == 1 then x.inspect
        elsif x == 2 then x.to_f
        elsif x == 3 then x.chr
        elsif x == 4 then x.hash.zero?
        else x
        end
      end
      def add(a, b) = a + b
      class A; attr_reader :x; def initialize(x) = (@y = 1 if x.odd?; @x = x); end
      200.times do |i|
        show([i, :a, nil, 1.5, "s"][i % 5])
        pick(i / 20)
        add(i, 4_611_686_018_427_387_900)
        A.new(i).x
      end
    RUBY
    redefinition: <<~'RUBY',
      def one = 1
      def two = one + one
      class B; def to_s = "b"; end
      100.times do |i|
        two
        "#{B.new}"
        eval("def one = #{i}") if i % 10 == 0
        B.class_eval("def to_s = '#{i}'") if i % 15 == 0
        B.new.singleton_class if i == 50
      end
      class Integer; def +(other) = 0; end
      50.times { two }
    RUBY
    exceptions: <<~'RUBY',
      def raises(x) = x > 2 ? raise(ArgumentError, "x") : x
      def rescues(x)
        raises(x)
      rescue ArgumentError
        x.times { |i| i + 1 }
      ensure
        x.to_s
      end
      def breaks(a) = a.each { |x| break x if x > 2 }
      def adds(x) = x + 4_611_686_018_427_387_900
      300.times { |i| rescues(i % 5); breaks([1, 2, 3, 4]); catch(:t) { throw :t if i.odd? }; adds(i % 5) }
    RUBY
    deep_and_uncompiled: <<~'RUBY',
      def fails = (::RubyVM::ZJIT.induce_compile_failure!; 1)
      def exits(n) = n == 0 ? (::RubyVM::ZJIT.induce_side_exit!) : exits(n - 1)
      200.times { |i| fails; exits(i % 50) }
    RUBY
    gc_and_evals: <<~'RUBY',
      400.times do |i|
        klass = Class.new { class_eval("def m#{i}(x) = x > 3 ? x.to_s : x") }
        object = klass.new
        6.times { |x| object.send("m#{i}", x) }
        GC.start if i % 100 == 0
      end
      GC.compact if GC.respond_to?(:compact)
    RUBY
  }.freeze

  # Programs of CRuby's benchmark folder that are deterministic, and exit. One of them takes minutes.
  BENCHMARKS = [*%w[app_answer app_uri], *(%w[app_factorial app_mandelbrot so_ackermann] if Integration::LONG)].freeze

  def counts(script, *flags)
    result = run_ruby(script, "-r./counts.rb", "--zjit-call-threshold=2", "--zjit-stats-quiet",
                      *("--zjit-trace-file=%p.fxt" if flags.any?), *flags, files: { "counts.rb" => PRINT })
    assert_predicate result.status, :success?, result.err
    assert_equal flags.empty? ? 0 : 1, result.traces.size
    found = File.read(File.join(result.dir, "counts")).lines(chomp: true).to_h { |line| line.rpartition("=").values_at(0, 2) }
    FileUtils.rm_f(result.traces.map(&:path))
    [found, result.out]
  end

  # What the conservative marking of the GC keeps alive differs from run to run, and so may a count.
  # So each count of each traced run must equal that of some untraced run; if not, more untraced
  # runs may show it. A rare effect of tracing shows in the traced run where it happens: no traced
  # run is repeated.
  MORE_RUNS = 12
  TRACED_RUNS = Integration::LONG ? 5 : 2

  # YJIT, and ZJIT where it does not exit to learn, exit from few of these programs; compilations are
  # compared all the same.
  def assert_unobserved(script, exits: true)
    untraced = [counts(script), counts(script)]
    assert_operator untraced[0][0]["side_exit_count"].to_i, :>, 0, "no exit at all" if exits
    FLAGS.each do |name, flags|
      TRACED_RUNS.times { assert_like_one_of(untraced, counts(script, *flags), name) { counts(script) } }
    end
  end

  # The block makes another untraced run.
  def assert_like_one_of(untraced, traced, name)
    differ = differences(untraced, traced)
    MORE_RUNS.times do
      break if differ.empty?
      untraced << yield
      differ = differences(untraced, traced)
    end
    assert_empty differ, name
    assert_includes untraced.map(&:last), traced.last, name
  end

  # How many objects the marking of a machine stack keeps alive depends on what lies there.
  KEPT_BY_CHANCE = %w[live_iseq_count freed_iseq_count].freeze

  def differences(untraced, traced)
    keys = [*untraced, traced].flat_map { |run, _| run.keys }.uniq
    seen = keys.to_h { |key| [key, untraced.map { |run, _| run[key] }.uniq] }
    near = lambda do |key, value|
      KEPT_BY_CHANCE.include?(key) && seen[key].any? { |other| (Integer(other) - Integer(value)).abs <= 3 }
    end
    keys.reject { |key| seen[key].include?(traced[0][key]) || near.call(key, traced[0][key]) }
      .map { |key| "#{key}: #{seen[key].join(" or ")} untraced, #{traced[0][key].inspect} traced" }
  end

  OWN.each do |name, script|
    next if script.include?("induce_compile_failure") && JIT != "zjit"
    # In two of them the YJIT of Ruby 3.3 never exits, in one that of Ruby 3.4.
    define_method("test_#{name}_is_the_same_traced") { assert_unobserved(script, exits: Integration::BASE >= "ruby-4.0") }
  end

  # The timer of Ruby 3.3 interrupts long programs, so no two runs are the same.
  BENCHMARKS.each do |name|
    next if Integration::BASE == "ruby-3.3"
    file = File.join(Integration::RUBY_SRC, "benchmark", "#{name}.rb")
    next unless File.exist?(file)
    define_method("test_#{name}_is_the_same_traced") { assert_unobserved(File.read(file), exits: Integration.can?(:recompile_exits)) }
  end

  # Starts and stops a trace twice; the other run calls status as often, which is also a method in
  # C.
  SWITCHED = <<~'RUBY'
    SWITCHES = ARGV.map { |name| RubyVM::Trace.method(name) }
    OPTIONS = ARGV[0] == "start" ? { file: "a.fxt", compiles: true, invalidations: true } : {}
    PROGRAM = -> {
      RUN
    }
    PROGRAM.()
    2.times do
      SWITCHES[0].call(**OPTIONS)
      PROGRAM.()
      SWITCHES[1].call
      PROGRAM.()
    end
  RUBY

  def switched_counts(script, *args)
    result = run_ruby(script, "-r./counts.rb", "--zjit-call-threshold=2", "--zjit-stats-quiet", args: args, files: { "counts.rb" => PRINT })
    assert_predicate result.status, :success?, result.err
    [File.read(File.join(result.dir, "counts")).lines(chomp: true).to_h { |line| line.rpartition("=").values_at(0, 2) }, result.out]
  end

  if JIT == "zjit" && Integration::BASE == "ruby-4.1"
    %i[polymorphic exceptions gc_and_evals deep_and_uncompiled].each do |name|
      define_method("test_#{name}_goes_on_as_if_it_had_not_been_traced_for_a_while") do
        # Definitions at the top, the rest again and again.
        run, definitions = OWN.fetch(name).split(/^(?=\d+\.times)/, 2).reverse
        script = definitions.to_s + SWITCHED.sub("RUN", run)
        untraced = 2.times.map { switched_counts(script, "status", "status") }
        TRACED_RUNS.times do
          traced = switched_counts(script, "start", "stop")
          assert_like_one_of(untraced, traced, "traced for a while") { switched_counts(script, "status", "status") }
        end
        assert_operator untraced[0][0]["side_exit_count"].to_i, :>, 0
      end
    end
  end
end
