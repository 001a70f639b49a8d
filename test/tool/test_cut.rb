# `vm-trace cut`: a part of the time as a trace of its own, which check accepts.
require_relative "tool_helper"

class TestCut < Minitest::Test
  include ToolHelper

  # The remaining events, as dump prints them, and the messages. Times are those of the file.
  def cut(bytes, *options)
    with_file(bytes) do |path|
      result = tool("cut", *options, "-o", "#{path}.out", path)
      result.err.gsub!(path, "F")
      events = File.exist?("#{path}.out") ? tool("dump", "#{path}.out").out.lines.map { |line| JSON.parse(line) } : nil
      yield "#{path}.out" if block_given?
      return events, result
    end
  end

  def times(bytes, *options) = cut(bytes, *options).first.map { |event| event["ts"] }

  # Instants at 1000, 2000, ... ns.
  def instants(count = 10, **options)
    FxtBuilder.simple { |b| (1..count).each { |i| b.event(:instant, "c", "n#{i}", ts: 1000 * i, **options) } }
  end

  def test_since_is_the_first_moment_kept_and_until_the_first_that_is_not
    assert_equal [3000, 4000], times(instants, "--since=2us", "--until=4us")
    assert_equal [9000, 10_000], times(instants, "--since=8us")
    assert_equal [1000], times(instants, "--until=1us")
    assert_equal (1..10).map { |i| 1000 * i }, times(instants)
  end

  def test_units
    { "2us" => 3, "0.002ms" => 3, "0.000002" => 3, "0.000002s" => 3, "2000ns" => 3, "2001ns" => 4 }.each do |time, first|
      assert_equal first * 1000, times(instants, "--since", time).first, time
    end
    ["", "x", "-1", "1h", "1 s", "1e999", "nan"].each do |time|
      result = tool("cut", "--since=#{time}", "f")
      assert_match(/--since takes a time such as/, result.err)
      assert_equal 2, result.status
    end
  end

  def test_wrong_usage
    assert_match(/--since is not before --until/, tool("cut", "--since=2", "--until=2", "f").err)
    assert_match(/cut takes one file/, tool("cut", "a", "b").err)
    assert_equal 2, tool("cut", "a", "b").status
  end

  def test_the_start_is_the_earliest_event_wherever_it_lies
    trace = FxtBuilder.simple { |b| [5000, 1000, 3000].each { |ts| b.event(:instant, "c", "n", ts: ts) } }
    assert_equal [5000, 3000], times(trace, "--since=2us")
  end

  def test_settings_stay_and_counts_of_the_whole_run_go
    events, result = cut(OurTrace.new.build, "--since=2us", "--until=3us") do |out|
      checked = tool("check", out)
      assert_equal 0, checked.status, checked.err
    end
    assert_equal [[3000, "settings"], [3000, "GuardType(Fixnum)"], [4000, "cut"]], events.map { |e| e.values_at("ts", "name") }
    assert_equal({ "since_ns" => 2000, "until_ns" => 3000, "left_out" => 11 }, events.last["args"])
    assert_equal [42, 43], events.last.values_at("pid", "tid")
    assert_equal "vm-trace: F: kept 2 of 13 events; site counts and summary left out: they cover the whole run\n", result.err
    assert_equal 0, result.status
  end

  # The end of the range is no moment of it.
  def test_without_until_the_range_ends_after_the_last_event
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: { "pid" => [:uint32, 42] })
      b.event(:instant, "c", "n", ts: 5000)
    end
    events, = cut(trace, "--since=2us")
    assert_equal({ "since_ns" => 2000, "until_ns" => 4001, "left_out" => 0 }, events.last["args"])
  end

  # Its two times stay those of one moment.
  def test_host_from_before_the_span_is_moved_with_its_time_of_day
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: { "pid" => [:uint32, 42] })
      b.event(:instant, "trace", "host", ts: 1100, args: { "host" => "web7", "unix_ns" => [:uint64, 1_000_000_001_100] })
      b.event(:instant, "c", "n", ts: 5000)
    end
    events, = cut(trace, "--since=2us")
    host = events.find { |event| event["name"] == "host" }
    assert_equal [3000, { "host" => "web7", "unix_ns" => 1_000_000_003_000 }], host.values_at("ts", "args")
  end

  def test_a_loss_in_the_span_stays
    trace = OurTrace.new
    trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 5], "reason" => "full" } }
    assert_equal %w[settings loss cut], cut(trace.build, "--since=6us").first.map { |e| e["name"] }
    assert_equal %w[settings cut], cut(trace.build, "--since=6.5us").first.map { |e| e["name"] }
  end

  # Rates are those of the part, though the settings are older, and the program does not look
  # killed.
  def test_a_part_is_known_for_one
    cut(OurTrace.new.build, "--since=2us", "--until=4us") do |out|
      report = tool("report", "--all", out).out
      assert_match(/^  time span +2.00 us,/, report)
      assert_match(/^  lost           nothing known; this is a part cut out of a trace$/, report)
      assert_equal "cut", JSON.parse(tool("info", "-f", "json", out).out).dig("processes", "rows", 0, "ended")
    end
  end

  def test_a_part_of_a_part
    cut(OurTrace.new.build, "--since=1us") do |out|
      tool("cut", "--since=2us", "-o", "#{out}2", out)
      assert_equal 0, tool("check", "#{out}2").status
      assert_equal [%w[settings NoProfileSend SendPolymorphic], 2],
                   tool("dump", "#{out}2").out.lines.map { |line| JSON.parse(line)["name"] }.then { |names|
                     [names & %w[settings GuardType(Fixnum) NoProfileSend SendPolymorphic], names.count("cut")] }
    end
  end

  # What had no room in the first event is as old as that.
  def test_more_settings_stay_with_the_settings
    bytes = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: { "pid" => [:uint32, 42], "flags" => "calls samples" })
      b.event(:instant, "trace", "more_settings", ts: 1000, args: { "samples_ns" => [:uint64, 5_000_000] })
      b.event(:instant, "marker", "early", ts: 2000)
      b.event(:instant, "marker", "late", ts: 8000)
    end
    assert_equal %w[settings more_settings late cut], cut(bytes, "--since=6us").first.map { |e| e["name"] }
    with_file(bytes) do |path|
      assert_equal ["", 0], tool("check", path).then { |result| [result.err, result.status] }
      settings = tool("info", path).out[/^  samples_ns +(\d+)$/, 1]
      assert_equal "5000000", settings
    end
  end

  def test_settings_of_another_program_are_not_taken_for_the_tracers
    trace = FxtBuilder.new.tap do |b|
      b.provider(1)
      b.init(1000)
      %w[settings site summary].each_with_index { |name, i| b.event(:instant, "trace", name, ts: 5 + i, pid: 1, tid: 1) }
    end
    events, = cut(trace, "--since=1ms")
    assert_equal [[5_000_000, "settings"], [6_000_000, "site"], [7_000_000, "summary"]], events.map { |e| e.values_at("ts", "name") }
  end

  def test_a_process_that_began_after_the_span_is_not_there
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: { "pid" => [:uint32, 42] })
      b.event(:instant, "trace", "settings", ts: 9000, pid: 50, tid: 50, args: { "pid" => [:uint32, 50] })
    end
    assert_equal [42, 42], cut(trace, "--until=5us").first.map { |e| e["pid"] }
  end

  def test_a_duration_that_begins_in_the_span_is_whole
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "c", "before", ts: 1000)
      b.event(:end, "c", "before", ts: 3000)
      b.event(:begin, "c", "outer", ts: 3500)
      b.event(:begin, "c", "inner", ts: 4000)
      b.event(:end, "c", "inner", ts: 5000)
      b.event(:begin, "c", "later", ts: 6500)
      b.event(:end, "c", "later", ts: 6600)
      b.event(:end, "c", "outer", ts: 7000)
      b.event(:complete, "c", "x", ts: 1500, extra: 9000)
      b.event(:complete, "c", "y", ts: 5500, extra: 9000)
    end
    events, result = cut(trace, "--since=1us", "--until=5us") { |out| assert_equal 0, tool("check", out).status }
    assert_equal [%w[B outer], %w[B inner], %w[E inner], %w[E outer], %w[X y]], events.map { |e| e.values_at("ph", "name") }
    assert_match(/; 1 duration that began earlier left out/, result.err)
  end

  def test_durations_of_other_threads_do_not_mix
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "c", "one", ts: 1000, pid: 1, tid: 1)
      b.event(:begin, "c", "two", ts: 3000, pid: 1, tid: 2)
      b.event(:end, "c", "one", ts: 4000, pid: 1, tid: 1)
      b.event(:end, "c", "two", ts: 5000, pid: 1, tid: 2)
    end
    assert_equal [%w[B two], %w[E two]], cut(trace, "--since=1us").first.map { |e| e.values_at("ph", "name") }
  end

  def test_a_provider_that_was_never_introduced_keeps_its_number
    trace = FxtBuilder.new.tap { |b| (1..3).each { |ts| b.event(:instant, FxtBuilder::Inline.new("c"), FxtBuilder::Inline.new("n"), ts: ts, pid: 1, tid: 1) } }
    events, = cut(trace, "--since=1ns")
    assert_equal [[2, 0], [3, 0]], events.map { |e| e.values_at("ts", "provider") }
  end

  def test_async_events_keep_their_ends
    trace = FxtBuilder.simple do |b|
      [[1000, 1], [3000, 2]].each { |ts, id| b.event(:async_begin, "c", "a", ts: ts, extra: id) }
      [[4000, 1], [9000, 2]].each { |ts, id| b.event(:async_end, "c", "a", ts: ts, extra: id) }
    end
    events, = cut(trace, "--since=1us", "--until=5us") { |out| assert_equal 0, tool("check", out).status }
    assert_equal [["b", 2], ["e", 2]], events.map { |e| e.values_at("ph", "id") }
  end

  def test_a_flow_that_begins_before_the_span_is_not_there
    trace = FxtBuilder.simple do |b|
      [[:flow_begin, 1000, 1], [:flow_begin, 3000, 2], [:flow_end, 4000, 1], [:flow_end, 4500, 2]].each do |type, ts, id|
        b.event(:instant, "c", "at", ts: ts)
        b.event(type, "c", "flow", ts: ts, extra: id)
      end
    end
    events, = cut(trace, "--since=1us", "--until=5us")
    assert_equal [[3000, 2], [4500, 2]], events.filter_map { |e| e.values_at("ts", "id") if e["name"] == "flow" }
    assert_equal [3000, 4000, 4500], events.filter_map { |e| e["ts"] if e["name"] == "at" }
  end

  # Definitions of a chunk are written only if something of it is kept, so a part of a long trace is
  # small.
  def test_chunks_outside_leave_nothing_behind
    trace = FxtBuilder.new
    20.times do |i|
      trace.provider(1, "p")
      trace.init
      trace.thread(1, 42, 43)
      trace.thread_name(42, 43, "main")
      trace.string(5000, "x" * 20_000)
      trace.event(:instant, "c", "n", ts: 1000 * (i + 1))
    end
    events, = cut(trace, "--since=5us", "--until=7us") { |out| assert_operator File.size(out), :<, 3 * 20_500 }
    assert_equal [6000, 7000], events.map { |e| e["ts"] }
    assert_equal ["main"] * 2, events.map { |e| e["thread"] }, "a name that was said in a chunk outside"
  end

  # A cut of everything is the trace; adjacent cuts together are all of it.
  def test_conformance_files_are_whole_after_cutting_and_merging
    conformance_files.each do |file|
      Dir.mktmpdir do |dir|
        parts = [[], %w[--until=5us], %w[--since=5us]].each_with_index.map do |options, i|
          File.join(dir, i.to_s).tap { |out| tool("cut", *options, "-o", out, file) }
        end
        all, first, second = parts.map { |part| tool("dump", part).out.lines.map { |line| JSON.parse(line).except("offset") } }
        original = tool("dump", file).out.lines.map { |line| JSON.parse(line).except("offset") }
        next if original.empty?
        assert_equal original, all, file
        dropped = original.count { |e| %w[E e].include?(e["ph"]) } # an end goes with its begin
        assert_includes (original.size - dropped..original.size), first.size + second.size, file
      end
    end
  end

  def test_scheduling_is_cut_too
    file = conformance_files.find { |f| f.end_with?("gvl_as_cpu.fxt") }
    sql = "select ts from sched order by ts"
    skip "the tool was built without SQLite" if tool("query", file, sql).err.include?("built without SQLite")
    all = tool("query", file, sql).out.lines.drop(1).map(&:to_i)
    half = all[all.size / 2]
    Dir.mktmpdir do |dir|
      out = File.join(dir, "out.fxt")
      start = tool("query", file, "select min(ts) from (select ts from slice union select ts from thread_state union select ts from sched)").out.lines.last.to_i
      tool("cut", "--since=#{half - start}ns", "-o", out, file)
      assert_equal all.select { |ts| ts >= half }, tool("query", out, sql).out.lines.drop(1).map(&:to_i)
    end
  end

  # Stack samples are cut as events are. What defines their stacks has no time and stays.
  def test_stack_samples_of_the_range_are_kept_with_their_stacks
    file = Conformance.files("streams/stack_samples_in_blobs.fxt").first
    sql = "SELECT s.ts, c.depth, f.name FROM stack_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id " \
          "JOIN stack_profile_frame f ON f.id = c.frame_id ORDER BY s.id"
    all = tool("query", file, sql).out.lines
    skip "the tool was built without SQLite" if all.empty?
    cut(File.binread(file), "--since=40ns", "--until=1010ns") do |out|
      expected = all.drop(1).select { |line| line.to_i.between?(1040, 2009) }
      assert_equal expected, tool("query", out, sql).out.lines.drop(1)
      assert_equal 0, tool("check", out).status
    end
    cut(File.binread(file), "--since=2021ns") { |out| assert_empty tool("query", out, sql).out.lines.drop(1) }
  end

  def test_damaged_events_are_left_out_and_counted
    trace = instants(2)
    trace.event(:instant, 777, "undefined category", ts: 1500)
    events, result = cut(trace)
    assert_equal [1000, 2000], events.map { |e| e["ts"] }
    assert_match(/kept 2 of 3 events; 1 damaged events left out/, result.err)
    assert_equal 1, result.status
  end

  def test_nothing_kept_says_how_long_the_trace_is
    events, result = cut(instants, "--since=1500ns", "--until=1600ns")
    assert_empty events
    assert_equal "vm-trace: F: kept 0 of 10 events: the trace lasts 0.000009 s\n", result.err
  end

  def test_standard_input_is_read_twice_all_the_same
    bytes = instants.bytes
    result = tool("cut", "--since=8us", "-", stdin: bytes)
    assert_equal 0, result.status, result.err
    assert_equal "vm-trace: standard input: kept 2 of 10 events\n", result.err
    with_file(result.out) { |path| assert_equal 2, tool("dump", path).out.lines.size }
  end

  # --- states ---

  # Where the time of each thread went, without times of the trace.
  def thread_states(*arguments)
    report = JSON.parse(tool("report", "--format=json", *arguments).out)
    rows = %w[thread_states gvl_holders].flat_map { |table| (report[table] || { "rows" => [] })["rows"] }
    rows.map { |row| row.except("longest_hold_at_ns", "marker", "not_seen_ns") }
  end

  # The same out of SQL's table: [tid, waiting, blocked, running]. A state that is open ends with the trace.
  def queried_states(file)
    sql = "SELECT tid, state, SUM(IIF(dur >= 0, dur, (SELECT MAX(ts + MAX(dur, 0)) FROM slice) - ts)) FROM thread_state " \
          "JOIN thread USING (utid) WHERE state != 'X' GROUP BY tid, state"
    rows = tool("query", file, sql).out.lines(chomp: true).drop(1).map { |line| line.delete('"').split(",") }
    rows.group_by(&:first).map do |tid, states|
      sums = states.each_with_object(Hash.new(0)) { |(_, state, ns), all| all[{ "R" => "W" }.fetch(state, state)] += ns.to_i }
      [tid.to_i, sums["W"], sums["S"], sums["Running"]]
    end.sort
  end

  def states_trace
    ThreadsTrace.new do |t|
      %i[calls sleeper waiter late].each_with_index { |name, i| t.thread(name, 50 + i) }
      t.runs(:main, 0)
      t.blocks(:main, "Process.wait", 1)
      t.runs(:sleeper, 1)
      t.blocks(:sleeper, "Kernel#sleep", 2)
      t.runs(:waiter, 2)
      t.leaves(:waiter, 4, ThreadsTrace::RUNNABLE)
      t.runs(:calls, 4)
      t.during(:calls, "gc", "GC minor", 8, 12, count: [:uint64, 7])
      t.blocks(:calls, "IO#read", 14, 22, 42) do
        t.runs(:waiter, 14)
        t.during(:waiter, "marker", "work", 15, 40)
        t.leaves(:waiter, 41, ThreadsTrace::DEAD)
      end
    end.build
  end

  def test_states_begin_and_end_at_the_borders
    with_file(states_trace) do |file|
      [[10, 20], [3, 13], [5, 6], [13, 60], [0, 30], [22.5, 30], [45, 50]].each do |since, until_ms|
        range = %W[--since=#{since}ms --until=#{until_ms}ms]
        part = "#{file}.part"
        assert_equal 0, tool("cut", *range, "-o", part, file).status
        expected = thread_states(*range, file)
        assert_equal [10_000_000] * 4, expected.filter_map { |row| row["life_ns"] } if since == 10
        assert_equal expected, thread_states(part), range
        threads = expected.select { |row| row["life_ns"] }
        times = threads.map { |row| row.values_at("tid", "waiting_ns", "blocked_ns") << row["running_ns"] + row["gc_ns"] }
        assert_equal times.sort, queried_states(part), range
        assert_equal ["", 0], tool("check", part).then { |checked| [checked.err, checked.status] }
      end
    end
  end

  # The oldest records of a file that keeps its newest lie behind the newest.
  def test_the_state_at_a_border_is_the_last_by_time
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "c", "n", ts: 0)
      b.switch(20_000, 0, 1)
      b.switch(40_000, 1, 0, state: 3)
      b.switch(10_000, 1, 0, state: 3)
    end
    with_file(trace) do |file|
      assert_equal 0, tool("cut", "--since=30us", "-o", "#{file}.part", file).status
      states = tool("query", "#{file}.part", "select ts, dur, state from thread_state").out.lines.drop(1).map(&:chomp)
      assert_equal ['30000,10000,"Running"', '40000,-1,"S"'], states
    end
  end

  # What began before is part of a collection that is not one of the range.
  def test_a_pause_that_began_before_the_range_is_time_but_no_collection
    with_file(states_trace) do |file|
      range = %w[--since=10ms --until=20ms]
      tool("cut", *range, "-o", "#{file}.part", file)
      part = JSON.parse(tool("report", "--format=json", "#{file}.part").out)
      assert_equal [2_000_000], part["thread_states"]["rows"].map { |row| row["gc_ns"] }.reject(&:zero?)
      assert_nil part["gc"]
      begun = tool("dump", "#{file}.part").out.lines.map { |line| JSON.parse(line) }.find { |event| event["cat"] == "gc" }
      assert_equal [10_000_000, { "count" => 7, "began" => "before the trace" }], begun.values_at("ts", "args")
    end
  end

  def test_parts_of_kept_traces_have_the_states_of_the_whole
    compared = Dir[File.join(TRACES, "*.fxt")].sum do |file|
      span = JSON.parse(tool("report", "--format=json", file).out).dig("time_span", "rows", 0)
      length = span["last_ns"] - span["first_ns"]
      [[0.3, 0.6], [0.5, 1.1]].sum do |since, until_share|
        range = ["--since=#{(since * length).to_i}ns", "--until=#{(until_share * length).to_i}ns"]
        Dir.mktmpdir do |dir|
          tool("cut", *range, "-o", "#{dir}/part.fxt", file)
          expected = thread_states(*range, file)
          assert_equal expected, thread_states("#{dir}/part.fxt"), [file, range]
          expected.size
        end
      end
    end
    assert_operator compared, :>, 10
  end

  # --- calls ---

  A, B, C = "Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)", "Integer#times"

  def calls_trace
    CallsTrace.new do |t|
      t.thread(:web, 77)
      t.call(:main, "<main> (/app/run.rb:1)", 0.5, 99, began: true) do
        t.call(:main, A, 1, 50, left_out: 3, left_out_ms: 2) do
          t.call(:main, B, 2, 10)
          t.call(:main, C, 15, 40) { t.call(:main, B, 20, 25) }
        end
        t.call(:web, B, 5, 30)
        t.call(:main, A, 60, 70)
      end
    end.build
  end

  def test_calls_that_are_open_at_a_border_are_kept_in_part
    events, result = cut(calls_trace, "--since=18ms", "--until=22ms") do |out|
      checked = tool("check", out)
      assert_equal ["", 0], [checked.err, checked.status]
      query = "select name, depth, dur from slice where category = 'call' order by track_id, depth"
      assert_equal ["<main> (/app/run.rb:1),0,4000003", "#{A},1,4000002", "#{C},2,4000001", "#{B},3,2000000", "#{B},0,4000001"],
                   tool("query", out, query).out.lines.drop(1).map { |line| line.delete('"').chomp }
      report = JSON.parse(tool("report", "--calls", "--format=json", out).out)
      assert_in_delta 8_000_000, report["calls_by_thread"]["rows"].sum { |row| row["recorded_ns"] }, 10
      assert_match(/ 0\.000000 s .* <main>/, tool("report", "--calls", out).out)
    end
    both = { "began" => "before the trace", "ended" => "after the trace" }
    calls = events.select { |e| e["cat"] == "call" }
    from, to = 18_000_000, 22_000_000
    assert_equal [[B, 20_000_000, to, both.slice("ended")], [C, from - 1, to, both], [A, from - 2, to, both],
                  [B, from - 1, to, both], ["<main> (/app/run.rb:1)", from - 3, to, both]],
                 calls.map { |e| [e["name"], e["ts"], e["ts"] + e["dur"], e["args"] || {}] }
    assert_match(/: kept 6 of 9 events; parts of 5 durations that were open at a border;/, result.err)
  end

  # The kernel's system calls are in chunks of their own: an inner one may follow what it is in, or come before it.
  def test_open_states_nest_whatever_the_order_of_their_records
    records = {
      outer: ->(b) { b.event(:complete, "call", A, ts: 1000, extra: [9000]) },
      inner: ->(b) { b.event(:complete, "syscall", "wait4", ts: 2000, extra: [8000]) },
      blocked: lambda do |b|
        b.event(:begin, "blocked", C, ts: 1500)
        b.switch(1500, 1, 0, state: 3)
        b.event(:end, "blocked", C, ts: 8500)
        b.switch(8500, 0, 1)
      end
    }
    records.keys.permutation.each do |order|
      trace = FxtBuilder.simple do |b|
        b.event(:instant, "x", "first", ts: 0)
        order.each { |name| records[name].call(b) }
      end
      cut(trace, "--since=3us") do |out|
        slices = tool("query", out, "select name, dur, depth from slice where dur > 0 order by depth").out
        rows = slices.lines.drop(1).map { |line| line.delete('"').chomp }
        assert_equal ["#{A},6003,0", "#{C},5502,1", "wait4,5001,2"], rows, order
        states = JSON.parse(tool("report", "--format=json", out).out)["thread_states"]["rows"]
        assert_equal [5502], states.filter_map { |row| row["blocked_ns"] }.uniq, "#{order}: from its context switch"
      end
    end
  end

  def test_calls_within_the_range_are_kept_whole
    events, = cut(calls_trace, "--since=0", "--until=55ms")
    inner = events.find { |e| e["name"] == A }
    assert_equal [1_000_000, { "left_out" => 3, "left_out_ns" => 2_000_000 }], inner.values_at("ts", "args")
    assert_equal [[A, 1]], events.select { |e| e["name"] == A }.map { |e| [e["name"], e["ts"] / 1_000_000] }
    assert_empty(cut(calls_trace, "--since=99.5ms", "--until=99.6ms").first.select { |e| e["cat"] == "call" })
  end

  # Inline names, and a thread without an index.
  def test_calls_in_other_encodings
    inline = ->(text) { FxtBuilder::Inline.new(text) }
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "x", "first", ts: 1000)
      b.event(:complete, inline["call"], inline["Foo#a (/app/foo.rb:3)"], ts: 2000, extra: [9000], pid: 42, tid: 43,
              args: { "left_out" => [:uint64, 1] })
    end
    events, = cut(trace, "--since=3us", "--until=5us")
    assert_equal [["Foo#a (/app/foo.rb:3)", 3999, 2001]], events.map { |e| e.values_at("name", "ts", "dur") }
  end
end
