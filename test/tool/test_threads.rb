# What `vm-trace report` and `check` make of the streams `threads` and `gc`. test/traces/gvl.fxt has
# the output in every format.
require "csv"
require_relative "tool_helper"

class TestThreads < Minitest::Test
  include ToolHelper

  # Three of a pool, one more with digits that another process has, and threads without a name of their own.
  def pool
    ThreadsTrace.new do |t|
      names = ["puma srv tp 001", "puma srv tp 002", "puma srv tp 010", "Thread app.rb:3", "Thread app.rb:12", "worker-1"]
      names.each_with_index { |name, i| t.thread(name, 50 + i) }
      names.each_with_index do |name, i|
        t.runs(name, 10 * i + 1)
        t.blocks(name, "Mutex#lock (a.rb:1)", 10 * i + 2, 10 * i + 3 + i, 10 * i + 5 + i)
        t.leaves(name, 10 * i + 9, ThreadsTrace::DEAD)
      end
    end.build
  end

  def test_a_pool_of_threads_is_one_row
    with_file(pool) do |path|
      text = tool("report", "--all", path).out
      states = text[/^Where the time of 6 threads went.*?\n\n/m]
      assert_equal ["puma srv tp N (3 threads)", "Thread app.rb:3", "Thread app.rb:12", "worker-1"].sort,
                   states.lines.drop(2).map { |line| line[/(?:puma|Thread|worker).*/] }.compact.sort
      # Each lives 8 ms and waits 2; the three are blocked for 1, 2 and 3 ms.
      assert_match(/^ +24\.00 ms +6\.00 ms +25\.0% +6\.00 ms +25\.0% .* puma srv tp N \(3 threads\)$/, states)
      each = tool("report", "--all", "--each-thread", path).out
      assert_equal %w[001 002 010], each[/^Where the time of 6.*?\n\n/m].scan(/puma srv tp (\d+)$/).flatten.sort
      json = JSON.parse(tool("report", "--format=json", path).out)["thread_states"]["rows"]
      assert_equal 6, json.size
      top = tool("report", "--all", "--top=2", path).out[/^Where the time of 6.*?\n\n/m]
      assert_match(/tp N \(3 threads\)$/, top)
      assert_match(/in 2 more$/, top)
    end
  end

  R, S, DEAD = ThreadsTrace::RUNNABLE, ThreadsTrace::BLOCKED, ThreadsTrace::DEAD
  MS = 1_000_000

  def report(bytes, *options)
    with_file(bytes) { |path| return tool("report", "--all", "--top=1000", *options, path) }
  end

  def json(bytes, *options) = JSON.parse(report(bytes, "--format=json", *options).out)

  def rows(data, table, *columns)
    data.fetch(table)["rows"].map { |row| columns.map { |column| (value = row[column]).is_a?(Integer) && column.end_with?("_ns") ? value / MS.to_f : value } }
  end

  # {thread => [waiting, blocked, GC, running]} in milliseconds.
  def states(data) = rows(data, "thread_states", "thread", "waiting_ns", "blocked_ns", "gc_ns", "running_ns").to_h { |name, *ms| [name, ms] }

  def gvl = File.binread(File.join(TRACES, "gvl.fxt"))

  # Two threads: main (tid 43) and worker (44).
  def two(**options)
    ThreadsTrace.new(**options) do |t|
      t.thread(:worker, 44)
      yield t
    end.build
  end

  # --- states ---

  def test_states_of_each_thread
    assert_equal({ "web 1" => [29, 17, 0, 7], "index" => [7.5, 38, 7, 46], "ractor 2" => [0.5, 10, 0, 79.5], "main" => [0.01, 88, 0, 11.99] },
                 states(json(gvl)))
  end

  # The tables of `query` come from other code.
  def test_states_are_those_of_query
    sql = "select t.name, sum(iif(state in ('R', 'W'), d, 0)), sum(iif(state = 'S', d, 0)), sum(iif(state = 'Running', d, 0)) from " \
          "(select utid, state, iif(dur < 0, #{100 * MS} - ts, dur) d from thread_state) join thread t using (utid) group by t.name"
    with_file(gvl) do |path|
      result = tool("query", path, sql)
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      queried = CSV.parse(result.out).drop(1).to_h { |name, *ns| [name, ns.map { |n| n.to_i / MS.to_f }] }
      reported = states(json(gvl)).transform_values { |waiting, blocked, gc, running| [waiting, blocked, gc + running] }
      assert_equal queried, reported
    end
  end

  # A waker of 0 is no thread, as without one.
  def test_waker_in_query
    trace = two do |t|
      t.runs(:main, 0)
      t.leaves(:main, 5, S)
      t.wakes(:worker, 1, 5, by: :main)
      t.builder.wakeup(7 * MS, 43, waker: 0)
    end
    with_file(trace) do |path|
      result = tool("query", path, "select s.ts, t.tid, w.tid from thread_state s join thread t using (utid) left join thread w on w.utid = s.waker_utid where state = 'W' order by s.ts")
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      assert_equal [%W[#{MS} 44 43], %W[#{7 * MS} 43 0]], CSV.parse(result.out).drop(1)
    end
  end

  def test_thread_whose_first_record_is_a_switch_out_ran_since_the_gvl_was_free
    data = json(two do |t|
      t.thread(:third, 45)
      t.builder.wakeup(4 * MS, 45)
      t.during(:main, "gc", "GC minor", 5, 6)
      t.leaves(:main, 10, S)
      t.leaves(:worker, 30, S)
    end)
    assert_equal({ "main" => [0, 90, 1, 5], "worker" => [0, 70, 0, 20], "third" => [96, 0, 0, 0] }, states(data))
  end

  # More switches than the window holds: from 50 to 99.5 ms, then in a new chunk from 1 to 50 ms.
  def newer_then_older(**settings)
    round = lambda do |t, at|
      t.blocks(:main, "sleep", at + 0.0002, at + 0.0004, at + 0.0006)
    end
    two(settings: settings) do |t|
      t.runs(:main, 50)
      70_000.times { |i| round[t, 50 + i * 0.0007] }
      t.blocks(:main, "IO#wait", 99.5)
      t.event(:instant, :main, "marker", "end", 100)
      t.new_chunk
      t.builder.wakeup((1.0001 * MS).round, 44)
      70_000.times { |i| round[t, 1 + i * 0.0007] }
      t.blocks(:worker, "Queue#pop", 50)
    end
  end

  def test_file_that_keeps_its_newest_is_read_in_two_parts
    data = json(newer_then_older(keep: "newest"))
    main, worker = states(data).values_at("main", "worker")
    [14 + 14, 14 + 14 + 0.5, 0].zip(main).each { |expected, ms| assert_in_delta expected, ms, 0.01 }
    assert_in_delta 98.999, main.sum, 0.01
    assert_in_delta 98.999, worker.sum, 0.01, "no record says that it went on: it is blocked up to the end"
    assert_equal [["IO#wait", 1], ["Queue#pop", 1], ["sleep", 140_000]], rows(data, "blocked", "name", "count").sort
    refute_match(/not counted/, report(newer_then_older(keep: "newest")).out)
  end

  def test_switches_far_behind_later_ones_are_reported
    assert_match(/^  not counted +\d+ changes of threads, far behind later ones in the file; vm-trace query has them in order$/,
                 report(newer_then_older).out)
  end

  # The table has the processes, and the head their sum.
  def test_suspensions_without_callers_are_reported
    counts = { 42 => [1200, 34], 43 => [5, 0], 44 => nil }
    Dir.mktmpdir do |dir|
      paths = counts.map do |pid, (all, without)|
        trace = ThreadsTrace.new(pid: pid) { |t| t.runs(:main, 0) }
        trace = trace.build(**(all ? { suspensions: all, suspensions_without_callers: without } : {}))
        File.join(dir, "#{pid}.fxt").tap { |path| File.binwrite(path, trace.bytes) }
      end
      head = "no callers     34 of 1,205 suspensions of threads: shorter than min (threads:min=0ns records all callers)"
      assert_includes tool("report", "--all", *paths).out.lines(chomp: true), "  #{head}"
      data = JSON.parse(tool("report", "--format=json", *paths).out)
      assert_equal [[42, 1200, 34], [43, 5, 0]], rows(data, "suspensions", "pid", "suspensions", "without_callers")
      refute_match(/no callers/, tool("report", "--all", *paths.drop(1)).out)
      refute_includes JSON.parse(tool("report", "--format=json", paths.last).out).keys, "suspensions"
    end
  end

  def test_life_of_a_thread_ends_and_its_number_is_used_again
    data = json(two do |t|
      t.runs(:worker, 10)
      t.leaves(:worker, 20, DEAD)
      t.wakes(:worker, 50, 55)
      t.leaves(:worker, 57, 5)
    end)
    assert_equal({ "worker" => [5, 0, 0, 12] }, states(data))
  end

  def test_gc_counts_only_while_the_thread_runs
    data = json(two do |t|
      t.runs(:main, 0)
      t.event(:begin, :main, "gc", "GC major", 10)
      t.event(:begin, :main, "gc", "GC minor", 11)
      t.event(:end, :main, "gc", "GC minor", 12)
      t.leaves(:main, 20, R)
      t.runs(:main, 30)
      t.event(:end, :main, "gc", "GC major", 40)
    end)
    assert_equal({ "main" => [10, 0, 20, 70] }, states(data))
  end

  def test_wakeups_that_change_nothing
    data = json(two do |t|
      t.runs(:main, 0)
      t.builder.wakeup(5 * MS, 43)
      t.leaves(:main, 10, R)
      t.builder.wakeup(15 * MS, 43)
      t.runs(:main, 20)
    end)
    assert_equal({ "main" => [10, 0, 0, 90] }, states(data))
  end

  def test_direct_switch_from_one_thread_to_the_next
    data = json(two do |t|
      t.runs(:main, 0)
      t.builder.switch(10 * MS, 1, 2, state: R)
    end)
    assert_equal({ "main" => [90, 0, 0, 10], "worker" => [0, 0, 0, 90] }, states(data))
  end

  def test_trace_without_these_streams_has_no_such_tables
    data = json(OurTrace.new.build)
    assert_empty data.keys & %w[thread_states gvl_holders blocked blocked_by_thread gc gc_phases]
    refute_match(/GVL|[Gg]arbage|Blocked/, report(OurTrace.new.build).out)
  end

  def test_columns_that_say_nothing_are_left_out_for_people
    traces = [->(t) {}, ->(t) { t.thread(:worker, 45) }, ->(t) { t.during(:main, "gc", "GC minor", 1, 2) }]
    heads = traces.map { |more| report(two { |t| t.runs(:main, 0); more[t]; t.leaves(:main, 3, S); t.wakes(:worker, 1, 3) }).out[/^ +life .*/] }
    assert_equal [[false, false], [false, false], [true, false]], heads.map { |head| [head.include?("in GC"), head.include?("tid")] }
    same = two { |t| t.thread(:main, 45); t.runs(:worker, 1); t.leaves(:worker, 2, S); t.runs(:main, 2); t.leaves(:main, 3, S); t.builder.thread(9, 42, 43); t.builder.switch(4 * MS, 0, 9) }
    assert_includes report(same).out[/^ +life .*/], "tid"
  end

  def test_gc_alone_makes_no_table_of_threads
    out = report(two { |t| t.during(:main, "gc", "GC minor", 1, 2, count: [:uint64, 1], reason: "newobj") }).out
    assert_match(/^Garbage collections: 1 minor, 0 major; 1 pause, /, out)
    refute_match(/GVL/, out)
  end

  # --- filters ---

  def test_parts_of_the_time_add_up_to_the_whole
    whole = json(gvl)
    parts = [json(gvl, "--until=25ms"), json(gvl, "--since=25ms", "--until=34ms"), json(gvl, "--since=34ms")]
    states(whole).each do |thread, ms|
      assert_equal ms, parts.map { |part| states(part).fetch(thread, [0] * 4) }.transpose.map { |values| values.sum.round(6) }, thread
    end
    { "blocked" => "total_ns", "gvl_holders" => "others_ns" }.each do |table, column|
      assert_equal rows(whole, table, column).flatten.sum, parts.sum { |part| rows(part, table, column).flatten.sum }, table
    end
    assert_equal rows(whole, "gc", "pauses").flatten.sum, parts.sum { |part| rows(part, "gc", "pauses").flatten.sum }
  end

  def test_blocked_part_of_a_window_is_cut
    data = json(gvl, "--since=10ms", "--until=15ms")
    assert_equal [["sleep", nil, 1, 5], ["IO#wait", "TCPSocket", 1, 5]].sort, rows(data, "blocked", "name", "class", "count", "total_ns").map { |name, klass, n, ms| [name, klass, n, ms.to_i] }.sort
    assert_equal({ "main" => [0, 5, 0, 0], "web 1" => [0, 5, 0, 0], "index" => [0, 0, 2, 3], "ractor 2" => [0, 0, 0, 5] }, states(data))
  end

  def test_one_thread
    data = json(gvl, "--thread=index")
    assert_equal %w[index], states(data).keys
    assert_equal [["index", 28.0]], rows(data, "gvl_holders", "thread", "others_ns")
    assert_equal [["Queue#pop"]], rows(data, "blocked", "name")
    assert_equal [["GC major"], ["GC minor"]], rows(data, "gc", "kind")
    other = json(gvl, "--thread=web*")
    assert_empty rows(other, "gc", "kind")
    assert_equal [["IO#wait"], ["Mutex#lock"]], rows(other, "blocked", "name")
    assert_equal [["web 1", 7.0]], rows(other, "gvl_holders", "thread", "others_ns")
  end

  def test_filters_of_exits_leave_no_such_tables
    refute_match(/GVL|[Gg]arbage|Blocked/, report(gvl, "--reason=Guard*").out)
  end

  # --- blocked ---

  def test_blocked_time_ends_where_the_thread_was_woken
    data = json(two do |t|
      t.runs(:main, 0)
      t.leaves(:main, 10, S)
      t.event(:begin, :main, "blocked", "IO#wait", 10)
      t.event(:end, :main, "blocked", "IO#wait", 50)
      t.wakes(:main, 20, 50)
    end)
    assert_equal [["IO#wait", 10.0]], rows(data, "blocked", "name", "total_ns")
    assert_equal({ "main" => [30, 10, 0, 60] }, states(data))
  end

  # The innermost frame outside of Ruby's own files, which a method in C has the line of.
  def test_where_time_slices_ended
    trace = two do |t|
      t.runs(:main, 0)
      frames = { "0" => "Integer#times (<internal:numeric>:262)", "1" => "Foo#bar (a.rb:3)", "2" => "<main> (a.rb:9)" }
      [frames, frames, frames.merge("0" => "Integer#/ (a.rb:4)"),
       { "0" => "Integer#times (<internal:numeric>:262)" }].each_with_index do |args, i|
        t.event(:instant, i == 1 ? :worker : :main, "preempted", "x", 10 + i, **args.transform_keys(&:to_sym))
      end
    end
    assert_equal [["Foo#bar (a.rb:3)", "main", 1], ["Foo#bar (a.rb:3)", "worker", 1], ["Integer#/ (a.rb:4)", "main", 1],
                  ["Integer#times (<internal:numeric>:262)", "main", 1]].sort,
                 rows(json(trace), "preempted", "frame", "thread", "count").sort
  end

  def test_blocked_by_class_and_by_thread
    trace = two do |t|
      t.runs(:main, 0)
      3.times { |i| t.blocks(:main, "Mutex#lock", 1 + 10 * i, 3 + 10 * i + i, class: "Thread::Mutex") }
      t.blocks(:main, "Mutex#lock", 40, 41, class: "Monitor")
      t.leaves(:main, 50, S)
      t.runs(:worker, 50)
      t.blocks(:worker, "Mutex#lock", 60, 64, class: "Thread::Mutex")
    end
    data = json(trace)
    assert_equal [["Mutex#lock", "Thread::Mutex", 4, 13.0, 4.0], ["Mutex#lock", "Monitor", 1, 1.0, 1.0]],
                 rows(data, "blocked", "name", "class", "count", "total_ns", "longest_ns")
    assert_equal [["main", 3, 9.0], ["worker", 1, 4.0], ["main", 1, 1.0]], rows(data, "blocked_by_thread", "thread", "count", "total_ns")
    assert_match(/^Blocked in, by thread$/, report(trace).out)
    refute_match(/by thread/, report(two { |t| t.runs(:main, 0); t.blocks(:main, "sleep", 1, 2) }).out)
  end

  def test_duration_in_one_record
    data = json(two do |t|
      t.runs(:main, 0)
      t.event(:complete, :main, "gc", "GC minor", 3, extra: 4 * MS, reason: "newobj")
      t.leaves(:main, 10, S)
      t.event(:complete, :main, "blocked", "sleep", 10, extra: 20 * MS)
      t.wakes(:main, 20, 20)
    end)
    assert_equal({ "main" => [0, 10, 1, 89] }, states(data))
    assert_equal [["sleep", 10.0]], rows(data, "blocked", "name", "total_ns")
    assert_equal [["newobj", 1, 1.0]], rows(data, "gc", "reason", "pauses", "total_ns")
  end

  def test_duration_in_one_record_without_length
    data = json(two do |t|
      t.runs(:main, 0)
      t.event(:complete, :main, "gc", "GC minor", 3, extra: 3 * MS)
    end)
    assert_equal [[1, 0.0]], rows(data, "gc", "pauses", "total_ns")
    assert_equal({ "main" => [0, 0, 0, 100] }, states(data))
  end

  # --- who held the GVL ---

  def test_holders
    assert_equal [["index", 28.0, 28.0, 5.0, 18.0, 35.0, "build index"], ["web 1", 7.0, 7.0, 0.0, 3.0, 2.0, nil], ["main", 1.5, 1.0, 0.0, 1.0, 1.0, nil]],
                 rows(json(gvl), "gvl_holders", "thread", "others_ns", "held_ns", "held_gc_ns", "longest_hold_ns", "longest_hold_at_ns", "marker")
  end

  def test_waiting_is_charged_to_its_own_ractor
    data = json(two do |t|
      t.thread(:other, 45, cpu: 1)
      t.runs(:main, 0)
      t.runs(:other, 0)
      t.wakes(:worker, 10, 30)
    end)
    assert_equal [["main", 20.0]], rows(data, "gvl_holders", "thread", "others_ns")
  end

  # There the threads come in another order.
  def test_holder_in_a_later_piece_of_a_spool_is_named_by_its_marker_there
    first = ThreadsTrace.new do |t|
      t.thread(:web, 44)
      t.runs(:main, 1)
      t.during(:main, "marker", "earlier", 2, 3)
      t.leaves(:main, 5, R)
      t.runs(:web, 6)
      t.leaves(:web, 8, S)
    end
    second = ThreadsTrace.new(ends: 300) do |t|
      t.thread(:web, 44)
      t.during(:web, "marker", "mine", 201, 250) do
        t.wakes(:web, 202, 203)
        t.leaves(:main, 204, R)
        t.leaves(:web, 240, S)
        t.runs(:main, 241)
      end
    end
    Dir.mktmpdir do |dir|
      files = [first, second].each_with_index.map do |trace, i|
        File.join(dir, "x-42-20261126T221504-#{i + 1}-time.fxt").tap { |path| File.binwrite(path, trace.build.bytes) }
      end
      tables = JSON.parse(tool("report", "--format=json", *files).out)
      assert_equal [["web", "mine"]], rows(tables, "gvl_holders", "thread", "marker").select { |_, marker| marker }
      assert_equal %w[main web], rows(tables, "thread_states", "thread").flatten.sort
    end
  end

  def test_holder_is_named_by_the_innermost_marker_when_others_began_to_wait
    data = json(two do |t|
      t.runs(:main, 0)
      t.during(:main, "marker", "outer", 1, 49) do
        t.during(:main, "marker", "first", 5, 10)
        t.during(:main, "marker", "second", 15, 40)
      end
      t.leaves(:main, 50, S)
      t.wakes(:worker, 20, 50)
    end)
    assert_equal [["second", 30.0, 20.0]], rows(data, "gvl_holders", "marker", "longest_hold_ns", "longest_hold_at_ns")
  end

  def test_wakeup_that_comes_too_late_is_reported_and_still_counts_for_its_thread
    count = 140_000
    trace = two(ends: 1000) do |t|
      t.runs(:main, 0)
      count.times { |i| t.leaves(:main, 0.001 * (i + 1), S); t.runs(:main, 0.001 * (i + 1) + 0.0005) }
      t.leaves(:main, 500, S)
      t.wakes(:worker, 10, 500)
    end
    data = json(trace)
    waiting = states(data)["worker"][0]
    assert_equal 490, waiting
    charged = rows(data, "gvl_holders", "others_ns").flatten.sum
    assert_operator charged, :<, 490
    assert_match(/^  not counted +[\d.]+ ms of waiting for the GVL, too late in the file to tell who held it$/, report(trace).out)
  end

  # Wake-ups name no process: their provider tells.
  def test_processes_with_equal_threads_are_told_apart
    half = lambda do |pid, from, to|
      ThreadsTrace.new(pid: pid) do |t|
        t.thread(:pool, 2**30)
        t.runs(:main, 0)
        t.leaves(:main, from, S)
        t.runs(:pool, from)
        t.leaves(:pool, from + 1, S)
        t.wakes(:pool, from + 2, to)
      end.build.bytes
    end
    Dir.mktmpdir do |dir|
      paths = [[100, 10, 20], [200, 30, 60]].map { |args| File.join(dir, "#{args[0]}.fxt").tap { |path| File.binwrite(path, half[*args]) } }
      merged = File.join(dir, "merged.fxt")
      assert_equal 0, tool("merge", "-o", merged, *paths).status
      [[merged], paths].each do |files|
        data = JSON.parse(tool("report", "--format=json", *files).out)
        pools = rows(data, "thread_states", "pid", "thread", "waiting_ns").select { |_, thread, _| thread == "pool" }
        assert_equal [[200, "pool", 28.0], [100, "pool", 8.0]], pools
      end
    end
  end

  # As above, where the records of two processes alternate.
  def test_wakeup_belongs_to_the_process_of_its_provider
    builder = FxtBuilder.new
    [[1, 100], [2, 200]].each do |provider, pid|
      builder.provider(provider, "test")
      builder.init
      builder.thread(1, pid, 2**30)
      builder.thread_name(pid, 2**30, "pool of #{pid}")
      builder.switch(MS, 0, 1)
      builder.switch(5 * MS, 1, 0, state: S)
    end
    [[1, 10], [2, 20]].each { |provider, woken| builder.section(provider); builder.wakeup(woken * MS, 2**30) }
    [[1, 14], [2, 28]].each { |provider, runs| builder.section(provider); builder.switch(runs * MS, 0, 1) }
    assert_equal({ "pool of 100" => 4.0, "pool of 200" => 8.0 }, states(json(builder)).transform_values(&:first))
  end

  # --- garbage collections ---

  def test_collections_by_reason
    assert_equal [["GC major", "malloc", "oldmalloc", 1, 2, 5.0, 4.0], ["GC minor", "newobj", nil, 1, 1, 2.0, 2.0]],
                 rows(json(gvl), "gc", "kind", "reason", "major_by", "collections", "pauses", "total_ns", "longest_ns")
    assert_equal [["mark", 2, 4.5, nil], ["sweep", 2, 1.6, 3000], ["barrier", 1, 0.1, nil]], rows(json(gvl), "gc_phases", "name", "count", "total_ns", "freed_slots")
  end

  def test_pause_of_a_collection_that_began_before_the_trace_is_no_collection_of_it
    trace = two do |t|
      t.during(:main, "gc", "GC major", 1, 2, count: [:uint64, 7])
      t.during(:main, "gc", "GC major", 3, 5, count: [:uint64, 7])
      t.during(:worker, "gc", "GC minor", 6, 7, ends: { count: [:uint64, 8], reason: "newobj" })
    end
    assert_equal [["GC major", "(not recorded)", 0, 2], ["GC minor", "newobj", 1, 1]],
                 rows(json(trace), "gc", "kind", "reason", "collections", "pauses")
    assert_match(/^Garbage collections: 1 minor, 0 major; 3 pauses/, report(trace).out)
  end

  def collections(trace) = rows(json(trace), "gc", "kind", "reason", "collections", "pauses").sort_by(&:to_s)

  # As ractors with heaps of their own, which count their collections themselves.
  def test_pauses_go_on_with_the_collection_of_their_thread
    trace = two do |t|
      t.during(:main, "gc", "GC major", 1, 2, count: [:uint64, 7], reason: "malloc")
      t.during(:worker, "gc", "GC major", 3, 4, count: [:uint64, 7], reason: "newobj")
      t.during(:main, "gc", "GC major", 5, 8, count: [:uint64, 7])
    end
    assert_equal [["GC major", "malloc", 1, 2], ["GC major", "newobj", 1, 1]], collections(trace)
  end

  def test_a_pause_goes_on_with_one_of_the_last_16_collections
    after = lambda do |others|
      collections(two do |t|
        t.during(:main, "gc", "GC minor", 1, 2, count: [:uint64, 1], reason: "malloc")
        others.times do |i|
          t.during(:main, "gc", "GC minor", 3 + i, 3.5 + i, count: [:uint64, 2 + i], reason: "newobj")
        end
        t.during(:main, "gc", "GC minor", 30, 31, count: [:uint64, 1])
      end)
    end
    assert_equal [["GC minor", "malloc", 1, 2], ["GC minor", "newobj", 15, 15]], after[15]
    assert_equal [["GC minor", "(not recorded)", 0, 1], ["GC minor", "malloc", 1, 1], ["GC minor", "newobj", 16, 16]],
                 after[16]
  end

  # --- check ---

  def assert_broken(message, trace)
    result = check(trace)
    assert_equal [message], result.err.lines.map { |line| line.sub(/\Avm-trace: F: offset \d+: /, "").chomp }
    assert_equal 1, result.status
  end

  def test_two_threads_run_at_once
    trace = ->(settings) { two(settings: settings) { |t| t.runs(:main, 0); t.runs(:worker, 5) } }
    assert_broken "thread 44 runs on CPU 0, but thread 43 still does", trace[{}]
    assert_fine two { |t| t.runs(:main, 0); t.leaves(:main, 5, S); t.runs(:worker, 5) }
    assert_fine trace[{ keep: "newest" }]
  end

  def test_thread_that_runs_twice_or_stops_twice
    assert_broken "thread 43 begins to run on CPU 0, but it runs already", two { |t| t.runs(:main, 0); t.runs(:main, 5) }
    assert_broken "thread 43 stops running on CPU 0, but it does not run", two { |t| t.runs(:main, 0); t.leaves(:main, 5, S); t.leaves(:main, 6, S) }
  end

  def test_blocked_outside_of_a_blocked_state
    message = ->(tid) { "thread #{tid} is in a blocked duration, but its state is not blocked" }
    assert_broken message[43], two { |t| t.runs(:main, 0); t.during(:main, "blocked", "sleep", 1, 2) }
    assert_broken message[44], two { |t| t.runs(:main, 0); t.during(:worker, "blocked", "sleep", 1, 2) }
    assert_broken message[43], two { |t| t.runs(:main, 0); t.leaves(:main, 1, R); t.during(:main, "blocked", "sleep", 1, 2); t.runs(:main, 2) }
    assert_broken message[43], two { |t| t.runs(:main, 0); t.leaves(:main, 1, S); t.runs(:main, 2); t.during(:main, "blocked", "sleep", 1, 3) }
    assert_broken message[43], two { |t| t.runs(:main, 0); t.leaves(:main, 5, S); t.during(:main, "blocked", "sleep", 4, 6) }
    assert_broken message[43], two { |t| t.runs(:main, 0); t.blocks(:main, "sleep", 5); t.runs(:main, 9) }
  end

  def test_thread_that_is_blocked_when_the_trace_ends_is_fine
    assert_fine two { |t| t.runs(:main, 0); t.blocks(:main, "sleep", 5) }
    assert_fine two { |t| t.runs(:main, 0); t.event(:begin, :main, "gc", "GC minor", 5) }
  end

  def test_part_of_a_trace_is_fine
    with_file(gvl) do |path|
      [%w[--since=10ms], %w[--since=34ms --until=60ms], %w[--since=5ms --until=20ms]].each do |window|
        part = "#{path}.cut"
        assert_equal 0, tool("cut", *window, "-o", part, path).status
        assert_equal ["", 0], tool("check", part).then { |result| [result.err, result.status] }, window
      end
    end
    with_file(two { |t| t.runs(:main, 0); t.leaves(:main, 5, S); t.during(:main, "blocked", "sleep", 5.5, 6); t.runs(:main, 6) }) do |path|
      part = "#{path}.cut"
      assert_equal 0, tool("cut", "--since=5200us", "-o", part, path).status
      assert_equal ["", 0], tool("check", part).then { |result| [result.err, result.status] }
    end
  end

  def test_kinds_and_arguments
    { "blocked sleep is not a duration" => [:instant, "blocked", "sleep", {}],
      "gc GC minor is not a duration" => [:instant, "gc", "GC minor", {}],
      "gc GC heap is not a counter" => [:instant, "gc", "GC heap", {}],
      "gc mark has no unsigned number as its argument count" => [:complete, "gc", "mark", { count: "1" }],
      "gc sweep has no unsigned number as its argument freed_slots" => [:complete, "gc", "sweep", { freed_slots: -1 }],
      "gc GC major has no string as its argument reason" => [:complete, "gc", "GC major", { reason: 5 }],
      "gc GC major has no string as its argument major_by" => [:complete, "gc", "GC major", { major_by: 5 }] }.each do |message, (type, cat, name, args)|
      assert_broken message, two { |t| t.event(type, :main, cat, name, 1, extra: type == :complete ? 2 * MS : [], **args) }
    end
    { "blocked sleep has no string as its argument class" => { class: 5 },
      "blocked sleep has no whole number as its argument fd" => { fd: "5" } }.each do |message, args|
      assert_broken message, two { |t| t.runs(:main, 0); t.blocks(:main, "sleep", 1, 2, **args) }
    end
  end

  def test_other_traces_are_not_checked_for_these_rules
    builder = FxtBuilder.simple { |b| b.switch(1, 0, 1); b.switch(2, 0, 1); b.event(:begin, "blocked", "sleep", ts: 3); b.event(:end, "blocked", "sleep", ts: 4) }
    assert_fine builder
  end
end
