# --vm-trace=allocations: judged by GC.stat, ObjectSpace and counts that the program knows.
#
# Once for each base: the JIT that allocates inline, ZJIT of ruby-4.1, is the first one there.
require_relative "helper"
require_relative "remote"
require "json"

class TestAllocations < Integration::Test
  include Remote

  T = "require 'json'; T = RubyVM::Trace\n"
  FATES = %w[freed alive].freeze
  KEYS = %w[sample size weight].freeze

  # The class of a buffer is that of the object that owned it, if one did: else "(buffer)".
  Sample = Struct.new(:number, :class_name, :size, :weight, :untracked, :thread, :frames, :fate, :survived, :malloc, :buffer) do
    # The estimate that the sample is a part of.
    def bytes = (size + malloc.to_i) * weight.fdiv(size)
  end

  def sampled(script, rate, *flags, **options)
    result = run_ruby(T + script, "--vm-trace=allocations:#{rate}", "--vm-trace-file=%p.fxt", *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err.lines.grep_v(/\A(vm_trace|[YZ]JIT): /).join
    result
  end

  # Each sample with what became of it. Numbers are unique, and each sample has one fate or is
  # untracked. `whole`: nothing was lost or is older than the trace.
  def samples(trace, whole: true)
    events = trace.in_category("allocation")
    allocated, ends = events.partition { |event| !FATES.include?(event["name"]) || !event["args"].key?("survived") }
    # Asserted for all at once: there may be a hundred thousand.
    assert_empty allocated.reject { |event| event["args"].values_at(*KEYS).all? }.first(3)
    assert_empty allocated.reject { |event| event["args"]["size"].between?(1, event["args"]["weight"]) }.first(3)
    found = allocated.to_h do |event|
      args = event["args"]
      [args["sample"],
       Sample.new(*args.values_at(*KEYS).insert(1, event["name"]), args["untracked"] == 1, event["thread"],
                  Trace.named_frames(event))]
    end
    assert_equal allocated.size, found.size, "a number is used twice"
    ends.each do |event|
      args = event["args"]
      sample = found[args["sample"]]
      # A flight recorder saves all of an object whose allocation was before a reset, or is gone.
      next assert(!whole || args.values_at("class", *KEYS).all?, "no sample #{args["sample"]}") unless sample
      flunk "two fates of #{sample}" if sample.fate
      flunk "fate of an untracked #{sample}" if sample.untracked
      sample.fate, sample.survived, sample.malloc = event["name"], args.fetch("survived"), args["malloc_bytes"]
      sample.class_name, sample.buffer = args["holder"], true if args["holder"]
    end
    if whole
      assert_empty found.values.reject { |sample| sample.untracked == sample.fate.nil? }.first(3)
      assert_equal [found.size, found.each_value.sum(&:weight), 0],
                   trace.summary.values_at("allocation_samples", "allocation_bytes", "lost")
    end
    found.values
  end

  # 80 bytes fit into the slots of each base: 40, 80, 160... or 32, 64, 96...
  CLASSES = <<~RUBY
    class Small; end
    module Outer; class Large; def initialize = (@a = @b = @c = @d = @e = @f = @g = 1); end; end
    require "objspace"
    GC.start
    small, large = ObjectSpace.memsize_of(Small.new), ObjectSpace.memsize_of(Outer::Large.new)
  RUBY

  # Bytes are unbiased, and each class has its share: 20,000 samples, whose sum has a standard
  # deviation of 0.7 %.
  # The errors of the classes in sigmas. In one run of 120 one of the three is above 3 by chance: five times in a row
  # that happens once in a billion times.
  def test_bytes_and_classes_are_those_of_the_program
    errors = nil
    5.times do
      errors = errors_of_classes.select { |_, error| error > 3 }
      break if errors.empty?
    end
    assert_empty errors
  end

  def errors_of_classes
    result = sampled(<<~RUBY, "4K")
      #{CLASSES}
      T.stop
      T.start(allocations: "4K", file: "measured.fxt")
      before = GC.stat(:total_allocated_objects)
      i = 0
      while i < 600_000
        Small.new
        Outer::Large.new if i % 2 == 0
        String.new if i % 3 == 0
        i += 1
      end
      after = GC.stat(:total_allocated_objects)
      T.stop
      puts JSON.generate([after - before, 600_000 * small, 300_000 * large,
                          200_000 * ObjectSpace.memsize_of(String.new)])
    RUBY
    objects, *bytes = JSON.parse(result.out)
    all = samples(result.traces.find { |trace| trace.path.end_with?("measured.fxt") })
    assert_operator all.size, :>, 10_000
    assert_in_delta 1_100_000, objects, 1_000
    assert_in_delta 1, all.sum(&:weight).fdiv(bytes.sum), 0.05
    assert_in_delta 1, all.sum { |sample| sample.weight.fdiv(sample.size) } / objects, 0.05
    %w[Small Outer::Large String].zip(bytes).to_h do |name, expected|
      of_class = all.select { |sample| sample.class_name == name }
      weight = of_class.map(&:weight).tally.max_by(&:last).first # but for a few strings of other sizes
      sigma = Math.sqrt(expected.fdiv(weight)) * weight
      [name, (expected - of_class.sum(&:weight)).abs / sigma]
    end
  end

  def test_each_object
    result = sampled(<<~RUBY, 1)
      class Foo; end
      def make = Foo.new
      def many = 100.times { make }
      many
      Array.new(10) { Class.new(Foo).new }
      Thread.new { Thread.current.name = "other"; 7.times { make } }.join
    RUBY
    all = samples(result.trace)
    foos = all.select { |sample| sample.class_name == "Foo" }
    assert_equal({ "main" => 100, "other" => 7 }, foos.map(&:thread).tally)
    assert_equal 10, all.count { |sample| sample.class_name == "#<Class(Foo)>" }
    assert_equal [true], foos.map { |sample| sample.size == sample.weight }.uniq
    foos.each { |sample| assert_match(/\A(Object#make|Class#new) /, sample.frames.first) }
    assert foos.all? { |sample| sample.frames.any?("Object#make (script.rb:3)") }
    assert_equal "main", foos.first.thread
    assert_equal 1, result.trace.settings["allocations"]
    assert all.any? { |sample| sample.class_name =~ /\A\([a-z]+\)\z/ }, "no internal object"
  end

  def test_classes_are_named_when_they_have_a_name
    result = sampled(<<~RUBY, 1)
      late = Class.new
      3.times { late.new }
      Late = late
      4.times { late.new }
      object = Object.new
      def object.one = 1
      500.times { |i| eval("class Many\#{i}; new; end") }
    RUBY
    names = samples(result.trace).map(&:class_name).tally
    assert_equal [3, 4], names.values_at("#<Class(Object)>", "Late")
    500.times { |i| assert_equal 1, names["Many#{i}"] }
  end

  # How many collections there were is what GC.count says.
  def test_survivors
    result = sampled(<<~RUBY, 1)
      class Kept; end; class Short; end; class Never; end
      GC.start
      $from = GC.count
      kept = Array.new(50) { Kept.new }
      def short(n) = n.times { Short.new }
      $count = GC.count
      3.times { GC.start }
      $after = GC.count
      held = Array.new(20) { Short.new }
      GC.start
      held.clear
      def clear(n) = n.zero? ? Array.new(30) { nil } : clear(n - 1)
      clear(100)
      3.times { GC.start }
      GC.disable
      never = Array.new(5) { Never.new }
      puts JSON.generate([GC.count - $from, GC.count - $count, GC.count - $after])
      p ObjectSpace.each_object(Kept).count, ObjectSpace.each_object(Short).count
    RUBY
    (most, least, of_short), kept, short = result.out.lines.map { |line| JSON.parse(line) }
    by_class = samples(result.trace).group_by(&:class_name)
    assert_equal 50, kept
    assert_equal({ "alive" => 50 }, by_class["Kept"].map(&:fate).tally)
    by_class["Kept"].each { |sample| assert_includes least..most, sample.survived }
    assert_equal short, by_class["Short"].count { |sample| sample.fate == "alive" }
    assert_operator short, :<=, 2, "found by the conservative walk of a stack"
    freed = by_class["Short"].select { |sample| sample.fate == "freed" }
    freed.each { |sample| assert_includes 1...of_short, sample.survived }
    assert_equal({ ["alive", 0] => 5 }, by_class["Never"].map { |sample| [sample.fate, sample.survived] }.tally)
  end

  # What died is in no later collection's way: a new object at its address has a fate of its own.
  def test_addresses_that_are_used_again
    result = sampled(<<~RUBY, 1)
      class Foo; end
      20.times { 500.times { Foo.new }; GC.start(full_mark: rand(2) == 0) }
      ids = ObjectSpace.each_object(Foo).count
      p ids
    RUBY
    foos = samples(result.trace).select { |sample| sample.class_name == "Foo" }
    assert_equal 10_000, foos.size
    assert_in_delta Integer(result.out), foos.count { |sample| sample.fate == "alive" }, 0
    assert_operator foos.count { |sample| sample.fate == "freed" }, :>, 9_000
  end

  # Minor collections leave old objects alone: they survive those, too.
  def test_old_objects_survive_minor_collections
    result = sampled(<<~RUBY, 1)
      class Kept; end
      kept = Array.new(50) { Kept.new }
      before = GC.count
      10.times { GC.start(full_mark: false); Array.new(1_000) { "text" } }
      p GC.count - before
    RUBY
    kept = samples(result.trace).select { |sample| sample.class_name == "Kept" }
    assert_equal ["alive"] * 50, kept.map(&:fate)
    kept.each { |sample| assert_includes Integer(result.out)..Integer(result.out) + 2, sample.survived }
  end

  def test_compaction_moves_samples
    result = sampled(<<~RUBY, 1)
      class Foo; end
      mixed = Array.new(4_000) { |i| i.even? ? Foo.new : Object.new }
      kept = mixed.select.with_index { |_, i| i % 4 == 0 }
      mixed.clear
      before = GC.count
      5.times { GC.compact }
      GC.auto_compact = true
      3.times { Array.new(20_000) { "text" }; GC.start }
      GC.auto_compact = false
      GC.start
      p GC.count - before, ObjectSpace.each_object(Foo).count, kept.size
      p GC.stat(:compact_count)
    RUBY
    collections, alive, kept, compactions = result.out.lines.map(&:to_i)
    assert_operator compactions, :>=, 5
    foos = samples(result.trace).select { |sample| sample.class_name == "Foo" && !sample.untracked }
    living = foos.select { |sample| sample.fate == "alive" }
    assert_operator living.size, :<=, alive
    assert_operator living.size, :>, kept / 2
    assert_operator living.count { |sample| sample.survived >= collections }, :>=, [kept, living.size].min - 5
  end

  # --- what objects hold by malloc, as ObjectSpace says ---

  GROWN = <<~RUBY
    require "objspace"
    class Text < String; end
    class List < Array; end
    class Map < Hash; end
    class Weak < ObjectSpace::WeakMap; end
    Row = Struct.new(*("a".."z").map(&:to_sym))
    class Bag; def fill = 60.times { |i| instance_variable_set("@v\#{i}", i) }; end
    class Idle; end
    def text(bytes) = Text.new.tap { |text| 10.times { text << "x" * (bytes / 10) } }
    def list(n) = List.new.tap { |list| n.times { |i| list << i } }
    def map(n) = Map.new.tap { |map| n.times { |i| map[i] = i } }
    def weak = Weak.new.tap { |weak| 500.times { |i| weak[i] = i } }
    def kinds(i, by) = [text(80 * by * (i + 1)), list(60 * by), map(20 * by), weak, Row.new, Bag.new.tap(&:fill), Idle.new]
    def all(by) = Array.new(10) { |i| kinds(i, by) }.flatten(1)
    def sizes(objects) = objects.group_by(&:class).to_h { |c, list| [c.name, list.sum { ObjectSpace.memsize_of(_1) }] }
  RUBY

  # Read at the end, when each has grown. Buffers of 1 KiB are samples of their own: what they were before is freed.
  def test_bytes_by_malloc
    result = sampled(GROWN + <<~RUBY, 1)
      kept = all(10)
      puts JSON.generate(sizes(kept))
    RUBY
    expected = JSON.parse(result.out)
    living = samples(result.trace).select { |sample| sample.fate == "alive" }.group_by(&:class_name)
    assert_equal 7, expected.size
    assert_equal expected, expected.keys.to_h { |name| [name, living.fetch(name).sum(&:bytes)] }
    assert_equal [0], living["Idle"].map(&:malloc).uniq
    assert_equal 10, living["Text"].count(&:buffer)
    assert_equal 10, living["List"].count(&:buffer)
  end

  # A collection that frees an object has read what it held. Only an extension's own function knows that of a WeakMap.
  # No buffer has 1 KiB here.
  def test_bytes_by_malloc_of_freed_objects
    result = sampled(GROWN + <<~RUBY, 1)
      expected = {}
      def clear(n) = n.zero? ? Array.new(30) { nil } : clear(n - 1)
      Thread.new { expected = sizes(all(1)); nil }.join
      clear(100)
      3.times { GC.start }
      puts JSON.generate(expected)
    RUBY
    expected = JSON.parse(result.out)
    freed = samples(result.trace).select { |sample| sample.fate == "freed" }.group_by(&:class_name)
    assert_equal [nil], freed["Weak"].map(&:malloc).uniq
    whole = (expected.keys - ["Weak"]).select { |name| freed.fetch(name, []).size == 10 }
    assert_operator whole.size, :>=, 4, "found by the conservative walk of a stack"
    # The function adds the terminator of a string, which a collection does not look for: it is one byte here.
    assert_equal expected.slice(*whole), whole.to_h { |name| [name, freed[name].sum(&:bytes)] }
  end

  # 100 strings hold nearly everything, and 100,000 objects nothing. At most one slot of these strings is a sample.
  def test_large_strings_of_one_method
    result = sampled(<<~RUBY, "64K")
      class Big; def fill = 100.times.map { "x" * 1_000_000 }; end
      class Small; def fill = 100_000.times.map { Object.new }; end
      a = Big.new.fill; b = Small.new.fill; a.size + b.size
    RUBY
    all = samples(result.trace)
    of = ->(method) { all.select { |sample| sample.frames.any? { |frame| frame.include?(method) } } }
    assert_includes 100_000_000..101_000_000, of["Big#fill"].sum(&:bytes)
    objects = of["Small#fill"].select { |sample| sample.class_name == "Object" }
    assert_in_delta 4_000_000, objects.sum(&:weight), STANDARD_ERRORS * Math.sqrt(4_000_000 * (64 << 10))
    report = JSON.parse(`#{Trace::TOOL} report --format=json #{result.trace.path}`)
    largest = report["live_by_method"]["rows"].first
    assert_match(/\A(Big#fill|String#\*) /, largest["method"])
    assert_includes 100_000_000..101_000_000, largest["bytes"]
    assert_equal "String", report["live_by_class"]["rows"].first["class"]
  end

  # Whose a buffer was: each kind that owns one, created or grown, by the interpreter and in C.
  def test_buffers_belong_to_the_object_that_owns_them
    result = sampled(<<~RUBY, 1)
      class Text < String; end
      T.stop
      grown = Text.new
      T.start(allocations: 1, file: "measured.fxt")
      kept = [("x" * 5_000), ("y" * 5_000).dup << "z" * 9_000, Array.new(700), [0].cycle.first(700),
              700.times.to_h { [_1, 1] }, 3 ** 40_000, ["a" * 3_000] * "-", ("b" * 3_000).then { _1 + _1 },
              File.binread("/proc/self/exe", 5_000), Marshal.load(Marshal.dump("m" * 3_000)), [1] * 600,
              (1..600).to_a.shuffle, "c" .ljust(3_000), ("d" * 3_000).encode("UTF-16LE"), "e,".*(2_000).split(",")]
      grown << "grown " * 1_000
      T.stop
    RUBY
    living = samples(file(result, "measured.fxt"), whole: false).select { |sample| sample.fate == "alive" && sample.buffer }
    tally = living.map(&:class_name).tally
    assert_operator tally["String"], :>=, 8, tally
    assert_operator tally["Array"], :>=, 5, tally
    assert_equal %w[Hash Integer Text], %w[Hash Integer Text] & tally.keys, tally
  end

  # A buffer that its object has replaced is freed, and so is one whose object is.
  def test_buffers_that_are_gone
    result = sampled(<<~RUBY, 1)
      kept = +""
      40.times { kept << "x" * 10_000; GC.start }
      Thread.new { 10.times { "y" * 77_000 } }.join
      GC.start
      kept.size
    RUBY
    buffers = samples(result.trace).select { |sample| sample.size > 20_000 && sample.class_name == "String" }
    alive, freed = buffers.partition { |sample| sample.fate == "alive" }
    assert_equal 1, alive.count { |sample| sample.size >= 400_000 }
    assert_operator freed.count { |sample| sample.size == 77_001 }, :>=, 8
    refute_empty freed.select { |sample| sample.survived > 0 && sample.size > 100_000 }, "it grew between collections"
  end

  # An estimate from one object in 400: each sample stands for the same bytes, and chance has sampled one more or less.
  def test_estimated_bytes_by_malloc
    result = sampled(<<~RUBY, "16K")
      require "objspace"
      class Text < String; end
      def leak = Text.new.tap { |text| text << "x" * 1_999 }
      kept = Array.new(60_000) { leak }
      GC.start
      puts ObjectSpace.memsize_of_all(Text)
    RUBY
    living = samples(result.trace).select { |sample| sample.class_name == "Text" && sample.fate == "alive" }
    assert_operator living.size, :>, 50
    mean = living.sum(&:bytes) / living.size
    expected = Integer(result.out)
    assert_in_delta expected, living.sum(&:bytes), STANDARD_ERRORS * Math.sqrt(expected / mean) * mean
  end

  # The memory is full of younger events when it is saved: the living samples have all that the report needs.
  LEAK = <<~RUBY
    class Leaker; def keep = ($kept ||= []) << "leak \#{$kept.size} " * 50; end
    class Noise; def make = Array.new(20) { Object.new }; end
    leaker, noise = Leaker.new, Noise.new
    grow = -> { 400.times { leaker.keep; 50.times { noise.make } }; GC.start }
  RUBY

  def test_leak_is_first_in_what_a_flight_recorder_saves
    result = run_ruby(T + LEAK + <<~RUBY)
      T.start(allocations: "1K", exits: false, memory: 4)
      grow.call
      T.save("first.fxt")
      3.times { grow.call }
      T.save("second.fxt")
      T.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    first, second = %w[first second].map { |name| file(result, "#{name}.fxt") }
    reports = [first, second].map { |trace| JSON.parse(`#{Trace::TOOL} report --format=json #{trace.path}`) }
    rows = reports.map { |report| report["live_by_method"]["rows"] }
    rows.each { |list| assert_match(/\A(Leaker#keep|String#\*) /, list.first["method"]) }
    assert_operator rows[1].first["bytes"], :>, 2 * rows[0].first["bytes"]
    events = second.in_category("allocation")
    allocated = events.select { |event| event["args"].key?("weight") && event["name"] != "alive" }
    allocated.map! { |event| event["args"]["sample"] }
    older = events.select { |event| event["name"] == "alive" && !allocated.include?(event["args"]["sample"]) }
    refute_empty older, "the memory still has all samples"
    leaked = older.select { |event| Trace.named_frames(event).any? { |frame| frame.include?("Leaker#keep") } }
    assert_operator leaked.size, :>, older.size / 2
    classes = leaked.map { |event| event["args"].values_at("holder", "class").compact.first }.uniq
    assert_equal ["String"], classes - ["Array", "(imemo)"] # the list; a cache of the call
    leaked.each { |event| assert_operator event["args"]["age_ns"], :>, 0 }
    grown = JSON.parse(`#{Trace::TOOL} diff --format=json #{first.path} #{second.path}`)["alive"]["rows"]
    assert_match(/\A(Leaker#keep|String#\*) /, grown.first["method"])
  end

  # Other ractors hold what is read.
  def test_bytes_by_malloc_of_other_ractors
    result = sampled(GROWN + <<~RUBY, 1, recorders: 5)
      Warning[:experimental] = false
      T.stop
      T.start(allocations: 1, file: "measured.fxt")
      ractors = Array.new(3) do
        Ractor.new(Ractor.current) do |main|
          kept = Array.new(40) { text(10_000) }
          main.send(:ready)
          Ractor.receive
          kept.sum(&:size)
        end
      end
      3.times { Ractor.receive }
      T.stop
      puts ObjectSpace.memsize_of(text(10_000))
      ractors.each { |ractor| ractor.send(:end) }
      puts ractors.sum(&:value)
    RUBY
    size, sum = result.out.lines.map(&:to_i)
    assert_equal 1_200_000, sum
    texts = samples(file(result, "measured.fxt")).select { |sample| sample.class_name == "Text" }
    assert_equal [120, 120], texts.partition(&:buffer).map(&:size)
    assert_equal size * 120, texts.sum(&:bytes)
  end

  def test_saves_under_stress
    result = run_ruby(T + GROWN + <<~RUBY)
      T.start(allocations: 1, exits: false, memory: 4)
      GC.stress = true
      kept = nil
      4.times do |i|
        kept = [text(100), [i], { i => i.to_s }, Weak.new, Class.new]
        T.save("\#{i}.fxt")
        T.reset if i == 1
      end
      GC.stress = false
      GC.auto_compact = true
      GC.start
      GC.compact
      T.save("last.fxt")
      T.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal 5, result.traces.count { |trace| File.basename(trace.path) != "vm-trace.fxt" }
  end

  def test_table_is_full
    result = sampled(<<~RUBY, 1)
      class Foo; end
      GC.disable
      kept = Array.new(40_000) { Foo.new }
      GC.enable
      kept.clear
      3.times { GC.start }
      Array.new(100) { Object.new }
    RUBY
    all = samples(result.trace)
    foos = all.select { |sample| sample.class_name == "Foo" }
    assert_equal 40_000, foos.size
    assert_operator foos.count(&:untracked), :>, 20_000
    assert_operator all.take_while { |sample| !sample.untracked }.size, :>=, 16_384
    assert_operator foos.count { |sample| !sample.untracked }, :<=, 16_384
    refute all.last.untracked, "places were not used again"
  end

  def test_stress
    result = sampled(<<~RUBY, 1)
      class Foo; end
      def deep(n) = n.zero? ? Foo.new : deep(n - 1)
      GC.stress = true
      40.times { |i| deep(i); "text \#{i}"; [i, i.to_s]; { i => i.to_s } }
      Class.new { def foo = Foo.new }.new.foo
      eval("class Other\#{1}; new; end")
      Thread.new { Foo.new }.join
      GC.stress = false
    RUBY
    foos = samples(result.trace).select { |sample| sample.class_name == "Foo" }
    assert_equal 42, foos.size
  end

  def test_all_streams_under_stress
    result = trace_under_stress("--vm-trace=allocations:1,gc,markers,threads")
    assert_operator samples(result.trace).size, :>, 100
  end

  # Code of the JIT allocates as the interpreter does.
  def test_compiled_code
    result = run_traced(T + <<~RUBY, "--vm-trace=allocations:1")
      class Foo; def initialize(a) = @a = a; end
      def make(i) = [Foo.new(i), "text \#{i}", [i, i], { i => i }]
      300.times { |i| make(i) }
    RUBY
    assert_predicate result.status, :success?, result.err
    all = samples(result.trace)
    foos = all.select { |sample| sample.class_name == "Foo" }
    assert_equal 300, foos.size
    assert foos.all? { |sample| sample.frames.any? { |frame| frame.start_with?("Object#make (script.rb:3)") } }
    %w[Array Hash].each { |name| assert_operator all.count { |sample| sample.class_name == name }, :>=, 300 }
  end

  def test_ractors
    result = sampled(<<~RUBY, "1K", recorders: 5)
      Warning[:experimental] = false
      class Foo; end
      ractors = Array.new(4) do |i|
        Ractor.new { 20.times { Array.new(2_000) { Foo.new }; GC.start(full_mark: false) }; Array.new(500) { Foo.new } }
      end
      kept = ractors.map(&:value)
      2.times { GC.start }
      p kept.sum(&:size)
    RUBY
    foos = samples(result.trace).select { |sample| sample.class_name == "Foo" }
    weight = foos.first.weight
    expected = 4 * 40_500 * foos.first.size
    assert_in_delta expected, foos.sum(&:weight), STANDARD_ERRORS * Math.sqrt(expected.fdiv(weight)) * weight
    assert_operator foos.map(&:thread).uniq.size, :>=, 4
    living = foos.count { |sample| sample.fate == "alive" } * weight.fdiv(foos.first.size)
    assert_in_delta Integer(result.out), living, STANDARD_ERRORS * Math.sqrt(2_000.0 * weight / foos.first.size)
  end

  # Ractors that end leave objects to others.
  def test_ractors_that_end
    result = sampled(<<~RUBY, 1, recorders: 30)
      Warning[:experimental] = false
      class Foo; end
      kept = []
      20.times { kept << Ractor.new { Array.new(30) { Foo.new } }.value; GC.start if rand(3) == 0 }
      3.times { GC.start }
      p kept.flatten.size
    RUBY
    foos = samples(result.trace).select { |sample| sample.class_name == "Foo" }
    assert_equal 600, foos.size
    assert_equal 600, Integer(result.out)
    assert_equal ["alive"], foos.map(&:fate).uniq
  end

  def test_threads_fibers_and_exceptions
    result = sampled(<<~RUBY, 1)
      class Foo; end
      threads = Array.new(4) { |i| Thread.new { Thread.current.name = "t\#{i}"; 50.times { Foo.new; Thread.pass } } }
      threads.each(&:join)
      fiber = Fiber.new { 10.times { Foo.new; Fiber.yield } }
      10.times { fiber.resume }
      5.times { begin; raise "error"; rescue; Foo.new; ensure; Foo.new; end }
      def deep(n) = Foo.new && deep(n + 1)
      begin; deep(0); rescue SystemStackError; end
    RUBY
    foos = samples(result.trace).select { |sample| sample.class_name == "Foo" }
    4.times { |i| assert_equal 50, foos.count { |sample| sample.thread == "t#{i}" } }
    assert_operator foos.count { |sample| sample.thread == "main" }, :>, 1000
  end

  def test_forked_children_have_their_own
    result = sampled(<<~RUBY, 1)
      class Foo; end
      kept = Array.new(10) { Foo.new }
      pid = fork do
        kept.clear
        3.times { GC.start }
        others = Array.new(20) { Foo.new }
        GC.start
        exit
      end
      Process.wait(pid)
      GC.start
      fork { }
      Process.wait
    RUBY
    counts = result.traces.map { |trace| samples(trace).select { |sample| sample.class_name == "Foo" } }
    assert_equal [10, 20], counts.map(&:size).reject(&:zero?).sort
    parent = samples(result.trace).select { |sample| sample.class_name == "Foo" }
    assert_equal({ "alive" => 10 }, parent.map(&:fate).tally)
    children = result.traces - [result.trace]
    assert children.all? { |trace| samples(trace).map(&:number).min.to_i <= 1 }
  end

  # A session sees what is allocated in it, from its first object on, and nothing of another one's.
  def test_at_run_time
    result = run_ruby(T + <<~RUBY)
      class Foo; end
      kept = Array.new(10) { Foo.new }
      3.times do |i|
        T.start(allocations: 1, file: "\#{i}.fxt")
        (100 + i).times { Foo.new }
        GC.start
        p T.stop[:lost]
        100.times { Foo.new }
        GC.start
      end
      T.start(allocations: true, file: "default.fxt")
      T.stop
      T.start(allocations: "1M", gc: true, file: "other.fxt")
      T.stop
    RUBY
    assert_equal "0\n0\n0\n", result.out, result.err
    by_name = result.traces.to_h { |trace| [File.basename(trace.path, ".fxt"), trace] }
    3.times { |i| assert_equal 100 + i, samples(by_name.fetch(i.to_s)).count { |sample| sample.class_name == "Foo" } }
    assert_equal [512 << 10, "allocations"], by_name.fetch("default").settings.values_at("allocations", "flags")
    assert_equal [1 << 20, "gc allocations"], by_name.fetch("other").settings.values_at("allocations", "flags")
  end

  def test_flight_recorder
    result = run_ruby(T + <<~RUBY, "--vm-trace=allocations:1", "--vm-trace-memory=8")
      class Foo; end
      old = Array.new(20) { Foo.new }
      10_000.times { Foo.new }
      GC.start
      T.reset
      kept = Array.new(50) { Foo.new }
      2.times { GC.start }
      old.clear
      GC.start
      T.save("saved.fxt")
      kept.clear
      200_000.times { Foo.new }
      T.save("later.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    saved, later = %w[saved later].map { |name| result.traces.find { |trace| trace.path.end_with?("#{name}.fxt") } }
    foos = samples(saved).select { |sample| sample.class_name == "Foo" }
    assert_equal [["alive", 3]] * 50, foos.map { |sample| [sample.fate, sample.survived] }
    assert_operator later.summary["lost"], :>, 0
    refute_empty samples(later, whole: false)
  end

  def test_limited_file
    result = run_ruby(T + <<~RUBY)
      T.start(allocations: 1, file: "limited.fxt", max_size: 4)
      100_000.times { Object.new }
      T.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = result.traces.fetch(0)
    assert_operator trace.summary["lost"], :>, 0
    refute_empty samples(trace, whole: false)
  end

  def test_kept_frames
    result = sampled(<<~RUBY, 1, "--vm-trace-stack=2")
      class Foo; end
      def deep(n) = n.zero? ? Foo.new : deep(n - 1)
      deep(20)
    RUBY
    foo = result.trace.in_category("allocation").find { |event| event["name"] == "Foo" }
    assert_equal %w[0 1], foo["args"].keys.grep(/\A\d\z/)
    assert_match(/\A2[01] more frames\z/, foo["args"]["10+"]) # Class#new is a frame in some Rubies
  end

  def test_whole_stacks
    result = sampled(<<~RUBY, 1)
      class Foo; end
      def deep(n) = n.zero? ? Foo.new : deep(n - 1)
      deep(20)
    RUBY
    foo = result.trace.in_category("allocation").find { |event| event["name"] == "Foo" }
    frames, left_out = Trace.frames(foo)
    assert_equal 0, left_out
    assert_equal 21, frames.grep(/\AObject#deep /).size
    assert_equal "<main> (script.rb:4)", frames.last
  end

  def test_killed
    result = run_ruby(T + <<~RUBY, "--vm-trace=allocations:1", "--vm-trace-file=%p.fxt", ended: false)
      class Kept; end
      kept = Array.new(2_000) { Kept.new }
      5_000.times { Object.new }
      3.times { GC.start }
      Process.kill(:KILL, $$)
    RUBY
    assert_operator samples(result.trace, whole: false).count { |sample| sample.class_name == "Object" }, :>=, 5_000
    report = JSON.parse(`#{Trace::TOOL} report --format=json #{result.trace.path}`)
    alive = report["live_by_class"]["rows"].to_h { |row| row.values_at("class", "samples") }
    assert_equal 2_000, alive["Kept"]
    assert_operator alive.fetch("Object", 0), :<, 500
  end

  def test_from_another_shell
    script = <<~'RUBY'
      File.write("ready", "")
      Array.new(1_000) { Object.new } until File.exist?("done")
      File.write("idle", "")
      sleep
    RUBY
    beside(script, flags: []) do |pid, dir|
      status, _, err = tell("start", "--allocations=16K", "--no-exits", "--file=#{File.join(dir, "started.fxt")}", pid)
      assert_equal [0, ""], [status, err]
      wait_until("something is recorded") { tell("status", pid)[1].match?(/^allocation_samples +[1-9]/) }
      assert_equal 0, tell("stop", pid).first
      trace = validated(Trace.new(File.join(dir, "started.fxt")))
      assert_equal ["allocations", 16 << 10], trace.settings.values_at("flags", "allocations")
      refute_empty samples(trace)
      status, _, err = tell("start", "--allocations=16Q", "--no-exits", pid)
      refute_equal 0, status
      assert_match(/allocations: takes true, false, or a size.* not "16Q"/, err)
    end
  end

  WRONG = ["often", "0", "2", "1023", "2G", "1KB", "-1K", "99999999999999999999", "1T", "K", ""].freeze

  def test_options
    WRONG.each do |size|
      result = run_ruby("", "--vm-trace=allocations:#{size}")
      refute_predicate result.status, :success?, size
      takes = "allocations takes a size, the bytes for one sample: 1K to 1G, or 1 for each object"
      assert_match(/^--vm-trace: #{takes}, not "#{size}"$/, result.err)
    end
    { "1K" => 1024, "1G" => 1 << 30, "3M" => 3 << 20, "4096" => 4096, "1" => 1 }.each do |size, bytes|
      assert_equal bytes, sampled("", size).trace.settings["allocations"]
    end
    assert_equal 512 << 10,
                 run_ruby("", "--vm-trace=allocations", "--vm-trace-file=%p.fxt").trace.settings["allocations"]
  end

  def test_wrong_arguments_of_start
    result = run_ruby(T + <<~RUBY)
      [2, "x", :small, 1.5, -1, 1 << 40, [], "1K\\0"].each do |value|
        T.start(allocations: value)
        puts "started with \#{value}"
        T.stop
      rescue ArgumentError => e
        puts e.message[/allocations: takes true, false, or a size/] || e.message[/null byte/]
      end
    RUBY
    assert_equal ["allocations: takes true, false, or a size"] * 7 + ["null byte"], result.out.lines(chomp: true),
                 result.err
  end

  # Nothing that the program sees changes.
  def test_same_objects_traced_or_not
    script = <<~RUBY
      GC.disable
      before = GC.stat(:total_allocated_objects)
      1_000.times { |i| "text \#{i}"; [i]; Object.new }
      p GC.stat(:total_allocated_objects) - before
    RUBY
    untraced = run_ruby(T + script)
    assert_equal untraced.out, sampled(script, 1).out
    assert_equal untraced.out, sampled(script, "1K").out
  end
end
