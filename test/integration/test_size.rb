# Large traces: frames, names, depth. Every name is right, none is empty, nothing is cut without a
# note.
#
# Once: files and tables are the module's.
require_relative "helper"

class TestSize < Integration::Test
  FRAMES = Integration::LONG ? 1_000_000 : 40_000

  # Pairs of neighbouring frames of each exit, with counts. Read in C: there are too many events for
  # JSON.
  def frames_at(trace, inner, outer)
    sql = "SELECT a.display_value, b.display_value, COUNT(*) FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '#{inner}' " \
          "JOIN args b ON b.arg_set_id = s.arg_set_id AND b.key = '#{outer}' WHERE s.name = '#{jit("FixnumAddOverflow")}' GROUP BY 1, 2"
    out, err, status = Open3.capture3(Trace::TOOL, "query", trace.path, sql)
    assert_predicate status, :success?, err
    out.lines(chomp: true).drop(1)
  end

  # More frames than a string table has places.
  def test_tens_of_thousands_of_different_frames_each_have_their_name
    result = trace(<<~'RUBY', args: [FRAMES.to_s], time_limit: 600)
      def foo(x) = x + 1
      60.times { foo(1) }
      BIG = 2**62 - 1
      frames = Integer(ARGV[0])
      # One method each, called once: only the frame in between is new.
      frames.times.each_slice(1000) do |some|
        eval(some.map { |i| "def m#{i}(x) = foo(x)\n" }.join, nil, "many.rb", some[0] + 1)
        some.each { |i| __send__("m#{i}", BIG) }
      end
    RUBY
    rows = frames_at(result.trace, 0, 1)
    assert_equal FRAMES, rows.size
    expected = FRAMES.times.map { |i| "\"Object#foo (script.rb:1)\",\"Object#m#{i} (many.rb:#{i + 1})\",1" }
    assert_equal [], (rows - expected).first(5)
  end

  # More frames than the tree of stacks holds (131,072), in stacks that share their outer part.
  def test_more_stacks_than_are_kept_are_each_right
    result = trace(<<~'RUBY', time_limit: 600)
      def foo(x) = x + 1
      60.times { foo(1) }
      BIG = 2**62 - 1
      500.times { |i| eval("def inner_#{i}(x) = foo(x)", nil, "inner.rb", i + 1) }
      300.times { |i| eval("def outer_#{i}(name, x) = __send__(name, x)", nil, "outer.rb", i + 1) }
      300.times { |o| 500.times { |i| __send__("outer_#{o}", "inner_#{i}", BIG) } }
    RUBY
    rows = frames_at(result.trace, 1, 2)
    assert_equal 150_000, rows.size
    expected = 300.times.flat_map { |o| 500.times.map { |i| "\"Object#inner_#{i} (inner.rb:#{i + 1})\",\"Object#outer_#{o} (outer.rb:#{o + 1})\",1" } }
    assert_equal [], (rows - expected).first(5)
  end

  # A string record holds 32,752 bytes. A cut text ends with a note.
  def test_a_name_of_40_kb_is_cut_with_a_note
    trace = trace(<<~'RUBY').trace
      name = "m" * 40_960
      eval("def #{name}(x) = x + 1")
      60.times { __send__(name, 1) }
      5.times { __send__(name, 2**62 - 1) }
    RUBY
    label = trace.exits("FixnumAddOverflow").map { |event| event["args"]["0"] }.uniq
    assert_equal 1, label.size
    assert_operator label[0].bytesize, :<=, 32_752
    assert_match(/\AObject#m{30000,}\.\.\.\[\d+ bytes cut\]\z/, label[0])
  end

  {
    a_nul: "a\\0b", a_newline: "two\\nlines", a_tab_and_an_escape: "\\e[31mred\\t", a_quote: "say \\\"it\\\"", the_joint_of_frames: "a < b x12",
    japanese: "\\u65e5\\u672c", an_astral_character: "\\u{1f48e}", an_empty_text: "", 4000.to_s.to_sym => "long " * 800,
  }.each do |name, text|
    next if name == :a_nul && Integration::BASE == "ruby-3.3" # which takes none there
    define_method("test_a_file_named_by_#{name}_is_told_as_it_is") do
      result = trace(<<~RUBY)
        name = "#{text}"
        eval("def foo(x) = x + 1\n60.times { foo(1) }\n9.times { foo(2**62 - 1) }", nil, name, 7)
        $stdout.binmode.write(name)
      RUBY
      labels = result.trace.exits("FixnumAddOverflow").map { |event| event["args"]["0"] }.uniq
      assert_equal ["Object#foo (#{result.out}:7)"], labels
    end
  end

  def test_threads_may_have_any_name
    names = ["two\nlines", "\e[31mred\e[0m", "say \"it\"", "日本 💎", "n" * 40_000]
    result = trace(<<~RUBY)
      def foo(x) = x + 1
      60.times { foo(1) }
      #{names}.each { |name| Thread.new { Thread.current.name = name; 9.times { foo(2**62 - 1) } }.join }
    RUBY
    found = result.trace.exits("FixnumAddOverflow").map { |event| event["thread"] }.uniq
    assert_equal names[0..-2], found[0..-2]
    assert_match(/\An{100,}\.\.\.\[\d+ bytes cut\]\z/, found.last)
  end

  # Texts of a trace are UTF-8; each other byte is escaped.
  def test_bytes_that_are_no_utf_8_do_not_break_the_trace
    result = trace(<<~'RUBY')
      name = "bad \xff\xc3 bytes".b
      eval("def foo(x) = x + 1\n60.times { foo(1) }\n9.times { foo(2**62 - 1) }", nil, name, 7)
    RUBY
    labels = result.trace.exits("FixnumAddOverflow").map { |event| event["args"]["0"] }.uniq
    assert_equal 1, labels.size
    assert_match(/\AObject#foo \(bad .+ bytes:7\)\z/, labels[0])
  end

  # With Ruby's default stack, and with one for a hundred thousand frames. Compiled calls also take of the
  # machine's stack: ZJIT of 4.0 made 32,579 in the default one.
  LARGE_STACKS = { "RUBY_THREAD_VM_STACK_SIZE" => (24 << 20).to_s, "RUBY_THREAD_MACHINE_STACK_SIZE" => (64 << 20).to_s }.freeze
  { "by default" => [{}, 9_000], "of 100,000 frames" => [LARGE_STACKS, 100_000] }.each do |name, (env, least)|
    define_method("test_recursion_up_to_the_end_of_a_stack_#{name.tr(" ,", "__")}_is_counted_to_its_last_frame") do
      result = trace(<<~'RUBY', env: env)
        def foo(x) = x + 1
        60.times { foo(1) }
        $depth = 0
        def down(n)
          $depth = n
          foo(2**62 - 1) if n % 5000 == 0
          down(n + 1)
        end
        Thread.new do
          down(1)
        rescue SystemStackError => e
          puts e.class
        end.join
        puts $depth
      RUBY
      error, depth = result.out.split
      assert_equal "SystemStackError", error
      assert_operator depth.to_i, :>, least
      events = result.trace.exits("FixnumAddOverflow")
      assert_equal depth.to_i / 5000, events.size
      events.each.with_index(1) do |event, i|
        refute_match(/more frames/, event["args"]["10+"])
        downs = 9 + event["args"]["10+"][/\AObject#down \(script\.rb:\d+\) x(\d+) < /, 1].to_i
        assert_equal i * 5000, downs
      end
      assert_includes result.trace.exits.map { |event| event["name"] }, "StackOverflow" if Integration::JIT == "zjit"
    end
  end
end
