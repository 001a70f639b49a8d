# The stream `fibers`: what fibers waited for, who resumed them, and how long they ran before.
#
# Once for each base: the module walks a stack that no code runs on.
require_relative "helper"

class TestFiberWaits < Integration::Test
  # A scheduler whose waiting methods only remember the fiber and give up its thread.
  SCHEDULER = <<~'RUBY'
    def now_ns = Process.clock_gettime(Process::CLOCK_BOOTTIME, :nanosecond)

    def busy(ns)
      till = now_ns + ns
      nil while now_ns < till
    end

    class Turns
      def initialize
        @ready, @timers, @readers, @lock = [], {}, {}, Thread::Mutex.new
        @in, @out = IO.pipe
      end

      def fiber(&work) = Fiber.new(blocking: false, &work).tap(&:resume)
      def kernel_sleep(seconds = nil) = block(:sleep, seconds)
      def fiber_interrupt(fiber, error) = fiber.raise(error)

      def block(_blocker, seconds = nil)
        @timers[Fiber.current] = now_ns + (seconds * 1e9).to_i if seconds
        Fiber.yield
      ensure
        @timers.delete(Fiber.current)
      end

      def unblock(_blocker, fiber)
        @lock.synchronize { @ready << fiber }
        @out.write_nonblock(".")
      end

      def io_wait(io, events, _timeout)
        @readers[io] = Fiber.current
        Fiber.yield
        events
      end

      def close = run

      def run
        until @timers.empty? && @readers.empty? && @ready.empty?
          least = @timers.values.min
          seconds = @ready.any? ? 0 : least && [(least - now_ns) / 1e9, 0].max
          readable, = IO.select([@in, *@readers.keys], nil, nil, seconds)
          @in.read_nonblock(1000, exception: false) if readable&.include?(@in)
          (readable || []).each { |io| @readers.delete(io)&.resume }
          @lock.synchronize { @ready.slice!(0..) }.each { |fiber| fiber.resume if fiber.alive? }
          @timers.select { |_, at| at <= now_ns }.each_key { |fiber| fiber.resume if fiber.alive? }
        end
      end
    end
    Fiber.set_scheduler(Turns.new)
  RUBY

  def record(script, *options, streams: "fibers:min=0ns")
    result = run_ruby(SCHEDULER + script, *options, "--vm-trace=#{streams}", "--vm-trace-file=%p.fxt")
    assert_predicate result.status, :success?, result.err
    result
  end

  def waits(trace, name = nil)
    trace.in_category("fiber").select { |event| event["name"] == (name || event["name"]) }
  end

  # The program's own look at the clock on both sides.
  def test_a_wait_lies_between_what_the_program_does_before_and_after
    result = record(<<~'RUBY')
      Fiber.schedule do
        3.times do
          before = now_ns
          sleep 0.001
          p [before, now_ns]
        end
      end
    RUBY
    seen = waits(result.trace, "Kernel#sleep")
    measured = result.out.lines.map { |line| line.scan(/\d+/).map(&:to_i) }
    assert_equal 3, seen.size
    seen.zip(measured) do |wait, (before, after)|
      assert_operator before, :<=, wait["ts"]
      assert_operator wait["ts"] + wait["dur"], :<=, after
      assert_equal "main fiber 1", wait["thread"]
      assert_equal "Turns#kernel_sleep", wait["args"]["scheduler"]
      assert_equal result.pid, wait["args"]["waker"], "the thread's own fiber"
      assert_equal 1, wait["args"].values.grep(/\AKernel#sleep \(.*script\.rb:\d+\)\z/).size, wait["args"]
    end
    assert_equal waits(result.trace).size, result.trace.summary["fiber_waits"]
  end

  def test_how_long_it_ran_before_and_was_ready_after
    result = record(<<~'RUBY')
      queue = Thread::Queue.new
      Fiber.schedule do
        busy(3_000_000)
        queue.pop(timeout: 100)
      end
      Fiber.schedule do
        sleep 0.001
        before = now_ns
        queue << 1
        p [before, now_ns]
        busy(4_000_000)
      end
    RUBY
    pop = waits(result.trace, "Thread::Queue#pop").fetch(0)
    before, after = result.out.scan(/\d+/).map(&:to_i)
    assert_operator pop["args"]["ran_ns"], :>=, 3_000_000
    assert_includes before..after, pop["ts"] + pop["dur"] - pop["args"]["ready_ns"]
    assert_operator pop["args"]["ready_ns"], :>=, 4_000_000, "the other one kept the thread"
    assert_equal 1, waits(result.trace, "Kernel#sleep").size
  end

  def test_without_a_scheduler_the_method_is_the_innermost
    result = record(<<~'RUBY')
      fiber = Fiber.new { 2.times { Fiber.yield } }
      3.times { fiber.resume }
      each = Enumerator.new { |y| 2.times { |i| y << i } }
      2.times { each.next }
    RUBY
    names = waits(result.trace).map { |wait| wait["name"] }.tally
    assert_equal 2, names["Fiber.yield"]
    assert_equal 3, names["Fiber#resume"]
    assert_empty waits(result.trace).filter_map { |wait| wait["args"]["scheduler"] }
  end

  def test_a_fiber_that_has_ended_resumes_nobody_and_leaves_its_track
    trace = record(<<~'RUBY').trace
      3.times do
        fiber = Fiber.new { Fiber.yield }
        2.times { fiber.resume }
      end
      200.times { Fiber.new { 1 }.resume }
    RUBY
    own = waits(trace, "Fiber#resume")
    assert_equal [true, false] * 3 + [false] * 200, own.map { |wait| wait["args"].key?("waker") }
    assert_equal ["main fiber 1"], waits(trace, "Fiber.yield").map { |wait| wait["thread"] }.uniq
  end

  # On one track with calls, which say that a fiber is suspended.
  def test_with_all_other_streams
    script = <<~'RUBY'
      r, w = IO.pipe
      Fiber.schedule { RubyVM::Trace.span("reads") { r.gets } }
      Fiber.schedule { 3.times { sleep 0.001 }; w.puts "x" }
    RUBY
    trace = record(script, streams: "full,fibers:min=0ns").trace
    assert_equal 1, waits(trace, "IO#gets").size
    sql = "SELECT s.depth > p.depth, p.name FROM slice s JOIN slice p ON s.parent_id = p.id " \
          "WHERE s.category = 'fiber' AND s.name = 'IO#gets'"
    assert_equal [["1", "(fiber suspended)"]], trace.query(sql)
  end

  def test_short_waits_are_counted_and_a_trace_without_the_stream_has_none
    script = "fiber = Fiber.new { 10.times { Fiber.yield } }\n11.times { fiber.resume }\n"
    summary = record(script, streams: "fibers:min=1h").trace.summary
    assert_equal [0, 21], summary.values_at("fiber_waits", "fiber_waits_left_out")
    assert_empty waits(record(script, streams: "threads").trace)
  end
end
