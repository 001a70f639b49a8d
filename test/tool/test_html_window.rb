# The page of `vm-trace html` in a window of time, and with a search: what each section then shows is what `report`,
# `annotate` and `cut` say of the same time.
require_relative "page_helper"
require_relative "samples_trace"

class TestHtmlWindow < Minitest::Test
  include PageHelper

  KERNEL = File.join(TRACES, "kernel.fxt")
  PLACES = ["Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)", "Bar#c (/app/bar.rb:5)", "Bar#d (/app/bar.rb:7)"].freeze

  UNITS = { "ns" => 1, "µs" => 1e3, "ms" => 1e6, "s" => 1e9 }.freeze

  # As the page writes the times of a column, all of which are less than a thousand of their unit: in the largest one
  # in which most are at least 1, with the decimals that give the shortest three digits.
  def time_texts(column)
    all = column.compact.reject(&:zero?)
    name, unit = UNITS.select { |_, ns| ns == 1 || all.max.to_i >= ns }.to_a.last
    name, unit = UNITS.to_a[UNITS.keys.index(name) - 1] if unit > 1 && all.count { |ns| ns < unit } * 2 > all.size
    least = (all.min || 0) / unit.to_f
    decimals = unit == 1 || least >= 100 ? 0 : least >= 10 ? 1 : 2
    column.map { |ns| ns ? format("%.#{ns.zero? ? 0 : decimals}f %s", ns / unit.to_f, name) : "" }
  end

  def time_text(ns) = time_texts([ns]).first

  # With texts in these columns.
  def with_times(rows, *columns)
    columns.each { |column| time_texts(rows.map { |row| row[column] }).zip(rows) { |text, row| row[column] = text } }
    rows
  end

  def count_text(number) = number.to_s.gsub(/(\d)(?=(\d{3})+\z)/, '\1,')

  # Options that choose what the page sums up between two bins, the second one included.
  def bins(browser, first, last)
    width, start = browser.run("const { bins } = JSON.parse(document.getElementById('data').textContent); " \
                               "return [bins.width_ns, bins.start_ns]")
    [start + first * width, start + (last + 1) * width]
  end

  # Shows the window by a link.
  def show(browser, from, to, more = "")
    link = "#{browser.run("return location.href").sub(/#.*/, "")}#tab=All&window=#{from}-#{to}#{more}"
    browser.visit("about:blank")
    browser.visit(link)
  end

  def json(command, path, *options, from: nil, to: nil)
    window = from ? ["--since=#{from}ns", "--until=#{to}ns"] : []
    JSON.parse(tool(command, "--format=json", *options, *window, path).out)
  end

  def values(result, table, *columns) = result.fetch(table)["rows"].map { |row| row.values_at(*columns) }

  def exits_by_place(path, from, to, *columns)
    values(json("report", path, "--top=99", from: from, to: to), "exits_by_place", *columns)
  end

  # Exits of four places, with what they lost, at times that no bin begins with.
  def exits
    @exits ||= StatesTrace.new do |t|
      random = Random.new(7)
      400.times do |i|
        place = PLACES[i < 200 ? i % 2 : random.rand(4)]
        t.exits(:main, "Reason#{i % 3}", place, 0.2 + i * 0.24 + random.rand(0.1), lost: (1 + i % 7) / 100.0)
      end
      t.interpreted("Slow#x (/app/slow.rb:1)", "uncompilable", 7, 3, first: 1, last: 90)
      t.states(:main, exited: 16, compiled: 80)
    end.build
  end

  def exits_page(*options)
    with_file(exits) { |path| browse(exits, *options, height: 3000) { |browser| yield browser, path } }
  end

  # --- the window ----------------------------------------------------------------------------------

  def test_the_table_of_exits
    exits_page do |browser, path|
      [[3, 40], [70, 70], [90, 180]].each do |first, last|
        from, to = bins(browser, first, last)
        show(browser, from, to)
        expected = exits_by_place(path, from, to, *%w[lost_ns longest_ns count method reason])
        refute_empty expected
        texts = expected.map do |lost, longest, count, method, reason|
          [time_text(lost), time_text(longest), count.to_s, method.delete("()"), reason]
        end
        found = cells(browser, "#table-body tr").map { |row| row.values_at(0, 2, 3, 4, 5) }
        assert_equal texts.sort, found.sort
        sum = expected.sum { |row| row[2] }
        assert_match(/: #{sum} exits\z/, browser.text("#window"))
        lost = time_text(expected.sum(&:first))
        assert_includes browser.text("#cost-sentence"), "#{sum} exits lost about #{lost}, by the recorded exits."
        assert_equal [], cells(browser, "#interpreted tbody tr")
        assert_includes browser.text("#cost-window"), "only the sums"
      end
    end
  end

  # The stacks that `cut` leaves.
  def stacks_between(path, from, to, *options)
    cut = "#{path}.cut"
    assert_equal 0, tool("cut", "--since=#{from}ns", "--until=#{to}ns", "-o", cut, path).status
    folded = tool("export", "--format=folded", *options, cut).out
    File.delete(cut)
    folded.lines.sum { |line| line[/\d+\Z/].to_i }
  end

  # The labels of a flame graph's frames.
  def frames(browser, id) = browser.map("##{id} .frame", "e.getAttribute('aria-label')")

  # For each name, the exits of the first frame that begins with it.
  def exits_of(labels, names)
    names.to_h { |name| [name, labels.find { |label| label.start_with?(name) }[/  (\d+) exit/, 1].to_i] }
  end

  def test_the_flame_graph_of_exits
    exits_page do |browser, path|
      from, to = bins(browser, 100, 150)
      show(browser, from, to)
      expected = exits_by_place(path, from, to, "method", "reason", "count")
      by_method = expected.group_by(&:first).transform_values { |rows| rows.sum { |row| row[2] } }
      sum = by_method.values.sum
      assert_equal sum, stacks_between(path, from, to)
      labels = frames(browser, "flame")
      assert_match(/\Aall exits  #{sum} exits, 100/, labels.first)
      assert_equal by_method, exits_of(labels, PLACES)
      by_reason = expected.group_by { |row| row[1] }.transform_values { |rows| rows.sum { |row| row[2] } }
      browser.click("#flame-section [data-mode=inverted]")
      assert_equal by_reason, exits_of(frames(browser, "flame"), by_reason.keys)
      assert_match(/\A#{sum} exits by backtrace; from .* to /, browser.text("#flame-sum"))
      show(browser, to, to + 1) # one bin
      assert_operator browser.text("#flame-sum").to_i, :<, 10
    end
  end

  def test_lines_of_sources
    Dir.mktmpdir do |dir|
      source = File.join(File.realpath(dir), "foo.rb")
      File.write(source, "one\ntwo\nthree\nfour\n")
      File.utime(0, 0, source)
      trace = StatesTrace.new do |t|
        100.times do |i|
          t.exits(:main, "R#{i % 2}", "Foo#a (#{source}:#{1 + i / 30})", 1 + i * 0.9, lost: 0.01 * (i % 5))
        end
        4.times { |i| t.site("R#{i % 2}", "Foo#a (#{source}:#{1 + i})", 15, lost: 0.4, max: 0.04) }
        t.states(:main, exited: 3, compiled: 80)
      end.build
      browse(trace, "--sources", "--below=/") do |browser|
        from, to = bins(browser, 30, 90)
        show(browser, from, to)
        browser.run("for (const file of document.querySelectorAll('#sources details')) file.open = true")
        browser.settle
        annotated = with_file(trace) { |path| json("annotate", path, from: from, to: to) }
        lines = values(annotated, "annotated_lines", "line", "lost_ns", "exits")
        refute_empty lines
        texts = with_times(lines.map { |line, lost, count| [lost > 0 ? lost : nil, count.to_s, line.to_s] }, 0)
        found = browser.map("#sources tr.costly", "[...e.cells].map((cell) => cell.textContent)")
        assert_equal texts, found.map { |row| row.first(3) }
        all = lines.sum { |_, lost, _| lost }
        assert_includes browser.text("#sources summary"), "#{time_text(all)} lost, #{lines.sum(&:last)} exits"
      end
    end
  end

  # Rows of the report as the page writes them, sorted.

  def syscall_texts(report)
    rows = values(report, "syscalls", "syscall", "errno", "total_ns", "calls", "errors")
    with_times(rows.map { |name, errno, ns, *counts| [name, errno.to_s, ns, *counts.map(&:to_s)] }, 2).sort
  end

  def syscall_method_texts(report)
    rows = values(report, "syscall_methods", "method", "syscalls", "total_ns", "calls")
    with_times(rows.map { |name, text, ns, calls| [name, text, ns, calls.to_s] }, 2).sort
  end

  CPU_COLUMNS = %w[thread tid cpu_ns preempted_ns woken_ns runs migrations gvl_without_cpu_ns].freeze

  # Only threads that have any of the numbers from cpu_ns to migrations.
  def cpu_texts(report)
    rows = values(report, "cpu", *CPU_COLUMNS).reject { |row| row[2..6].sum.zero? }
    texts = rows.map do |name, tid, on, before, after, runs, moves, held|
      [name, tid.to_s, on, before, after, runs.to_s, moves.to_s, held]
    end
    with_times(texts, 2, 3, 4, 7).sort
  end

  def cpu_other_texts(report)
    rows = values(report, "cpu_others", "other", "thread", "tid", "waits", "total_ns")
    with_times(rows.map { |*texts, ns| [*texts.map(&:to_s), ns] }, 4).sort
  end

  def test_system_calls_and_cpus
    browse(File.binread(KERNEL)) do |browser|
      random = Random.new(3)
      short = Array.new(3) { random.rand(120).then { |at| [at, at + random.rand(9)] } }
      [[0, 60], [20, 30], [100, 160], *short].each do |first, last|
        from, to = bins(browser, first, last)
        show(browser, from, to)
        report = json("report", KERNEL, "--syscalls", "--sched", "--top=1000", from: from, to: to)
        syscalls = cells(browser, "#syscalls tbody tr").reject { |row| row[0] == "None in the window." }
        assert_equal syscall_texts(report), syscalls.map { |row| row.values_at(0, 1, 2, 4, 6) }.sort
        assert_equal syscall_method_texts(report), rows_of(browser, "#syscall-methods").sort
        assert_equal cpu_texts(report), rows_of(browser, "#cpus").map { |row| row.values_at(0..4, 6..8) }.sort
        assert_equal cpu_other_texts(report), rows_of(browser, "#cpu-others").sort
      end
    end
  end

  # Short ones within a bin, one that ends in it, one that is around it.
  def test_slices_that_touch_a_window
    trace = KernelTrace.new do |t|
      slices = [[1.0, 1.02], [1.1, 1.13], [2.9, 3.3], [3.4, 3.42], [5.0, 9.0]]
      slices.each { |from, to| t.syscall(:main, "read", from, to) }
    end.build
    browse(trace) do |browser|
      counts = (1..9).map do |bin|
        from, to = bins(browser, bin, bin)
        show(browser, from, to)
        report = with_file(trace) { |path| json("report", path, "--syscalls", from: from, to: to) }
        expected = values(report, "syscalls", "total_ns", "calls")
        found = rows_of(browser, "#syscalls").map { |row| row.values_at(2, 4) }
        assert_equal expected.map { |ns, calls| [time_text(ns), calls.to_s] }, found
        expected.sum(&:last)
      end
      assert_operator counts.max, :>, 1
      assert_includes counts, 0
    end
  end

  # The longest slice that touches a window is not cut.
  def test_the_longest_system_call
    trace = KernelTrace.new do |t|
      t.syscall(:main, "read", 1, 2)
      t.syscall(:main, "read", 10, 40)
      t.syscall(:main, "read", 60, 63)
    end.build
    browse(trace) do |browser|
      longest = lambda do |from_ms, to_ms|
        show(browser, from_ms * 1_000_000, to_ms * 1_000_000)
        cells(browser, "#syscalls tbody tr").map { |row| row[5] }
      end
      assert_equal [["30.0 ms"], ["30.0 ms"], ["3.00 ms"], ["1.00 ms"]],
                   [longest[0, 90], longest[20, 30], longest[55, 90], longest[0, 5]]
      show(browser, 70_000_000, 90_000_000)
      assert_equal [["None in the window."]], cells(browser, "#syscalls tbody tr")
    end
  end

  SAMPLED = %w[compiled interpreted gc blocked].freeze

  def test_samples
    main, work, rest = "<main> (/app/run.rb:1)", "Foo#work (/app/foo.rb:3)", "Foo#rest (/app/foo.rb:9)"
    trace = SamplesTrace.new do |t|
      80.times do |i|
        stack = i < 50 ? [main, work] : [main, work, rest]
        t.sample(:main, 1 + i * 1.1, 1 + i % 3, SAMPLED[i * 7 % 4], *stack)
      end
    end.build
    browse(trace) do |browser|
      from, to = bins(browser, 60, 110)
      show(browser, from, to)
      report = with_file(trace) { |path| json("report", path, "--samples", from: from, to: to) }
      rows = report["samples_by_total"]["rows"].to_h { |row| [row["method"], row.values_at("total_ns", "own_ns")] }
      texts = rows.map { |method, (total, own)| [method.delete_suffix(")"), time_text(total), time_text(own)] }
      labels = frames(browser, "samples").drop(1)
      found = labels.map { |label| label.match(/\A(.*):\d+\)  (.*?), .*; own (.*)\z/).captures }
      assert_equal texts.sort, found.sort
      states = report["samples_by_thread"]["rows"].first
      shown = browser.texts("#samples-states button").to_h { |text| text.strip.split(" ", 2) }
      SAMPLED.each do |state|
        assert_equal time_text(states[state] * states["time_ns"]), shown[state == "gc" ? "GC" : state]
      end
      assert_match(/; from .* to /, browser.text("#samples-sum"))
    end
  end

  # What is not a slice of its own is rounded to bins, and the page says to which.
  def test_the_bar_says_to_what_sums_are_rounded
    exits_page do |browser, _|
      from, to = bins(browser, 20, 29)
      show(browser, from + 1000, to - 1000)
      assert_equal "#{time_text(from + 1000)} to #{time_text(to - 1000)}; sums of exits, samples and system calls: " \
                   "#{time_text(from)} to #{time_text(to)}, in steps of #{time_text((to - from) / 10)}",
                   browser.text("#bar-window")
      rounded = browser.text("#table-sum")
      show(browser, from, to)
      assert_equal rounded, browser.text("#table-sum")
      show(browser, from, to + 1)
      refute_equal rounded, browser.text("#table-sum"), "a bin that the window touches is in it"
      browser.click("#bar-whole")
      assert_match(/\A\d+ rows: 400 exits/, browser.text("#table-sum"))
      assert_match(/\AThe whole trace: /, browser.text("#bar-window"))
    end
  end

  # Both runs are cut as far from their begins.
  def test_a_window_of_two_runs
    run = lambda do |begins, counts|
      FxtBuilder.simple do |b|
        b.event(:instant, "trace", "mark", ts: begins)
        counts.each_with_index do |count, i|
          count.times { b.exit("R", "M#m#{i} (/a.rb:1)", ts: begins + 10_000_000 + i * 30_000_000) }
        end
      end
    end
    with_file(run[0, [10, 10, 4]]) do |before|
      browse(run[5_000_000_000, [10, 20, 3]], "--against", before) do |browser|
        show(browser, 20_000_000, 60_000_000)
        shown = -> { frames(browser, "flame").map { |label| label[/\A(\S+).*  (\d+) exit/] && [$1, $2.to_i] }.to_h }
        assert_equal({ "all" => 20, "M#m1" => 20, "R" => 20 }, shown[])
        browser.click("#flame-section [aria-label='Run that is drawn'] button:nth-child(2)")
        assert_equal({ "all" => 10, "M#m1" => 10, "R" => 10 }, shown[])
      end
    end
  end

  # --- the numbers -----------------------------------------------------------------------------------

  # What it has behind the end of this run is in the last bin.
  def test_the_other_run_may_be_longer
    run = ->(*times) { FxtBuilder.simple { |b| times.each { |ts| b.exit("R", "M#m (/a.rb:1)", ts: ts) } } }
    with_file(run[0, 1_000_000, 90_000_000]) do |before|
      data = data_of(page(run[0, 1_000_000, 2_000_000], "--against", before))
      bins = data["bins"]["count"]
      numbers_of(data).flatten(1).each { |bin, _| assert_operator bin, :<, bins }
    end
  end

  # With more than the limit, bins are merged, and nothing is lost.
  def test_many_numbers_make_wider_bins
    trace = FxtBuilder.simple do |b|
      950.times do |place|
        frame = FxtBuilder::Inline.new("Method#m#{place} (/app/a.rb:1)")
        args = { "0" => frame, "weight" => [:uint32, 100_000] }
        300.times { |i| b.event(:instant, "side_exit", "R", ts: 1000 + i * 1_000_000 + place, args: args) }
      end
    end
    html = page(trace)
    data = data_of(html)
    numbers = numbers_of(data)
    assert_equal [28_500_000_000] * 2, [data["rows"].sum { |row| numbers[row[9]].sum(&:last) }, data["exits"]]
    assert_operator data["bins"]["packed"].bytesize, :<=, 4 * 1024 * 1024 * 2 / 3
    assert_includes 100..200, data["bins"]["count"], "of 287"
    assert_equal 950, data["rows"].size
    assert_equal 28_500_000_000, data["stacks"].sum { |node| numbers[node[4]].sum(&:last) }
  end
end
