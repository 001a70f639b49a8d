# What `vm-trace report` and `query` make of the streams `syscalls` and `sched`. test/traces/kernel.fxt has the
# report in every format.
require_relative "tool_helper"
require_relative "calls_reference"

class TestKernel < Minitest::Test
  include ToolHelper

  MS = 1_000_000
  OUTSIDE = "(outside recorded calls)"
  FIXTURE = File.join(TRACES, "kernel.fxt")

  def report(bytes, *options)
    with_file(bytes) { |path| return tool("report", "--all", *options, path) }
  end

  def json(bytes, *options)
    JSON.parse(report(bytes, "--format=json", "--syscalls", "--sched", "--top=100000", *options).out)
  end

  # Times in milliseconds.
  def rows(data, table, *columns)
    data.fetch(table)["rows"].map do |row|
      columns.map { |column| column.end_with?("_ns") && row[column] ? (row[column] / MS.to_f).round(6) : row[column] }
    end
  end

  # --- system calls: random calls, and system calls at random times of each thread --------------------

  def random_syscalls(seed, threads, to)
    random = Random.new(seed)
    threads.flat_map do |thread|
      times = Array.new(120) { random.rand(to * 1000) / 1000.0 }.sort.uniq
      times.each_slice(2).filter_map { |from, till| [thread, %w[read futex write][random.rand(3)], from, till] if till }
    end.sort_by(&:last)
  end

  # The innermost call is the shortest of those around it.
  def method_of(calls, (thread, _, from, till))
    around = calls.select { |track, _, first, last| track == thread && first <= from && last >= till }
    around.min_by { |_, _, first, last| last - first }&.at(1) || OUTSIDE
  end

  def expected_callers(calls, syscalls, since: 0, till: Float::INFINITY)
    sums = Hash.new { |hash, key| hash[key] = [0, 0.0] }
    syscalls.each do |syscall|
      from, to = [syscall[2], since].max, [syscall[3], till].min
      next if syscall[3] < since || syscall[2] >= till
      sum = sums[[method_of(calls, syscall), syscall[1]]]
      sum[0] += 1
      sum[1] += to - from
    end
    sums.map { |key, (count, ms)| [*key, count, ms.round(6)] }.sort
  end

  # order: which of the two comes first in the file, or :mixed, in chunks.
  def trace_of(calls, syscalls, order: :mixed, settings: {})
    KernelTrace.new(settings: settings, ends: (calls + syscalls).map(&:last).max + 10) do |t|
      others = (calls + syscalls).map(&:first).uniq.reject { |name| name == :main }
      others.each_with_index { |name, i| t.thread(name, 100 + i) }
      writes_call = ->((thread, name, from, to)) { t.call(thread, name, from, to) }
      writes_syscall = ->((thread, name, from, to)) { t.syscall(thread, name, from, to) }
      parts = { calls: [[calls, writes_call], [syscalls, writes_syscall]],
                syscalls: [[syscalls, writes_syscall], [calls, writes_call]] }
      both = [calls.each_slice(30).map { |part| [part, writes_call] },
              syscalls.each_slice(40).map { |part| [part, writes_syscall] }]
      parts[:mixed] = both[0].zip(both[1]).flatten(1).compact
      rest = syscalls.each_slice(40).drop(calls.each_slice(30).count).map { |part| [part, writes_syscall] }
      (order == :mixed ? parts[:mixed] + rest : parts[order]).each do |events, write|
        t.new_chunk
        events.each(&write)
      end
    end.build
  end

  def test_callers_are_the_innermost_calls_in_any_order_of_chunks
    %i[calls syscalls mixed].each_with_index do |order, seed|
      calls = CallsReference.random(seed, threads: %i[main web])
      syscalls = random_syscalls(seed, %i[main web other], calls.map(&:last).max)
      data = json(trace_of(calls, syscalls, order: order))
      assert_equal expected_callers(calls, syscalls),
                   rows(data, "syscalls_by_method", "method", "syscall", "calls", "total_ns").sort
      by_method = rows(data, "syscall_methods", "method", "calls").to_h
      assert_equal syscalls.group_by { |syscall| method_of(calls, syscall) }.transform_values(&:size), by_method
    end
  end

  def test_callers_in_a_file_that_keeps_its_newest_events
    calls = CallsReference.random(5, threads: %i[main])
    syscalls = random_syscalls(5, %i[main], calls.map(&:last).max)
    trace = trace_of(calls.rotate(40), syscalls.rotate(25), settings: { keep: "newest" })
    assert_equal expected_callers(calls, syscalls),
                 rows(json(trace), "syscalls_by_method", "method", "syscall", "calls", "total_ns").sort
  end

  def test_sums_of_a_window_count_what_lies_in_it
    calls = CallsReference.random(7, threads: %i[main])
    syscalls = random_syscalls(7, %i[main], calls.map(&:last).max)
    [[100, 300], [0, 50], [777, 778]].each do |since, till|
      data = json(trace_of(calls, syscalls), "--since=#{since}ms", "--until=#{till}ms")
      expected = expected_callers(calls, syscalls, since: since, till: till)
      assert_equal expected, rows(data, "syscalls_by_method", "method", "syscall", "calls", "total_ns").sort
      by_name = expected.group_by { |row| row[1] }.transform_values do |found|
        [found.sum { |row| row[2] }, found.sum { |row| row[3] }.round(6)]
      end
      assert_equal by_name, rows(data, "syscalls", "syscall", "calls", "total_ns").to_h { |name, *sums| [name, sums] }
    end
  end

  # More calls than wait in a list: older ones are compared while the file is read.
  def test_callers_of_many_calls
    count = 150_000
    trace = KernelTrace.new(ends: 1_000_000) do |t|
      t.call(:main, "outer", 0, 500_000) do
        count.times do |i|
          t.syscall(:main, "read", 3 * i + 0.2, 3 * i + 0.4) if i % 100 == 0
          t.call(:main, "call #{i % 3}", 3 * i + 0.1, 3 * i + 0.5)
          t.call(:main, "later", 3 * i + 1.1, 3 * i + 1.5)
          t.syscall(:main, "write", 3 * i + 2, 3 * i + 2.1) if i % 100 == 0
        end
      end
    end
    expected = (0..2).map { |i| ["call #{i}", "read", 500] } + [["outer", "write", 1500]]
    assert_equal expected, rows(json(trace.build), "syscalls_by_method", "method", "syscall", "calls").sort
  end

  def test_errors_and_calls_that_did_not_return
    trace = KernelTrace.new do |t|
      5.times { |i| t.syscall(:main, "read", i, i + 0.5, errno: i < 2 ? "EINTR" : "EAGAIN") }
      t.syscall(:main, "read", 6, 7)
      t.syscall(:main, "poll", 8, 100, ended: "after the trace")
    end
    data = json(trace.build)
    assert_equal [["poll", 1, 0, nil, nil, 1], ["read", 6, 5, "EAGAIN", 3, 0]],
                 rows(data, "syscalls", "syscall", "calls", "errors", "errno", "errno_count", "not_returned")
    assert_equal [["read", "EAGAIN", 3], ["read", "EINTR", 2]],
                 rows(data, "syscall_errors", "syscall", "errno", "count")
  end

  def test_filters
    path = FIXTURE
    names = ->(table, column, *options) do
      report = JSON.parse(tool("report", "--format=json", "--syscalls", "--sched", *options, path).out)
      report.fetch(table)["rows"].map { |row| row[column] }
    end
    assert_equal ["exit", "syscall 470"], names["syscalls", "syscall", "--thread=worker"].sort
    assert_equal ["worker"], names["cpu", "thread", "--thread=worker"]
    assert_equal ["main"], names["cpu", "thread", "--thread=43"]
    assert_equal ["worker"], names["cpu", "thread", "--thread=worker CPU"]
    assert_equal ["IO#read"], names["syscall_methods", "method", "--method=IO#read"]
    assert_empty names["syscalls", "syscall", "--method=IO#read"]
    assert_empty names["syscall_methods", "method", "--reason=Guard*"]
    assert_empty names["cpu", "thread", "--reason=Guard*"]
  end

  # --- CPUs ------------------------------------------------------------------------------------------------

  def test_waits_migrations_and_tasks
    trace = KernelTrace.new do |t|
      t.thread(:worker, 44)
      t.cpu(:main, 0, 0, 10)
      t.runnable(:main, 10, 13, why: "preempted", cpu: 0, other: "cc1 7")
      t.cpu(:main, 0, 13, 20)
      t.runnable(:main, 30, 31, cpu: 1, other: "cc1 7", waker: "8")
      t.cpu(:main, 1, 31, 40)
      t.cpu(:main, 0, 40, 41)
      t.runnable(:worker, 5, 9, cpu: 3)
    end
    data = json(trace.build)
    assert_equal [["main", 43, 27.0, 4.0, 3.0, 1.0, 3.0, 4, 2, nil],
                  ["worker", 44, 0.0, 4.0, 0.0, 4.0, 4.0, 0, 0, nil]],
                 rows(data, "cpu", "thread", "tid", "cpu_ns", "wait_ns", "preempted_ns", "woken_ns", "longest_wait_ns",
                      "runs", "migrations", "gvl_without_cpu_ns")
    assert_equal [["main", "cc1 7", 2, 4.0]], rows(data, "cpu_others", "thread", "other", "waits", "total_ns")
    data = json(trace.build, "--since=12ms", "--until=35ms")
    assert_equal [["main", 11.0, 1.0, 1.0, 2, 1], ["worker", 0.0, 0.0, 0.0, 0, 0]],
                 rows(data, "cpu", "thread", "cpu_ns", "preempted_ns", "woken_ns", "runs", "migrations")
  end

  # Times with the GVL, and times on a CPU, at random.
  def random_intervals(random, count, to)
    Array.new(2 * count) { random.rand(to * 1000) / 1000.0 }.sort.uniq.each_slice(2).select { |pair| pair.size == 2 }
  end

  def without_cpu(held, cpus, since = 0, till = Float::INFINITY)
    gaps = cpus.each_cons(2).map { |a, b| [a[1], b[0]] }
    held.product(gaps).sum { |a, b| [[a[1], b[1], till].min - [a[0], b[0], since].max, 0].max }.round(6)
  end

  def gvl_trace(held, cpus, order, settings: {})
    KernelTrace.new(settings: { flags: "threads sched", **settings }, ends: 1100) do |t|
      runs = held.map { |from, till| -> { t.runs(:main, from); t.leaves(:main, till, ThreadsTrace::BLOCKED) } }
      slices = cpus.map { |from, till| -> { t.cpu(:main, 0, from, till) } }
      (order == :mixed ? runs.zip(slices).flatten.compact : order == :gvl ? runs + slices : slices + runs).each(&:call)
    end.build
  end

  def test_held_the_gvl_without_a_cpu
    %i[gvl cpus mixed].each_with_index do |order, seed|
      random = Random.new(seed)
      held, cpus = random_intervals(random, 60, 1000), random_intervals(random, 60, 1000)
      trace = gvl_trace(held, cpus, order)
      assert_equal [[without_cpu(held, cpus)]], rows(json(trace), "cpu", "gvl_without_cpu_ns")
      start = [held[0][0], 0].min # the settings are the first event
      window = json(trace, "--since=200ms", "--until=400ms")
      assert_equal [[without_cpu(held, cpus, start + 200, start + 400)]], rows(window, "cpu", "gvl_without_cpu_ns")
    end
  end

  def test_nothing_is_known_between_the_pieces_of_a_process
    Dir.mktmpdir do |dir|
      files = [gvl_trace([[0, 10]], [[0, 10]], :gvl), gvl_trace([[1120, 1150]], [[1140, 1145], [1147, 1150]], :gvl)]
      files = files.each_with_index.map do |trace, i|
        File.join(dir, "a-42-20261126T221504-#{i + 1}-time.fxt").tap { |path| File.binwrite(path, trace.bytes) }
      end
      data = JSON.parse(tool("report", "--format=json", "--sched", *files).out)
      assert_equal [[3, 2.0]], rows(data, "cpu", "runs", "gvl_without_cpu_ns")
    end
  end

  def test_a_wait_at_the_end_counts_as_without_a_cpu
    trace = KernelTrace.new(settings: { flags: "threads sched" }) do |t|
      t.runs(:main, 0)
      t.cpu(:main, 0, 0, 10)
      t.runnable(:main, 10, 100, why: "preempted")
    end
    assert_equal [[90.0]], rows(json(trace.build), "cpu", "gvl_without_cpu_ns")
  end

  # --- everything together -----------------------------------------------------------------------------------

  def test_slices_of_cpus_are_no_events_of_threads
    data = JSON.parse(tool("report", "--format=json", FIXTURE).out)
    assert_equal %w[main timer worker], data["threads"]["rows"].map { |row| row["thread"] }.sort
  end

  def test_sections_are_only_in_reports_of_traces_that_have_them
    text = tool("report", "--all", File.join(TRACES, "gvl.fxt")).out
    refute_match(/System calls|CPU:/, text)
    text = tool("report", "--all", FIXTURE).out
    assert_match(/^System calls: 12,.*^Methods that made system calls/m, text)
    assert_match(/^CPU: 3 threads had one/, text)
    refute_match(/^Errors of system calls|^System calls by thread/, text)
    text = tool("report", "--syscalls", "--sched", File.join(TRACES, "gvl.fxt")).out
    assert_match(/^  syscalls +none: --vm-trace=syscalls records them$/, text)
    assert_match(/^  CPUs +none: --vm-trace=sched records them$/, text)
  end

  def test_sections_can_be_chosen_together
    text = tool("report", "--calls", "--sched", FIXTURE).out
    assert_match(/^Calls by own time/, text)
    assert_match(/^CPU: 3 threads/, text)
    refute_match(/^System calls/, text)
  end

  def test_every_format_of_export
    Dir.mktmpdir do |dir|
      %w[folded speedscope pprof chrome firefox sqlite].product(%w[exits calls blocked]) do |format, kind|
        only = %w[chrome sqlite].include?(format) # they have all events
        next if kind != "exits" && only
        out = File.join(dir, "#{format}.#{kind}")
        result = tool("export", "--format=#{format}", *("--kind=#{kind}" unless only), "-o", out, FIXTURE)
        next if format == "sqlite" && result.err.include?("without SQLite")
        assert_equal 0, result.status, "#{format} #{kind}: #{result.err}"
        assert File.exist?(out)
      end
      events = JSON.parse(File.read(File.join(dir, "chrome.exits")))["traceEvents"]
      slices = events.select { |event| event["cat"] == "syscall" }
      assert_equal 12, slices.size
      assert_equal({ "fd" => 7, "result" => 0 }, slices.find { |event| event["name"] == "close" }["args"])
    end
  end

  def test_cut_and_merge_keep_them
    with_file("") do |path|
      assert_equal 0, tool("cut", "--since=20ms", "--until=60ms", "-o", path, FIXTURE).status
      assert_fine(File.binread(path))
      assert_equal 0, tool("merge", "-o", path, FIXTURE, FIXTURE).status
      assert_match(/System calls: 24/, tool("report", "--all", path).out)
    end
  end

  def test_query_has_the_slices_with_their_arguments
    sql = <<~SQL
      SELECT s.name, t.name AS thread, s.dur, a.key, a.int_value, a.string_value
      FROM slice s JOIN thread_track tt ON tt.id = s.track_id JOIN thread t USING (utid)
      LEFT JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key IN ('result', 'errno', 'ended', 'why', 'other')
      WHERE s.category IN ('syscall', 'sched') AND s.name IN ('futex', 'poll', 'close', 'runnable')
      ORDER BY s.ts, s.name, a.key
    SQL
    result = tool("query", "--format=csv", FIXTURE, sql)
    skip "built without SQLite" if result.err.include?("SQLite")
    assert_equal 0, result.status, result.err
    assert_equal <<~CSV, result.out
      "name","thread","dur","key","int_value","string_value"
      "runnable","main CPU",15000000,"other","[NULL]","cc1 77"
      "runnable","main CPU",15000000,"why","[NULL]","preempted"
      "close","main",500000,"result",0,"[NULL]"
      "poll","timer",49000000,"ended","[NULL]","after the trace"
      "runnable","worker CPU",4000000,"other","[NULL]","main 43"
      "runnable","worker CPU",4000000,"why","[NULL]","woken"
      "futex","main",20000000,"errno","[NULL]","ETIMEDOUT"
      "runnable","worker CPU",2000000,"other","[NULL]","cc1 77"
      "runnable","worker CPU",2000000,"why","[NULL]","preempted"
      "runnable","main CPU",1000000,"other","[NULL]","worker 44"
      "runnable","main CPU",1000000,"why","[NULL]","woken"
      "futex","main",1000000,"errno","[NULL]","EAGAIN"
    CSV
  end
end
