# The names of reasons that the tool knows are those of the Ruby: vm-trace explain.
require_relative "helper"
require "open3"

Integration.only "zjit"

class TestReasons < Integration::Test
  # What counts an exit or a fallback, as ZJIT's source says.
  def counted
    stats = File.read(File.join(RUBY_SRC, "zjit/src/stats.rs"))
    %w[side_exit_counter send_fallback_counter].flat_map { |name| stats[/^pub fn #{name}\(.*?^}/m].scan(/=> ((?:exit|send_fallback)_\w+)/).flatten }.uniq
  end

  def test_explain_knows_every_counter
    out, status = Open3.capture2(Trace::TOOL, "explain")
    assert_predicate status, :success?
    known = out.lines.map { |line| line.split(/ {2,}/)[1].to_s.strip }
    assert_operator counted.size, :>, 65
    assert_empty counted.map { |name| name.sub(/\A(exit|send_fallback)_/, "") } - known
  end

  CLASSES = <<~'RUBY'
    class Foo; def self.go(x) = helper(x); def self.helper(x) = x + 1; end
    class Bar; def self.go(x) = x; end
    ANONYMOUS = Array.new(3) { Class.new(String) { def size_of_it = size } }
    OBJECTS = Array.new(2) { Object.new.tap { |object| def object.go(x) = x } }
    def on_anonymous(o) = o.size_of_it
    def on_classes(o) = o.go(1)
    def on_objects(o) = o.go(1)
    def redefined(x) = Foo.helper(x)
    60.times { on_anonymous(ANONYMOUS[0].new("a")); on_classes(Foo); on_objects(OBJECTS[0]); redefined(1) }
    RubyVM::Trace.start(file: "started.fxt") if ARGV[0]
    30.times { |i| on_anonymous(ANONYMOUS[i % 3].new("a")); on_classes([Foo, Bar][i % 2]); on_objects(OBJECTS[i % 2]) }
    class Foo; def self.helper(x) = x + 2; end
    3.times { redefined(1) }
  RUBY

  # An address differs from run to run: with one, the exits of one place had as many reasons as there were runs.
  def test_reasons_have_the_names_of_classes_and_no_addresses
    runs = [trace(CLASSES), run_ruby(CLASSES, "--zjit-call-threshold=2", args: ["start"])]
    runs.each do |result|
      assert_predicate result.status, :success?, result.err
      reasons = result.trace.sites.map { |site| site["reason"] }.uniq
      assert_empty reasons.grep(/0x\h/)
      # What precedes the class differs between bases: ClassSubclass, ModuleSubclass
      %w{[class_exact*:#<Class:Foo>]) [class_exact:#<Class(String)>]) [class_exact*:#<Class:#<Object>>])}.each do |ending|
        assert reasons.any? { |reason| reason.match?(/\AGuardType\(\w+/) && reason.end_with?(ending) }, [ending, reasons]
      end
    end
  end

  # The place of an exit in an inlined method has the method's owner, whether one of its exits was recorded or not.
  def test_places_have_the_same_names_at_any_rate
    script = <<~'RUBY'
      module Mixin; def mixed(x) = x + 1; end
      class Outer
        include Mixin
        def inner(x) = x + 1
        def self.of_class(x) = x + 1
        def call(x) = [inner(x), mixed(x), Outer.of_class(x)]
      end
      outer = Outer.new
      60.times { outer.call(1) }
      3.times { outer.call(4_611_686_018_427_387_903) }
    RUBY
    every, few = [1, 97].map do |rate|
      trace(script, "--zjit-trace-exits-sample-rate=#{rate}").trace.sites.map { |site| site.values_at("hits", "reason", "insn", "location").join(" ") }.sort
    end
    assert_equal every, few
    %w[Outer#inner Mixin#mixed Outer.of_class].each { |method| assert few.any? { |site| site.include?(" #{method} (") }, "#{method}: #{few}" }
  end

  # One entry has all handlers of a method: its exits are told apart by where they go on.
  def test_places_of_exception_handlers_are_the_lines_of_their_exits
    script = <<~'RUBY'
      def many(n)
        [1].each { break } if n.odd?
        n
        [1].each { |x| break x }
        while true
          begin
            raise "x"
          rescue
            break
          ensure
            n += 1
          end
        end
        [2].each { break }
      end
      60.times { |i| many(i) }
    RUBY
    every, few = [1, 97].map { |rate| trace(script, "--zjit-trace-exits-sample-rate=#{rate}").trace }
    lines = ->(trace) { trace.sites("ExceptionHandler").group_by { |site| site["location"] }.transform_values { |sites| sites.sum { |site| site["hits"] } } }
    assert_equal every.exits("ExceptionHandler").map { |event| event["args"]["0"] }.tally, lines.(every)
    assert_equal lines.(every), lines.(few)
    assert_operator lines.(few).size, :>, 3
  end

  FALLBACKS = <<~'RUBY'
    class A; attr_reader :shape; def initialize(n) = n.times { |i| instance_variable_set("@v#{i}", i); @shape = i }; def go = 1; def up(x) = x; end
    class B < A; def go = 2; def up(x) = super; end
    class C < A; def go = 3; end
    class D < A; def go = 4; end
    class E < A; def go = 5; end
    class F < A; def read = @shape; end
    def dispatch(o) = o.go
    def block_of = yield
    many = [A, B, C, D, E].map { |k| k.new(1) }
    shapes = (1..9).map { |n| F.new(n) }
    100.times { |i| dispatch(many[i % 5]); many[1].up(i); shapes[i % 9].read; block_of(&[:a.to_proc, proc { 1 }, -> { 2 }, method(:puts).to_proc][i % 2 + 1]) }
    stats = RubyVM::ZJIT.stats
    puts stats.select { |name, value| name.match?(/[gs]etivar_fallback_/) && value > 0 }.map { |name, value| "#{name} #{value}" }
  RUBY

  # Where exits do not lead to a recompilation, more calls are profiled before: else places have one
  # class, and exit.
  MORE_PROFILES = Integration.can?(:recompile_exits) ? [].freeze : %w[--zjit-call-threshold=10 --zjit-num-profiles=9].freeze

  # Not only where --zjit-stats has the counters.
  def test_fallbacks_of_instance_variables_have_their_reasons_without_stats
    sites = trace(FALLBACKS.lines.grep_v(/stats/).join, "--zjit-trace-fallbacks", *MORE_PROFILES).trace.sites
    expected = Integration.can?(:recompile_exits) ? "getivar_fallback_no_side_exits" : "getivar_fallback_not_monomorphic"
    assert_includes sites.map { |site| site["reason"] }, expected
  end

  def test_fallbacks_say_where_what_and_why
    result = run_traced(FALLBACKS, "--zjit-trace-fallbacks", "--zjit-stats-quiet", *MORE_PROFILES)
    assert_predicate result.status, :success?, result.err
    fallbacks = result.trace.in_category("fallback")
    assert_includes fallbacks.map { |event| event["args"]["callee"] }, "go"
    fallbacks.each { |event| assert_kind_of String, event["args"]["callee"], event }
    sites = result.trace.sites.select { |site| site["kind"] == "fallback" }
    assert_equal sites.flat_map { |site| [site["callee"]] * site["hits"] }.tally, fallbacks.map { |event| event["args"]["callee"] }.tally
    # As --zjit-stats counts them.
    counted = result.out.lines.to_h { |line| [line[/\A\S+/], line.split.last.to_i] }
    refute_empty counted
    assert_equal counted, sites.select { |site| site["reason"].match?(/ivar/) }.group_by { |site| site["reason"] }.transform_values { |of| of.sum { |site| site["hits"] } }
    assert_equal ["@shape"], sites.select { |site| site["reason"].start_with?("getivar") }.map { |site| site["callee"] }.uniq
    out, = Open3.capture2(Trace::TOOL, "report", "--top=1000", "--format=csv", "--table=fallbacks", result.trace.path)
    rows = CSV.parse(out, headers: true)
    assert_includes rows["callee"], "go"
    assert rows["method"].all? { |method| method.match?(/:\d+\)\z/) }, rows["method"].inspect
    assert_equal fallbacks.size, rows["count"].sum(&:to_i)
  end

  def test_a_reason_is_traced_and_chosen_by_the_names_that_explain_gives
    result = trace("def foo = (::RubyVM::ZJIT.induce_side_exit!)\n20.times { foo }\n")
    counter = jit("exit_directive_induced")
    [jit("DirectiveInduced"), counter.delete_prefix("exit_"), counter].each do |name|
      out, = Open3.capture2(Trace::TOOL, "report", "--format=csv", "--table=totals", "--reason=#{name}", result.trace.path)
      assert_operator out.lines[1].to_i, :>, 10, name
    end
  end
end
