# --vm-trace=gc: judged by GC.count, GC.stat, GC.latest_gc_info and GC::Profiler in the same run.
#
# Once for each base: the collector is the base's.
require_relative "helper"
require_relative "extension"
require_relative "remote"
require "json"

class TestGC < Integration::Test
  include Remote

  T = "T = RubyVM::Trace\n"
  FLAGS = ["--vm-trace=gc", "--vm-trace-file=%p.fxt"].freeze
  PAUSES = ["GC minor", "GC major"].freeze
  STATS = %i[count minor_gc_count major_gc_count total_freed_objects].freeze

  # A pause as the trace has it: the begin's arguments, [name, begin, end] of what is inside, and
  # the counters after it.
  Pause = Struct.new(:name, :args, :from, :to, :thread, :phases, :freed, :heap) do
    def count = args["count"]
    def first? = args.key?("reason")
  end

  def collect(script, *flags, **options)
    result = run_ruby(T + script, *FLAGS, *flags, **options)
    assert_predicate result.status, :success?, result.err
    assert_empty result.err.lines.grep_v(/\A(vm_trace|[YZ]JIT): /).join
    result
  end

  # All pauses that began and ended, per thread in order. Begins are at different times, everything
  # is nested, and each pause is followed by its counters.
  def pauses(trace, complete: true)
    found = trace.in_category("gc").group_by { |event| event["tid"] }.flat_map { |_, events| pauses_of_thread(events, complete) }
    found.sort_by(&:from)
  end

  def pauses_of_thread(events, complete)
    open, found = [], []
    begins = events.select { |event| event["ph"] == "B" }.map { |event| event["ts"] }
    assert_equal begins.sort.uniq, begins
    events.each do |event|
      case event["ph"]
      when "B"
        assert_equal open.empty?, PAUSES.include?(event["name"]), event
        open << event
      when "E"
        assert_equal open.last&.fetch("name"), event["name"], event if complete || !open.empty?
        began = open.pop or next
        assert_operator began["ts"], :<, event["ts"]
        if open.empty?
          found << Pause.new(began["name"], began["args"], began["ts"], event["ts"], began["thread"], @phases || [], @freed || 0)
          @phases = @freed = nil
        else
          (@phases ||= []) << [event["name"], began["ts"], event["ts"]]
          @freed = (@freed || 0) + event["args"].fetch("freed_slots") if event["name"] == "sweep"
        end
      when "C"
        assert_empty open
        assert_equal "GC heap", event["name"]
        found.last.heap = event["args"] if found.last
      end
    end
    assert_empty open if complete
    assert found.all?(&:heap)
    found
  end

  # Text of a program that prints what changes of STATS while it runs `lines`, between two
  # collections that are complete.
  def measured(lines)
    <<~RUBY
      require "json"
      stat = -> { #{STATS.inspect}.map { |key| GC.stat(key) } }
      GC.start
      before = stat.call
      #{lines}
      GC.start
      after = stat.call
      puts JSON.generate([before, after, GC.stat(:heap_allocated_pages), GC.stat(:heap_live_slots)])
    RUBY
  end

  # Compare the trace with what such a program printed. Returns the pauses in that time.
  def assert_as_measured(result, complete: true)
    before, after, pages, live = JSON.parse(result.out.lines.last)
    all = pauses(result.trace, complete: complete)
    between = all.select { |pause| pause.count > before[0] && pause.count <= after[0] }
    first = between.select(&:first?)
    assert_equal [*before[0] + 1..after[0]], first.map(&:count)
    assert_equal between.map(&:count), between.map(&:count).sort
    kinds = first.map(&:name).tally
    assert_equal [after[1] - before[1], after[2] - before[2]], PAUSES.map { |name| kinds.fetch(name, 0) }
    assert_equal after[3] - before[3], between.sum(&:freed)
    between.each do |pause|
      assert_equal first.find { |other| other.count == pause.count }.name, pause.name
      assert_equal %w[count], pause.args.keys - %w[thread] unless pause.first?
    end
    last = between.last.heap
    assert_equal pages * 65_536, last["heap_bytes"]
    assert_in_delta live, last["live_slots"], 1000
    summary = result.trace.summary
    assert_equal [all.count(&:first?), all.size], summary.values_at("gc_collections", "gc_pauses")
    between
  end

  CHURN = <<~RUBY
    kept = []
    400.times do |i|
      kept << Array.new(500) { |k| "text \#{k}" }
      Array.new(500) { Object.new }
      kept.shift(50) if i % 60 == 59
    end
  RUBY

  def test_counts_kinds_and_freed_slots
    between = assert_as_measured(collect(measured(CHURN)))
    assert_operator between.size, :>, between.count(&:first?), "no lazy sweeping, no incremental marking"
    names = between.flat_map { |pause| pause.phases.map(&:first) }.tally
    assert_operator names.fetch("mark"), :>=, between.count(&:first?)
    assert_operator names.fetch("sweep"), :>=, between.count(&:first?)
    assert_equal %w[mark sweep], names.keys.sort
    assert_equal ["main"], between.map(&:thread).uniq
  end

  # The extension begins collections as C code does.
  def test_reasons
    path = Extension.build("collect", "collect.c" => <<~C)
      #include <ruby.h>
      static VALUE collect(VALUE self) { rb_gc(); return Qnil; }
      void Init_collect(void) { rb_define_global_function("collect", collect, 0); }
    C
    result = collect(<<~RUBY, args: [path])
      require ARGV[0]
      found = []
      note = lambda do
        count, by, major = GC.count, GC.latest_gc_info(:gc_by), GC.latest_gc_info(:major_by)
        found << [count, by, major] if count == GC.count
      end
      GC.start; note.call
      GC.start(full_mark: false); note.call
      collect; note.call
      20.times { 20.times { "x" * 1_000_000 }; note.call }
      kept = []
      100.times { kept << Array.new(2_000) { Object.new }; note.call }
      kept.clear
      GC.compact; note.call
      GC.stress = true
      Object.new; note.call
      "x" * 100_000; note.call
      GC.stress = false
      found.uniq.each { |entry| puts entry.join(" ") }
    RUBY
    first = pauses(result.trace).select(&:first?).to_h { |pause| [pause.count, pause] }
    seen = result.out.lines.map do |line|
      count, by, major = line.chomp.split(" ", -1)
      pause = first.fetch(count.to_i)
      assert_equal [by, major.to_s], [pause.args["reason"], pause.args["major_by"].to_s], line
      assert_equal major.to_s.empty? ? "GC minor" : "GC major", pause.name
      by
    end
    assert_empty %w[method malloc newobj] - seen
    assert_operator seen.size, :>, 10
  end

  # Ruby counts processor time, and only the order of magnitude is comparable. A pause that waits for a processor is
  # longer, but never longer than the program's own clock says.
  def test_pauses_beside_the_time_that_ruby_measures
    result = collect(<<~RUBY)
      GC::Profiler.enable
      GC.start
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond) }
      first, ms, from = GC.count, GC.stat(:time), now.()
      20.times { Array.new(20_000) { "text" }; GC.start }
      puts [first, GC.count, GC.stat(:time) - ms, GC::Profiler.total_time, now.() - from].join(" ")
    RUBY
    first, last, ms, seconds, wall_ms = result.out.split.map(&:to_f)
    pauses = pauses(result.trace).select { |pause| pause.count > first && pause.count <= last }
    sum_ms = pauses.sum { |pause| pause.to - pause.from } / 1e6
    assert_operator pauses.size, :>=, 20
    [ms, seconds * 1000].each { |other| assert_operator sum_ms, :>, other / 10 }
    assert_operator sum_ms, :<, wall_ms
    pauses.each { |pause| assert_operator pause.phases.sum { |_, from, to| to - from }, :<=, pause.to - pause.from }
  end

  def test_compaction_is_inside_the_sweep
    result = collect(measured("5.times { Array.new(5_000) { Object.new }; GC.compact }\nGC.auto_compact = true\n#{CHURN}GC.auto_compact = false"))
    between = pauses(result.trace)
    compacted = between.select { |pause| pause.phases.any? { |name,| name == "compact" } }
    assert_operator compacted.size, :>=, 5
    assert_equal ["GC major"], compacted.map(&:name).uniq
    compacted.each do |pause|
      _, from, to = pause.phases.find { |name,| name == "compact" }
      assert pause.phases.any? { |name, begun, ended| name == "sweep" && begun < from && to < ended }
    end
  end

  def test_stress
    result = collect(<<~RUBY)
      from = GC.count
      GC.stress = true
      a = Array.new(20) { |i| "text \#{i}" }
      GC.stress = false
      puts [from, GC.count].join(" ")
    RUBY
    from, to = result.out.split.map(&:to_i)
    assert_operator to - from, :>, 20
    assert_equal [*from + 1..to], pauses(result.trace).select(&:first?).map(&:count).select { |count| count > from && count <= to }
  end

  def test_stress_while_everything_is_recorded
    trace = trace_under_stress("--vm-trace=gc,markers").trace
    assert_operator pauses(trace).size, :>, 200
    assert_equal 0, trace.summary["lost"]
    assert_operator trace.exits.size, :>, 20
    assert_includes pauses(trace).map(&:thread), "other"
  end

  def test_ractors
    result = collect(<<~RUBY, recorders: 5)
      Warning[:experimental] = false
      from = GC.count
      ractors = Array.new(4) { Ractor.new { 40.times { Array.new(2_000) { "text" }; GC.start(full_mark: false) }; nil } }
      10.times { 10.times { Array.new(2_000) { "text" } }; GC.start }
      ractors.each(&:value)
      puts [from, GC.count].join(" ")
    RUBY
    from, to = result.out.split.map(&:to_i)
    all = pauses(result.trace)
    assert_operator all.map(&:thread).uniq.size, :>, 1
    barriers = all.flat_map { |pause| pause.phases.select { |name,| name == "barrier" } }
    refute_empty barriers
    assert_equal 0, result.trace.summary["lost"]
    own = BASE == "ruby-4.1" # each ractor has a heap and a count of its own
    counted = own ? all.select { |pause| pause.thread == "main" } : all
    assert_equal [*from + 1..to], counted.select(&:first?).map(&:count).select { |count| count > from && count <= to }
    return if own
    all.each_cons(2) { |one, next_one| assert_operator one.to, :<=, next_one.from + 10_000, "two at once" } # clocks differ a little
  end

  def test_forked_children_have_their_own
    result = collect(<<~RUBY)
      GC.start
      pid = fork do
        3.times { GC.start }
        Process.exit!(0) if ARGV[0]
      end
      Process.wait(pid)
      fork { GC.start; fork { GC.start } ; Process.wait }
      Process.wait
      GC.start
    RUBY
    assert_equal 4, result.traces.size
    counts = result.traces.map { |trace| pauses(trace).count { |pause| pause.args["reason"] == "method" } }
    assert_equal [1, 1, 2, 3], counts.sort
    assert_equal 2, pauses(result.trace).count { |pause| pause.args["reason"] == "method" }
  end

  def test_at_run_time
    result = run_ruby(T + <<~RUBY)
      GC.start
      3.times do |i|
        T.start(gc: true, file: "\#{i}.fxt")
        (i + 1).times { GC.start }
        p T.stop[:lost]
        GC.start
      end
    RUBY
    assert_equal "0\n0\n0\n", result.out, result.err
    assert_equal [1, 2, 3], result.traces.map { |trace| pauses(trace).count { |pause| pause.args["reason"] == "method" } }
    assert_equal [["gc", "none"]], result.traces.map { |trace| trace.settings.values_at("flags", "jit") }.uniq
  end

  # Collections that go on when the trace begins have pauses without a reason; when it ends in one,
  # nothing stays open.
  def test_begun_and_ended_within_a_collection
    result = run_ruby(T + <<~RUBY)
      30.times do |i|
        kept = Array.new(20_000) { "text" }
        Array.new(997 * i) { Object.new }
        500.times { GC.latest_gc_info(:state) == :none ? Array.new(97) { Object.new } : break }
        T.start(gc: true, file: "\#{i}.fxt")
        Array.new(3_000 + 331 * i) { Object.new }
        T.stop
      end
    RUBY
    assert_predicate result.status, :success?, result.err
    all = result.traces.map { |trace| pauses(trace) }
    assert_equal 30, all.size
    assert all.any? { |list| list.first && !list.first.first? }, "no trace began within a collection"
  end

  # What a sweep frees writes the ends of calls on the tracks of fibers, of which a chunk has room for 254.
  def test_a_pause_stays_on_its_thread_when_it_frees_many_fibers
    result = run_ruby(<<~'RUBY', "--vm-trace=calls,gc", "--vm-trace-file=%p.fxt")
      def x = Fiber.yield
      5.times { 400.times { Fiber.new { x }.resume }; GC.start }
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_operator result.trace.summary["gc_pauses"], :>=, 5
    assert_equal [result.pid], result.trace.in_category("gc").map { |event| event["tid"] }.uniq
  end

  def test_flight_recorder
    result = run_ruby(T + <<~RUBY, "--vm-trace=gc", "--vm-trace-memory=4")
      300.times { GC.start(full_mark: false) }
      T.reset
      5.times { GC.start }
      T.save("saved.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    trace = result.traces.fetch(0)
    assert_equal 5, pauses(trace).count { |pause| pause.args["reason"] == "method" }
    assert_equal [5, 0], [trace.summary["gc_collections"], trace.summary["lost"]]
  end

  # Stress makes enough of them for a ring that is used again and again.
  def test_limited_file
    result = collect(<<~RUBY, "--vm-trace-max-size=4")
      T.stop
      T.start(gc: true, markers: true, file: "\#{$$}.fxt", max_size: 4)
      30.times { 20_000.times { |i| T.instant("i", i: i, text: i.to_s) }; GC.start }
      T.stop
    RUBY
    trace = result.traces.fetch(-1)
    assert_operator trace.summary["lost"], :>, 0
    refute_empty pauses(trace, complete: false)
  end

  def test_from_another_shell
    script = 'File.write("ready", ""); GC.start until File.exist?("done"); File.write("idle", ""); sleep'
    beside(script, flags: []) do |pid, dir|
      status, _, err = tell("start", "--gc", "--no-exits", "--file=#{File.join(dir, "started.fxt")}", pid)
      assert_equal [0, ""], [status, err]
      wait_until("something is recorded") { tell("status", pid)[1].match?(/^gc_pauses +[1-9]/) }
      assert_equal 0, tell("stop", pid).first
      trace = validated(Trace.new(File.join(dir, "started.fxt")))
      assert_equal "gc", trace.settings["flags"]
      refute_empty pauses(trace)
    end
  end

  def test_options
    result = run_ruby("", "--vm-trace=gc:often")
    refute_predicate result.status, :success?
    assert_match(/^--vm-trace: gc takes no options, not "often"$/, result.err)
  end
end
