# `vm-trace report` of real runs: it reports what the program did, also while it runs.
require_relative "helper"

# The tool counts reasons of any JIT.
Integration.only "zjit"

class TestReport < Integration::Test
  FOO = "def foo = (::RubyVM::ZJIT.induce_side_exit!)\n3.times { foo }\n"

  def report(*paths, options: [])
    out, err, status = Open3.capture3(Trace::TOOL, "report", "--format=json", "--top=1000", *options, *paths)
    assert_equal [0, ""], [status.exitstatus, err]
    JSON.parse(out)
  end

  def rows(data, table, *columns) = data.fetch(table)["rows"].map { |row| columns.map { |column| row.fetch(column) } }
  def exits(data) = data["totals"]["rows"][0]["exits"]

  SCRIPT = FOO + <<~'RUBY'
    def sum(a, b) = a + b
    i = 0
    while i < 1000
      foo
      sum(i, i < 900 ? 1 : 4_611_686_018_427_387_903)
      i += 1
    end
  RUBY

  def test_tables_are_those_of_the_events
    trace = trace(SCRIPT).trace
    data = report(trace.path)
    by = ->(key) { trace.exits.map(&key).tally }
    assert_equal by[->(e) { [e["cat"], e["name"]] }], rows(data, "exits_by_reason", "kind", "reason", "count").to_h { |*key, count| [key, count] }
    assert_equal by[->(e) { e["args"]["0"] }], rows(data, "exits_by_line", "method", "count").to_h
    assert_equal by[->(e) { e["args"]["insn"] }], rows(data, "exits_by_instruction", "instruction", "count").to_h
    overflow = data["worst"]["rows"].find { |row| row["reason"] == "FixnumAddOverflow" }
    assert_equal ["Object#sum (script.rb)", 100], overflow.values_at("method", "count")
    times = trace.exits("FixnumAddOverflow").map { |event| event["ts"] - trace.events.first["ts"] }
    assert_equal times.minmax, overflow.values_at("first_ns", "last_ns")
  end

  # A site without a recorded exit may lack its owner: the test compares lines.
  def test_a_sampled_run_has_the_counts_of_one_that_is_not
    tables = [1, 7].map do |rate|
      data = report(trace(SCRIPT, "--zjit-trace-exits-sample-rate=#{rate}").trace.path)
      lines = rows(data, "exits_by_line", "method", "count").group_by { |method, _| method[/\(.*\)/] }
      [rows(data, "exits_by_reason", "reason", "count"), rows(data, "exits_by_instruction", "instruction", "count"),
       lines.transform_values { |found| found.sum { |_, count| count } }]
    end
    assert_equal(*tables)
  end

  with :recompile_exits, def test_places_that_go_on_exiting_are_called_out
    data = report(trace(<<~'RUBY', "--zjit-max-versions=3").trace.path)
      def bar(x)
        if x == 1 then x.to_s
        elsif x == 2 then x.to_f
        elsif x == 3 then x.inspect
        elsif x == 4 then x.to_i
        end
      end
      30.times { bar(0) }
      (1..4).each { |x| 30.times { bar(x) } }
      300.times { bar("s") }
    RUBY
    rows = data["recompile_loops"]["rows"].select { |row| row["method"].start_with?("Object#bar ") }
    assert_operator rows.sum { |row| row["at_limit"] }, :>, 0
    assert_includes rows.map { |row| row["versions"][/\A\d+/] }, "3"
  end

  def test_a_program_and_its_children_are_one_run
    result = trace(FOO + "10.times { foo }\n2.times { Process.wait(fork { 20.times { foo } }) }\n")
    data = report(*result.traces.map(&:path))
    assert_equal result.traces.map { |trace| trace.settings["pid"] }.sort, rows(data, "processes", "pid").flatten.sort
    assert_equal result.traces.sum { |trace| trace.summary["exits"] }, exits(data)
  end

  def test_compilations_have_their_code
    data = report(trace(SCRIPT, "--zjit-trace-compiles").trace.path)
    totals = data["totals"]["rows"][0]
    assert_operator totals["code_bytes"], :>, 0
    whole = data["compile_phases"]["rows"].first
    assert_equal ["(whole)", totals["compilations"]], whole.values_at("name", "count")
    assert_operator whole["median_ns"], :<=, whole["p95_ns"]
    assert_operator whole["p95_ns"], :<=, whole["longest_ns"]
  end

  def test_the_benchmark_of_the_tool_has_its_rows
    out, err, status = Open3.capture3("ruby", File.join(ROOT, "benchmarks/tool"), "--ruby", RUBY, "--tool", Trace::TOOL,
                                      "--throws=300", "--runs=1", "--folder", scratch_dir)
    assert_equal [0, ""], [status.exitstatus, err]
    assert_match(/^[01] MB, \d{4} exits; /, out)
    assert_equal ["report, small trace", "report", "query"], out.scan(/^(report, small trace|report|query) +\d+\.\d+ s +\d+\.\d+ s +\d+\.\d+ MiB/).flatten
  end

  # The child keeps exiting while its file is read again and again. Not at full speed: the file
  # would grow without bound.
  def test_the_file_of_a_running_program_is_read_as_it_stands
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), jit(FOO) + "$stdout.sync = true\n10_000.times { foo }\nputs :ready\n" \
      "200_000.times { |i| foo; sleep 0.001 if i % 20 == 0 }\nsleep\n")
    out, write = IO.pipe
    pid = Process.spawn(ENVIRONMENT, RUBY, "--disable=gems", "--zjit-call-threshold=2", "--zjit-trace-exits", "--zjit-trace-file=live.fxt",
                        "script.rb", out: write, err: File::NULL, chdir: dir, pgroup: true)
    write.close
    assert_equal "ready\n", out.gets
    path = File.join(dir, "live.fxt")
    counts = Array.new(10) do
      _, err, status = Open3.capture3(Trace::TOOL, "check", path)
      assert_equal [0, ""], [status.exitstatus, err]
      data = report(path)
      assert_equal [[pid, "no"]], rows(data, "processes", "pid", "ended")
      exits(data)
    end
    assert_operator counts.first, :>=, 10_000
    assert_equal counts.sort, counts
  ensure
    Process.kill(:KILL, -pid)
    Process.wait(pid)
    out.close
  end
end
