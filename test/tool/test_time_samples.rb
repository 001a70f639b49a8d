# Samples of time in each command that shows them.
require "zlib"
require_relative "page_helper"
require_relative "samples_trace"

class TestTimeSamples < Minitest::Test
  include PageHelper

  MAIN, WORK, DEEP = "<main> (/app/run.rb:1)", "Foo#work (/app/foo.rb:3)", "Foo#work (/app/foo.rb:9)"

  def self.trace(**options, &more)
    SamplesTrace.new(**options) do |t|
      t.thread(:worker, 44)
      t.sample(:main, 1, 1, "interpreted", MAIN)
      6.times { |i| t.sample(:main, 2 + i, 1, "compiled", MAIN, WORK) }
      t.sample(:main, 8, 2, "gc", MAIN, WORK, DEEP)
      t.sample(:main, 10, 1, "no_cpu", MAIN, WORK)
      t.new_chunk
      t.sample(:worker, 20, 30, "blocked", "Kernel#sleep (/app/run.rb:7)")
      t.sample(:worker, 50, 10, "waiting", "Kernel#sleep (/app/run.rb:7)")
      t.sample(:worker, 60, 4, "compiled", MAIN, WORK, fiber: "fiber 1")
      more&.call(t)
    end
  end
  BYTES = trace.build.freeze

  def report(bytes, *options)
    with_file(bytes) { |path| JSON.parse(tool("report", "--format=json", *options, path).out) }
  end

  def rows(report, table, *columns) = report.fetch(table)["rows"].map { |row| row.values_at(*columns) }

  def ms(number) = number * 1_000_000

  # --- check ---

  def test_a_good_trace_has_no_fault
    assert_fine(BYTES)
  end

  # Of a trace whose last sample the block adds.
  def assert_sample_fault(message, settings: {}, **counts)
    offset = nil
    bytes = SamplesTrace.new(settings: settings) { |t| offset = yield t }.build(**counts)
    assert_fault(offset, message, bytes)
  end

  def test_faults
    assert_sample_fault("sample has 1 weights, not its time and that of one state") do |t|
      t.sample(:main, 1, 1, nil, MAIN)
    end
    assert_sample_fault("sample stands for no time") { |t| t.sample(:main, 1, 0, "gc", MAIN) }
    assert_sample_fault("sample of 1000000 ns has a state of 2000000 ns") do |t|
      t.sample(:main, 1, 1, "gc", MAIN, state_length: 2)
    end
    assert_sample_fault("sample has the stack 77, which is not defined") do |t|
      t.sample(:main, 1, 1, "gc", MAIN, fields: { 6 => 77 })
    end
    assert_sample_fault("sample has a stack without frames") { |t| t.sample(:main, 1, 1, "gc") }
    assert_sample_fault("sample: the settings do not have the stream samples", settings: { flags: "calls" }) do |t|
      t.sample(:main, 1, 1, "gc", MAIN)
    end
  end

  def test_counts_of_the_summary
    result = check(self.class.trace.build(sample_records: 11))
    message = /\Avm-trace: F: offset \d+: trace summary says sample_records: 11, but the file holds: 12\n\z/
    assert_match message, result.err
  end

  # --- report ---

  def test_report_by_thread_and_state
    text = with_file(BYTES) { |path| tool("report", "--samples", path).out }
    assert_match(/^Samples by thread and state \(%: of the sampled time\): 54\.0 ms of the 144 ms of these threads/, text)
    assert_match(/^Samples by thread and state .*, one each 1\.00 ms$/, text)
    main, worker = report(BYTES, "--samples")["samples_by_thread"]["rows"]
    assert_equal ["main", 43, ms(10)], main.values_at("thread", "tid", "time_ns")
    assert_equal ["worker", 44, ms(44)], worker.values_at("thread", "tid", "time_ns")
    { "compiled" => [6, 4], "interpreted" => [1, 0], "compiling" => [0, 0], "gc" => [2, 0], "blocked" => [0, 30],
      "waiting" => [0, 10], "no_cpu" => [1, 0] }.each do |state, (of_main, of_worker)|
      assert_in_delta of_main / 10.0, main[state], 1e-6, state
      assert_in_delta of_worker / 44.0, worker[state], 1e-6, state
    end
  end

  def test_own_and_total_times
    found = report(BYTES, "--samples")
    assert_equal [["Foo#work (/app/foo.rb)", ms(13), ms(13)], ["<main> (/app/run.rb)", ms(1), ms(14)]],
                 rows(found, "samples_by_method", "method", "own_ns", "total_ns")
    assert_equal [[WORK, ms(11)], [DEEP, ms(2)], [MAIN, ms(1)]], rows(found, "samples_by_line", "method", "own_ns")
    assert_equal [["<main> (/app/run.rb)", ms(14)], ["Foo#work (/app/foo.rb)", ms(13)]],
                 rows(found, "samples_by_total", "method", "total_ns")
    assert_equal [["Kernel#sleep (/app/run.rb)", ms(40), 0.75, 0.25]],
                 rows(found, "sampled_waits_by_method", "method", "own_ns", "blocked", "waiting")
  end

  # A method in C that computes without the GVL runs; for the streams that know only the GVL it is blocked.
  def test_c_without_the_gvl_is_where_threads_ran
    bytes = self.class.trace { |t| t.sample(:worker, 70, 5, "without_gvl", "Zlib.deflate") }.build
    found = report(bytes, "--samples")
    assert_includes rows(found, "samples_by_method", "method", "own_ns", "without_gvl"), ["Zlib.deflate", ms(5), 1.0]
    refute_includes rows(found, "sampled_waits_by_method", "method").flatten, "Zlib.deflate"
    assert_in_delta 5 / 49.0, found["samples_by_thread"]["rows"][1]["without_gvl"], 1e-6
    first = rows(report(bytes, "--thread=worker"), "where", "state", "ns").to_h
    assert_equal ms(5), first["C without the GVL"]
    folded = with_file(bytes) { |path| tool("export", "--kind=samples", "--format=folded", path).out }
    assert_includes folded, "Zlib.deflate;without_gvl 5000\n"
  end

  # Of 54 moments of the threads, waits included, 13 are in the method: 1.96 * sqrt(13 / 54 * 41 / 54 * 54) periods.
  def test_confidence_interval
    work = report(BYTES, "--samples")["samples_by_method"]["rows"].first
    assert_in_delta 1.96e6 * Math.sqrt(13.0 * 41 / 54), work["own_error_ns"], 1
  end

  def test_window_and_thread
    window = report(BYTES, "--samples", "--since=2ms", "--until=8ms")
    assert_equal [["Foo#work (/app/foo.rb)", ms(6)]], rows(window, "samples_by_method", "method", "own_ns")
    assert_equal ["worker"], rows(report(BYTES, "--samples", "--thread=worker"), "samples_by_thread", "thread").flatten
  end

  def test_cpu_time
    bytes = self.class.trace(clock: "cpu").build
    assert_match(/: 54\.0 ms of CPU time, /, with_file(bytes) { |path| tool("report", "--all", path).out })
  end

  def test_a_trace_without_samples_says_so
    with_file(ThreadsTrace.new.build) do |path|
      assert_match(/^  samples +none: --vm-trace=samples records them$/, tool("report", "--samples", path).out)
      refute_match(/Samples/, tool("report", "--all", path).out)
    end
  end

  # --- export ---

  FOLDED = {
    "<main> (/app/run.rb:1);interpreted" => 1000, "<main> (/app/run.rb:1);Foo#work (/app/foo.rb:3);compiled" => 10_000,
    "<main> (/app/run.rb:1);Foo#work (/app/foo.rb:3);Foo#work (/app/foo.rb:9);gc" => 2000,
    "<main> (/app/run.rb:1);Foo#work (/app/foo.rb:3);no_cpu" => 1000,
    "Kernel#sleep (/app/run.rb:7);blocked" => 30_000, "Kernel#sleep (/app/run.rb:7);waiting" => 10_000
  }.freeze

  def export(*options) = with_file(BYTES) { |path| tool("export", *options, "--kind=samples", path) }

  def folded(*options)
    lines = export("-f", "folded", *options).out.lines(chomp: true)
    lines.to_h { |line| line.rpartition(" ").values_at(0, 2) }.transform_values(&:to_i)
  end

  def test_folded
    assert_equal FOLDED, folded
    of_main = folded("--threads", "--no-reason").select { |stack, _| stack.start_with?("main;") }
    assert_equal 10_000, of_main.values.sum
    assert_equal 7, folded("-w", "events").fetch("<main> (/app/run.rb:1);Foo#work (/app/foo.rb:3);compiled")
  end

  def test_speedscope_and_pprof
    profile = JSON.parse(export("-f", "speedscope").out)["profiles"].first
    assert_equal ["nanoseconds", ms(54)], [profile["unit"], profile["weights"].sum]
    assert_includes Zlib.gunzip(export("-f", "pprof").out.b), "Foo#work"
  end

  def firefox(*options) = with_file(BYTES) { |path| JSON.parse(tool("export", "-f", "firefox", *options, path).out) }

  def test_firefox
    [[], ["--kind=samples"]].each do |options|
      profile = firefox(*options)
      threads = profile["threads"].to_h { |thread| thread.values_at("name", "samples") }
      main, worker = threads.values_at("main", "worker")
      assert_equal [10.0, 44.0], [main, worker].map { |samples| samples["weight"].sum.to_f }
      assert_equal ["tracing-ms", main["time"].sort], main.values_at("weightType", "time")
      frame_of, category_of = profile["shared"]["stackTable"]["frame"], profile["shared"]["frameTable"]["category"]
      categories = main["stack"].map { |stack| profile["meta"]["categories"][category_of[frame_of[stack]]]["name"] }
      assert_equal ["Interpreted", *["Compiled"] * 6, "GC", "No CPU"], categories
    end
  end

  # --- query ---

  def test_query
    sql = <<~SQL
      SELECT t.tid, a.name AS fiber, a.kind, k.name AS counter, w.value
      FROM stack_sample s JOIN stack_sample_task_context x ON x.id = s.task_context_id JOIN thread t USING (utid)
        LEFT JOIN stack_sample_async_context a ON a.id = x.async_context_id
        JOIN stack_sample_counter w ON w.stack_sample_id = s.id
        JOIN stack_sample_counter_track k ON k.id = w.track_id
      WHERE s.ts >= 50000000 ORDER BY s.ts, k.name
    SQL
    with_file(BYTES) do |path|
      found = JSON.parse(tool("query", "--format=json", path, sql).out)
      assert_equal [[44, nil, nil, "waiting", 10e6], [44, nil, nil, "wall time", 10e6],
                    [44, "fiber 1", "fiber", "compiled", 4e6], [44, "fiber 1", "fiber", "wall time", 4e6]],
                   found.map(&:values)
    end
  end

  # --- diff ---

  def test_diff
    more = self.class.trace { |t| 40.times { |i| t.sample(:main, 70 + i / 2.0, 1, "compiled", MAIN, WORK) } }.build
    Dir.mktmpdir do |dir|
      a, b = %w[a.fxt b.fxt].map { |name| File.join(dir, name) }
      File.binwrite(a, BYTES.bytes)
      File.binwrite(b, more.bytes)
      found = JSON.parse(tool("diff", "--format=json", a, b).out)
      assert_equal [["grew", "Foo#work (/app/foo.rb)", "compiled", ms(10), ms(50)]],
                   rows(found, "samples", "change", "method", "state", "a", "b")
    end
  end

  # --- html ---

  def test_page_has_the_times_of_frames
    data = data_of(page(BYTES))
    frames = data["sampled"].map do |parent, text, *times|
      states = data["sample_states"].zip(times).to_h.transform_values { |ns| ns / 1_000_000 }
      [data["strings"][text], parent, states.reject { |_, ms| ms.zero? }]
    end
    all = { "compiled" => 10, "interpreted" => 1, "GC" => 2, "no CPU" => 1, "blocked" => 30, "waiting" => 10 }
    assert_equal all, frames[0][2]
    main, work = [MAIN, WORK].map { |label| frames.index { |text, _| text == label } }
    assert_equal [0, { "compiled" => 10, "interpreted" => 1, "GC" => 2, "no CPU" => 1 }], frames[main].drop(1)
    assert_equal [main, { "compiled" => 10, "GC" => 2, "no CPU" => 1 }], frames[work].drop(1)
    assert_empty data_of(page(ThreadsTrace.new.build)).keys.grep(/sample/)
  end

  def test_flame_graph_by_state_in_a_browser
    browse(BYTES) do |browser|
      assert_match(/\A14\.0 ms of the time of all threads, a sample each 1\.00 ms/, browser.text("#samples-sum"))
      assert_equal ["all samples", "<main>", "Foo#work", "Foo#work"], browser.texts("#samples .frame")
      states = browser.texts("#samples-states button").map { |text| text[/[a-zA-Z ]*[a-zA-Z]/].strip }
      assert_equal ["compiled", "interpreted", "GC", "blocked", "waiting", "no CPU"], states
      browser.click("#samples-states button:nth-child(4)")
      assert_match(/\A44\.0 ms /, browser.text("#samples-sum"))
      assert_includes browser.texts("#samples .frame"), "Kernel#sleep"
      browser.type("#search", "sleep")
      assert_match(/\A68\.2 % of the time/, browser.text("#samples-sum"))
    end
  end
end
