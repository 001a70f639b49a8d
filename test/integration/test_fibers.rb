# Tracks of fibers: what a fiber other than its thread's own records does not lie among what others record.
#
# Once for each JIT: tracks are chosen by the module.
require_relative "helper"

class TestFibers < Integration::Test
  FLAGS = ["--vm-trace=markers,threads", "--vm-trace-file=%p.fxt"].freeze
  T = "T = RubyVM::Trace\n"

  def record(script, **options)
    result = run_ruby(T + script, *FLAGS, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  def markers(trace) = trace.in_category("marker")

  # [track's name, marker] of each instant.
  def instants(trace)
    markers(trace).select { |event| event["ph"] == "i" }.map { |event| event.values_at("thread", "name") }
  end

  def test_spans_that_overlap_nest_each_on_its_own_track
    result = record(<<~RUBY)
      fibers = %w[a b c].map do |name|
        Fiber.new do
          T.span(name) { T.span("inner \#{name}") { Fiber.yield }; Fiber.yield }
        end
      end
      T.span("root") do
        3.times { fibers.each(&:resume) }
      end
    RUBY
    tracks = markers(result.trace).group_by { |event| event["tid"] }
    assert_equal({ "main" => [%w[B root], %w[E root]],
                   **%w[a b c].each_with_index.to_h do |name, i|
                     ["main fiber #{i + 1}", [["B", name], ["B", "inner #{name}"], ["E", "inner #{name}"], ["E", name]]]
                   end },
                 tracks.to_h { |_, all| [all[0]["thread"], all.map { |event| event.values_at("ph", "name") }] })
    main, *own = tracks.keys.sort
    assert_equal result.pid, main
    assert_empty own.reject { |tid| (3 << 29...1 << 31).cover?(tid) }
    depths = result.trace.query("SELECT name, depth FROM slice WHERE category = 'marker'").to_h
    assert_equal %w[0 0 1], depths.values_at("root", "a", "inner a")
  end

  def test_fiber_goes_on_in_the_track_of_one_that_has_ended
    trace = record(<<~RUBY).trace
      500.times { |i| Fiber.new { T.instant("one") }.resume }
      many = 20.times.map { Fiber.new { T.instant("many"); Fiber.yield } }
      2.times { many.each(&:resume) }
      500.times { Fiber.new { T.instant("late"); raise "x" }.resume rescue 0 }
    RUBY
    tracks = instants(trace).group_by(&:last).transform_values { |found| found.map(&:first).uniq.size }
    assert_equal({ "one" => 1, "many" => 20, "late" => 1 }, tracks)
    assert_equal 20, markers(trace).map { |event| event["tid"] }.uniq.size
  end

  # Nobody ends these: the GC frees them.
  def test_tracks_of_abandoned_fibers_are_used_again
    trace = record(<<~RUBY).trace
      def abandon = Fiber.new { T.instant("x"); Fiber.yield }.resume
      20.times { 50.times { abandon }; GC.start }
    RUBY
    assert_equal 1000, markers(trace).size
    assert_operator markers(trace).map { |event| event["tid"] }.uniq.size, :<, 500
  end

  def test_each_thread_numbers_its_own_fibers
    trace = record(<<~RUBY).trace
      def work(text) = 2.times.map { Fiber.new { T.instant(text); Fiber.yield } }.each(&:resume)
      work("main")
      2.times.map do |n|
        Thread.new do
          Thread.current.name = "t\#{n}"
          work("in \#{n}")
          Thread.current.name = "late \#{n}"
          work("renamed \#{n}")
        end
      end.each(&:join)
    RUBY
    assert_equal [["late 0 fiber 3", "renamed 0"], ["late 0 fiber 4", "renamed 0"], ["late 1 fiber 3", "renamed 1"],
                  ["late 1 fiber 4", "renamed 1"],
                  ["main fiber 1", "main"], ["main fiber 2", "main"], ["t0 fiber 1", "in 0"], ["t0 fiber 2", "in 0"],
                  ["t1 fiber 1", "in 1"], ["t1 fiber 2", "in 1"]], instants(trace).sort
  end

  def test_fibers_of_ractors_and_enumerators
    trace = record(<<~RUBY, recorders: 3).trace
      Warning[:experimental] = false
      e = Enumerator.new { |y| T.instant("enumerator"); y << 1 }
      e.next
      wait = Ractor.method_defined?(:value) ? :value : :take
      ractors = 2.times.map do
        Ractor.new { 3.times.map { Fiber.new { ::RubyVM::Trace.instant("ractor"); Fiber.yield } }.each(&:resume).size }
      end
      ractors.each(&wait)
    RUBY
    assert_includes instants(trace), ["main fiber 1", "enumerator"]
    of_ractors = instants(trace).select { |_, name| name == "ractor" }.map do |thread, _|
      thread[/\ARactor #\d+ fiber (\d)\z/, 1]
    end
    assert_equal %w[1 1 2 2 3 3], of_ractors.sort
  end

  # The thread blocks, whatever fiber it runs.
  def test_states_are_those_of_the_thread
    trace = record("Fiber.new { T.span('s') { sleep 0.003 } }.resume\nFiber.new { Thread.new { }.join }.resume").trace
    blocked = trace.in_category("blocked").map { |event| event.values_at("thread", "name") }.uniq
    assert_includes blocked, ["main", "Kernel#sleep"]
    assert_equal ["main"], blocked.map(&:first).uniq
    assert_empty trace.query("SELECT * FROM thread_state JOIN thread USING (utid) WHERE name LIKE '% fiber %'")
  end

  # There the fiber is the thread's own: the others are no more.
  def test_a_child_forked_in_a_fiber
    result = record(<<~RUBY)
      Fiber.new do
        T.instant("before")
        Process.wait(fork { T.instant("child"); Fiber.new { T.instant("child's") ; Fiber.yield }.resume })
        T.instant("after")
      end.resume
    RUBY
    assert_equal [["main fiber 1", "before"], ["main fiber 1", "after"]], instants(result.trace)
    child = result.traces.find { |trace| instants(trace).any? { |_, name| name == "child" } }
    assert_equal [["main", "child"], ["main fiber 2", "child's"]], instants(child)
  end

  # Also when tracing begins in a fiber, and across traces.
  def test_traces_that_begin_and_end_in_fibers
    result = run_ruby(T + <<~RUBY)
      fiber = Fiber.new do
        T.start(file: "a.fxt", markers: true)
        T.instant("a")
        Fiber.yield
        T.stop
        T.start(file: "b.fxt", markers: true)
        T.instant("b")
      end
      fiber.resume
      T.instant("root")
      fiber.resume
      Fiber.new { T.instant("next") }.resume
      T.stop
    RUBY
    assert_predicate result.status, :success?, result.err
    a, b = %w[a b].map { |name| result.traces.find { |trace| File.basename(trace.path) == "#{name}.fxt" } }
    assert_equal [["main fiber 1", "a"], ["main", "root"]], instants(a)
    assert_equal [["main fiber 1", "b"], ["main fiber 1", "next"]], instants(b)
  end

  def test_a_fiber_scheduler_gives_each_request_its_track
    scheduler = File.join(Integration::RUBY_SRC, "test", "fiber", "scheduler.rb")
    trace = record(<<~RUBY, args: [scheduler]).trace
      require ARGV[0]
      Thread.new do
        Thread.current.name = "server"
        Fiber.set_scheduler(Scheduler.new)
        4.times { |n| Fiber.schedule { 5.times { T.span("request \#{n}") { sleep 0.001 } } } }
      end.join
    RUBY
    by_track = markers(trace).group_by { |event| event["thread"] }
    assert_equal (1..4).map { |n| "server fiber #{n}" }, by_track.keys.sort
    by_track.each_value { |events| assert_equal %w[B E] * 5, events.map { |event| event["ph"] } }
  end

  # Both ends of the invalidation of a version, and of the compilation after it.
  with :recompile_exits, def test_versions_are_invalidated_in_fibers
    flags = %w[--zjit-call-threshold=5 --zjit-num-profiles=3 --vm-trace=exits,compiles,invalidations
               --vm-trace-file=%p.fxt]
    trace = run_ruby(<<~RUBY, *flags).trace
      def deep(n) = n == 0 ? Fiber.yield(1) : deep(n - 1)
      10.times { f = Fiber.new { deep(700); 1 }; f.resume; f.resume }
    RUBY
    invalidations = trace.in_category("invalidation")
    assert_includes invalidations.map { |event| event["thread"] }.uniq, "main fiber 1"
    assert_equal %w[B E], invalidations.map { |event| event["ph"] }.uniq
  end
end
