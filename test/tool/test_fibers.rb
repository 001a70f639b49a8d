# Waits of fibers: what the commands make of the events of the category `fiber`.
require_relative "page_helper"
require_relative "fibers_trace"

class TestFibers < Minitest::Test
  include PageHelper

  POP = ["Fiber.yield (/gems/loop-1.0/lib/loop.rb:9)", "Loop#block (/gems/loop-1.0/lib/loop.rb:9)",
         "Thread::Queue#pop (/app/jobs.rb:5)", "Jobs#take (/app/jobs.rb:5)", "block in <main> (/app/run.rb:3)"].freeze
  SLEEP = ["Kernel#sleep (/app/jobs.rb:9)", "Jobs#rest (/app/jobs.rb:9)"].freeze

  def trace(**options)
    FibersTrace.new(**options) do |t|
      [1, 2].each { |n| t.fiber(n) }
      t.wait(:main, "Fiber#resume", 0, 5, waker: 1)
      t.wait(1, "Thread::Queue#pop", 5, 15, POP, ran: 5, ready: 4, scheduler: "Loop#block")
      t.wait(1, "Thread::Queue#pop", 16, 36, POP, ran: 1, scheduler: "Loop#block")
      t.wait(2, "Kernel#sleep", 20, 50, SLEEP, ran: 2)
      yield t if block_given?
    end.build
  end

  def report(bytes, *options)
    JSON.parse(with_file(bytes) { |path| tool("report", "--fibers", "--format=json", *options, path).out })
  end

  def test_the_report_says_what_they_waited_for_and_from_where
    rows = report(trace)["fiber_waits"]["rows"]
    assert_equal [["Thread::Queue#pop", "Loop#block", "Jobs#take (/app/jobs.rb:5)", 2, 30_000_000, 20_000_000, 1, 4_000_000],
                  ["Kernel#sleep", nil, "Jobs#rest (/app/jobs.rb:9)", 1, 30_000_000, 30_000_000, 0, 0]].sort_by(&:first),
                 rows.map { |row| row.values_at(*%w[method scheduler location count total_ns longest_ns ready ready_ns]) }
                     .sort_by(&:first)
  end

  def test_the_longest_run_is_first
    rows = report(trace)["fiber_runs"]["rows"]
    assert_equal [["Thread::Queue#pop", 5_000_000, 2, 6_000_000, 0, "main fiber 1"], ["Kernel#sleep", 2_000_000, 1, 2_000_000,
                                                                                      18_000_000, "main fiber 2"]],
                 rows.map { |row| row.values_at(*%w[method longest_ns count total_ns start_ns thread]) }
  end

  # The thread's own fiber waits meanwhile, and nobody resumes it who could be named.
  def test_a_run_up_to_the_end_of_a_fiber_is_the_wait_of_the_threads_own
    bytes = FibersTrace.new do |t|
      t.wait(:main, "Fiber#resume", 3, 11)
      t.wait(:main, "Fiber#resume", 20, 50, waker: 1)
    end.build
    assert_equal [["(ended)", 8_000_000, 1, 3_000_000, "main"]],
                 report(bytes)["fiber_runs"]["rows"].map { |row| row.values_at(*%w[method longest_ns count start_ns thread]) }
  end

  def test_fibers_of_one_thread_are_one_row_for_people
    out = with_file(trace) { |path| tool("report", "--fibers", path).out }
    assert_match(/^ +60\.00 ms +4\.00 ms +8\.00 ms +5\.00 ms +3 .* main fiber N \(2 threads\)$/, out)
    assert_match(/^  left_out +7 short waits of fibers$/, out)
    assert_equal 3, report(trace)["fibers"]["rows"].size, "for programs each has one"
  end

  def test_a_trace_without_the_stream_says_what_records_it
    bytes = StatesTrace.new { |t| t.event(:instant, :main, "marker", "x", 1) }.build
    out = with_file(bytes) { |path| tool("report", "--fibers", path).out }
    assert_match(/^  fibers +none: --vm-trace=fibers records them$/, out)
  end

  def test_check_compares_counts_and_times
    with_file(trace) { |path| assert_equal ["", 0], tool("check", path).then { |said| [said.err, said.status] } }
    more = trace { |t| t.wait(2, "Kernel#sleep", 60, 61, SLEEP, ready: 2) }
    with_file(more) do |path|
      assert_match(/wait of a fiber in Kernel#sleep was ready for 2000000 of 1000000 ns/, tool("check", path).err)
    end
    fewer = FibersTrace.new { |t| t.wait(:main, "Fiber#resume", 0, 5) }.build(fiber_waits: 3)
    with_file(fewer) do |path|
      assert_match(/fiber_waits: 3, but the file holds: 1/, tool("check", path).err)
    end
  end

  def test_a_cut_keeps_the_part_of_a_wait
    with_file(trace) do |path|
      tool("cut", "--since=10ms", "--until=30ms", "-o", "#{path}.part", path)
      rows = report(File.binread("#{path}.part"))["fiber_waits"]["rows"]
      assert_equal({ "Thread::Queue#pop" => 19_000_001, "Kernel#sleep" => 10_000_000 },
                   rows.to_h { |row| row.values_at("method", "total_ns") })
    end
  end

  # Of 76 ms of fibers' lives; the thread's own fiber is the loop that serves them.
  def test_the_first_screen_names_the_run_that_ready_fibers_wait_for
    bytes = trace { |t| t.wait(1, "IO#gets", 40, 50, SLEEP, ran: 3) }
    rows = JSON.parse(with_file(bytes) { |path| tool("report", "--format=json", path).out })["findings"]["rows"]
    row = rows.find { |found| found["subject"] == "fibers" }
    assert_equal [0, 4_000_000, 81_000_000, "Jobs#take (/app/jobs.rb:5)"], row.values_at(*%w[least_ns most_ns whole_ns place])
    assert_nil row["gain_ns"]
    text = with_file(bytes) { |path| tool("report", path).out }
    assert_match(/at most 5 % \(4\.00 ms\): fibers wait for Jobs#take \(\/app\/jobs\.rb:5\)$/, text)
    assert_includes text.gsub(/\s+/, " "),
                    "fibers that were ready waited 4.00 ms for their thread; the longest run took 5.00 ms"
  end

  def test_who_runs_in_turns_is_not_named
    bytes = trace do |t|
      4.times { |i| t.wait(2, "IO#gets#{i}", 60 + 5 * i, 61 + 5 * i, ["IO#gets#{i} (/app/io.rb:#{i})"], ran: 4) }
    end
    text = with_file(bytes) { |path| tool("report", path).out }
    assert_match(/: fibers wait for each other$/, text)
  end

  def test_no_row_where_nothing_is_ready
    bytes = FibersTrace.new do |t|
      t.fiber(1)
      t.wait(1, "Kernel#sleep", 20, 50, SLEEP, ran: 2)
    end.build
    refute_includes with_file(bytes) { |path| tool("report", path).out }, "fibers wait"
  end

  def test_diff_compares_what_fibers_did
    slower = trace { |t| t.wait(2, "Kernel#sleep", 60, 70, SLEEP, ran: 10, ready: 6) }
    with_files(trace, slower) do |before, after|
      data = JSON.parse(tool("diff", "--format=json", before, after).out)
      assert_equal [["running", 8_000_000, 18_000_000], ["ready, waiting for the thread", 4_000_000, 10_000_000],
                    ["waiting for an event", 56_000_000, 60_000_000]],
                   data["fibers"]["rows"].map { |row| row.values_at("state", "a", "b") }
    end
  end

  # {name of a fiber: [[state, from, to, what it waited in, which fiber ran before it went on], ...]}, in milliseconds
  def lanes(bytes)
    data = data_of(page(bytes))
    texts, timeline = data.values_at("strings", "timeline")
    timeline["fibers"].to_h do |_, _, name, *, segments|
      segments = PageNumbers.segments(segments).map do |segment|
        what = segment.names.map { |number, *| texts[timeline["names"][number][0]] }
        [%w[ready waits gc runs][segment.ns.index(&:positive?)], segment.from / 1_000_000, segment.to / 1_000_000,
         what.first, segment.by && texts[segment.by]]
      end
      [texts[name], segments]
    end
  end

  def test_the_page_has_a_lane_for_each_fiber
    bytes = trace { |t| t.wait(2, "IO#gets", 60, 70, SLEEP, ran: 10, waker: 1) }
    assert_equal({ "main fiber 1" => [["runs", 0, 5, nil, nil], ["waits", 5, 11, "Thread::Queue#pop", nil],
                                      ["ready", 11, 15, nil, nil], ["runs", 15, 16, nil, nil],
                                      ["waits", 16, 36, "Thread::Queue#pop", nil]],
                   "main fiber 2" => [["runs", 18, 20, nil, nil], ["waits", 20, 50, "Kernel#sleep", nil],
                                      ["runs", 50, 60, nil, nil], ["waits", 60, 70, "IO#gets", "main fiber 1"]] }, lanes(bytes))
    assert_empty data_of(page(bytes))["timeline"]["tracks"], "they are no threads"
  end

  # The page has lanes of 500 and, while it is made, timelines of 4,096.
  def test_fibers_without_a_lane_are_summed_up
    processes = Array.new(21) do |process|
      FibersTrace.new(pid: 100 + process) do |t|
        200.times do |i|
          t.fiber(i + 1)
          t.wait(i + 1, "Kernel#sleep", 10, 13, ran: 2, ready: 1)
        end
      end.build
    end
    bytes = processes.first
    processes.drop(1).each { |other| bytes.raw(other.bytes) }
    timeline = data_of(page(bytes))["timeline"]
    assert_equal [500, 3700], [timeline["fibers"].size, timeline["fibers_left_out"]]
    assert_equal [1, 2, 0, 2].map { |ms| 3700 * 1_000_000 * ms }, timeline["fibers_left_out_ns"]
  end

  def test_browser_shows_lanes_and_tables
    skip_without_browser
    browse(trace) do |browser|
      assert_equal "Fibers", browser.text("#threads-title")
      assert_equal ["main fiber 1", "main fiber 2"], browser.texts("#tracks [data-row] .label")
      assert_equal ["ready", "waiting", "running"], browser.texts("#threads-legend li")
      assert_equal [["main fiber 1", "36.0 ms", "4.00 ms", "11.1 %", "26.0 ms", "72.2 %", "6.00 ms", "16.7 %"],
                    ["main fiber 2", "32.0 ms", "0 ms", "0.00 %", "30.0 ms", "93.8 %", "2.00 ms", "6.25 %"]],
                   rows_of(browser, "#fiber-states table")
      assert_equal [["Kernel#sleep", "1", "30.0 ms", "53.6 %", "30.0 ms"],
                    ["Thread::Queue#pop", "2", "26.0 ms", "46.4 %", "20.0 ms"]],
                   rows_of(browser, "#fiber-waits table")
      browser.click("#first .finding")
      assert_empty browser.problems
    end
  end

  # Numbers of threads leave fibers out.
  def test_browser_keeps_threads_and_fibers_apart
    skip_without_browser
    both = FibersTrace.new(settings: { flags: "threads fibers", fibers_min_ns: [:uint64, 0] }) do |t|
      t.runs(:main, 0)
      t.fiber(1)
      t.wait(1, "Kernel#sleep", 20, 50, SLEEP, ran: 2, ready: 10)
    end.build
    browse(both) do |browser|
      assert_equal "Threads and fibers", browser.text("#threads-title")
      assert_equal ["main", "main fiber 1"], browser.texts("#tracks [data-row] .label")
      assert_equal ["main"], rows_of(browser, "#thread-states table").map(&:first)
      assert_equal ["main fiber 1"], rows_of(browser, "#fiber-states table").map(&:first)
      assert_includes browser.texts("#threads-legend li"), "waiting for the GVL (a fiber: ready)"
      tiles = browser.text("#tiles").split("\n")
      assert_equal %w[1], tiles.each_cons(2).filter_map { |name, value| value if name.match?(/\Athreads\z/i) }
      assert_empty browser.problems
    end
  end
end
