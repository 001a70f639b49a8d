# What `vm-trace` makes of the stream `states`: the time that exits lose, where the time went, and what
# ran without compiled code. test/traces/states.fxt has the report in every format.
require "zlib"
require_relative "tool_helper"
require_relative "page_helper"

class TestStates < Minitest::Test
  include PageHelper

  MS = 1_000_000
  A, B = "Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)"

  def report(bytes, *options)
    with_file(bytes) { |path| return tool("report", "--all", *options, path) }
  end

  def json(bytes, *options) = JSON.parse(report(bytes, "--format=json", *options).out)

  def in_ms(value) = value.is_a?(Integer) ? value / MS.to_f : value

  # Times in milliseconds.
  def rows(data, table, *columns)
    data.fetch(table)["rows"].map do |row|
      columns.map { |column| column.end_with?("ns") ? in_ms(row.fetch(column)) : row.fetch(column) }
    end
  end

  def head(out, title) = out[/^  #{title} +(.*)$/, 1]

  def states_trace = File.binread(File.join(TRACES, "states.fxt"))

  # --- lost time ---

  # The order by time is the reverse of the order by count.
  def test_exits_are_sorted_by_lost_time
    trace = StatesTrace.new do |t|
      t.exits(:main, "Once", A, 10, lost: 40)
      5.times { |i| t.exits(:main, "Often", B, 20 + i, lost: 0.5) }
      t.site("Once", A, 1, lost: 40)
      t.site("Often", B, 5, lost: 2.5, max: 0.5)
      t.states(:main, compiled: 57.5, exited: 42.5)
    end.build
    data = json(trace)
    assert_equal [["Once", 40.0, 1], ["Often", 2.5, 5]], rows(data, "exits_by_reason", "reason", "lost_ns", "count")
    assert_equal [[A, 40.0], [B, 2.5]], rows(data, "exits_by_line", "method", "lost_ns")
    assert_equal [["Foo#a (/app/foo.rb)", 40.0], ["Foo#b (/app/foo.rb)", 2.5]], rows(data, "worst", "method", "lost_ns")
    assert_equal [["Once", A, 40.0, 0.941176, 0.4], ["Often", B, 2.5, 0.0588235, 0.025]],
                 rows(data, "exits_by_place", "reason", "method", "lost_ns", "lost_share", "time_share")
    assert_equal [[40.0, 40.0, 40.0], [0.5, 0.5, 0.5]],
                 rows(data, "exits_by_place", "median_ns", "p95_ns", "longest_ns")
  end

  # Exits that were not recorded count in their site. Quantiles use the recorded exits that know their
  # time.
  def test_sums_are_those_of_the_sites_whatever_was_recorded
    trace = StatesTrace.new(rate: 10) do |t|
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 0].each_with_index { |ms, i| t.exits(:main, "R", A, 10 + i, lost: ms) }
      t.site("R", A, 104, lost: 80, max: 21)
      t.site("S", B, 3, lost: 15, max: 9)
      t.states(:main, compiled: 5, exited: 95)
    end.build
    places = rows(json(trace), "exits_by_place", "reason", "lost_ns", "median_ns", "p95_ns", "longest_ns")
    rounded = places.map { |reason, *times| [reason, *times.map { |ms| ms&.round }] }
    assert_equal [["R", 80, 5, 9, 21], ["S", 15, nil, nil, 9]], rounded
  end

  def test_lost_time_of_several_versions_and_kinds_is_added_up_and_the_longest_is_the_longest
    trace = StatesTrace.new do |t|
      t.site("R", A, 1, lost: 3, version: 1)
      t.site("R", A, 2, lost: 9, max: 8, version: 2)
      t.site("R", A, 1, lost: 2, version: 2) # the code was freed, and compiled again
      t.site("R", B, 2, lost: 1, max: 0.5, version: 2)
      t.states(:main, exited: 15)
    end.build
    data = json(trace)
    assert_equal [["R", 15.0]], rows(data, "exits_by_reason", "reason", "lost_ns")
    assert_equal [[A, 14.0, 8.0], [B, 1.0, 0.5]], rows(data, "exits_by_place", "method", "lost_ns", "longest_ns")
  end

  # Events times their weight, as their counts; what the sites counted is not of this time.
  def test_window_has_an_estimate_of_its_events
    trace = StatesTrace.new(rate: 10) do |t|
      t.exits(:main, "R", A, 10, lost: 2)
      t.exits(:main, "R", A, 50, lost: 3)
      t.site("R", A, 25, lost: 70, max: 20)
      t.states(:main, exited: 70, compiled: 30)
      t.interpreted("Foo#late (/app/foo.rb:20)", "not compiled yet", 3, 5, first: 1, last: 2)
    end.build
    data = json(trace, "--since=40ms")
    assert_equal [[30.0, 10, 3.0]], rows(data, "exits_by_place", "lost_ns", "count", "longest_ns")
    assert_equal ["unknown", 1], data["cost"]["rows"][0].values_at("verdict", "estimated")
    %w[states states_by_thread interpreted].each { |table| refute data.key?(table), "#{table} is of the whole trace" }
    out = report(trace, "--since=40ms").out
    assert_equal "in 50.0 ms, about 30.0 ms were interpreted because of exits at 1 place", head(out, "time")
    assert_match(/^ {17}estimated from the recorded exits/, out)
    refute_match(/^  verdict/, out)
    assert_equal [[70.0]], rows(json(trace), "exits_by_place", "lost_ns")
  end

  def test_killed_program_has_an_estimate
    trace = StatesTrace.new(rate: 10) { |t| t.exits(:main, "R", A, 10, lost: 2) }
    out = report(trace.builder).out
    assert_equal "in 10.0 ms, about 20.0 ms were interpreted because of exits at 1 place", head(out, "time")
  end

  # --- the first sentences ---

  def sentences(lost:, hits: 10, **states)
    trace = StatesTrace.new do |t|
      t.site("R", A, hits, lost: lost) if lost > 0
      t.states(:main, exited: lost, **states)
    end.build
    out = report(trace).out
    ["time", "verdict"].map { |title| head(out, title) } << out[/^  verdict .*\n {17}(.*)$/, 1]
  end

  def test_report_begins_with_what_exits_cost
    out = report(states_trace).out
    assert_equal %w[time verdict], out.lines[1, 2].map { |line| line.split.first }
    assert_equal "of 10.7 s of running, 3.20 s (30.0 %) were interpreted because of exits, 90 % of it at 2 of 5 places",
                 head(out, "time")
    assert_equal "exits are worth a look: they cost 30.0 % of the time (6,351 a second, 50.4 us each)",
                 head(out, "verdict")
  end

  def test_exits_that_are_not_the_problem
    assert_equal ["of 100 ms, 400 us (0.4 %) were interpreted because of exits at 1 place",
                  "exits are not your problem: they cost 0.4 % of the time (100 a second, 40.0 us each)",
                  "garbage collection took 33.0 %"],
                 sentences(lost: 0.4, gc: 33, compiled: 60.6, uncompiled: 6)
    assert_equal "compiled code took 99.6 %", sentences(lost: 0.4, compiled: 99.6)[2]
    assert_equal ["of 100 ms, nothing was interpreted because of exits",
                  "exits are not your problem: they cost 0.0 % of the time"],
                 sentences(lost: 0, compiled: 100)[0, 2]
  end

  def test_what_else_took_the_time_is_named
    { uncompiled: "interpreting what was not compiled yet", uncompilable: "interpreting what cannot be compiled",
      reprofiled: "interpreting what is profiled again", fallback: "fallback calls", c_function: "C functions",
      compiling: "compiling" }.each do |state, phrase|
      assert_equal "#{phrase} took 20.0 %", sentences(lost: 1, compiled: 79, state => 20)[2]
    end
    assert_nil sentences(lost: 30, compiled: 50, gc: 20)[2], "it takes less than exits"
  end

  def test_waiting_and_blocked_time_is_not_running_time
    assert_equal ["of 20.0 ms of running, 5.00 ms (25.0 %) were interpreted because of exits at 1 place",
                  "exits are worth a look: they cost 25.0 % of the time (100 a second, 500 us each)",
                  "threads waited for the GVL 20.0 % of their lives; threads were blocked 60.0 % of their lives"],
                 sentences(lost: 5, compiled: 15, waiting: 20, blocked: 60)
  end

  def test_some_cost_is_neither_nothing_nor_much
    { 2.9 => "nothing", 3 => "some", 9.9 => "some", 10 => "much" }.each do |lost, verdict|
      trace = StatesTrace.new do |t|
        t.site("R", A, 1, lost: lost)
        t.states(:main, exited: lost, compiled: 100 - lost)
      end.build
      assert_equal [[verdict, (lost / 100.0).round(6)]], rows(json(trace), "cost", "verdict", "share")
    end
  end

  def test_filter_for_reasons_is_named
    data = json(states_trace, "--reason=Guard*")
    assert_equal [[2900.0, 40_001]], rows(data, "cost", "lost_ns", "exits")
    assert_equal "of 10.7 s of running, 2.90 s (27.2 %) were interpreted because of these exits at 2 places",
                 head(report(states_trace, "--reason=Guard*").out, "time")[/\A.* places/]
    refute data.key?("interpreted"), "they have no reason"
  end

  def test_trace_without_states_says_that_counts_are_not_cost
    out = report(OurTrace.new.build).out
    assert_equal "counts are not cost; --vm-trace=states records lost time", head(out, "cost")
    refute_match(/lost_ns|^  time /, report(OurTrace.new.build, "--format=json").out)
    refute_match(/^  cost /, report(states_trace).out)
    refute_match(/^  cost /, report(ThreadsTrace.new.build).out, "it has no exits")
  end

  # --- where the time went ---

  def test_states_of_all_threads
    data = json(states_trace)
    assert_equal [["blocked", 7050.0], ["compiled", 4800.0], ["exited", 3200.0], ["uncompilable", 900.0],
                  ["c_function", 650.0], ["uncompiled", 600.0], ["waiting", 300.0], ["gc", 230.0],
                  ["compiling", 120.0], ["fallback", 100.0], ["reprofiled", 50.0], ["unseen", 2000.0]],
                 rows(data, "states", "state", "ns")
    assert_in_delta 1, rows(data, "states", "share").sum { |share,| share || 0 }, 0.0001
    assert_in_delta 1, rows(data, "states", "running_share").sum { |share,| share || 0 }, 0.0001
    assert_equal [["main", 10_000.0, 9800.0, 3100.0, 1550.0], ["worker", 8000.0, 850.0, 100.0, 0.0]],
                 rows(data, "states_by_thread", "thread", "life_ns", "running_ns", "lost_ns", "interpreted_ns")
    assert_equal [["worker", 100.0]],
                 rows(json(states_trace, "--thread=worker"), "states_by_thread", "thread", "lost_ns")
  end

  # Chunks may be in any order, and times are cumulative.
  def test_last_sums_of_a_thread_count
    last, first = [50, { compiled: 40, exited: 10 }], [30, { compiled: 30 }]
    [[last, first], [first, last]].each do |order|
      trace = StatesTrace.new do |t|
        order.each { |at, sums| t.states(:main, at, **sums) }
        t.site("R", A, 1, lost: 10)
      end.build
      assert_equal [["compiled", 40.0], ["exited", 10.0], ["unseen", 50.0]], rows(json(trace), "states", "state", "ns")
    end
  end

  def test_sums_of_the_pieces_of_a_spool_are_added_up
    pieces = [30, 50].map do |at|
      StatesTrace.new(settings: { snapshot: "time" }) { |t| t.states(:main, at, compiled: at) }.build
    end
    Dir.mktmpdir do |dir|
      names = %w[221504-1 221509-2].map { |name| "x-42-20261126T#{name}-time.fxt" }
      names.zip(pieces) { |name, piece| File.binwrite(File.join(dir, name), piece.bytes) }
      data = JSON.parse(Dir.chdir(dir) { tool("report", "--format=json", *names).out })
      assert_equal [2], data["processes"]["rows"].map { |row| row["pieces"] }
      assert_equal 80 * MS, data["states"]["rows"].find { |row| row["state"] == "compiled" }["ns"]
    end
  end

  def test_more_threads_than_top_are_summed
    trace = StatesTrace.new do |t|
      4.times { |i| t.thread(:"w#{i}", 50 + i); t.states(:"w#{i}", compiled: 10 + i) }
    end.build
    data = json(trace, "--top=1")
    assert_equal [["w3"]], rows(data, "states_by_thread", "thread")
    assert_equal [3, 33 * MS], [data["states_by_thread"]["more_rows"], data["states_by_thread"]["more"]["compiled_ns"]]
  end

  # Only the long ones are slices, so they are in no sum, and their tracks are no threads.
  def test_execution_slices_are_no_durations_and_no_threads
    data = json(states_trace)
    assert_empty data["durations"]["rows"]
    assert_equal %w[main worker], rows(data, "threads", "thread").flatten
  end

  # --- what was not compiled ---

  # [method, why] of the page, as the report has them.
  def assert_page_says_why(bytes)
    data = data_of(page(bytes))
    is = data["interpreted"].map { |iseq, why| [data["strings"][iseq], why] }
    refute_empty is
    assert_equal rows(json(bytes), "interpreted", "method", "explanation").sort, is.sort
  end

  def test_hot_but_interpreted
    assert_page_says_why(states_trace)
    data = json(states_trace)
    assert_equal [["Legacy#eval (/app/legacy.rb:2)", "cannot be compiled", "failed: ParseError(MalformedIseq)"],
                  ["Parser#scan (/app/parser.rb:30)", "not compiled yet", "never compiled"],
                  ["Report#sum (/app/report.rb:9)", "not compiled yet", "compiled at 9.004 s"]],
                 rows(data, "interpreted", "method", "why", "code")
    assert_equal [[70_000, 900.0, 15.0, 9950.0], [3, 590.0, 10.0, 20.0], [29, 8.0, 7000.0, 8990.0]],
                 rows(data, "interpreted", "calls", "interpreted_ns", "first_ns", "last_ns")
    filtered = json(states_trace, "--method=Report#*")
    assert_equal [["Report#sum (/app/report.rb:9)"]], rows(filtered, "interpreted", "method")
    table = json(states_trace, "--top=1")["interpreted"]
    assert_equal [2, 598 * MS, 32], [table["more_rows"], *table["more"].values_at("interpreted_ns", "calls")]
  end

  def test_what_became_of_the_code
    given_up = StatesTrace.new do |t|
      t.compiles(:main, "F#given_up (/f.rb:1)", 1, 2)
      t.compiles(:main, "F#given_up (/f.rb:1)", 5, 6, version: 0, error: "IseqVersionLimitReached")
      t.compiles(:main, "F#waits (/f.rb:9)", 7, 8)
      t.during(:main, "invalidation", "R", 10, 11, iseq: "F#waits (/f.rb:9)", version: [:uint32, 1])
      ["F#given_up (/f.rb:1)", "F#waits (/f.rb:9)"].each do |iseq|
        t.interpreted(iseq, "profiled again", 1, 2, first: 0, last: 20)
      end
    end.build
    assert_page_says_why(given_up)
    assert_equal [["F#given_up (/f.rb:1)", "given up: IseqVersionLimitReached"],
                  ["F#waits (/f.rb:9)", "not compiled again after version 1, at 0.010 s"]],
                 rows(json(given_up), "interpreted", "method", "code")
    again = StatesTrace.new do |t|
      t.compiles(:main, "F#again (/f.rb:1)", 1, 2)
      t.during(:main, "invalidation", "R", 5, 6, iseq: "F#again (/f.rb:1)", version: [:uint32, 1])
      t.compiles(:main, "F#again (/f.rb:1)", 12, 13, version: 2)
      t.interpreted("F#again (/f.rb:1)", "profiled again", 1, 3, first: 7, last: 11)
      t.interpreted("F#again (/f.rb:1)", "not compiled yet", 1, 2, first: 0, last: 1)
    end.build
    assert_page_says_why(again)
    assert_equal [["profiled again", "compiled again at 0.013 s"], ["not compiled yet", "compiled at 0.002 s"]],
                 rows(json(again), "interpreted", "why", "code")
    without = StatesTrace.new { |t| t.interpreted("F#f (/f.rb:1)", "not compiled yet", 1, 2, first: 0, last: 20) }.build
    assert_page_says_why(without)
    assert_equal [[nil, "not compiled yet"]], rows(json(without), "interpreted", "code", "explanation")
  end

  # --- recompilation ---

  def test_lost_time_before_and_after_a_recompilation
    assert_equal [["Page#cell (/app/page.rb:18)", 240.0, 1.0]],
                 rows(json(states_trace), "recompiled", "iseq", "lost_before_ns", "lost_after_ns")
    refute_match(/lost_before/, report(File.binread(File.join(TRACES, "recompiled.fxt")), "--format=json").out)
  end

  # --- check ---

  def broken(message, *arguments, **options)
    trace = StatesTrace.new(rate: 97, **options) do |t|
      t.site("R", A, 200, lost: 30, max: 20)
      t.states(:main, compiled: 70, exited: 30)
      yield t
    end
    result = check(trace.build, *arguments)
    faults = result.err.gsub(/offset \d+/, "offset N").lines(chomp: true).uniq
    assert_equal [1, ["vm-trace: F: offset N: #{message}"]], [result.status, faults]
  end

  def test_good_traces_are_fine
    assert_fine(states_trace)
    assert_fine(StatesTrace.new(rate: 97) { |t| t.site("R", A, 2, lost: 30); t.states(:main, exited: 30.2, compiled: 69) }.build)
  end

  def test_lost_times_that_are_no_numbers
    broken("side_exit R has no unsigned number as its argument lost_ns") do |t|
      t.exits(:main, "R", A, 5, lost: nil, lost_ns: "long")
    end
    broken("trace site lacks its argument lost_max_ns") { |t| t.site("S", A, 1, lost_ns: [:uint64, 5]) }
    broken("site: one exit lost 700000 ns, but all of them 600000") { |t| t.site("S", A, 1, lost: 0.6, max: 0.7) }
  end

  def test_exits_that_lost_more_than_their_sites
    broken("recorded exits lost 32000000 ns, but all exits of the sites only 30000000") do |t|
      t.exits(:main, "R", A, 5, lost: 32)
    end
  end

  def test_threads_that_lost_more_than_sites_and_the_other_way_round
    broken("threads were interpreted because of exits for 30000000 ns, but sites add up to: 42000000") do |t|
      t.site("S", A, 1, lost: 12)
    end
    broken("threads were interpreted because of exits for 45000000 ns, but sites add up to: 30000000") do |t|
      t.thread(:worker, 44)
      t.states(:worker, exited: 15)
    end
  end

  def test_states_that_do_not_add_up
    broken("states of thread 44 add up to 120000000 ns; the trace is 100000000 ns old") do |t|
      t.thread(:worker, 44)
      t.states(:worker, compiled: 119, unseen: 1)
    end
    broken("trace states has no unsigned number as its argument gc") do |t|
      t.thread(:worker, 44)
      t.event(:instant, :worker, "trace", "states", 99, gc: "much")
    end
    broken("states: compiled of thread 43 shrinks from 70000000 to 69000000") do |t|
      t.states(:main, compiled: 69, exited: 30)
    end
  end

  def test_lost_events_excuse_sums_that_differ
    trace = StatesTrace.new do |t|
      t.site("R", A, 2, lost: 30)
      t.states(:main, exited: 90)
      t.event(:instant, :main, "trace", "loss", 100, reason: "disk full", lost: [:uint64, 3])
    end
    assert_fine(trace.build(lost: 3))
  end

  def test_interpreted_iseqs_that_make_no_sense
    sums = { iseq: "F#f (/f.rb:1)", why: "not compiled yet", calls: [:uint64, 1],
             interpreted_ns: [:uint64, 5], first_ns: [:uint64, 1], last_ns: [:uint64, 2] }
    {
      "trace interpreted lacks its argument calls" => { calls: nil },
      "trace interpreted lacks its argument iseq" => { iseq: nil },
      "trace interpreted has the unknown why tired" => { why: "tired" },
      "interpreted: calls is 0" => { calls: [:uint64, 0] },
      "interpreted: its first call is later than its last: 3, 2" => { first_ns: [:uint64, 3] },
    }.each do |message, wrong|
      broken(message) { |t| t.event(:instant, :main, "trace", "interpreted", 100, **sums.merge(wrong).compact) }
    end
  end

  def test_slices_that_make_no_sense
    broken("unknown event execution waiting", "--strict") { |t| t.slice(:main, "waiting", 1, 2) }
    broken("execution compiled lacks its argument iseq") { |t| t.slice(:main, "compiled", 1, 2) }
    broken("execution interpreted lacks its argument why") { |t| t.slice(:main, "interpreted", 1, 2, iseq: "F#f (/f.rb:1)") }
    broken("execution interpreted lacks its argument insn") { |t| t.slice(:main, "interpreted", 1, 2, reason: "R", "0": A) }
    broken("execution compiling is not a duration in one record") do |t|
      t.event(:begin, :main, "execution", "compiling", 1)
      t.event(:end, :main, "execution", "compiling", 2)
    end
    shortest = { states_min_ns: [:uint64, 2 * MS] }
    broken("execution slice of 1000000 ns; the shortest is 2000000", settings: shortest) do |t|
      t.slice(:main, "compiling", 1, 2)
    end
    broken("execution slice begins at 3000000 inside another one, and ends after it") do |t|
      t.slice(:main, "compiling", 1, 4)
      t.slice(:main, "compiling", 3, 6)
    end
  end

  def test_slices_that_nest_are_fine
    trace = StatesTrace.new do |t|
      times = [[1, 2], [3, 4], [5, 6], [2, 7], [8, 9], [0, 9], [9, 10]]
      times.each { |from, to| t.slice(:main, "compiling", from, to) }
    end
    assert_fine(trace.build)
  end

  # Chunks are in any order: a slice that encloses others may come first.
  def test_slices_nest_within_a_chunk
    trace = StatesTrace.new do |t|
      t.slice(:main, "compiling", 1, 20)
      t.new_chunk
      t.slice(:main, "compiling", 2, 5)
    end
    assert_fine(trace.build)
  end

  # --- cut ---

  def test_cut_leaves_out_what_is_of_the_whole_trace
    with_file(states_trace) do |path|
      cut = "#{path}.cut"
      assert_equal 0, tool("cut", "--since=1", "--until=8", "-o", cut, path).status
      dumped = tool("dump", cut).out.lines.grep(/"trace"/).join
      refute_match(/"name":"(states|interpreted|site)","category":"trace"|"trace".*"(states|interpreted|site)"/, dumped)
      assert_equal 0, tool("check", cut).status
    end
  end

  # --- diff ---

  # A run in which A lost `a` ms at one line, and B `b` ms.
  def run_of(a:, b: 5, line: 3, gc: 1, rate: 1, sites: true, states: true)
    StatesTrace.new(rate: rate, settings: states ? {} : { flags: "exits" }) do |t|
      moved = "Foo#a (/app/foo.rb:#{line})"
      t.exits(:main, "R", moved, 10, lost: states ? a : nil)
      t.exits(:main, "S", B, 20, lost: states ? b : nil)
      t.site("R", moved, rate, lost: states && a, insn: "send") if sites
      t.site("S", B, rate, lost: states && b) if sites
      t.states(:main, exited: a + b, compiled: 90 - a - b, gc: gc) if states
    end.then { |t| sites ? t.build : t.builder }
  end

  def compare(before, after, *options)
    Dir.mktmpdir do |dir|
      files = { "a" => before, "b" => after }.map do |side, traces|
        Array(traces).each_with_index.map do |trace, i|
          "#{side}#{i + 1}.fxt".tap { |file| File.binwrite(File.join(dir, file), trace.bytes) }
        end
      end
      Dir.chdir(dir) { return tool("diff", *options, *files[0], "vs", *files[1]) }
    end
  end

  def compared(*args) = JSON.parse(compare(*args, "--format=json").out)

  def changes(data, table, *names)
    rows(data, table, "change", "a", "b", "delta", *names).map { |row| row.map { |value| in_ms(value) } }
  end

  def test_diff_of_lost_time
    data = compared(run_of(a: 10), run_of(a: 30, line: 7))
    assert_equal [["grew", 10.0, 30.0, 20.0, "R"]], changes(data, "lost_by_reason", "reason")
    assert_equal [["grew", 10.0, 30.0, 20.0, "Foo#a (/app/foo.rb)"]], changes(data, "lost_by_method", "method")
    assert_equal [["grew", 10.0, 30.0, 20.0, "Foo#a (/app/foo.rb:3 -> 7)"]], changes(data, "lost_by_site", "place")
    lost = changes(data, "sums", "sum").select { |row| row.last == "lost" }
    assert_equal [["grew", 15.0, 35.0, 20.0, "lost"]], lost
    assert_equal [["shrank", 75.0, 55.0, -20.0, "compiled code"],
                  ["grew", 15.0, 35.0, 20.0, "interpreted because of exits"]],
                 changes(data, "states", "state").sort_by(&:last)
    assert_empty data["methods"]["rows"], "the counts are the same"
    assert_match(/^  lost by exits  15\.0 ms -> 35\.0 ms: grew, \+133\.3%$/, compare(run_of(a: 10), run_of(a: 30)).out)
  end

  def test_diff_of_lost_time_has_the_spread_of_the_runs
    data = compared([run_of(a: 10), run_of(a: 20)], [run_of(a: 15), run_of(a: 30)])
    assert_empty data["lost_by_reason"]["rows"]
    data = compared([run_of(a: 10), run_of(a: 20)], [run_of(a: 24), run_of(a: 30)])
    assert_equal [["grew", 15.0, 27.0, 12.0, "R"]], changes(data, "lost_by_reason", "reason")
    spreads = data["lost_by_reason"]["rows"].map { |row| row.values_at("a_low", "a_high", "b_low", "b_high") }
    assert_equal [[10 * MS, 20 * MS, 24 * MS, 30 * MS]], spreads
  end

  # One recorded exit says little about the others: 970 ms and 2910 ms overlap with their margins.
  def test_diff_of_estimates_has_a_margin
    exact = compared(run_of(a: 10, rate: 97), run_of(a: 30, rate: 97))
    assert_equal [["grew", 10.0, 30.0, 20.0, "R"]], changes(exact, "lost_by_reason", "reason")
    estimated = compared(run_of(a: 10, rate: 97, sites: false), run_of(a: 30, rate: 97, sites: false))
    assert_empty estimated["lost_by_reason"]["rows"]
  end

  def test_diff_with_a_trace_without_states_compares_counts_only
    result = compare(run_of(a: 10), run_of(a: 30, states: false))
    refute_match(/Lost time|lost by exits/, result.out)
    assert_match(/^Where the time went|^  not compared/, compare(run_of(a: 10), OurTrace.new.build).out)
    refute_match(/lost/, compare(OurTrace.new.build, OurTrace.new.build).out)
    refute compared(run_of(a: 10), run_of(a: 30), "--kind=fallbacks").key?("lost_by_method"), "fallbacks lose nothing"
  end

  def fails(before, after, limit)
    result = compare(run_of(**before), run_of(**after), "--fail-over=#{limit}")
    assert_equal result.err.empty? ? 0 : 1, result.status
    result.err.lines(chomp: true).map { |line| line.delete_prefix("vm-trace: diff: ") }
  end

  def test_fail_over_judges_by_lost_time
    assert_equal ["lost grew by 133.3 %, more than --fail-over=lost:10",
                  "lost in Foo#a (/app/foo.rb) grew by 133.3 % of all before, more than --fail-over=lost:10"],
                 fails({ a: 10 }, { a: 30 }, "lost:10")
    assert_empty fails({ a: 10 }, { a: 30 }, "lost:150%")
    assert_empty fails({ a: 30 }, { a: 10 }, "lost:10"), "it shrank"
    assert_equal ["lost in Foo#b (/app/foo.rb) grew by 28.6 % of all before, more than --fail-over=lost:10"],
                 fails({ a: 30, b: 5 }, { a: 10, b: 15 }, "lost:10"), "what shrinks elsewhere does not compensate"
    assert_equal ["lost grew by 20.0 ms, more than --fail-over=lost:19.9ms",
                  "lost in Foo#a (/app/foo.rb) grew by 20.0 ms, more than --fail-over=lost:19.9ms"],
                 fails({ a: 10 }, { a: 30 }, "lost:19.9ms")
    assert_empty fails({ a: 10 }, { a: 30 }, "lost:20ms")
    assert_equal ["not all files have what --fail-over=lost:5 compares"],
                 fails({ a: 10 }, { a: 10, states: false }, "lost:5")
  end

  def test_fail_over_takes_a_time_for_sums_of_times_only
    %w[lost:-5ms lost:5m lost:ms lost: allocations:5ms exits:5ms].each do |limit|
      result = compare(run_of(a: 1), run_of(a: 1), "--fail-over=#{limit}")
      assert_equal 2, result.status, limit
    end
  end
  # --- export ---

  def folded(bytes, *options)
    with_file(bytes) do |path|
      result = tool("export", "--format=folded", "--weight=lost", *options, path)
      assert_equal ["", 0], [result.err, result.status]
      return result.out.lines(chomp: true).to_h { |line| line.match(/(.*) (\d+)$/).captures }.transform_values(&:to_i)
    end
  end

  # They include exits that were not recorded, so that the stacks add up to the report. Folded stacks
  # are in microseconds.
  def test_stacks_share_what_their_sites_lost
    stacks = folded(states_trace)
    assert_equal({ "<main> (/app/run.rb:1);Setup#define (/app/setup.rb:3);CalleeSideExit" => 40_000,
                   "<main> (/app/run.rb:1);Page#cell (/app/page.rb:20);NoProfileSend" => 241_000,
                   "<main> (/app/run.rb:1);Page#render (/app/page.rb:7);GuardType(String)" => 500_000,
                   "<main> (/app/run.rb:1);Index#add (/app/index.rb:20);Throw" => 19_000,
                   "(no stack);Parser#scan (/app/parser.rb:31);GuardType(Fixnum)" => 2_400_000 }, stacks)
    assert_equal 2_400_000, folded(states_trace, "--no-reason")["(no stack);Parser#scan (/app/parser.rb:31)"]
  end

  # In proportion to what they lost; the owner in a label may differ from that of the site.
  def test_stacks_of_one_line_share_in_proportion
    trace = StatesTrace.new(rate: 10) do |t|
      t.exits(:main, "R", "Foo#a (/app/foo.rb:3)", 10, lost: 1)
      t.exits(:main, "R", "Bar#a (/app/foo.rb:3)", 20, lost: 3)
      t.exits(:main, "R", "Bar#a (/app/foo.rb:4)", 30, lost: 3)
      t.site("R", "a (/app/foo.rb:3)", 30, lost: 80)
      t.states(:main, exited: 80)
    end
    expected = { "<main> (/app/run.rb:1);Foo#a (/app/foo.rb:3);R" => 20_000,
                 "<main> (/app/run.rb:1);Bar#a (/app/foo.rb:3);R" => 60_000,
                 "<main> (/app/run.rb:1);Bar#a (/app/foo.rb:4);R" => 30_000 }
    assert_equal expected, folded(trace.build)
  end

  def test_stacks_of_a_killed_program_are_an_estimate_and_unknown_time_is_left_out
    trace = StatesTrace.new(rate: 10) do |t|
      t.exits(:main, "R", A, 10, lost: 1)
      t.exits(:main, "R", B, 20, lost: 0)
    end
    assert_equal({ "<main> (/app/run.rb:1);#{A};R" => 10_000 }, folded(trace.builder))
  end

  def test_lost_time_in_other_formats
    with_file(states_trace) do |path|
      speedscope = JSON.parse(tool("export", "--format=speedscope", "--weight=lost", path).out)["profiles"][0]
      assert_equal "nanoseconds", speedscope["unit"]
      assert_equal [3200 * MS, 3200 * MS], [speedscope["endValue"], speedscope["weights"].sum]
      firefox = JSON.parse(tool("export", "--format=firefox", "--weight=lost", path).out)
      samples = firefox["threads"].find { |thread| thread["name"] == "main" }["samples"]
      assert_equal "tracing-ms", samples["weightType"]
      assert_in_delta 97 * (0.969 + 6 * 0.00225 + 4 * 0.08), samples["weight"].sum, 0.1
      pprof = tool("export", "--format=pprof", "--weight=lost", path).out.b
      assert_includes Zlib.gunzip(pprof), "lost"
    end
  end

  def test_export_of_lost_time_where_there_is_none
    with_file(OurTrace.new.build) do |path|
      result = tool("export", "--format=folded", "--weight=lost", path)
      assert_equal "", result.out
      assert_equal "vm-trace: #{path}: has no exits with the time that they lost (--vm-trace=states records it), " \
                   "so the output is empty\n", result.err
      assert_equal 2, tool("export", "--format=folded", "--kind=fallbacks", "--weight=lost", path).status
    end
  end

  # --- html ---

  # The strings at these indexes of the page's string table.
  def strings(data, *indexes) = data["strings"].values_at(*indexes)

  # [reason, frame, count, lost ms, longest ms] of rows
  def page_rows(data)
    data["rows"].map { |row| [*strings(data, row[1], row[2]), row[6], in_ms(row[10]), in_ms(row[11])] }
  end

  def test_page_has_lost_times_of_sites
    data = data_of(page(states_trace))
    assert_equal [["GuardType(Fixnum)", "Parser#scan (/app/parser.rb:31)", 0, 2400, 2400],
                  ["GuardType(String)", "Page#render (/app/page.rb:7)", 776, 500, 0.95],
                  ["NoProfileSend", "Page#cell (/app/page.rb:20)", 388, 241, 2],
                  ["CalleeSideExit", "Setup#define (/app/setup.rb:3)", 582, 40, 0.05],
                  ["Throw", "Index#add (/app/index.rb:20)", 97, 19, 0.5]], page_rows(data)
    assert_equal 97 * 0.32 * MS, numbers_of(data)[data["rows"][2][9] + 1].sum(&:last), "over time: of the recorded exits"
    assert_equal true, data["cost"]["exact"]
    out = report(states_trace).out
    assert_equal head(out, "time"), data["cost"]["sentence"]
    assert_equal head(out, "verdict"), data["cost"]["advice"]
  end

  def test_page_of_a_killed_program_has_an_estimate
    trace = StatesTrace.new(rate: 10) { |t| t.exits(:main, "R", A, 10, lost: 2) }
    data = data_of(page(trace.builder))
    assert_equal [["R", A, 10, 20, 2]], page_rows(data)
    assert_equal [false, "in 10.0 ms, about 20.0 ms were interpreted because of exits at 1 place", ""],
                 data["cost"].values_at("exact", "sentence", "advice")
  end

  # The label of an event names the class of the receiver, and its site may not.
  def test_page_joins_sites_by_line
    trace = StatesTrace.new do |t|
      t.exits(:main, "R", A, 10, lost: 2)
      t.site("R", "a (/app/foo.rb:3)", 1, lost: 3)
    end.build
    assert_equal [["R", A, 1, 3, 3]], page_rows(data_of(page(trace)))
  end

  def test_page_has_states_and_what_was_interpreted
    data = data_of(page(states_trace))
    reported = json(states_trace)
    assert_equal rows(reported, "states", "meaning", "ns").to_h.except("(not seen)"),
                 data["states"].to_h { |state, ns,| [state, in_ms(ns)] }
    interpreted = data["interpreted"].map do |iseq, why, calls, *times|
      [*strings(data, iseq), why, calls, *times.map { |ns| in_ms(ns) }]
    end
    columns = %w[method explanation calls interpreted_ns first_ns last_ns]
    assert_equal rows(reported, "interpreted", *columns), interpreted
  end

  def test_page_has_slices_of_threads
    data = data_of(page(states_trace))
    process, name, numbers = data["slices"].fetch(0)
    assert_equal [1, 42, "main execution"], [data["slices"].size, data["processes"][process][0], data["strings"][name]]
    slices = numbers.each_slice(5).map do |kind, from, length, why, place|
      [*strings(data, kind), from / MS, length / MS, *strings(data, why, place)]
    end
    assert_equal [["interpreted", 10, 590, "not compiled yet", "Parser#scan (/app/parser.rb:30)"],
                  ["compiling", 1000, 10, "", ""],
                  ["compiled", 5500, 4400, "", "Parser#scan (/app/parser.rb:30)"],
                  ["exited", 5600, 2400, "GuardType(Fixnum)", "Parser#scan (/app/parser.rb:31)"]], slices
    threads = data["threads"].map { |thread| data["strings"][thread[2]] }
    assert_equal %w[main worker], threads, "their tracks are no threads"
  end

  # A slice is written when its frame has ended: it has no owner then.
  def test_page_finds_the_owners_of_slices
    trace = StatesTrace.new do |t|
      sliced = ["foo (/a.rb:1)", "block in bar (/a.rb:2)", "two (/a.rb:3)", "foo (/a.rb:9)", "Foo#known (/a.rb:4)"]
      sliced.each_with_index { |iseq, i| t.slice(:main, "compiled", i, i + 0.5, iseq: iseq) }
      named = ["Foo#foo (/a.rb:1)", "foo (/a.rb:1)", "block in Foo::Bar.bar (/a.rb:2)", "A#two (/a.rb:3)",
               "B#two (/a.rb:3)"]
      named.each { |iseq| t.interpreted(iseq, "not compiled yet", 1, 1, first: 0, last: 0) }
    end
    data = data_of(page(trace.builder))
    assert_equal ["Foo#foo (/a.rb:1)", "block in Foo::Bar.bar (/a.rb:2)", "two (/a.rb:3)", "foo (/a.rb:9)",
                  "Foo#known (/a.rb:4)"],
                 data["slices"][0][2].each_slice(5).map { |slice| data["strings"][slice[4]] }
  end

  def test_page_keeps_the_longest_slices
    trace = StatesTrace.new(ends: 100_000) do |t|
      20_001.times { |i| t.slice(:main, "compiling", 2 * i, 2 * i + (i == 7 ? 0.5 : 1)) }
    end
    data = data_of(page(trace.builder))
    assert_equal [20_000, 1], [data["slices"].sum { |slices| slices[2].size / 5 }, data["slices_left_out"]]
    refute_includes data["slices"][0][2].each_slice(5).map { |slice| slice[2] }, MS / 2
  end

  def test_page_without_states_says_so
    data = data_of(page(OurTrace.new.build))
    %w[cost states interpreted slices lost_bins].each { |name| refute data.key?(name), name }
    assert_equal [10], data["rows"].map(&:size).uniq
    browse(OurTrace.new.build) do |browser|
      assert_match(/Counts are not cost; --vm-trace=states/, browser.text("#findings"))
      refute browser.run("return !document.querySelector('#cost').hidden")
      assert_equal %w[Count Share Method], headings(browser).first(3)
    end
  end

  def table(browser) = cells(browser, "#table-body tr")

  # Without the arrows that show by which column the table is sorted.
  def headings(browser) = browser.texts("#table-head th").map { |text| text.delete("▾▴").strip }

  def test_page_shows_lost_time_first
    browse(states_trace, height: 2000) do |browser|
      assert_equal "Of 10.7 s of running, 3.20 s (30.0 %) were interpreted because of exits, " \
                   "90 % of it at 2 of 5 places.", browser.text("#cost-sentence")
      assert_match(/^Exits are worth a look: they cost 30\.0 %/, browser.text("#cost-advice"))
      assert_equal ["blocked", "7,050.0 ms", "39.2 %", ""], cells(browser, "#states tbody tr").first
      assert_equal ["Legacy#eval (/app/legacy.rb:2)", "failed: ParseError(MalformedIseq)", "900.00 ms", "70,000", "15.0 ms", "9.95 s"],
                   cells(browser, "#interpreted tbody tr").first
      assert_equal %w[Lost Share Longest Count], headings(browser).first(4)
      assert_equal [["2,400.0 ms", "75.0 %", "2,400.00 ms", "–"], ["500.0 ms", "15.6 %", "0.95 ms", "776"]],
                   table(browser).first(2).map { |row| row.first(4) }
      assert_match(/3\.20 s lost$/, browser.text("#table-sum"))
      browser.click("#table-head [data-column=count]")
      assert_equal "776", table(browser)[0][3]
      browser.run("[...document.querySelectorAll('#groups button')].find((b) => b.innerText === 'Reason').click()")
      assert_equal ["2,400.0 ms", "500.0 ms", "241.0 ms", "40.0 ms", "19.0 ms"], table(browser).map(&:first)
    end
  end

  # Of a window the recorded exits count, times their weight.
  def test_page_estimates_lost_time_of_a_window
    browse(states_trace, height: 2000) do |browser|
      browser.drag("#timeline", 0.35, 0.95)
      assert_match(/about 94\.0 ms lost, by the recorded exits$/, browser.text("#table-sum"))
      assert_equal [["94.0 ms", "100.0 %"]], table(browser).map { |row| row.first(2) }.reject { |row| row[0] == "0 ms" }
    end
  end

  def test_page_draws_slices_below_their_thread
    trace = StatesTrace.new do |t|
      t.runs(:main, 0)
      t.slice(:main, "interpreted", 20, 60, reason: "GuardType(Fixnum)", insn: "opt_plus", "0": A)
      t.slice(:main, "compiled", 10, 90, iseq: A)
      t.slice(:main, "compiling", 92, 92.0001)
      t.states(:main, compiled: 100)
      t.leaves(:main, 100, ThreadsTrace::BLOCKED)
    end
    browse(trace.build) do |browser|
      drawn = browser.run("return [...document.querySelectorAll('#tracks .slice')].map((s) => s.getAttribute('class'))")
      assert_equal ["slice compiled", "slice exited"], drawn,
                   "the inner one over the outer one, and none that is too narrow"
      width = browser.run("return document.querySelector('#tracks [data-row=\"0\"] svg').getBoundingClientRect().width")
      x, w = browser.run("const slice = document.querySelector('#tracks .slice.exited');" \
                         "return ['x', 'width'].map((name) => +slice.getAttribute(name))")
      assert_in_delta 0.2 * width, x, 2
      assert_in_delta 0.4 * width, w, 2
      assert_includes browser.texts("#threads-legend li"), "interpreted because of exits"
    end
  end
end
