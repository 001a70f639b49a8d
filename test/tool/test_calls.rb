# What `vm-trace report` makes of the stream `calls`. test/traces/calls.fxt has the report in every format.
require_relative "tool_helper"
require_relative "calls_reference"

class TestCalls < Minitest::Test
  include ToolHelper

  A, B, C = "Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)", "Integer#times"
  MAIN, OUTSIDE = "<main> (/app/run.rb:1)", "(outside recorded calls)"
  MS = 1_000_000

  def report(bytes, *options)
    with_file(bytes) { |path| return tool("report", "--all", *options, path) }
  end

  def json(bytes, *options) = JSON.parse(report(bytes, "--format=json", "--calls", "--top=100000", *options).out)

  # Times in milliseconds.
  def rows(data, table, *columns)
    data.fetch(table)["rows"].map do |row|
      columns.map { |column| column.end_with?("ns") && row[column] ? (row[column] / MS.to_f).round(6) : row[column] }
    end
  end

  # A trace of calls as the reference has them.
  def trace_of(calls, settings: {}, chunks: nil)
    CallsTrace.new(settings: settings, ends: calls.map(&:last).max + 10) do |t|
      threads = calls.map(&:first).uniq - [:main]
      threads.each_with_index { |thread, i| t.thread(thread, 100 + i) }
      calls.each_with_index do |(thread, name, from, to), i|
        t.new_chunk if chunks && i % chunks == 0
        t.call(thread, name, from, to)
      end
    end.build
  end

  def assert_sums(reference, data)
    methods = rows(data, "calls", "method", "calls", "total_ns", "own_ns", "max_ns").reject { |row| row[0] == OUTSIDE }
    assert_equal reference.methods.map { |name, sums| [name, *sums] }.sort, methods.sort
    callers = rows(data, "callers", "caller", "method", "calls", "total_ns", "own_ns")
    assert_equal reference.pairs.map { |(from, to), sums| [from || OUTSIDE, to, *sums] }.sort, callers.sort
    callees = rows(data, "callees", "caller", "callee", "calls", "total_ns", "own_ns")
    assert_equal reference.pairs.filter_map { |(from, to), sums| [from, to, *sums] if from }.sort, callees.sort
    threads = rows(data, "calls_by_thread", "thread", "recorded_ns").to_h
    assert_equal reference.threads.transform_keys(&:to_s).sort, threads.sort
  end

  def test_sums_are_those_of_all_calls
    10.times do |seed|
      calls = CallsReference.random(seed, threads: %i[main web worker])
      assert_sums(CallsReference.new(calls), json(trace_of(calls)))
    end
  end

  def test_sums_of_a_window_count_what_lies_in_it
    calls = CallsReference.random(1, threads: %i[main web])
    [[100, 300], [0, 50], [777, 778], [400, 100_000]].each do |since, till|
      data = json(trace_of(calls), "--since=#{since}ms", "--until=#{till}ms")
      assert_sums(CallsReference.new(calls, since: since, till: till), data)
    end
  end

  # The fiber of `web` ran for 13 of 100 ms. Each fiber would else work for as long as others run.
  SUSPENDED = [
    [:web, "(fiber suspended)", 11, 91], [:web, B, 10, 92], [:web, C, 94, 97], [:web, "(fiber suspended)", 97.5, 99],
    [:web, A, 5, 99.5], [:main, C, 1, 2]
  ].freeze

  def test_time_in_which_a_fiber_does_not_run_is_nobodys_own_time
    bytes = trace_of(SUSPENDED)
    data = json(bytes)
    assert_equal [[A, 1, 94.5, 8.0], [C, 2, 4.0, 4.0], [B, 1, 82.0, 2.0]],
                 rows(data, "calls", "method", "calls", "total_ns", "own_ns").reject { |row| row[0] == OUTSIDE }
    assert_equal [["web", 13.0, 3], ["main", 1.0, 1]], rows(data, "calls_by_thread", "thread", "recorded_ns", "calls")
    refute_match(/fiber suspended/, data.to_s)
    assert_match(/; their fibers were suspended for 81\.5 ms, which only total time includes/, report(bytes).out)
    folded = with_file(bytes) { |path| tool("export", "--kind=calls", "--format=folded", path).out }
    assert_equal 14_000, folded.lines.sum { |line| line[/\d+$/].to_i }
  end

  # Chunks of such a file are in any order.
  def test_sums_of_a_file_that_keeps_its_newest_events
    calls = CallsReference.random(2, threads: %i[main web])
    turned = calls.rotate(220)
    assert_sums(CallsReference.new(calls), json(trace_of(turned, settings: { keep: "newest" }, chunks: 55)))
  end

  # Elsewhere, too, chunks of a track may be in another order than time. Then the caller may be one further out.
  def test_sums_of_chunks_in_another_order
    30.times do |seed|
      calls = CallsReference.random(seed, threads: %i[main web])
      parts = calls.each_slice(60).to_a.shuffle(random: Random.new(seed))
      reference = CallsReference.new(calls)
      data = json(trace_of(parts.flatten(1), chunks: 60))
      methods = rows(data, "calls", "method", "calls", "total_ns", "max_ns").reject { |row| row[0] == OUTSIDE }
      assert_equal reference.methods.map { |name, (count, total, _, max)| [name, count, total, max] }.sort, methods.sort
      assert_equal reference.threads.transform_keys(&:to_s), rows(data, "calls_by_thread", "thread", "recorded_ns").to_h
      assert_equal calls.size, rows(data, "callers", "calls").sum(&:first)
    end
  end

  def test_a_caller_that_was_read_first_does_not_own_the_time_of_its_callee
    data = json(trace_of([[:main, A, 10, 30], [:main, B, 12, 18], [:main, MAIN, 1, 40]]))
    assert_equal [[MAIN, 19.0], [A, 14.0], [B, 6.0]],
                 rows(data, "calls", "method", "own_ns").reject { |row| row[0] == OUTSIDE }
    assert_equal [14.0], rows(data, "callers", "method", "own_ns").to_h.values_at(A)
  end

  def test_of_calls_that_begin_at_once_the_longer_is_the_caller
    data = json(trace_of([[:main, B, 10, 20], [:main, A, 10, 30]]))
    assert_equal [[A, 20.0, 10.0], [B, 10.0, 10.0]],
                 rows(data, "calls", "method", "total_ns", "own_ns").reject { |row| row[0] == OUTSIDE }.sort
  end

  def test_own_times_add_up_to_the_threads
    calls = CallsReference.random(3, threads: %i[main web])
    data = json(trace_of(calls))
    threads = rows(data, "calls_by_thread", "thread_ns", "recorded_ns", "outside_ns")
    threads.each { |time, recorded, outside| assert_in_delta time, recorded + outside, 1e-6 }
    assert_in_delta threads.sum(&:first), rows(data, "calls", "own_ns").sum(&:first), 1e-5
    outside = rows(data, "calls", "method", "own_ns").to_h[OUTSIDE]
    assert_in_delta threads.sum(&:last), outside, 1e-6
    assert_in_delta 1, data["calls"]["rows"].sum { |row| row["own_share"] }, 1e-4
  end

  # A loop has more callees than are kept one by one; the sums stay the same. Calls of different methods, and
  # a caller that begins in the middle.
  def test_callers_of_very_many_calls
    names = Array.new(7) { |i| "M#m#{i} (/m.rb:1)" }
    inner = Array.new(150_000) { |i| [:main, names[i % 7], 10 + i * 0.001, 10 + i * 0.001 + 0.0005] }
    calls = inner + [[:main, "Loop#all (/l.rb:1)", inner[40_000][2] - 0.0002, 161], [:main, MAIN, 1, 162]]
    reference = CallsReference.new(calls)
    data = json(trace_of(calls))
    in_main, in_loop = rows(data, "callers", "caller", "calls").group_by(&:first).values_at(MAIN, "Loop#all (/l.rb:1)")
                                                               .map { |pairs| pairs.sum(&:last) }
    # Of the stretch of time in which the loop begins, it gets all or nothing.
    assert_in_delta 110_000, in_loop, 1024
    assert_equal 150_001, in_loop + in_main
    methods = rows(data, "calls", "method", "calls", "total_ns").to_h { |name, *sums| [name, sums] }
    reference.methods.each { |name, (count, total)| assert_equal [count, total.round(6)], methods[name] }
    threads = rows(data, "calls_by_thread", "recorded_ns")
    assert_in_delta 161, threads[0][0], 1e-6
    assert_in_delta 161, rows(data, "calls", "method", "own_ns").sum { |name, ns| name == OUTSIDE ? 0 : ns }, 1e-5
  end

  def test_time_of_recursive_methods_counts_once
    trace = CallsTrace.new do |t|
      t.call(:main, A, 1, 50) do
        t.call(:main, A, 2, 20) { t.call(:main, A, 3, 10) }
        t.call(:main, B, 20, 40) { t.call(:main, A, 21, 30) }
      end
      t.call(:main, A, 60, 70)
    end.build
    data = json(trace)
    assert_equal [A, 5, 59, 48, 49], rows(data, "calls", "method", "calls", "total_ns", "own_ns", "max_ns")[0]
    assert_equal [B, 1, 20, 11, 20], rows(data, "calls", "method", "calls", "total_ns", "own_ns", "max_ns")[2]
  end

  # The head has the sum, and a table the processes.
  def test_replaced_calls_are_reported
    Dir.mktmpdir do |dir|
      paths = { 42 => 1200, 43 => 34, 44 => 0 }.map do |pid, replaced|
        trace = CallsTrace.new(pid: pid) { |t| t.call(:main, A, 1, 2) }.build(calls_replaced: replaced)
        File.join(dir, "#{pid}.fxt").tap { |path| File.binwrite(path, trace.bytes) }
      end
      head = "replaced       1,234 calls of methods in C: compiled code has code of its own instead"
      assert_includes tool("report", "--all", *paths).out.lines(chomp: true), "  #{head}"
      data = JSON.parse(tool("report", "--format=json", *paths).out)
      assert_equal [[42, 1200], [43, 34]], rows(data, "replaced_calls", "pid", "calls")
      refute_match(/replaced/, tool("report", "--all", paths.last).out)
    end
  end

  def test_slowest_calls
    trace = CallsTrace.new do |t|
      t.thread(:web, 77)
      t.call(:main, MAIN, 0, 100, ended: true) do
        t.call(:main, A, 10, 40, left_out: 7, left_out_ms: 9) { t.call(:main, B, 11, 39) }
        t.call(:web, B, 20, 60)
      end
    end.build
    data = json(trace)
    columns = %w[method thread total_ns own_ns start_ns left_out]
    main = [MAIN, "main", 100.0, 70.0, 0.0, 0]
    others = [[B, "web", 40.0, 40.0, 20.0, 0], [A, "main", 30.0, 2.0, 10.0, 7], [B, "main", 28.0, 28.0, 11.0, 0]]
    assert_equal [main, *others], rows(data, "slowest_calls", *columns)
    assert_equal [main, *others.sort_by { |row| -row[3] }], rows(data, "slowest_calls_by_own_time", *columns)
    assert_equal ["not returned", nil, nil, nil], data["slowest_calls"]["rows"].map { |row| row["state"] }
    # all of them are tried, not only the slowest of all methods
    assert_equal others.select { |row| row[0] == B }, rows(json(trace, "--method=Foo#b"), "slowest_calls", *columns)
  end

  def test_filters
    trace = CallsTrace.new do |t|
      t.thread(:web, 77)
      t.call(:main, MAIN, 0, 90) { t.call(:main, A, 10, 40) { t.call(:main, B, 11, 39) } }
      t.call(:web, B, 20, 60)
    end.build
    data = json(trace, "--method=*#b")
    assert_equal [[B, 2, 68.0]], rows(data, "calls", "method", "calls", "own_ns")
    assert_equal [[OUTSIDE, B, 40.0], [A, B, 28.0]], rows(data, "callers", "caller", "method", "total_ns")
    assert_empty rows(data, "callees", "callee")
    data = json(trace, "--thread=web")
    assert_equal [[B, 1, 40.0]], rows(data, "calls", "method", "calls", "own_ns")
    assert_equal [["web", 40.0, 40.0, 0.0]], rows(data, "calls_by_thread", "thread", "thread_ns", "recorded_ns", "outside_ns")
    assert_match(/^  calls +none pass --reason: only exits and fallbacks have a reason$/, report(trace, "--calls", "--reason=Guard*").out)
  end

  def test_a_report_without_calls_has_a_table_of_methods_only
    trace = CallsTrace.new { |t| t.call(:main, A, 10, 40) { t.call(:main, B, 11, 39, left_out: 4, left_out_ms: 3) } }.build
    data = JSON.parse(report(trace, "--format=json").out)
    assert_equal [[OUTSIDE, nil, nil], [B, 4, 3.0], [A, 0, 0.0]], rows(data, "calls", "method", "left_out", "left_out_ns")
    refute data.key?("callers")
    refute_includes data.fetch("durations", { "rows" => [] })["rows"].map { |row| row["category"] }, "call"
    none = CallsTrace.new.build
    refute JSON.parse(report(none, "--format=json").out).key?("calls")
  end

  def test_several_files_count_as_one_run
    one = trace_of([[:main, A, 1, 3], [:main, MAIN, 0.5, 10]])
    two = trace_of([[:main, A, 2, 7], [:main, B, 1, 10]])
    with_file(one) do |a|
      with_file(two) do |b|
        data = JSON.parse(tool("report", "--calls", "--format=json", a, b).out)
        assert_equal [[A, 2, 7.0, 5.0]], rows(data, "calls", "method", "calls", "own_ns", "max_ns").select { |row| row[0] == A }
        callers = rows(data, "callers", "method", "caller", "total_ns").select { |row| row[0] == A }
        assert_equal [[A, B, 5.0], [A, MAIN, 2.0]], callers
      end
    end
  end

  # Perfetto's nesting, of records that are written innermost first.
  def test_query_has_the_callers_and_own_times
    3.times do |seed|
      calls = CallsReference.random(seed, threads: %i[main web])
      sql = "select s.name, p.name as caller, count(*) as calls, sum(s.dur) as total, " \
            "sum(s.dur - coalesce((select sum(c.dur) from slice c where c.parent_id = s.id), 0)) as own, max(s.depth) as depth " \
            "from slice s left join slice p on p.id = s.parent_id where s.category = 'call' group by 1, 2"
      rows = with_file(trace_of(calls)) { |path| JSON.parse(tool("query", "--format=json", path, sql).out) }
      reference = CallsReference.new(calls)
      sums = rows.to_h { |row| [row.values_at("caller", "name"), [row["calls"], row["total"] / MS, row["own"] / MS]] }
      assert_equal reference.pairs, sums
      assert_equal reference.depth, rows.map { |row| row["depth"] }.max
    end
  end
end
