# Every event is on the thread that it happened on: its native id and its name.
require_relative "helper"

class TestThreads < Integration::Test
  def by_thread(trace)
    trace.exits("DirectiveInduced").group_by { |event| event["tid"] }.transform_values { |events| [events.size, events.map { |event| event["thread"] }.uniq] }
  end

  def test_the_main_thread_has_the_pid_for_its_id_and_is_named_main
    result = trace("def foo = (::RubyVM::ZJIT.induce_side_exit!)\n10.times { foo }\n")
    assert_equal [[result.pid, "main"]], result.trace.events.map { |event| event.values_at("tid", "thread") }.uniq
  end

  def test_each_thread_has_its_native_id_and_its_name
    result = trace(<<~'RUBY')
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      2.times { foo }
      # All live at once: the native id of one that ended may be given again.
      first, last = Queue.new, Queue.new
      threads = 4.times.map do |n|
        Thread.new do
          first.pop
          Thread.current.name = "worker #{n}"
          puts "#{Thread.current.native_thread_id} #{10 + n}"
          $stdout.flush
          (10 + n).times { foo; Thread.pass }
          last.pop
        end
      end
      4.times { first << 1 }
      Thread.pass until last.num_waiting == 4
      4.times { last << 1 }
      threads.each(&:join)
    RUBY
    expected = result.out.lines.each_with_index.to_h do |line, _|
      tid, count = line.split.map(&:to_i)
      [tid, [count, ["worker #{count - 10}"]]]
    end
    assert_equal 4, expected.size
    assert_equal expected, by_thread(result.trace).reject { |tid, _| tid == result.pid }
  end

  def test_a_thread_without_a_name_is_named_by_its_block
    result = trace("def foo = (::RubyVM::ZJIT.induce_side_exit!)\n5.times { foo }\nThread.new { 5.times { foo } }.join\n")
    assert_includes by_thread(result.trace).values, [5, ["Thread script.rb:3"]]
  end

  def test_a_new_name_of_a_thread_is_told
    result = trace(<<~'RUBY')
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      Thread.new do
        5.times { foo }
        Thread.current.name = "café"
        5.times { foo }
      end.join
    RUBY
    names = result.trace.exits("DirectiveInduced").map { |event| event["thread"] }.uniq
    assert_equal ["Thread script.rb:2", "café"], names
  end

  # The table of a chunk holds 255: the 256th thread needs a new chunk.
  def test_more_threads_than_a_table_holds_are_all_told_apart
    result = trace(<<~'RUBY')
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      2.times { foo }
      gate = Queue.new
      threads = 300.times.map { |n| Thread.new { Thread.current.name = "t#{n}"; gate.pop; foo } }
      300.times { gate << 1 }
      threads.each(&:join)
    RUBY
    names = result.trace.exits("DirectiveInduced").map { |event| event["thread"] }
    assert_equal (0...300).map { |n| "t#{n}" }.sort, (names - ["main"]).sort
    tids = by_thread(result.trace).keys
    assert_operator tids.size, :>, 255
  end

  def test_exits_in_a_fiber_have_the_fibers_stack_on_its_thread
    result = trace(<<~'RUBY')
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      2.times { foo }
      def in_fiber
        Fiber.new { 5.times { foo } }
      end
      def outer(f) = f.resume
      outer(in_fiber)
    RUBY
    events = result.trace.exits("DirectiveInduced").last(5)
    assert_equal [result.pid], events.map { |event| event["tid"] }.uniq
    labels = events.map { |event| Trace.frames(event).first.map { |label| label[/\A.*(?= \()/] } }.uniq
    assert_equal [["Object#foo", "block (2 levels) in Object#in_fiber", "Integer#times", "block in Object#in_fiber"]], labels
  end
end
