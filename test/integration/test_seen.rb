# What an exit says that its guard has met: `seen`, with `index` and `length`.
require_relative "helper"

class TestSeen < Integration::Test
  # Recorded exits of a method, in their order: [seen, index, length].
  def seen(result, method)
    exits = result.trace.exits.select { |event| event["args"]["0"].match?(/\b#{method} \(/) }
    exits.map { |event| event["args"].values_at("seen", "index", "length") }
  end

  # Each exits where compiled code guards that the index of an array is a small integer.
  CLASSES = <<~'RUBY'
    class Foo; end
    class Bare < BasicObject
      def method_missing(name, *) = ::Kernel.puts("called #{name}")
      def respond_to_missing?(*) = true
    end
    class Unmade; def initialize = raise("never made"); end
    def at(list, index) = list[index]
    def try(index) = at([1, 2], index)
    rescue_all = ->(index) { begin; try(index); rescue ::TypeError, ::RangeError; 0; end }
    ([1] * 60).each { |index| rescue_all.(index) } # of a type that the caller does not know, for YJIT
    singleton = Foo.new
    def singleton.x = 1
    unnamed = Class.new(Foo)
    named_late = Class.new(Foo)
    late = named_late.new
    values = {
      1.5 => "Float", 1.0e-300 => "Float (heap)", nil => "NilClass", true => "TrueClass", false => "FalseClass",
      :a => "Symbol", 2**70 => "Integer (bignum)", "a" => "String", (0..1) => "Range", Foo => "#<Class:Foo>",
      Comparable => "Module", Foo.new => "Foo", singleton => "#<Class:#<Foo>>", unnamed.new => "#<Class(Foo)>",
      Unmade.allocate => "Unmade", String.allocate => "String", Foo.singleton_class => "#<Class:#<Class:Foo>>",
      Struct.new(:a).new(1) => "#<Class(Struct)>"
    }.compare_by_identity
    expected = []
    values.each { |value, name| 3.times { rescue_all.(value); expected << name } }
    2.times { values.each { |value, name| rescue_all.(value); expected << name } }
    rescue_all.(late)
    NamedLate = named_late
    rescue_all.(late)
    expected << "#<Class(Foo)>" << "NamedLate"
    rescue_all.(Bare.new)
    expected << "Bare"
    File.write("expected", expected.join("\n"))
  RUBY

  def test_classes_of_what_was_met
    run = trace(CLASSES)
    expected = File.readlines(File.join(run.dir, "expected"), chomp: true)
    assert_equal expected, seen(run, "at").map(&:first)
    assert_equal run_ruby(CLASSES).out, run.out # what was called on Bare was not the tracer's
  end

  # The class and its name go, and another one takes their place in memory.
  def test_class_that_is_freed
    run = trace(<<~'RUBY')
      def at(list, index) = list[index]
      def try(index) = (at([1, 2], index) rescue 0)
      ([1] * 60).each { |index| try(index) }
      expected = []
      500.times do |i|
        name = "Short#{i}"
        Object.const_set(name, Class.new)
        try(Object.const_get(name).new)
        expected << name
        Object.send(:remove_const, name)
        GC.start if i % 10 == 0
      end
      GC.verify_compaction_references(expand_heap: true) rescue 0
      File.write("expected", expected.join("\n"))
    RUBY
    assert_equal File.readlines(File.join(run.dir, "expected"), chomp: true), seen(run, "at").map(&:first)
  end

  # So that what is met again exits again, with the same stack.
  ONE_VERSION = [*(%w[--zjit-max-versions=1] if Integration.can?(:recompile_exits)), *Integration::NO_INLINING].freeze

  # Exits of one site with one stack: what is kept of the last one must not be what is said of the next.
  # Each step says what is met then, and its name.
  def test_class_that_is_renamed_between_exits
    run = trace(<<~'RUBY', *ONE_VERSION)
      def at(list, index) = list[index]
      def try(index) = (at([1, 2], index) rescue 0)
      ([1] * 60).each { |index| try(index) }
      expected = []
      20.times do |i|
        klass, outer = Class.new, Module.new
        object, own, sub = klass.new, klass.new, Class.new(klass).new
        def own.x = 1
        names = lambda do |name|
          { object => name, own => "#<Class:#<#{name}>>", sub => "#<Class(#{name})>", klass => "#<Class:#{name}>" }
        end
        [
          -> { names.("#<Class(Object)>").merge(sub => "#<Class(#<Class(Object)>)>") },
          lambda do
            klass.set_temporary_name("temporary<#{i}>") if klass.respond_to?(:set_temporary_name)
            names.("#<Class(Object)>").merge(sub => "#<Class(#<Class(Object)>)>")
          end,
          lambda do
            outer.const_set(:Inner, klass) # a name that is not permanent
            names.("#<Class(Object)>").merge(sub => "#<Class(#<Class(Object)>)>")
          end,
          -> { Object.const_set("Outer#{i}", outer); names.("Outer#{i}::Inner") },
          -> { Object.const_set("Alias#{i}", klass); Object.send(:remove_const, "Outer#{i}"); names.("Outer#{i}::Inner") },
          -> { Object.const_set("Sub#{i}", sub.class); names.("Outer#{i}::Inner").merge(sub => "Sub#{i}") }
        ].each do |step|
          met = step.call
          3.times { met.each { |value, name| 2.times { try(value); expected << name } } }
        end
      end
      File.write("expected", expected.join("\n"))
    RUBY
    assert_equal File.readlines(File.join(run.dir, "expected"), chomp: true), seen(run, "at").map(&:first)
  end

  # Classes come and go in each of these ractors, and the address of one becomes that of another.
  SHORT = <<~'RUBY'
    def at(list, index) = list[index]
    def other_at(list, index) = list[index]
    def try(index) = (at([1, 2], index) rescue 0)
    def other_try(index) = (other_at([1, 2], index) rescue 0)
    ([1] * 60).each { |index| try(index); other_try(index) }
    def meet(prefix, method, count)
      count.times.flat_map do |i|
        name = "#{prefix}#{i}"
        Object.const_set(name, Class.new)
        value = Object.const_get(name).new
        2.times { __send__(method, value) }
        Object.send(:remove_const, name)
        value = nil
        yield i
        [name, name]
      end
    end
  RUBY

  def test_classes_that_are_freed_and_moved
    run = trace(SHORT + <<~'RUBY', *ONE_VERSION)
      GC.auto_compact = true rescue 0
      expected = meet("Short", :try, 400) do |i|
        GC.stress = i % 40 == 7
        GC.compact if i % 20 == 0 && GC.respond_to?(:compact)
        GC.start if i % 5 == 0
      end
      GC.stress = false
      File.write("expected", expected.join("\n"))
    RUBY
    assert_equal File.readlines(File.join(run.dir, "expected"), chomp: true), seen(run, "at").map(&:first)
  end

  def test_classes_that_are_freed_in_two_ractors
    run = trace(SHORT + <<~'RUBY', *ONE_VERSION, recorders: 2)
      Warning[:experimental] = false
      ractor = Ractor.new { meet("Other", :other_try, 200) { |i| GC.start if i % 5 == 0 } }
      expected = meet("Short", :try, 200) { |i| GC.start if i % 5 == 0 }
      File.write("expected", expected.join("\n"))
      File.write("other", ractor.value.join("\n"))
    RUBY
    { "at" => "expected", "other_at" => "other" }.each do |method, file|
      assert_equal File.readlines(File.join(run.dir, file), chomp: true), seen(run, method).map(&:first)
    end
  end

  def test_operand_that_is_assigned_to_several_variables
    run = trace(<<~'RUBY')
      def two(value) = ((x, y = value); y)
      ([[1, 2]] * 60).each { |value| two(value) }
      (1..6).each { |n| 10.times { two([1] * n) } } # until YJIT makes no further versions
      ([nil, 7] * 2).each { |value| two(value) }
    RUBY
    arrays, others = seen(run, "two").partition { |seen, *| seen == "Array" }
    assert_equal [%w[NilClass], %w[Integer]] * 2, others.map(&:compact)
    return unless JIT == "zjit" # compiled for a certain length
    assert_includes arrays, ["Array", nil, 1]
  end

  def test_index_and_length
    run = trace(<<~'RUBY')
      def byte(text, index) = text.getbyte(index)
      ([1] * 60).each { |index| byte("abc", index) }
      [["abc", 7], ["äbcd", -2], ["", 2**40]].each { |text, index| byte(text, index) }
    RUBY
    found = [["String", 7, 3], ["String", -2, 5], ["String", 2**40, 0]]
    found.delete_at(1) if Integration.can?(:recompile_exits) # later ZJITs compile negative indexes
    assert_equal found, seen(run, "byte")
  end
  remove_method :test_index_and_length if BASE < "ruby-4.0" # calls the method in C

  # One of two operands is what was expected; which one was not is said.
  def test_either_operand
    run = trace(<<~'RUBY')
      def plus(a, b) = a + b
      60.times { plus(1, 2) }
      plus(1, 2.5)
      plus(2.5, 1)
      plus("a", "b")
      plus(1, 2**70)
      plus(nil, 1) rescue 0
    RUBY
    assert_equal ["Float", "Float", "String", "Integer (bignum)", "NilClass"], seen(run, "plus").map(&:first)
  end
  zjit_only :test_either_operand

  def test_receiver_of_a_call_with_arguments
    run = trace(<<~'RUBY')
      class A; def call(x, y) = x; end
      class B < A; end
      class C; def call(x, y) = y; end
      def send_to(object) = object.call(1, 2.5)
      a = A.new
      60.times { send_to(a) }
      send_to(B.new)
      send_to(C.new)
    RUBY
    assert_equal %w[B C], seen(run, "send_to").map(&:first)
  end
  zjit_only :test_receiver_of_a_call_with_arguments

  # Classes and their instance variables.
  def test_shapes
    run = trace(<<~'RUBY')
      class Point
        attr_reader :x
        def initialize(x) = @x = x
        def double = @x * 2
      end
      class Far < Point
        def initialize(x) = (@z = 0; @x = x)
      end
      def double(point) = point.double
      point, far = Point.new(1), Far.new(1)
      60.times { point.double }
      far.double
    RUBY
    (met, *), *others = seen(run, "double")
    assert_empty others
    assert_match(/\AFar @x \(@z, @x(?: of \d+)?\)\z/, met)
    assert_match(/\AGuardShape\(@x(?: of \d+)?\)\z/, run.trace.exits.find { |event| event["args"]["seen"] == met }["name"])
  end
  zjit_only :test_shapes

  # Objects of one class that came to their variables in several ways, in turn at one place.
  def test_shapes_of_one_class
    run = trace(<<~'RUBY', *ONE_VERSION)
      class Point
        def initialize(*names) = names.each { |name| instance_variable_set("@#{name}", 1) }
        def double = @x * 2
      end
      60.times { Point.new(:x).double }
      others = [[:y, :x], [:x, :y], [*:a..:w, :x]].map { |names| Point.new(*names) } << Point.new(:b, :x).freeze
      3.times { others.each { |other| 2.times { other.double } } }
    RUBY
    met = seen(run, "double").map { |name, *| name.gsub(/ of \d+/, "") }
    turns = ["(@y, @x)", "(@x, @y)", "(@a, @b, @c, @d, 12 more, @q, @r, @s, @t, @u, @v, @w, @x)", "(@b, @x, frozen)"]
    turns = 3.times.flat_map { turns.flat_map { |has| ["Point @x #{has}"] * 2 } }
    skip "the method is compiled again for what it meets" if met.size < turns.size
    assert_equal turns, met
  end
  zjit_only :test_shapes_of_one_class

  # The numbers of frames that have arguments of their own make room.
  def test_deep_stacks_at_a_rate
    run = trace(<<~'RUBY', "--zjit-trace-exits-sample-rate=2")
      def at(list, index) = list[index]
      def deep(n, index) = n == 0 ? at([1, 2], index) : deep(n - 1, index)
      ([1] * 60).each { |index| deep(0, index) }
      ([1.5] * 100).each { |index| deep(20, index) }
    RUBY
    assert_equal [["Float", nil, nil]], seen(run, "at").uniq
    assert_operator run.trace.exits.size, :>, Integration.can?(:recompile_exits) ? 1 : 40
  end

  # Programs of which each method works on certain operands, beside values of a class that is no
  # operand anywhere. Each notes what it passes; GC and compaction run in between.
  ANY = <<~'RUBY'
    class Beside; def to_s = "beside"; end
    BESIDE = Beside.new
    class Foo
      attr_accessor :x
      def initialize(x = 1) = @x = x
      def call(a, b = 2, k: 3) = a
      def get = [BESIDE, @x, :beside]
      def set(v) = [BESIDE, (@x = v), :beside]
      def each = yield(self, 1)
      def +(other) = other
      def to_int = 1
    end
    class Wide < Foo; def initialize = (@a = @b = @c = 1; super); end
    class Bare < BasicObject; def call(a, b = 2, k: 3) = a; end
    class List < Array; end
    class Text < String; end

    # name => operands that a guard may look at
    METHODS = {
      "add" => ["a", "b"], "less" => ["a", "b"], "at" => ["a", "b"], "put" => ["a", "b"], "send_to" => ["a"],
      "send_keyword" => ["a"], "send_splat" => ["a"], "send_block" => ["a"], "accessor" => ["a"], "write" => ["a"],
      "text" => ["a"], "unpack" => ["a"], "byte" => ["a", "b"], "append" => ["a", "b"], "choose" => ["a"],
      "give" => ["a", "b"], "kind" => ["a", "b"], "late" => ["a", "b"], "equal" => ["a", "b"], "long" => ["a"],
      "splat_keywords" => ["a", "b"]
    }
    def add(a, b) = [BESIDE, a + b, BESIDE]
    def less(a, b) = [BESIDE, (a < b), BESIDE]
    def at(a, b) = [BESIDE, a[b], BESIDE]
    def put(a, b) = [BESIDE, (a[b] = BESIDE), BESIDE]
    def send_to(a) = [BESIDE, a.call(BESIDE, BESIDE), BESIDE]
    def send_keyword(a) = [BESIDE, a.call(BESIDE, k: BESIDE), BESIDE]
    def send_splat(a) = [BESIDE, a.call(*[BESIDE, BESIDE]), BESIDE]
    def send_block(a, &block) = [BESIDE, a.call(BESIDE, &block), BESIDE]
    def accessor(a) = [BESIDE, a.x, BESIDE]
    def write(a) = [BESIDE, (a.x = BESIDE), BESIDE]
    def text(a) = [BESIDE, "#{BESIDE}#{a}", BESIDE]
    def unpack(a) = ((x, y = a); [BESIDE, x, y])
    def byte(a, b) = [BESIDE, a.getbyte(b), BESIDE]
    def append(a, b) = [BESIDE, a << b, BESIDE]
    def choose(a) = [BESIDE, (case a when 1 then 2 when 3 then 4 when :e then 5 end), BESIDE]
    def give(a, b) = [BESIDE].each { |x| return [x, a + b] }
    def kind(a, b) = [BESIDE, a.is_a?(b), BESIDE]
    def late(a, b) = (begin; BESIDE; ensure; b = [BESIDE, a - b]; end; b)
    def equal(a, b) = [BESIDE, a == b, BESIDE]
    def long(a) = [BESIDE, a.length, BESIDE]
    def splat_keywords(a, b) = [BESIDE, a.call(BESIDE, **b), BESIDE]

    usual = {
      "at" => [[1, 2], 1], "put" => [[1, 2], 1], "send_to" => [Foo.new], "send_keyword" => [Foo.new],
      "send_splat" => [Foo.new], "send_block" => [Foo.new], "accessor" => [Foo.new], "write" => [Foo.new],
      "text" => ["a"], "unpack" => [[1, 2]], "byte" => ["abc", 1], "append" => [+"a", "b"], "choose" => [1],
      "kind" => [Foo.new, Foo], "equal" => ["a", "b"], "long" => ["abc"], "splat_keywords" => [Foo.new, { k: 1 }]
    }
    usual.default = [1, 2]
    singleton = Foo.new
    def singleton.y = 1
    unnamed = Class.new(Foo)
    string = Text.new("abc")
    make = [
      [->(i) { i }, "Integer"], [->(i) { -i }, "Integer"], [->(i) { 2**64 + i }, "Integer (bignum)"],
      [->(i) { i + 0.5 }, "Float"], [->(i) { 1.0e-300 * (i + 1) }, "Float (heap)"],
      [->(_) { nil }, "NilClass"], [->(_) { true }, "TrueClass"], [->(_) { false }, "FalseClass"],
      [->(i) { "abc" + i.to_s }, "String"], [->(_) { string.dup }, "Text"],
      [->(i) { [1] * (i % 5) }, "Array"], [->(_) { List.new([1, 2]) }, "List"], [->(i) { { k: i } }, "Hash"],
      [->(_) { :a }, "Symbol"], [->(i) { "unknown#{i}".to_sym }, ["Symbol", "Symbol (dynamic)"]],
      [->(_) { 1..2 }, "Range"], [->(_) { Foo.new }, "Foo"], [->(_) { Wide.new }, "Wide"], [->(_) { Bare.new }, "Bare"],
      [->(_) { singleton }, "#<Class:#<Foo>>"], [->(_) { unnamed.new }, "#<Class(Foo)>"],
      [->(_) { Foo }, "#<Class:Foo>"], [->(_) { Comparable }, "Module"],
      [->(_) { Foo.allocate }, "Foo"], [->(_) { String.allocate }, "String"],
      [->(_) { Array.allocate.freeze }, "Array"], [->(i) { c = Class.new(Foo); c.new }, "#<Class(Foo)>"],
      [->(_) { o = Foo.new; o.instance_variable_set(:@z, 1); o }, "Foo"]
    ]
    names = {
      Integer => "Integer", String => "String", Array => "Array", Hash => "Hash", Foo => "Foo", Class => "#<Class:Foo>"
    }
    passed = Hash.new { |hash, method| hash[method] = {} }
    METHODS.each_key do |method|
      60.times { __send__(method, *usual[method].map { |value| ::String === value ? value.dup : value }) }
      usual[method].each { |value| passed[method][names.fetch(value.class)] = true }
    end
    random = Random.new(7)
    METHODS.each do |method, operands|
      choices = operands.map { make.sample(4, random: random) } # few, so that another one is noticed
      ROUNDS.times do |i|
        values = operands.each_index.map do |n|
          if random.rand(3) == 0
            value = usual[method][n]
            passed[method][names.fetch(value.class)] = true
            ::String === value ? value.dup : value
          else
            maker, name = choices[n].sample(random: random)
            Array(name).each { |one| passed[method][one] = true }
            maker.(i)
          end
        end
        GC.stress = i % 50 == 7
        begin
          __send__(method, *values)
        rescue StandardError, SystemStackError
          0
        end
        GC.stress = false
        GC.compact if i % 100 == 13 && GC.respond_to?(:compact)
      end
    end
    File.write("passed", passed.map { |method, seen| [method, *seen.keys].join("\t") }.join("\n"))
  RUBY

  def test_what_is_seen_was_passed
    run = trace("ROUNDS = #{LONG ? 3000 : 200}\n#{ANY}")
    lines = File.readlines(File.join(run.dir, "passed"), chomp: true)
    passed = lines.map { |line| line.split("\t") }.to_h { |method, *names| [method, names] }
    checked = Hash.new(0)
    run.trace.exits.each do |event|
      method, seen = event["args"]["0"][/([a-z_]+) \(/, 1], event["args"]["seen"]
      next unless seen
      refute_match(/Beside/, seen, event.inspect)
      next unless passed[method]
      checked[method] += 1
      assert_includes passed[method], seen.sub(/(?: @\w+)?(?: \((?:@|no variables|too many).*\))?\z/, ""), event.inspect
    end
    assert_operator checked.size, :>=, MIN_METHODS, checked.inspect
    assert_operator checked.values.sum, :>, 100, checked.inspect
  end
  MIN_METHODS = JIT == "zjit" ? 10 : 4
end
