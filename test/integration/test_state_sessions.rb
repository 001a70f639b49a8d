# The stream `states` where traces begin and end in awkward places: the program goes on, and what the
# trace says is whole.
#
# Once for each base: a session begins and ends the same for each JIT; test_states has the states of each pair.
require_relative "helper"

class TestStateSessions < Integration::Test
  # Compiled code that exits, below blocks, C functions and exceptions.
  PROGRAM = <<~'RUBY'
    Warning[:experimental] = false
    def exits(n) = (::RubyVM::ZJIT.induce_side_exit!; n)
    def raises(n) = n % 7 == 0 ? raise("x") : n
    def rescues(n)
      raises(n)
    rescue
      exits(n)
    end
    def deep(n, &block) = n == 0 ? block.call : deep(n - 1, &block)
    def works(n)
      [3, 1, 2].sort_by { |x| exits(x) }
      n.times { |i| rescues(i) }
      [1, 2].each { |x| break if x == 1 }
    end
    20.times { works(10) }
  RUBY

  FLAGS = %w[--zjit-call-threshold=2].freeze

  def run_program(script, *flags, **options)
    result = run_ruby(PROGRAM + script, *FLAGS, *flags, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  # The sums of each thread's last event by thread id.
  def states_of(trace)
    events = trace.in_category("trace").select { |event| event["name"] == "states" }
    events.to_h { |event| [event["tid"], event["args"]] }
  end

  # Those of a trace that the program saved.
  def saved_states(result, name) = states_of(Trace.new(File.join(result.dir, name)))

  def total(sums) = sums.except("changes", "left_out").values.sum

  # `vm-trace check` has compared `exited` with the sites.
  def assert_states(trace)
    refute_empty states_of(trace), trace.path
    wall_ns = trace.events.map { |event| event["ts"] }.minmax.then { |from, to| to - from }
    states_of(trace).each do |tid, args|
      assert_operator total(args), :<=, wall_ns + wall_ns / 50 + 1_000_000, "thread #{tid}: #{args}"
    end
  end

  def test_start_and_stop_in_nested_compiled_frames
    result = run_program(<<~'RUBY')
      number = 0
      start = -> { RubyVM::Trace.start(states: true, sample_rate: 97, file: "#{number += 1}.fxt") }
      stop = -> { RubyVM::Trace.stop }
      5.times do |i|
        deep(20) { start.(); works(20) }
        deep(5) { works(20); stop.() }
        deep(i) { start.(); deep(20) { works(5); stop.(); works(5); start.() }; works(5) }
        works(5)
        stop.()
      end
      works(100)
    RUBY
    assert_equal 15, result.traces.size
    result.traces.each { |trace| assert_states(trace) }
  end

  # Frames that were entered while states were recorded return when they are not, and the other way.
  def test_start_and_stop_by_another_thread
    result = run_program(<<~'RUBY')
      done = false
      switcher = Thread.new do
        8.times do |i|
          RubyVM::Trace.start(states: true, sample_rate: 97, file: "#{i}.fxt")
          sleep 0.003
          RubyVM::Trace.stop
          sleep 0.001
        end
        done = true
      end
      workers = 3.times.map { Thread.new { deep(10) { works(20) } until done } }
      [switcher, *workers].each(&:join)
    RUBY
    assert_equal 8, result.traces.size
    result.traces.each { |trace| assert_states(trace) }
  end

  def test_start_and_stop_by_fibers_that_stay_in_compiled_frames
    result = run_program(<<~'RUBY')
      fibers = 200.times.map { Fiber.new { loop { deep(5) { works(2); Fiber.yield; works(1) } } } }
      5.times do |i|
        fibers.each(&:resume)
        fibers[i * 7].resume
        RubyVM::Trace.start(states: true, sample_rate: 97, file: "#{i}.fxt")
        3.times { fibers.each(&:resume) }
        Fiber.new { deep(3) { works(1); RubyVM::Trace.stop } }.resume
      end
      fibers.each(&:resume)
    RUBY
    assert_equal 5, result.traces.size
    result.traces.each { |trace| assert_states(trace) }
  end

  def test_start_and_stop_while_ractors_run
    result = run_program(<<~'RUBY', recorders: 5)
      ractors = 4.times.map { Ractor.new { 300.times { works(10) }; Ractor.receive } }
      5.times do |i|
        RubyVM::Trace.start(states: true, sample_rate: 97, file: "#{i}.fxt")
        works(50)
        RubyVM::Trace.stop
      end
      ractors.each { |ractor| ractor.send(1) }
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    assert_equal 5, result.traces.size
    result.traces.each { |trace| assert_states(trace) }
  end

  # A program that starts them has the exits that --vm-trace=states has, unless it says how many.
  def test_one_exit_in_97_is_recorded_with_states
    traces = { "states: true" => 97, "states: true, exit_samples: true" => 97, "states: true, sample_rate: 5" => 5,
               "states: true, exits: true" => 1, "states: true, exits: true, sample_rate: 3" => 3 }
    result = run_program(<<~RUBY, recorders: traces.size)
      #{traces.keys}.each_with_index do |options, i|
        eval "RubyVM::Trace.start(\#{options}, file: '\#{i}.fxt')"
        works(20)
        RubyVM::Trace.stop
      end
    RUBY
    settings = result.traces.sort_by { |trace| File.basename(trace.path).to_i }.map(&:settings)
    assert_equal traces.values, settings.map { |of| of["exit_rate"] }
    exits = ["exits", "exits:samples", "exits", "exits", "exits"]
    expected = exits.map { |first| "#{first} compiles invalidations threads gc states" }
    assert_equal expected, settings.map { |of| of["flags"] }
  end

  # To compile, and to name a frame, a ractor may wait for the one that ends the trace.
  def test_start_and_stop_while_ractors_compile
    result = run_program(<<~'RUBY', recorders: 5)
      running = true
      toggler = Thread.new do
        while running
          RubyVM::Trace.start(states: true, file: "trace.fxt")
          RubyVM::Trace.stop
        end
      end
      ractors = 4.times.map do
        Ractor.new { 150.times { o = Object.new; o.instance_eval("def m(a) = a + 1"); 6.times { o.m(1) } } }
      end
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      running = false
      toggler.join
    RUBY
    assert_states(result.trace)
  end

  def test_threads_that_share_native_ones
    result = run_program(<<~'RUBY', "--vm-trace=states", "--vm-trace-file=%p.fxt", env: SHARED_NATIVE_THREADS)
      50.times.map { |i| Thread.new { 5.times { works(5); sleep 0.0005; Thread.pass } } }.each(&:join)
    RUBY
    assert_states(result.trace)
    assert_equal 51, states_of(result.trace).size
  end

  def test_each_forked_child_has_its_own_states
    result = run_program(<<~'RUBY', "--vm-trace=states", "--vm-trace-file=%p.fxt")
      pids = deep(10) { 3.times.map { fork { works(100); fork { works(10) }.then { |pid| Process.wait(pid) } } } }
      works(10)
      pids.each { |pid| Process.wait(pid) }
      Process.wait(fork { exec "true" })
    RUBY
    assert_equal 7, result.traces.size
    result.traces.each { |trace| assert_states(trace) }
  end

  # What was written until then is there; sums are not.
  def test_a_killed_program_has_slices_and_no_sums
    flags = [*FLAGS, "--vm-trace=states:min=10us", "--vm-trace-file=%p.fxt"]
    result = run_ruby(PROGRAM + <<~'RUBY', *flags, ended: false)
      deep(3) { works(20_000) }
      Process.kill(:KILL, $$)
      sleep
    RUBY
    assert_equal 9, result.status.termsig
    refute_empty result.trace.in_category("execution")
    assert_empty states_of(result.trace)
  end

  def test_a_limited_file_keeps_its_sums
    result = run_program("3000.times { works(20) }\n", "--vm-trace=states:min=1us,exits:rate=1",
                         "--vm-trace-file=%p.fxt", "--vm-trace-max-size=4")
    assert_states(result.trace)
    assert_operator states_of(result.trace).values.sum { |args| args.fetch("exited", 0) }, :>, 0
  end

  def test_a_flight_recorder_counts_from_its_last_reset
    result = run_ruby(PROGRAM + <<~'RUBY', *FLAGS, "--vm-trace=states", "--vm-trace-memory=4")
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      1000.times { works(1) }
      RubyVM::Trace.save("before.fxt")
      from = now
      RubyVM::Trace.reset
      works(10)
      RubyVM::Trace.save("after.fxt")
      puts now - from
      works(10)
    RUBY
    assert_predicate result.status, :success?, result.err
    before, after = %w[before after].map { |name| saved_states(result, "#{name}.fxt").fetch(result.pid) }
    assert_operator after.fetch("exited"), :>, 0
    assert_operator total(after), :<=, result.out.to_i
    assert_operator before.fetch("changes"), :>, 10 * after.fetch("changes")
  end

  # A state that began before the reset counts from the reset on, whether the thread runs in it or is
  # blocked.
  def test_what_began_before_a_reset_counts_from_then_on
    result = run_ruby(PROGRAM + <<~'RUBY', *FLAGS, "--vm-trace=states", "--vm-trace-memory=4")
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      def busy(ns) = now.then { |from| 1 until now > from + ns }
      queue = Queue.new
      other = Thread.new { queue.pop; busy(1_000_000) }
      def exits_and_goes_on(n, queue, other)
        exits(n)
        busy(300_000_000)
        from = now
        RubyVM::Trace.reset
        busy(20_000_000)
        queue << 1
        other.join
        works(3)
        RubyVM::Trace.save("after.fxt")
        puts now - from
      end
      exits_and_goes_on(1, queue, other)
    RUBY
    assert_predicate result.status, :success?, result.err
    elapsed_ns = Integer(result.out)
    sums = saved_states(result, "after.fxt").transform_values { |args| total(args) }
    assert_operator sums.fetch(result.pid), :>, 20_000_000
    sums.each_value { |sum| assert_operator sum, :<=, elapsed_ns }
  end

  # Its sums are older than its events.
  def test_a_snapshot_of_the_last_moments_is_right
    result = run_ruby(PROGRAM + <<~'RUBY', *FLAGS, "--vm-trace=states", "--vm-trace-memory=4,1")
      works(10)
      sleep 1.2
      works(10)
      RubyVM::Trace.save("last.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = Trace.new(File.join(result.dir, "last.fxt"))
    assert_operator states_of(trace).fetch(result.pid).fetch("blocked"), :>, 1_190_000_000
  end

  # Each snapshot says what has been until then.
  def test_snapshots_have_the_states_until_then
    result = run_ruby(PROGRAM + <<~'RUBY', *FLAGS, "--vm-trace=states", "--vm-trace-memory=4")
      other = Thread.new { sleep }
      3.times { |i| works(300); RubyVM::Trace.save("#{i}.fxt") }
      RubyVM::Trace.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    sums = 3.times.map { |i| saved_states(result, "#{i}.fxt").fetch(result.pid).fetch("exited") }
    assert_equal sums.sort, sums
    assert_equal 3, sums.uniq.size
  end

  def test_a_jit_that_is_enabled_late
    result = run_ruby(<<~RUBY, "--vm-trace-file=%p.fxt")
      RubyVM::ZJIT.enable
      #{PROGRAM}
      200.times { works(10) }
      RubyVM::Trace.start(states: true, file: "late.fxt")
      deep(10) { works(100) }
      RubyVM::Trace.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    states = states_of(result.traces.find { |trace| trace.path.end_with?("late.fxt") }).fetch(result.pid)
    assert_operator states.fetch("compiled"), :>, 0
    assert_operator states.fetch("exited"), :>, 0
  end

  # A script that does nothing of a JIT's.
  PLAIN = <<~'RUBY'
    def works(n) = n.times { |i| i.to_s }
    20.times { works(10) }
    puts :done
  RUBY

  def test_without_a_jit_the_program_runs_and_the_reason_is_said
    result = run_ruby(PLAIN, "--vm-trace=states", "--vm-trace-file=%p.fxt")
    assert_predicate result.status, :success?, result.err
    assert_equal "done\n", result.out
    assert_match(/states.*no JIT is on: start Ruby with --zjit or --yjit/, result.err)
    result = run_ruby(<<~RUBY + PLAIN)
      begin; RubyVM::Trace.start(states: true, file: 'x.fxt'); rescue => e; puts e.message; end
    RUBY
    assert_match(/no JIT is on.*\ndone\n\z/, result.out)
  end
end
