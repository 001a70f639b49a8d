# With --zjit-reprofile-iseq a recompile exit makes ZJIT profile the whole ISEQ again, once for each
# version; after that the code exits no more. Only the tests of outcomes need a trace: the others
# read the counters of --zjit-stats.
require_relative "helper"
Integration.only "zjit", :recompile_exits

class TestReprofile < Integration::Test
  MAX_VERSIONS = 4
  OPTION = "--zjit-reprofile-iseq"

  # With a low threshold `stats` is compiled before it counts.
  HEAD = <<~'RUBY'
    def stat(name) = RubyVM::ZJIT.stats(name)
    2.times { stat(:side_exit_count) }
  RUBY

  # Runs a script untraced with statistics; the values that it prints, one a line.
  def values(script, *flags)
    result = run_ruby(HEAD + script, "--zjit-stats-quiet", OPTION, *flags)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err
    result.out.lines(chomp: true)
  end

  # A branch for each of `count` values, each with code that is first reached after the compilation.
  def self.branches(count, code)
    (1..count).map { |i| "#{i == 1 ? "if" : "elsif"} x == #{i} then #{code}" }.join("\n") + "\nelse 0\nend"
  end

  def self.rotation(count, definitions)
    <<~RUBY
      #{definitions}
      100.times { foo(0) }
      2000.times { |i| foo(i % #{count} + 1) }
      puts stat(:side_exit_count), stat(:reprofiled_iseq_count), stat(:inline_method_count)
      2000.times { |i| foo(i % #{count} + 1) }
      puts stat(:side_exit_count)
    RUBY
  end

  ROTATIONS = {
    "5_sites" => rotation(5, "def foo(x) = (#{branches(5, "x.to_s")})"),
    "20_sites" => rotation(20, "def foo(x) = (#{branches(20, "x.to_s")})"),
    "an_inlined_callee" => rotation(20, "def leaf(x) = (#{branches(20, "x.to_s")})\ndef foo(x) = leaf(x)"),
    "a_block" => rotation(20, "def each1(x) = yield(x)\ndef foo(x) = each1(x) { |y| #{branches(20, "y.to_s")} }"),
    "a_block_of_each" => rotation(20, "def foo(x) = [x].each { |y| #{branches(20, "y.to_s")} }"),
    "super" => rotation(20, "class A; def m(x) = x; end\nclass B < A; def m(x) = (#{branches(20, "super.to_s")}); end\nOBJECT = B.new\ndef foo(x) = OBJECT.m(x)"),
    "a_block_argument" => rotation(20, "def last(x, &b) = x\ndef pass(x, &b) = (#{branches(20, "last(x, &b)")})\ndef foo(x) = pass(x) { 1 }"),
    "reading_variables" => rotation(20, "class A; def initialize = @a = 1\ndef m(x) = (#{branches(20, "@a")}); end\nOBJECT = A.new\ndef foo(x) = OBJECT.m(x)"),
    "writing_variables" => rotation(20, "class A; def initialize = @a = 1\ndef m(x) = (#{branches(20, "@a = x")}); end\nOBJECT = A.new\ndef foo(x) = OBJECT.m(x)"),
  }.freeze

  ROTATIONS.each do |name, script|
    define_method("test_rotation_of_#{name}_exits_once_for_each_version") do
      flags = name == "an_inlined_callee" ? %w[--zjit-inline-threshold=200] : []
      exits, windows, inlined, later = values(script, *flags).map(&:to_i)
      assert_operator exits, :<=, MAX_VERSIONS
      assert_operator exits, :>, 0
      assert_equal exits, windows, "each of them has it profiled again"
      assert_operator inlined, :>, 0 if name == "an_inlined_callee"
      assert_equal exits, later, "the last version does not exit"
    end
  end

  # Guards of several shapes at one place: each version takes --zjit-exits-before-invalidate exits,
  # and that is all.
  def test_variables_of_many_shapes_end_in_code_that_does_not_exit
    exits, later = values(<<~'RUBY', "--zjit-exits-before-invalidate=1").map(&:to_i)
      class A
        def initialize(n) = (n.times { |i| instance_variable_set("@x#{n}_#{i}", 1) }; @a = n)
        def a = @a
      end
      OBJECTS = Array.new(8) { |i| A.new(i) }
      100.times { OBJECTS[0].a }
      2000.times { |i| OBJECTS[i & 7].a }
      puts stat(:side_exit_count)
      2000.times { |i| OBJECTS[i & 7].a }
      puts stat(:side_exit_count)
    RUBY
    assert_includes 1..MAX_VERSIONS, exits
    assert_equal exits, later
  end

  # Called by compiled code and by the interpreter; the caller's code continues.
  [[2, 1], [2, 5], [30, 5], [30, 40]].each do |threshold, window|
    define_method("test_a_window_is_#{window}_calls_at_threshold_#{threshold}") do
      %w[calls(1) calls_from_compiled(1)].each do |call|
        exits, early, compiled, later = values(<<~RUBY, "--zjit-call-threshold=#{threshold}", "--zjit-num-profiles=#{window}", "--zjit-inline-threshold=0").map(&:to_i)
          def calls(x) = x > 0 ? x.to_s : 0
          def calls_from_compiled(x) = calls(x)
          i = 0
          while i < 100
            calls_from_compiled(0)
            i += 1
          end
          count = stat(:compiled_iseq_count)
          calls(1)
          exits = stat(:side_exit_count)
          i = 1
          while i < #{window}
            #{call}
            i += 1
          end
          early = stat(:compiled_iseq_count) - count
          #{call}
          puts exits, early, stat(:compiled_iseq_count) - count
          #{call}
          puts stat(:side_exit_count)
        RUBY
        assert_equal 0, early, call
        assert_equal 1, compiled, call
        assert_equal 1, exits, call
        assert_equal 1, later, call
      end
    end
  end

  # `x + 1` had its profiles before the first version was compiled.
  def test_places_that_had_their_profiles_are_profiled_again
    first, later = values(<<~'RUBY').map(&:to_i)
      def foo(x, y) = (y > 0 ? y.to_s : 0; x + 1)
      100.times { foo(1, 0) }
      foo(1, 1)
      puts stat(:side_exit_count)
      5.times { foo(1.5, 0) }
      100.times { foo(1.5, 0); foo(1, 1) }
      puts stat(:side_exit_count)
    RUBY
    assert_equal 1, first
    assert_equal 1, later
  end

  # The caller with the inlined callee is compiled again, with the profile of the callee's frame;
  # the callee's own code stays.
  def test_an_exit_of_an_inlined_callee_replaces_the_code_of_its_caller
    trace = trace(<<~'RUBY', OPTION, "--zjit-trace-compiles", "--zjit-call-threshold=30", "--zjit-num-profiles=1").trace
      def leaf(x) = x ? x.to_s : 0
      def foo(x) = leaf(x)
      i = 0
      while i < 100
        foo(nil)
        leaf(nil)
        i += 1
      end
      i = 0
      while i < 100
        foo(1)
        i += 1
      end
    RUBY
    exits = trace.in_category("recompile_exit").map { |event| event["args"].values_at("0", "1", "outcome").map { |text| text[/\A(Object#)?\w+/] } }
    assert_equal [%w[Object#leaf Object#foo invalidated]], exits
    names = trace.in_category("compile").select { |event| event["ph"] == "B" }.map { |event| event["name"][/\A(Object#)?(leaf|foo)/, 2] }.compact
    assert_equal({ "foo" => 2, "leaf" => 1 }, names.tally)
  end

  # All kinds of arguments, in the interpreter in the middle of compiled code, in turn with exits.
  CALLS = <<~'RUBY'
    def kick(x) = x == 1 ? x.to_s : x
    def optional(a, b = a, c = b, *r, k: 3, **o) = (a == 7 ? a.to_s : nil; [a, b, c, r, k, o])
    def yields(x) = (x == 7 ? x.to_s : 0; yield(x))
    def rescues(x)
      x == 7 ? x.to_s : 0
      raise "e" if x > 5
      x
    rescue => e
      e.message
    ensure
      GC.start if x == 9
    end
    def deep(n, x) = n == 0 ? (x == 7 ? x.to_s : x) : deep(n - 1, x)
    def breaks(a) = a.each { |z| z == 7 ? z.to_s : 0; break z if z > 1 }
    define_method(:defined_by_block) { |x| x == 7 ? x.to_s : x }
    class A; def m(x) = x; end
    class B < A; def m(x) = (x == 7 ? x.to_s : 0; super); end
    def throws(x) = (x == 7 ? x.to_s : 0; throw :t, x)
    def returns(x) = ([1].each { return x == 7 ? x.to_s : x }; 0)
    def locals(x) = (x == 7 ? (y = x.to_s) : 0; z = 1; [x, y, z, binding.local_variables.size])
    def counts(n) = n == 0 ? 0 : (n == 7 ? n.to_s : 0; counts(n - 1) + 1)
    def all(x)
      [kick(x == 7 ? 1 : 0), optional(x), optional(x, 2), optional(x, 2, 3), optional(x, k: 5), optional(x, 2, 3, 4, z: 1),
       yields(x) { |y| y + 1 }, yields(x) { |y| [1].map { |z| z + y } }, rescues(x), deep(20, x), breaks([1, x, 3]), defined_by_block(x),
       B.new.m(x), catch(:t) { throws(x) }, returns(x), locals(x), counts(x), Fiber.new { kick(x == 8 ? 1 : 0) }.resume]
    end
    out = Array.new(40) { all(0) } + Array.new(60) { |i| all(i % 12) }
    GC.compact if GC.respond_to?(:compact)
    out.concat(Array.new(40) { |i| all(i % 12) })
    puts out.inspect
  RUBY

  def test_calls_in_a_window_do_what_they_do_without_a_jit
    expected = run_ruby(CALLS, "--zjit-disable").out
    [[1, 5], [2, 50], [5, 0], [30, 5]].each do |threshold, window|
      result = run_ruby(CALLS, OPTION, "--zjit-call-threshold=#{threshold}", "--zjit-num-profiles=#{window}", "--zjit-exits-before-invalidate=1")
      assert_predicate result.status, :success?, result.err
      assert_equal expected, result.out
    end
  end

  def test_windows_of_several_ractors_at_once
    result = run_ruby(<<~'RUBY', OPTION, "--zjit-call-threshold=2", "-W0")
      def foo(x) = x == 1 ? x.to_s : x == 2 ? x.to_f : x == 3 ? x.inspect : x == 4 ? x.hash.class : x
      def bar(x) = foo(x)
      puts Array.new(4) { Ractor.new { Array.new(2000) { |i| bar(i / 10 % 5).to_s }.tally } }.flat_map { |ractor| ractor.value.to_a }.uniq.flatten.join(" ")
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal "0 400 1 400 2.0 400 3 400 Integer 400", result.out.chomp
  end

  def test_guards_invalidate_a_version_when_as_many_failed_as_the_option_says
    { nil => 6, 1 => 1, 3 => 3 }.each do |option, exits|
      trace = trace(<<~'RUBY', OPTION, "--zjit-call-threshold=30", *("--zjit-exits-before-invalidate=#{option}" if option)).trace
        def add(a, b) = a + b
        i = 0
        while i < 1000
          i % 100 == 99 ? add(1.5, 2.5) : add(1, 2)
          i += 1
        end
      RUBY
      outcomes = trace.in_category("recompile_exit").map { |event| event["args"]["outcome"] }
      assert_equal ["profiling"] * (exits - 1) + ["invalidated"], outcomes.first(exits)
    end
  end

  def test_at_the_version_limit_an_exit_changes_no_counter
    changed, exits = values(<<~'RUBY', "--zjit-max-versions=1")
      def add(a, b) = a + b
      i = 0
      while i < 100
        add(1, 2)
        i += 1
      end
      names = %i[compiled_iseq_count failed_iseq_count reprofiled_iseq_count compiled_side_exit_count code_region_bytes
                 compile_time_ns profile_time_ns invalidation_time_ns]
      before = RubyVM::ZJIT.stats
      i = 0
      while i < 200
        add(1.5, 2.5)
        i += 1
      end
      after = RubyVM::ZJIT.stats
      puts names.reject { |name| before.fetch(name) == after.fetch(name) }.inspect
      puts after[:side_exit_count] - before[:side_exit_count]
    RUBY
    assert_equal "[]", changed
    assert_equal "200", exits
  end

  def test_the_option_takes_a_number_from_1
    ["", "=", "=0", "=-1", "=x", "=1.5", "=4294967296"].each do |value|
      result = run_ruby("puts 1", "--zjit-exits-before-invalidate#{value}")
      refute_predicate result.status, :success?, value
      assert_includes result.err, "invalid ZJIT option"
    end
    help = run_ruby("", "--help").out.gsub(/\e\[\d*m/, "")
    assert_includes help, "--zjit-exits-before-invalidate=num"
    assert_match(/^ *--zjit-reprofile-iseq$/, help)
    refute_predicate run_ruby("puts 1", "--zjit-reprofile-iseq=1").status, :success?
  end

  # Without the option the policy is the base's: its counts in these programs come from the
  # unpatched base.
  def test_without_the_option_zjit_recompiles_when_the_base_does
    exits = { "5_sites" => 26, "20_sites" => 101, "reading_variables" => 101 }.to_h do |name, _|
      result = run_ruby(HEAD + ROTATIONS.fetch(name), "--zjit-stats-quiet")
      assert_predicate result.status, :success?, result.err
      counts = result.out.lines(chomp: true)
      assert_equal "0", counts[1], "nothing was sent back to be profiled"
      [name, counts[0].to_i]
    end
    assert_equal({ "5_sites" => 26, "20_sites" => 101, "reading_variables" => 101 }, exits)
  end

  # The same on the unpatched Ruby, if it is built (make base-ruby): code, versions and exits.
  def test_without_the_option_code_versions_and_exits_are_those_of_the_base
    base = File.join(Integration::ROOT, "build", Integration::BASE, "base-ruby")
    skip "the unpatched base is not built: make base-ruby" unless File.executable?(base)
    report = %w[code_region_bytes side_exit_size compiled_side_exit_count compiled_iseq_count side_exit_count]
             .map { |name| "stat(:#{name})" }.then { |stats| "puts [#{stats.join(", ")}].inspect" }
    ROTATIONS.each do |name, script|
      script = script.gsub("stat(:reprofiled_iseq_count)", "0")
      ours, theirs = [RUBY, base].map { |ruby| IO.popen([ruby, "--zjit", "--zjit-stats-quiet", "-e", HEAD + script + report], &:read) }
      assert_equal theirs, ours, name
      assert_match(/^\[\d+, /, theirs)
    end
  end
end
