# record and stop end the right trace, whatever happens meanwhile: interrupts, jumps, other traces.
require_relative "helper"

class TestSessions < Integration::Test
  WARM = <<~'RUBY'
    require "timeout"
    def foo = (::RubyVM::ZJIT.induce_side_exit!)
    10.times { foo }
    Trace = RubyVM::Trace
    def on = Trace.status[:on]
    def session = Trace.status[:session]
  RUBY

  # The program succeeds and prints nothing on stderr. Returns its evaluated output.
  def printed(script, **options)
    result = run_ruby(WARM + script, "--zjit-call-threshold=2", "-W:no-experimental", **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err
    result.out.lines.map { |line| eval(line) }
  end

  ROUNDS = LONG ? 300 : 12

  def test_record_ends_its_trace_when_its_thread_is_interrupted
    assert_equal [0, 0, 0, 0], printed(<<~RUBY)
      def rounds = #{ROUNDS}.times.count { yield; on.tap { |left_on| Trace.stop if left_on } }
      into = [{ file: "a.fxt" }, { memory: 4 }]
      into.each do |options|
        p rounds { Timeout.timeout(0.005) { loop { Trace.record(**options) { } } } rescue Timeout::Error }
      end
      # A thread that runs, since a moment.
      def running(options)
        begun = Queue.new
        thread = Thread.new do
          begun << 1
          loop { Trace.record(**options) { foo } }
        rescue IOError
          0
        end
        begun.pop
        sleep 0.003
        thread
      end
      p rounds { running({ file: "a.fxt" }).kill.join }
      p rounds { running({ memory: 4 }).tap { |thread| thread.raise(IOError) }.join }
    RUBY
  end

  # One that is pending when stop is called is handled after it.
  def test_stop_ends_the_trace_before_an_interrupt_is_handled
    assert_equal [["out", false]] * 4, printed(<<~'RUBY')
      [{ file: "a.fxt" }, { memory: 4 }].each do |options|
        Trace.start(**options)
        begin
          Thread.handle_interrupt(RuntimeError => :on_blocking) do
            sender = Thread.new(Thread.current) { |main| main.raise("out") }
            Thread.pass while sender.alive?
            Trace.stop
          end
        rescue => error
          p [error.message, on]
        end
        thread = Thread.new do
          Thread.handle_interrupt(Object => :on_blocking) do
            Trace.start(**options)
            Thread.pass until Thread.current[:killed]
            Trace.stop
          end
        end
        Thread.pass until on
        thread.kill
        thread[:killed] = true
        thread.join
        p ["out", on]
      end
    RUBY
  end

  # The interrupt comes while the thread waits for the save, and is handled when both are done.
  def test_stop_waits_for_a_save_and_then_handles_the_interrupt
    assert_equal [["late", false, true]], printed(<<~'RUBY', recorders: 2)
      Trace.start(memory: 64)
      400_000.times { foo }
      saver = Thread.new { Trace.save("a.fxt") }
      sleep 0.0005 while Dir["a.fxt*"].empty?
      begin
        Thread.handle_interrupt(RuntimeError => :on_blocking) do
          sender = Thread.new(Thread.current) { |main| main.raise("late") }
          Thread.pass while sender.alive?
          Trace.stop
        end
      rescue => error
        p [error.message, on, saver.value[:exits] > 100_000]
      end
    RUBY
  end

  def test_record_ends_no_trace_but_its_own
    ended, by_thread, in_thread, nested, refused = printed(<<~'RUBY')
      first = second = nil
      summary = Trace.record(file: "a.fxt") { first = session; Trace.stop; Trace.start(file: "b.fxt"); second = session; 3.times { foo } }
      p [summary, first < second, on, session == second, Trace.stop[:exits]]

      summary = Trace.record(file: "c.fxt") { Thread.new { Trace.stop; Trace.start(file: "d.fxt") }.join }
      p [summary, Trace.stop[:path][/\w.fxt/]]

      gate, go = Queue.new, Queue.new
      thread = Thread.new { Trace.record(file: "e.fxt") { gate << 1; go.pop } }
      gate.pop
      Trace.stop
      Trace.start(file: "f.fxt")
      go << 1
      p [thread.value, Trace.stop[:path][/\w.fxt/]]

      p [(Trace.record(file: "g.fxt") { Trace.record(file: "h.fxt") { } } rescue $!.class.name), on]

      Trace.start(file: "i.fxt")
      one = session
      error = Trace.record(file: "j.fxt") { } rescue $!
      p [error.class.name, one == session, Trace.stop[:path][/\w.fxt/]]
    RUBY
    assert_equal [nil, true, true, true, 3], ended
    assert_equal [nil, "d.fxt"], by_thread
    assert_equal [nil, "f.fxt"], in_thread
    assert_equal ["RubyVM::Trace::Error", false], nested
    assert_equal ["RubyVM::Trace::Error", true, "i.fxt"], refused
  end

  # All ways to leave a block.
  def test_record_ends_whichever_way_its_block_is_left
    assert_equal [[:break, false], [:next, false], [:return, false], [:throw, false], [:raise, false], [:stack, false], [:exit, false],
                  [:fiber, false], [:retry, false], [:kill, false], [:ractor, false], [:fork, false]], printed(<<~'RUBY', recorders: 2)
      def returns = Trace.record(file: "a.fxt") { return }
      def leave(way)
        yield
        p [way, on]
      end
      leave(:break) { Trace.record(file: "a.fxt") { break } }
      leave(:next) { Trace.record(file: "a.fxt") { next } }
      leave(:return) { returns }
      leave(:throw) { catch(:out) { Trace.record(file: "a.fxt") { throw :out } } }
      leave(:raise) { Trace.record(file: "a.fxt") { raise "x" } rescue 0 }
      leave(:stack) { begin; Trace.record(file: "a.fxt") { eval("def again = again + 1"); again }; rescue SystemStackError; end }
      leave(:exit) { begin; Trace.record(file: "a.fxt") { exit }; rescue SystemExit; end }
      leave(:fiber) { Fiber.new { Trace.record(file: "a.fxt") { Fiber.yield } }.tap(&:resume).resume }
      leave(:retry) { n = 0; begin; Trace.record(file: "a.fxt") { raise if (n += 1) < 3 }; rescue; retry; end }
      leave(:kill) { Thread.new { Trace.record(file: "a.fxt") { Thread.current.kill } }.join }
      leave(:ractor) { Ractor.new { RubyVM::Trace.record(file: "a.fxt") { foo; 1 } }.value }
      leave(:fork) { Process.wait(fork { RubyVM::Trace.record(file: "b.fxt") { foo }; exit!(Trace.status[:on] ? 1 : 0) }); raise if $?.exitstatus != 0 }
    RUBY
  end

  # A child continues its parent's trace, in its own file: the same number.
  def test_a_forked_child_ends_its_own_part
    assert_equal [[false, 0]], printed(<<~'RUBY')
      child = nil
      summary = Trace.record(file: "%p.fxt") do
        child = fork
        Process.wait(child) if child
        foo
      end
      exit!(!on && summary[:exits] == 1 ? 0 : 3) unless child
      p [on, $?.exitstatus]
    RUBY
  end
end
