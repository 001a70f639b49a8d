# `vm-trace diff` of the streams beside exits: times of threads, what they blocked in, garbage
# collections, allocated bytes.
require_relative "tool_helper"

class TestDiffStreams < Minitest::Test
  include ToolHelper

  MS = 1_000_000

  # main runs, collects garbage and sleeps; worker waits for it `waits` ms.
  def run_of(waits:, sleeps: 10, gc: 2, ends: 100, pid: 42, more: ->(t) {})
    ThreadsTrace.new(pid: pid, ends: ends) do |t|
      t.thread(:worker, pid + 2)
      t.runs(:main, 0)
      gc.times { |i| t.during(:main, "gc", "GC minor", 1 + i, 1.5 + i, count: [:uint64, i], reason: "newobj") }
      t.leaves(:main, 50, ThreadsTrace::BLOCKED)
      t.wakes(:worker, 50 - waits, 50)
      t.leaves(:worker, 51, ThreadsTrace::BLOCKED)
      t.event(:begin, :main, "blocked", "sleep", 50)
      t.event(:end, :main, "blocked", "sleep", 50 + sleeps)
      t.wakes(:main, 50 + sleeps, 50 + sleeps)
      more[t]
    end.build
  end

  def compare(before, after, *options)
    Dir.mktmpdir do |dir|
      files = { "a" => before, "b" => after }.map do |side, traces|
        Array(traces).each_with_index.map do |trace, i|
          "#{side}#{i + 1}.fxt".tap { |f| File.binwrite(File.join(dir, f), trace.bytes) }
        end
      end
      Dir.chdir(dir) { return tool("diff", "--top=1000", *options, *files[0], "vs", *files[1]) }
    end
  end

  def json(*args)
    result = compare(*args, "--format=json")
    assert_equal ["", 0], [result.err, result.status]
    JSON.parse(result.out)
  end

  # [change, a, b, name...], times in ms.
  def rows(data, table, *names)
    data.fetch(table)["rows"].map do |row|
      [row["change"], *row.values_at("a", "b").map { |n| n / MS.to_f }, *row.values_at(*names)]
    end
  end

  def test_states_of_threads_with_the_largest_change_first
    data = json(run_of(waits: 10), run_of(waits: 30))
    assert_equal [["grew", 10, 30, "worker", "waiting"]], rows(data, "thread_states", "thread", "state")
    slower = json(run_of(waits: 10), run_of(waits: 30, sleeps: 15, gc: 4))
    assert_equal [["worker", "waiting", 20 * MS], ["main", "running", -6 * MS], ["main", "blocked", 5 * MS],
                  ["main", "in GC", 1 * MS]],
                 slower["thread_states"]["rows"].map { |row| row.values_at("thread", "state", "delta") }
    assert_equal({ "waiting" => "grew", "blocked" => "grew", "running" => "shrank", "gc" => "grew",
                   "collections" => "grew" },
                 slower["sums"]["rows"].to_h { |row| row.values_at("sum", "change") })
  end

  def test_what_threads_blocked_in
    again = ->(t) { t.blocks(:main, "Queue#pop", 80, 84, class: "Thread::Queue") }
    data = json(run_of(waits: 1), run_of(waits: 1, sleeps: 12, more: again))
    assert_equal [["new", 0, 4, "Queue#pop", "Thread::Queue"], ["grew", 10, 12, "sleep", nil]],
                 rows(data, "blocked", "name", "class")
    assert_equal [[0, 1], [1, 1]], data["blocked"]["rows"].map { |row| row.values_at("a_count", "b_count") }
  end

  def test_collections_by_kind_and_reason
    major = lambda do |t| # one collection in two pauses
      t.during(:main, "gc", "GC major", 90, 91.5, count: [:uint64, 9], reason: "malloc", major_by: "oldmalloc")
      t.during(:main, "gc", "GC major", 93, 93.5, count: [:uint64, 9])
    end
    data = json(run_of(waits: 1, gc: 4), run_of(waits: 1, more: major))
    assert_equal [["new", 0, 2, "GC major", "malloc", "oldmalloc"], ["shrank", 2, 1, "GC minor", "newobj", nil]],
                 rows(data, "gc", "kind", "reason", "major_by")
    assert_equal [[0, 1], [4, 2]], data["gc"]["rows"].map { |row| row.values_at("a_count", "b_count") }
  end

  # A run that takes twice as long and does twice as much: totals differ, rates do not.
  def twice
    double = lambda do |t|
      t.leaves(:worker, 150, ThreadsTrace::BLOCKED)
      t.during(:main, "gc", "GC minor", 160, 161, count: [:uint64, 9], reason: "newobj")
    end
    [run_of(waits: 1), run_of(waits: 1, ends: 200, more: double)]
  end

  def test_runs_of_different_length_have_both_totals_and_rates
    data = json(*twice)
    gc = data["gc"]["rows"][0]
    assert_equal [1 * MS, 2 * MS, 10 * MS, 10 * MS], gc.values_at("a", "b", "a_per_second", "b_per_second")
    assert_equal [{ "a_ns" => 100 * MS, "b_ns" => 200 * MS }], data["time_spans"]["rows"]
    assert_empty json(*twice, "--normalize=second")["gc"]["rows"]
    text = compare(*twice).out
    assert_match(%r{^  time span +100 ms -> 200 ms; A and B below are per run, A/s and B/s per second$}, text)
    assert_match(%r{^  gc +1\.00 ms -> 2\.00 ms: grew, \+100\.0%; 10\.0 ms -> 10\.0 ms per second$}, text)
    assert_match(%r{ A/s +B/s }, text)
    assert_match(%r{^  time span .*; A and B below are per second, A/run and B/run of a whole run$},
                 compare(*twice, "--normalize=second").out)
    same = compare(run_of(waits: 1), run_of(waits: 2)).out
    refute_match(%r{A/s}, same)
    assert_match(/^  time span +100 ms -> 100 ms$/, same)
  end

  def test_a_difference_must_exceed_the_spread_of_the_runs
    before, after = [run_of(waits: 10), run_of(waits: 20)], [run_of(waits: 15), run_of(waits: 25)]
    data = json(before, after)
    assert_empty data["thread_states"]["rows"]
    assert_match(/^Threads by state, per run: 0 changed, 1 within the spread of the runs$/, compare(before, after).out)
    beyond = json(before, [run_of(waits: 21), run_of(waits: 25)])["thread_states"]["rows"][0]
    assert_equal [15, 23, 10, 20, 21, 25],
                 beyond.values_at("a", "b", "a_low", "a_high", "b_low", "b_high").map { |n| n / MS }
  end

  def test_each_run_counts_as_in_its_report
    before, after = run_of(waits: 10, gc: 3), run_of(waits: 30, gc: 1, sleeps: 20)
    data = json(before, after)
    [before, after].zip(%w[a b]) do |trace, side|
      with_file(trace) do |path|
        report = JSON.parse(tool("report", "--top=1000", "--format=json", path).out)
        sums = data["sums"]["rows"].to_h { |row| row.values_at("sum", side) }
        { "waiting" => "waiting_ns", "blocked" => "blocked_ns", "running" => "running_ns" }.each do |sum, column|
          assert_equal report["thread_states"]["rows"].sum { |row| row[column] }, sums[sum], sum
        end
        assert_equal report["gc"]["rows"].sum { |row| row["total_ns"] }, sums["gc"]
        assert_equal report["blocked"]["rows"].sum { |row| row["total_ns"] },
                     data["blocked"]["rows"].sum { |row| row[side] }
      end
    end
  end

  # --- allocations ---

  # `counts`: samples of each class; a weight of 40 is no estimate, for it is the size.
  def allocated(counts, weight: 1000, settings: {})
    ThreadsTrace.new(settings: settings) do |t|
      counts.each_with_index do |(name, count), c|
        count.times { |i| t.allocates(:main, name, 1 + 0.001 * i, sample: c * 100_000 + i, weight: weight) }
      end
    end.build
  end

  def test_bytes_by_class_are_estimates_with_a_margin
    before = allocated({ "String" => 1000, "Array" => 20 })
    after = allocated({ "String" => 2000, "Array" => 22, "Foo" => 1 })
    data = json(before, after)
    assert_equal [["grew", 1_000_000, 2_000_000, "String"]],
                 data["allocations"]["rows"].map { |row| row.values_at("change", "a", "b", "class") }
    # n samples of weight w and size s have the variance n w (w - s), and one more is allowed for.
    margin = 2 * Math.sqrt(1001 * 1000.0 * (1000 - 40))
    assert_in_delta 1_000_000 - margin, data["allocations"]["rows"][0]["a_low"], 1
    assert_in_delta 1_000_000 + margin, data["allocations"]["rows"][0]["a_high"], 1
    assert_match(/^Allocated bytes by class, per run: 1 changed, 2 within the spread of the runs$/,
                 compare(before, after).out)
    assert_match(/^  allocations +1020\.0 kB -> 2023\.0 kB: grew, \+98\.3%$/, compare(before, after).out)
  end

  def test_bytes_are_exact_where_each_object_was_recorded
    data = json(allocated({ "A" => 10, "B" => 5 }, weight: 40), allocated({ "A" => 11, "B" => 5 }, weight: 40))
    assert_equal [["grew", 400, 440, 400, 400, "A"]],
                 data["allocations"]["rows"].map { |row| row.values_at("change", "a", "b", "a_low", "a_high", "class") }
  end

  # --- which streams are compared ---

  def test_lost_events_are_named
    lossy = ThreadsTrace.new do |t|
      t.allocates(:main, "A", 1, sample: 1, weight: 1000)
      t.event(:instant, :main, "trace", "loss", 5, lost: [:uint64, 1234], reason: "x")
    end.build(lost: 1234)
    assert_match(/^  lost +1,234 events of B: what follows counts too little there$/,
                 compare(allocated({ "A" => 5 }), lossy).out)
    refute_match(/lost/, compare(allocated({ "A" => 5 }), allocated({ "A" => 4 })).out)
  end

  def test_a_stream_that_one_side_lacks_is_not_compared
    result = compare(run_of(waits: 1), allocated({ "A" => 1 }))
    assert_match(/^  not compared +threads: 1 of 2 files does not have this stream$/, result.out)
    assert_match(/^ +gc: 1 of 2 files does not have this stream$/, result.out)
    assert_match(/^ +allocations: 1 of 2 files does not have this stream$/, result.out)
    refute_match(/^(Threads|Blocked|Garbage|Allocated|Runs compared)/, result.out)
  end

  # The settings name the streams, which may have recorded nothing.
  def test_a_stream_without_events_is_compared
    settings = { flags: "threads gc allocations" }
    data = json(allocated({ "A" => 9 }, weight: 40, settings: settings), allocated({}, settings: settings))
    assert_equal [["gone", "A"]], data["allocations"]["rows"].map { |row| row.values_at("change", "class") }
    assert_equal %w[waiting blocked running gc collections allocations], data["sums"]["rows"].map { |row| row["sum"] }
  end

  def test_traces_of_exits_alone_have_no_such_tables
    result = compare(OurTrace.new.build, OurTrace.new.build)
    refute_match(/time span|not compared|Threads/, result.out)
    assert_match(/\AExits compared/, result.out)
  end

  def test_tables_of_exits_without_exits_are_for_programs
    text = compare(run_of(waits: 1), run_of(waits: 2)).out
    assert_match(/\ARuns compared/, text)
    refute_match(/^By (method|reason|site)/, text)
    assert_includes json(run_of(waits: 1), run_of(waits: 2)).keys, "methods"
  end

  def test_rows_beyond_top_are_summed_up
    data = JSON.parse(compare(run_of(waits: 10), run_of(waits: 30, sleeps: 15, gc: 4), "--format=json", "--top=1").out)
    assert_equal 3, data["thread_states"]["more_rows"]
    assert_equal 0, data["thread_states"]["more"]["delta"], "-6 + 5 + 1 ms"
    two = ->(t) { t.blocks(:main, "a", 80, 82); t.blocks(:main, "b", 85, 86) }
    assert_match(/ in 1 more$/,
                 compare(run_of(waits: 1), run_of(waits: 1, more: two), "--top=1").out[/^Blocked in.*?\n\n/m],
                 "though there are no classes")
  end

  # --- --fail-over ---

  def test_fail_over_names_a_sum
    before, after = run_of(waits: 10), run_of(waits: 30, gc: 3)
    assert_equal 0, compare(before, after, "--fail-over=waiting:200").status
    result = compare(before, after, "--fail-over=waiting:199%", "--fail-over=gc:10", "--fail-over=blocked:0",
                     "--fail-over=running:0")
    assert_equal "vm-trace: diff: waiting grew by 200.0 %, more than --fail-over=waiting:199%\n" \
                 "vm-trace: diff: gc grew by 50.0 %, more than --fail-over=gc:10\n", result.err
    assert_equal 1, result.status
    assert_equal 0, compare(after, before, "--fail-over=waiting:0", "--fail-over=gc:0").status
    before, after = [10, 30].map { |ms| run_of(waits: ms) }, [20, 40].map { |ms| run_of(waits: ms) }
    assert_equal 0, compare(before, after, "--fail-over=waiting:1").status, "within the spread"
    assert_equal 1, compare(run_of(waits: 1, gc: 0), run_of(waits: 1, gc: 1), "--fail-over=gc:5").status
  end

  def test_fail_over_of_collections_counts_them
    before, after = run_of(waits: 10, gc: 2), run_of(waits: 10, gc: 3)
    assert_equal 0, compare(before, after, "--fail-over=collections:50").status
    result = compare(before, after, "--fail-over=collections:49")
    assert_equal "vm-trace: diff: collections grew by 50.0 %, more than --fail-over=collections:49\n", result.err
    assert_equal 1, result.status
    assert_match(/^  collections +2 -> 3: grew, \+50.0%$/, result.out)
    assert_equal 2, compare(before, after, "--fail-over=collections:1ms").status, "a count is no time"
  end

  def test_fail_over_of_a_time
    before, after = run_of(waits: 10), run_of(waits: 30)
    assert_equal 0, compare(before, after, "--fail-over=waiting:20ms").status
    result = compare(before, after, "--fail-over=waiting:19.9ms")
    assert_equal "vm-trace: diff: waiting grew by 20.0 ms, more than --fail-over=waiting:19.9ms\n", result.err
    assert_equal 1, result.status
  end

  def test_fail_over_of_allocations
    assert_equal 1, compare(allocated({ "A" => 100 }), allocated({ "A" => 200 }), "--fail-over=allocations:50").status
    assert_equal 0, compare(allocated({ "A" => 100 }), allocated({ "A" => 104 }), "--fail-over=allocations:1").status,
                 "within the margin"
  end

  def test_fail_over_of_what_is_not_recorded_fails
    result = compare(OurTrace.new.build, OurTrace.new.build, "--fail-over=waiting:5")
    assert_equal "vm-trace: diff: not all files have what --fail-over=waiting:5 compares\n", result.err
    assert_equal 1, result.status
  end

  def test_fail_over_of_exits_by_name
    more = OurTrace.new.tap { |trace| trace.exits << trace.exit_event("side_exit", "R", 5500, "A#m (a.rb:1)", "send") }
    more.sites << more.site("side_exit", "R", "A#m (a.rb:1)", "send", 1)
    %w[5 exits:5].each do |limit|
      assert_equal 1, compare(OurTrace.new.build, more.build, "--fail-over=#{limit}").status
    end
  end

  def test_wrong_fail_over
    sums = "exits, lost, waiting, blocked, running, calls, gc, collections or allocations"
    { "sleeping:5" => /takes 5, or #{sums} before it: lost:5, not sleeping:5/, ":5" => /takes 5, or/,
      "gc:" => /takes a number of percent/, "gc:-1" => /takes a number of percent/ }.each do |text, message|
      result = tool("diff", "--fail-over=#{text}", "a", "b")
      assert_match message, result.err
      assert_equal 2, result.status
    end
  end

  # --- the kernel's streams ---

  def kernel_run(reads:, waits:)
    KernelTrace.new(settings: { flags: "syscalls sched" }) do |t|
      t.syscall(:main, "open", 0, 1)
      reads.times { |i| t.syscall(:main, "read", 2 + 2 * i, 3 + 2 * i) }
      t.cpu(:main, 0, 0, 20)
      t.runnable(:main, 20, 20 + waits, why: "preempted")
      t.cpu(:main, 0, 20 + waits, 50)
    end.build
  end

  def test_system_calls_and_cpus
    data = json(kernel_run(reads: 3, waits: 4), kernel_run(reads: 5, waits: 9))
    assert_equal [["grew", 3, 5, "read"]], rows(data, "syscalls", "syscall")
    assert_equal [[3, 5]], data["syscalls"]["rows"].map { |row| row.values_at("a_count", "b_count") }
    assert_equal [["shrank", 46, 41, "main", "on a CPU"], ["grew", 4, 9, "main", "preempted, waiting for a CPU"]],
                 rows(data, "cpu", "thread", "state")
    text = compare(kernel_run(reads: 3, waits: 4), calls_run(a: 1, b: 1)).out
    assert_match(/syscalls: 1 of 2 files does not have this stream/, text)
    assert_match(/sched: 1 of 2 files does not have this stream/, text)
  end

  # --- calls ---

  def calls_run(a:, b:, dir: "/app", line: 3)
    CallsTrace.new do |t|
      t.call(:main, "<main> (#{dir}/run.rb:1)", 0, 100) do
        t.call(:main, "Foo#a (#{dir}/foo.rb:#{line})", 1, 1 + a + b) do
          t.call(:main, "Bar#b (#{dir}/bar.rb:9)", 1.5, 1.5 + b)
        end
      end
    end.build
  end

  # Lines that moved, and folders, are no difference.
  def test_own_time_of_calls_by_method
    data = json(calls_run(a: 10, b: 5, dir: "/app/v1"), calls_run(a: 12, b: 30, dir: "/app/v2", line: 7))
    assert_equal [["shrank", 85, 58, "<main> (/app/v2/run.rb)"], ["grew", 5, 30, "Bar#b (/app/v2/bar.rb)"],
                  ["grew", 10, 12, "Foo#a (/app/v2/foo.rb)"]],
                 rows(data, "calls", "method")
    assert_equal [[1, 1]] * 3, data["calls"]["rows"].map { |row| row.values_at("a_count", "b_count") }
    sum = data["sums"]["rows"].find { |row| row["sum"] == "calls" }
    assert_equal [100 * MS, 100 * MS], sum.values_at("a", "b")
  end

  def test_growth_of_own_time_fails
    before, after = calls_run(a: 10, b: 5), calls_run(a: 10, b: 17)
    assert_equal 0, compare(before, after, "--fail-over=calls:12.5").status
    result = compare(before, after, "--fail-over=calls:11")
    assert_equal 1, result.status
    assert_equal "vm-trace: diff: own time in Bar#b (/app/bar.rb) grew by 12.0 % of all before, " \
                 "more than --fail-over=calls:11\n",
                 result.err
    assert_equal 1, compare(before, after, "--fail-over=calls:11ms").status
    assert_equal 0, compare(before, after, "--fail-over=calls:13ms").status
    none = ThreadsTrace.new.build
    assert_equal "vm-trace: diff: not all files have what --fail-over=calls:5 compares\n",
                 compare(before, none, "--fail-over=calls:5").err
  end
end
