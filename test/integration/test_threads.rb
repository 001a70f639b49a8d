# Every event is on the thread that it happened on: its native id and its name.
#
# Once for each base: threads are the base's.
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
      # All are alive at once: the native id of an ended one may be reused.
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

  def test_exits_in_a_fiber_have_its_stack_and_its_track
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
    assert_equal ["main fiber 1"], events.map { |event| event["thread"] }.uniq
    labels = events.map { |event| Trace.frames(event).first.map { |label| label[/\A.*(?= \()/] } }.uniq
    assert_equal [["Object#foo", "block (2 levels) in Object#in_fiber", "Integer#times", "block in Object#in_fiber"]], labels
  end

  # Exits of all threads and fibers of a ractor are counted down together.
  def assert_exactly_one_in(rate, result)
    summary = result.trace.summary
    assert_equal summary["exits"] / rate, summary["sampled"]
    assert_equal summary["sampled"], result.trace.exit_counts.values.sum
    assert_equal Integer(result.out.lines.last), result.trace.sites("FixnumAddOverflow").sum { |site| site["hits"] }
  end

  WARM = "def foo(x) = x + 1\nBIG = 2**62 - 1\n60.times { foo(1) }\n"

  THREADS = <<~'RUBY'
    threads = 300.times.map do |n|
      Thread.new do
        Thread.current.name = "t#{n}"
        200.times { |i| foo(BIG); Thread.pass if i % 50 == n % 50; Thread.current.name = "t#{n} late" if i == 99 }
      end
    end
    threads.each(&:join)
    puts 300 * 200
  RUBY

  [1, 7, 97].each do |rate|
    define_method("test_one_exit_in_#{rate}_of_300_threads_is_recorded") do
      result = trace(WARM + THREADS, "--zjit-trace-exits-sample-rate=#{rate}")
      assert_exactly_one_in rate, result
    end
  end

  def test_exits_before_and_after_a_rename_have_the_name_of_their_time
    result = trace(WARM + THREADS)
    by_name = result.trace.exits("FixnumAddOverflow").map { |event| event["thread"] }.tally
    300.times { |n| assert_equal [100, 100], by_name.values_at("t#{n}", "t#{n} late"), "thread #{n}" }
  end

  # Ruby threads that share native ones: each has a track of its own, with an id that no native
  # thread has.
  [1, 7].each do |rate|
    define_method("test_one_exit_in_#{rate}_of_200_m_n_threads_is_recorded") do
      result = trace(WARM + <<~'RUBY', "--zjit-trace-exits-sample-rate=#{rate}", env: SHARED_NATIVE_THREADS)
        threads = 200.times.map do |n|
          Thread.new do
            Thread.current.name = "t#{n}" if n.odd?
            100.times { |i| foo(BIG); i % 25 == 0 ? sleep(0.0001) : Thread.pass }
          end
        end
        threads.each(&:join)
        puts 200 * 100
      RUBY
      assert_exactly_one_in rate, result
      exits = result.trace.exits("FixnumAddOverflow")
      by_thread = exits.map { |exit| exit.values_at("tid", "thread") }.tally
      assert_empty by_thread.keys.select { |tid, _| tid < 2**30 }
      assert_equal 200, by_thread.size
      by_name = by_thread.each_with_object(Hash.new(0)) { |((_, name), count), names| names[name] += count }
      unnamed = by_name.delete("Thread script.rb:5")
      assert_equal 100.times.map { |n| "t#{2 * n + 1}" }.sort, by_name.keys.sort
      assert_equal [100 * 100, [100]], [unnamed, by_name.values.uniq] if rate == 1
    end
  end

  [1, 97].each do |rate|
    define_method("test_one_exit_in_#{rate}_of_ten_thousand_fibers_is_recorded") do
      result = trace(WARM + <<~'RUBY', "--zjit-trace-exits-sample-rate=#{rate}")
        # Many are alive at once, each resumed again and again.
        20.times do
          fibers = 500.times.map { Fiber.new { 10.times { foo(BIG); Fiber.yield } } }
          10.times { fibers.each(&:resume) }
        end
        puts 20 * 500 * 10
      RUBY
      assert_exactly_one_in rate, result
      fibers = result.trace.exit_counts.keys.map(&:last).uniq.grep(/\Amain fiber /)
      assert_operator fibers.size, :>=, 500 if rate == 1
    end
  end

  def test_fibers_of_several_threads_have_tracks_of_these
    result = trace(WARM + <<~'RUBY', "--zjit-trace-exits-sample-rate=3")
      threads = 8.times.map do |n|
        Thread.new do
          Thread.current.name = "runs #{n}"
          fibers = 50.times.map { Fiber.new { loop { foo(BIG); Fiber.yield } } }
          20.times { fibers.each(&:resume); Thread.pass }
        end
      end
      threads.each(&:join)
      puts 8 * 50 * 20
    RUBY
    assert_exactly_one_in 3, result
    names = result.trace.exit_counts.keys.select { |reason, *| reason == jit("FixnumAddOverflow") }.map(&:last).uniq
    assert_equal 8.times.flat_map { |n| 50.times.map { |k| "runs #{n} fiber #{k + 1}" } }.sort, names.sort
  end

  # A scheduler runs fibers where the program waits.
  def test_exits_under_a_fiber_scheduler_are_sampled_exactly
    scheduler = File.join(Integration::RUBY_SRC, "test", "fiber", "scheduler.rb")
    result = trace(WARM + <<~RUBY, "--zjit-trace-exits-sample-rate=7", args: [scheduler])
      require ARGV[0]
      Thread.new do
        Fiber.set_scheduler(Scheduler.new)
        100.times { |n| Fiber.schedule { 20.times { foo(BIG); sleep 0.0001 } } }
      end.join
      puts 100 * 20
    RUBY
    assert_exactly_one_in 7, result
  end
end
