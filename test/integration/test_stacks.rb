# Every frame of a stack is in the event: ten by name, the rest joined, runs counted, and the number
# of frames that were left out.
require_relative "helper"

class TestStacks < Integration::Test
  # Exits at the bottom of `depth` frames of one method, <main> not counted. No block, so <main> is
  # the only other frame.
  RECURSIVE = <<~'RUBY'
    def down(n)
      if n > 1
        down(n - 1)
      else
        ::RubyVM::ZJIT.induce_side_exit!
        nil
      end
    end
    depth = Integer(ARGV.fetch(0))
    i = 0
    while i < 30
      down(depth)
      i += 1
    end
  RUBY

  def stacks(script, *args)
    found = trace(script, args: args.map(&:to_s)).trace.exits("DirectiveInduced")
    refute_empty found
    found
  end

  [1, 16, 100, 2000].each do |depth|
    define_method("test_a_stack_of_#{depth}_frames_is_whole") do
      stacks(RECURSIVE, depth).each do |event|
        labels, left_out = Trace.frames(event)
        assert_equal depth + 1, labels.size + left_out
        assert_equal 0, left_out, "a run takes one label, so nothing needs to be left out"
        expected = ["Object#down (script.rb:5)"] + ["Object#down (script.rb:3)"] * (depth - 1) + [labels.last]
        assert_match(/\A<main> \(script\.rb:1[0-9]\)\z/, labels.last)
        assert_equal expected, labels
        assert_equal [depth + 1, 10].min, Trace.named_frames(event).size
      end
    end
  end

  def test_a_stack_of_ten_frames_has_no_rest
    stacks(RECURSIVE, 9).each { |event| refute_includes event["args"], "10+" }
  end

  def test_a_stack_of_eleven_frames_has_one_in_its_rest
    stacks(RECURSIVE, 10).each { |event| assert_match(/\A<main> \(script\.rb:\d+\)\z/, event["args"]["10+"]) }
  end

  def test_a_run_is_written_once_with_its_count
    rest = stacks(RECURSIVE, 100).first["args"]["10+"]
    assert_match(/\AObject#down \(script\.rb:3\) x90 < <main> \(script\.rb:\d+\)\z/, rest)
  end

  MUTUAL = <<~'RUBY'
    def even(n)
      return odd(n - 1) if n > 1
      ::RubyVM::ZJIT.induce_side_exit!
    end
    def odd(n)
      return even(n - 1) if n > 1
      ::RubyVM::ZJIT.induce_side_exit!
    end
    depth = Integer(ARGV.fetch(0))
    i = 0
    while i < 30
      even(depth)
      i += 1
    end
  RUBY

  def test_mutual_recursion_alternates
    stacks(MUTUAL, 31).each do |event|
      labels, left_out = Trace.frames(event)
      assert_equal 0, left_out
      assert_equal 32, labels.size
      below = labels[1..-2]
      assert_equal 30, below.size
      assert_equal ["Object#odd (script.rb:6)", "Object#even (script.rb:2)"] * 15, below
    end
  end

  def test_a_rest_of_more_than_4_kib_says_how_many_frames_it_leaves_out
    [1000, 2000].each do |depth|
      stacks(MUTUAL, depth).each do |event|
        rest = event["args"]["10+"]
        labels, left_out = Trace.frames(event)
        assert_match(/ < \d+ more frames\z/, rest)
        assert_equal depth + 1, labels.size + left_out
        # As many as fit: another label and the note would not fit.
        assert_operator rest.bytesize, :>, 4096 - 2 * labels[-1].bytesize - 64
        assert_operator rest.bytesize, :<=, 4096
      end
    end
  end

  # --- --zjit-trace-stack ---

  [1, 4, 10, 11, 15, 32, 33].each do |kept|
    define_method("test_of_a_stack_only_#{kept}_frames_are_kept") do
      result = trace(MUTUAL, "--zjit-trace-stack=#{kept}", args: ["31"])
      assert_equal kept, result.trace.settings["stack"]
      events = result.trace.exits("DirectiveInduced")
      refute_empty events
      events.each do |event|
        labels, left_out = Trace.frames(event)
        assert_equal [[kept, 32].min, [32 - kept, 0].max], [labels.size, left_out]
        assert_equal ["Object#even (script.rb:3)", "Object#odd (script.rb:6)", "Object#even (script.rb:2)"].first(kept), labels.first(3)
      end
    end
  end

  # It is for that trace only.
  def test_a_program_can_say_how_many_frames_are_kept
    result = run_ruby(<<~'RUBY', "--zjit", "--zjit-call-threshold=2")
      def foo(x) = x + 1
      def down(n) = n > 0 ? down(n - 1) : foo(2**62 - 1)
      60.times { foo(1) }
      down(20)
      RubyVM::Trace.record(file: "a.fxt", stack: 3) { 5.times { down(20) } }
      RubyVM::Trace.record(file: "b.fxt") { 5.times { down(20) } }
      begin
        RubyVM::Trace.start(stack: 0)
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
    assert_equal "stack: takes a number of frames from 1 to 1048576, not 0\n", result.out
    a, b = result.traces.sort_by(&:path)
    assert_equal [3, nil], [a, b].map { |trace| trace.settings["stack"] }
    sizes = [a, b].map { |trace| trace.exits.map { |event| Trace.frames(event) }.map { |labels, left_out| [labels.size, left_out > 0] }.uniq }
    assert_equal [[3, true]], sizes[0]
    assert_operator sizes[1].map(&:first).max, :>, 20
    refute sizes[1].any?(&:last)
  end

  def test_a_limit_of_frames_makes_files_of_recursive_programs_small_and_the_tool_reads_them
    script = <<~'RUBY'
      def even(n, m) = n > 0 ? odd(n - 1, m) : m.times { |i| leaf(2**62 - 1) }
      def odd(n, m) = n > 0 ? even(n - 1, m) : m.times { |i| leaf(2**62 - 1) }
      def leaf(x) = x + 1
      60.times { leaf(1) }
      400.times { |depth| even(depth, 2) }
    RUBY
    whole, kept = [[], ["--zjit-trace-stack=12"]].map { |flags| trace(script, *flags) }
    sizes = [whole, kept].map { |result| File.size(result.trace.path) }
    assert_operator sizes[1], :<, sizes[0] / 4
    of_leaf = [whole, kept].map do |result|
      result.trace.exits.count { |event| event["args"]["0"].start_with?("Object#leaf") }
    end
    assert_equal(*of_leaf, whole.err + kept.err)
    %w[report export query].zip([[], %w[--format folded], ["SELECT COUNT(*) FROM slice"]]) do |command, arguments|
      _, err, status = Open3.capture3(Trace::TOOL, command, kept.trace.path, *arguments)
      assert_equal ["", true], [err, status.success?], command
    end
    folded, = Open3.capture2(Trace::TOOL, "export", kept.trace.path, "--format", "folded")
    assert_match(/^\(more frames\);.*Object#leaf/, folded)
  end

  def test_a_label_longer_than_the_rest_leaves_all_beyond_it_out
    name = "m" * 5000
    script = <<~RUBY
      def #{name}(n)
        return #{name}(n - 1) if n > 1
        ::RubyVM::ZJIT.induce_side_exit!
      end
      i = 0
      while i < 30
        #{name}(20)
        i += 1
      end
    RUBY
    stacks(script).each do |event|
      assert_equal "11 more frames", event["args"]["10+"]
      assert_equal "Object##{name} (script.rb:3)", event["args"]["0"]
    end
  end

  # A stack that grows and shrinks: what is cached of the last walk must never show in the next one.
  def test_stacks_that_change_all_the_time_are_each_right
    script = <<~'RUBY'
      $depths = []
      def walk(n, depth)
        ::RubyVM::ZJIT.induce_side_exit!; $depths << depth
        return if n == 0
        n.odd? ? left(n - 1, depth + 1) : right(n - 1, depth + 1)
        n % 3 == 0 ? right(n / 2, depth + 1) : left(n / 2, depth + 1)
      end
      def left(n, depth)
        walk(n, depth + 1)
      end
      def right(n, depth)
        walk(n, depth + 1)
      end
      4.times { walk(3, 0) }
      $depths.clear
      walk(9, 0)
      puts $depths.join(" ")
    RUBY
    result = trace(script)
    depths = result.out.split.map(&:to_i)
    found = result.trace.exits("DirectiveInduced").last(depths.size).map do |event|
      labels, left_out = Trace.frames(event)
      labels.size + left_out - 2 # the innermost walk, and <main>
    end
    assert_equal depths, found
  end

  # All kinds of frames at the same place: one method under two owners, rescue and ensure (which
  # stand for their method's frame, also with the same line before it failed), methods and blocks in
  # C, methods made from blocks, with and without $~. Ruby's backtraces are the reference from 3.4
  # on: before, they have no owners, and rescue bodies are frames.
  def test_frames_of_all_kinds_in_each_others_place
    script = <<~'RUBY'
      module Shared
        def shared(walk, n) = walk.go(n)
        module_function :shared
      end
      class Walk
        include Shared
        def go(n)
          if n == 0
            ::RubyVM::ZJIT.induce_side_exit!; $seen << caller(0)
          else
            send(KINDS[$random.rand(KINDS.size)], n - 1)
          end
        end
        def plain(n) = go(n)
        alias other plain
        def yielding(n) = [n].each { |m| go(m) }
        alias yielding_other yielding
        def in_c(n) = [n].sort_by { |m| go(m) }
        def rescuing(n)
          raise "x"
        rescue
          go(n)
        end
        def failing(n)
          go_and_fail(n)
        rescue
          go(n)
        end
        def after_rescue(n)
          (raise "x" rescue 0)
          go(n)
        end
        def ensuring(n)
          yield if n < 0
        ensure
          go(n)
        end
        def raising(n)
          begin
            begin
              raise "x"
            ensure
              go(n)
            end
          rescue
          end
        end
        def matching(n)
          "a" =~ /a/ if n.odd?
          go(n)
        end
        define_method(:made) { |n| go(n) }
        define_method(:made_again, instance_method(:made))
        def executed(n) = instance_exec(n) { |m| go(m) }
        def evaluated(n) = eval("go(n)", binding, __FILE__, __LINE__)
        def as_method(n) = shared(self, n)
        def as_function(n) = Shared.shared(self, n)
        KINDS = (public_instance_methods(false) - %i[go]).sort
        def go_and_fail(n)
          go(0)
          raise "x"
        end
      end
      $seen = []
      $random, walk = Random.new(42), Walk.new
      300.times { |i| walk.go(i % 9) }
      $seen.clear
      500.times { |i| walk.go(i % 9) }
      puts $seen.map { |frames| frames.join("\t") }
    RUBY
    result = trace(script)
    expected = result.out.lines(chomp: true).map do |line|
      line.split("\t").map { |frame| frame =~ /\A(.+):(\d+):in '(.*)'\z/ ? "#{$3} (#{$1}:#{$2})" : flunk(frame) }
          .map { |frame| frame.sub("block in <class:Walk>", "Walk#made") } # of define_method
    end
    expected.map! { |frames| without_internal_paths(frames) } # 3.4 shows internal paths
    assert_operator expected.size, :>=, 500
    events = result.trace.exits("DirectiveInduced")
    found = events.last(expected.size).map { |event| Trace.frames(event) }
    assert_equal expected, found.map { |labels, _| without_internal_paths(labels) }
  end

  remove_method :test_frames_of_all_kinds_in_each_others_place unless Integration::OWNERS_IN_BACKTRACES

  # For its own methods in Ruby, Ruby shows the caller's line.
  def without_internal_paths(labels)
    outer = nil
    labels.reverse.map { |label| label.sub(/\((.*)\)\z/) { "(#{outer = $1.start_with?("<internal:") ? outer : $1})" } }.reverse
  end
end
