# --since, --until, --thread, --reason and --method of `html`, `export` and `diff`: the part is that of `report`
# with the same options, and says so. test_consistency.rb compares all numbers of the latter two.
require "csv"
require "zlib"
require_relative "page_helper"
require_relative "pprof_reader"
require_relative "samples_trace"

class TestChoice < Minitest::Test
  include PageHelper, PprofReader

  GVL, CALLS, EXITS, KERNEL = %w[gvl calls exits kernel].map { |name| File.join(TRACES, "#{name}.fxt") }

  def report(path, *options)
    tables = JSON.parse(tool("report", "--format=json", "--top=1000000", *options, path).out)
    tables.transform_values { |table| table["rows"] }
  end

  def page_of(path, *options)
    result = tool("html", *options, path)
    assert_equal ["", 0], [result.err, result.status]
    data_of(result.out)
  end

  # Ranges of the middle of a trace.
  def ranges(path)
    span_ns = report(path)["time_span"][0].then { |row| row["last_ns"] - row["first_ns"] }
    [[4, 6], [0, 5], [3, 10]].map { |since, until_| ["--since=#{span_ns * since / 10}ns", "--until=#{span_ns * until_ / 10}ns"] }
  end

  # {thread => ns by state: waiting, blocked, in GC, running}
  def states_of(data)
    data["timeline"]["tracks"].to_h do |_, _, name, *, segments|
      ns = [0, 0, 0, 0]
      until segments.empty?
        what, _, length = segments.shift(3)
        if what & 4 != 0
          segments.shift
          segments.shift(4).each_with_index { |part, state| ns[state] += part }
          segments.shift(5 * segments.shift)
        else
          ns[what & 3] += length
          segments.shift(2) if what & 8 != 0
        end
        segments.shift if what & 16 != 0
      end
      [data["strings"][name], ns]
    end
  end

  def reported_states(rows)
    rows["thread_states"].to_h { |row| [row["thread"], row.values_at("waiting_ns", "blocked_ns", "gc_ns", "running_ns")] }
  end

  def test_states_of_threads_are_those_of_the_report
    ranges(GVL).each do |range|
      expected = reported_states(report(GVL, *range))
      refute_empty expected
      assert_equal expected, states_of(page_of(GVL, *range)), range
      name = expected.max_by { |_, ns| ns.sum }.first
      assert_equal expected.slice(name), states_of(page_of(GVL, *range, "--thread=#{name}")), [range, name]
    end
  end

  def test_exits_are_those_of_the_report
    ranges(EXITS).each do |range|
      rows = report(EXITS, *range)
      data = page_of(EXITS, *range)
      assert_equal rows["processes"].sum { |row| row["exits"] }, data["exits"], range
      assert_equal rows["exits_by_reason"].to_h { |row| [row["reason"], row["count"]] },
                   data["rows"].reject { |row| data["strings"][row[0]] == "fallback" }.group_by { |row| data["strings"][row[1]] }
                               .transform_values { |group| group.sum { |row| row[6] } }, range
      folded = tool("export", "--format=folded", *range, EXITS).out.lines
      assert_match(/\A# partial: only from \d\S* s to \d\S* s\.$/, folded.first)
      assert_equal data["exits"], folded.drop(1).sum { |line| line[/\d+$/].to_i }
    end
  end

  def test_calls_are_those_of_the_report
    ranges(CALLS).each do |range|
      reported = report(CALLS, *range, "--calls")["calls"]
      expected = reported.to_h { |row| [row["method"], row.values_at("calls", "total_ns", "own_ns")] }
      expected.reject! { |_, (calls, total)| calls.nil? || total == 0 } # outside of calls; or one that ends at the border
      refute_empty expected
      data = page_of(CALLS, *range)
      methods = data["calls"]["methods"].to_h { |name, *sums| [data["strings"][name], sums.first(3)] }
      assert_equal expected, methods, range
      own = tool("export", "--format=speedscope", "--kind=calls", *range, CALLS).then { |result| JSON.parse(result.out) }
      assert_match(/\Aonly from /, own["partial"])
      assert_equal expected.values.sum { |row| row[2] }, own["profiles"][0]["weights"].sum
    end
  end

  def test_system_calls_are_those_of_the_report
    ranges(KERNEL).each do |range|
      rows = report(KERNEL, *range, "--syscalls", "--sched")
      data = page_of(KERNEL, *range)
      assert_equal rows["syscalls"].to_h { |row| [row["syscall"], row.values_at("total_ns", "calls", "max_ns")] },
                   (data["syscalls"] || []).to_h { |name, *sums| [data["strings"][name], sums.first(3)] }, range
      name_of = ->(number) { data["strings"][number].then { |text| text.empty? ? "(outside recorded calls)" : text } }
      assert_equal rows["syscall_methods"].to_h { |row| [row["method"], row.values_at("total_ns", "calls")] },
                   (data["syscall_methods"] || []).to_h { |name, *sums| [name_of[name], sums.first(2)] }, range
    end
  end

  def test_samples_are_those_of_the_report
    trace = SamplesTrace.new do |t|
      t.thread(:worker, 44)
      8.times { |i| t.sample(:main, 1 + 10 * i, 1 + i, i.even? ? "compiled" : "gc", "Foo#bar (/app/foo.rb:3)") }
      4.times { |i| t.sample(:worker, 2 + 20 * i, 5, "blocked", "Kernel#sleep (/app/run.rb:7)") }
    end
    with_file(trace.build) do |path|
      [*ranges(path), %w[--thread=worker], %w[--thread=44 --since=20ms], %w[--thread=main --until=30ms]].each do |options|
        expected = report(path, *options, "--samples")["samples_by_thread"].sum { |row| row["time_ns"] }
        exported = %w[speedscope firefox].map do |format|
          JSON.parse(tool("export", "--format=#{format}", "--kind=samples", *options, path).out)
        end
        refute_equal 0, expected
        assert_equal expected, exported[0]["profiles"][0]["weights"].sum, options
        assert_in_delta expected / 1e6, exported[1]["threads"].sum { |thread| thread["samples"]["weight"].sum }, 1e-6, options
        assert_equal expected, page_of(path, *options)["sampled"][0][2..-2].sum, options
      end
    end
  end

  def test_what_ends_when_the_range_begins_is_not_in_it
    bytes = ThreadsTrace.new do |t|
      t.thread(:worker, 44)
      t.during(:main, "marker", "before", 5, 10)
      t.during(:worker, "marker", "open", 5, 11)
      t.during(:main, "marker", "behind", 15, 16)
    end.build
    with_file(bytes) do |path|
      events = JSON.parse(tool("export", "--format=chrome", "--since=10ms", "--until=15ms", path).out)["traceEvents"]
      markers = events.select { |event| event["cat"] == "marker" }
      assert_equal [["B", "open", 10_000.0], ["E", "open", 11_000.0]],
                   markers.map { |event| event.values_at("ph", "name", "ts") }
    end
  end

  # A run that begins at another time, with an exit in each of its turns of so many milliseconds.
  def run_from(begin_ms, turn_ms)
    trace = StatesTrace.new(settings: nil, ends: begin_ms + 400) do |t|
      t.thread(:worker, 50)
      t.event(:instant, :main, "trace", "settings", begin_ms, pid: [:uint32, 42], flags: "exits threads gc calls states")
      (begin_ms...begin_ms + 360).step(turn_ms) do |at|
        %i[main worker].each_with_index do |thread, i|
          from, ends = at + i * turn_ms / 2.0, at + (i + 1) * turn_ms / 2.0
          t.runs(thread, from)
          t.during(thread, "gc", "GC minor", from + 1, from + 2, reason: "newobj")
          t.exits(thread, "Guard#{i}", "A#a#{i} (/app/a.rb:#{i + 3})", from + 2, lost: 0.5)
          t.blocks(thread, "Queue#pop", ends - 3, ends, ends)
          t.leaves(thread, ends, ThreadsTrace::RUNNABLE)
        end
      end
    end
    trace.build
  end

  # What `report` with the same options says of one side.
  def side_of(path, *options)
    rows = report(path, *options)
    states = rows["thread_states"]
    { "exits" => rows["processes"].sum { |row| row["exits"] },
      "gc" => rows["gc"].sum { |row| row["total_ns"] }, "lost" => rows["exits_by_reason"].sum { |row| row["lost_ns"] },
      **%w[waiting blocked running].to_h { |state| [state, states.sum { |row| row["#{state}_ns"] }] } }
  end

  def test_each_side_of_a_diff_is_that_of_the_report
    with_files(run_from(0, 20), run_from(7_000_000, 30)) do |*files|
      [%w[--since=35ms --until=200ms], %w[--until=100ms], %w[--since=50ms --thread=worker], %w[--thread=43]].each do |options|
        diff = tool("diff", "--format=json", "--no-map", *options, *files).then { |result| JSON.parse(result.out) }
        diff.transform_values! { |table| table["rows"] }
        assert_empty diff["partial"].to_a
        files.zip(%w[a b]).each do |file, side|
          expected = side_of(file, *options)
          refute_equal 0, expected["exits"]
          assert_equal expected["exits"], diff["total"][0][side], options
          sums = diff["sums"].to_h { |row| [row["sum"], row[side]] }
          assert_equal expected.slice(*sums.keys), sums.slice(*expected.keys), [options, side]
          assert_equal %w[blocked gc lost running waiting], sums.keys.intersection(expected.keys).sort
        end
      end
    end
  end

  def test_a_diff_says_what_it_compares
    result = tool("diff", "--since=20ms", "--until=90ms", "--junit=#{Dir.tmpdir}/choice.xml", "--fail-over=5", GVL, GVL)
    assert_equal ["", 0], [result.err, result.status]
    assert_match(/^  compared +only from 0\.02 s to 0\.09 s$/, result.out)
    assert_includes File.read("#{Dir.tmpdir}/choice.xml"), 'errors="0"'
    { %w[--since=10] => "#{GVL}: nothing is after --since=10.000000: the trace lasts 0.100000 s",
      %w[-s2 -u1] => "--since is not before --until",
      %w[--thread=nobody] => "no thread matches --thread=nobody" }.each do |options, message|
      refused = tool("diff", *options, GVL, GVL)
      assert_equal 2, refused.status
      assert_includes refused.err, "vm-trace: diff: #{message}"
    end
  end

  # A duration that is open at a border has its part inside; one that is outside is not there.
  def test_durations_across_a_border
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "c", "first", ts: 0)
      b.event(:begin, "c", "outer", ts: 10)
      b.event(:begin, "c", "before", ts: 20)
      b.event(:end, "c", "before", ts: 30)
      b.event(:begin, "c", "inner", ts: 40)
      b.event(:complete, "c", "across", ts: 45, extra: [160])
      b.event(:complete, "c", "out", ts: 50, extra: [60])
      b.event(:instant, "c", "in", ts: 120)
      b.event(:end, "c", "inner", ts: 130)
      b.event(:begin, "c", "late", ts: 170)
      b.event(:begin, "c", "after", ts: 220)
      b.event(:end, "c", "after", ts: 230)
      b.event(:end, "c", "late", ts: 240)
      b.event(:end, "c", "outer", ts: 250)
    end
    with_file(trace) do |path|
      events = JSON.parse(tool("export", "--format=chrome", "--since=100ns", "--until=200ns", path).out)
      assert_equal({ "partial" => "only from 1e-07 s to 2e-07 s" }, events["otherData"])
      found = events["traceEvents"].reject { |event| event["ph"] == "M" }
      found.map! { |event| [event["ph"], event["name"], (event["ts"] * 1000).round, event["dur"]] }
      assert_equal [["X", "across", 100, 0.06], ["B", "outer", 100, nil], ["B", "inner", 100, nil], ["i", "in", 120, nil],
                    ["E", "inner", 130, nil],
                    ["B", "late", 170, nil], ["E", "late", 200, nil], ["E", "outer", 200, nil]].sort, found.sort
    end
  end

  def test_one_thread
    trace = FxtBuilder.simple(pid: 42) do |b|
      b.thread(2, 42, 50)
      b.thread_name(42, 50, "worker")
      3.times { |i| b.exit("GuardType(Fixnum)", "A#a (a.rb:1)", ts: 10 + i) }
      b.event(:instant, "side_exit", "NoProfileSend", ts: 20, thread: 2, args: { "0" => "B#b (b.rb:1)" })
    end
    with_file(trace) do |path|
      %w[worker w*r 50].each do |thread|
        data = page_of(path, "--thread=#{thread}")
        assert_equal [1, ["only thread #{thread}"]], data.values_at("exits", "partial")
        assert_equal "# partial: only thread #{thread}.\nB#b (b.rb:1);NoProfileSend 1\n",
                     tool("export", "--format=folded", "-t", thread, path).out
      end
      assert_equal 3, page_of(path, "-t", "main")["exits"]
    end
  end

  def test_all_formats_say_so
    options = ["--since=0", "--until=1"]
    assert_equal true, page_of(GVL, *options)["cut"]
    assert_match(/\A# partial: only from 0 s to 1 s\.$/, tool("export", "--format=folded", "--kind=blocked", *options, GVL).out)
    assert_equal "only from 0 s to 1 s", JSON.parse(tool("export", "--format=firefox", *options, GVL).out)["meta"]["partial"]
    %w[html export].each { |command| assert_match(/--since is not before --until/, tool(command, "-s", "2", "-u", "1", GVL).err) }
  end

  # What the table `partial` of a database says, and its slices.
  def slices_of(path, *options)
    skip "sqlite3 is not installed" unless system("sqlite3", "-version", out: File::NULL, err: File::NULL)
    Dir.mktmpdir do |dir|
      assert_equal "", tool("export", "--sqlite=#{dir}/db", *options, path).err
      rows = Open3.capture2("sqlite3", "-json", "#{dir}/db", "SELECT category, name, ts, dur FROM slice").first
      partial = Open3.capture2("sqlite3", "#{dir}/db", "SELECT text FROM partial").first
      return [partial.chomp, JSON.parse(rows.empty? ? "[]" : rows)]
    end
  end

  def tables_of(path, *options)
    Dir.mktmpdir do |dir|
      result = tool("export", "--tables=#{dir}", *options, path)
      assert_equal 0, result.status, result.err
      return %w[processes threads sites events spans states].to_h do |table|
        files = Dir["#{dir}/#{table}/*/*/*.gz"]
        [table, files.flat_map { |file| CSV.parse(Zlib.gunzip(File.binread(file)), headers: true).map(&:to_h) }]
      end
    end
  end

  # The states and exits of a window, or of a thread in it, in tables for databases.
  def test_tables_are_those_of_the_report
    [GVL, EXITS].each do |path|
      ranges(path).each do |range|
        name = report(path, *range)["thread_states"]&.max_by { |row| row["running_ns"] }&.fetch("thread")
        [range, (name && [*range, "--thread=#{name}"])].compact.each do |options|
          rows, tables = report(path, *options), tables_of(path, *options)
          columns = %w[waiting_ns blocked_ns gc_ns running_ns]
          sums = columns.map { |column| rows["thread_states"].to_a.sum { |row| row[column] } }
          assert_equal sums, columns.map { |column| tables["threads"].sum { |row| row[column].to_i } }, options
          assert_equal sums.sum, tables["states"].sum { |row| row["dur_ns"].to_i }, options
          exits = rows["processes"].sum { |row| row["exits"] + row["fallbacks"] }
          assert_equal exits, tables["sites"].sum { |row| row["count"].to_i }, options
          recorded = tables["events"].select { |row| %w[side_exit recompile_exit fallback].include?(row["category"]) }
          assert_equal exits, recorded.size, options
          assert_match(/\Aonly from /, tables["processes"][0]["partial"])
        end
      end
    end
  end

  def test_a_database_has_only_that_part
    span_ns = report(CALLS)["time_span"][0].then { |row| row["last_ns"] - row["first_ns"] }
    options = ["--since=#{span_ns * 3 / 10}ns", "--until=#{span_ns / 2}ns", "--thread=main"]
    partial, rows = slices_of(CALLS, *options)
    expected = report(CALLS, "--calls", *options)["calls"]
    assert_match(/\Aonly from \S+ s to \S+ s, thread main\z/, partial)
    found = rows.select { |row| row["category"] == "call" }.group_by { |row| row["name"] }
    expected.reject! { |row| row["calls"].nil? || row["total_ns"] == 0 }
    assert_equal expected.to_h { |row| [row["method"], row["calls"]] }, found.transform_values(&:size)
  end

  def test_a_database_has_the_samples_of_that_part
    trace = SamplesTrace.new { |t| 8.times { |i| t.sample(:main, 1 + 10 * i, 5, "gc", "Foo#bar (/app/foo.rb:3)") } }
    with_file(trace.build) do |path|
      { %w[--since=15ms --until=45ms] => "3", %w[--method=Foo*] => nil }.each do |options, count|
        Dir.mktmpdir do |dir|
          result = tool("export", "--sqlite=#{dir}/db", *options, path)
          next assert_equal 2, result.status unless count
          out, = Open3.capture2("sqlite3", "#{dir}/db", "SELECT count(*) FROM stack_sample WHERE source = 'ruby.samples'")
          assert_equal count, out.chomp
        end
      end
    end
  end

  # A merged profile of each minute: all of them together are the report's sums.
  def test_profiles_of_minutes_are_those_of_the_report
    [[EXITS, "--method=Foo#bar"], [EXITS, "--since=2us"], [CALLS, "--method=Store#find"], [CALLS, "--until=500ms"],
     [GVL, "--since=20ms", "--until=60ms", "--thread=main"]].each do |path, *options|
      Dir.mktmpdir do |dir|
        assert_equal 0, tool("export", "--format=pprof", "--by=minute", "-o", dir, *options, path).status
        values = Dir["#{dir}/*/*/*.pb.gz"].map { |file| read_pprof(File.binread(file))[1].map(&:last) }.flatten(1)
        sums = values.transpose.map(&:sum)
        rows = report(path, *options)
        assert_equal [rows["processes"].sum { |row| row["exits"] },
                      rows["calls"].to_a.reject { |row| row["calls"].nil? }.sum { |row| row["own_ns"] },
                      rows["blocked"].to_a.sum { |row| row["total_ns"] }],
                     [sums[0], sums[4], sums[3]].map(&:to_i), [path, options]
      end
    end
  end

  # A part of which nothing is there is a mistake; nothing is written then.
  def test_what_chooses_nothing_is_refused
    { "--thread=nosuch" => "no thread matches --thread=nosuch",
      "--method=Sleep#repp" => "no event is in a method Sleep#repp", "--reason=Gard" => "no event has the reason Gard",
      "--since=900" => "nothing is after --since=900.000000: the trace lasts" }.each do |option, text|
      formats = %w[folded speedscope pprof chrome firefox sqlite].map { |format| "--format=#{format}" } +
                (option =~ /method|reason/ ? [] : %w[blocked calls samples].map { |kind| "--kind=#{kind}" })
      [%w[html], *formats.map { |format| ["export", "--format=folded", format] }].each do |command, *args|
        Dir.mktmpdir do |dir|
          result = tool(command, *args, option, GVL, "-o", "#{dir}/out")
          assert_equal [2, []], [result.status, Dir.children(dir)], [command, args, option]
          assert_includes result.err, "vm-trace: #{command}: #{text}"
        end
      end
    end
  end

  def test_kinds_without_reasons_or_methods_are_refused
    { %w[--method=A --kind=samples] => "--method chooses exits, fallbacks, calls and allocations, not samples",
      %w[--method=A --kind=blocked] => "--method chooses exits, fallbacks, calls and allocations, not blocked",
      %w[--reason=A --kind=calls] => "--reason chooses exits and fallbacks, not calls" }.each do |options, text|
      %w[folded firefox].each do |format|
        result = tool("export", "--format=#{format}", *options, GVL)
        assert_equal [2, "", "vm-trace: export: #{text}\n"], [result.status, result.out, result.err]
      end
    end
  end

  # A method whose exits are all gone is what a comparison is for; a thread that only one side has is compared
  # with nothing.
  def test_a_diff_of_what_one_side_has
    without = FxtBuilder.simple { |b| b.event(:instant, "side_exit", "Guard", ts: 10, args: { "0" => "B#b (b.rb:1)" }) }
    with_file(without) do |b|
      [[EXITS, b], [b, EXITS]].each do |sides|
        total = JSON.parse(tool("diff", "--format=json", "--method=Foo#bar", *sides).out)["total"]["rows"][0]
        assert_equal [2, 0], total.values_at("a", "b").sort.reverse
      end
      [[GVL, b], [b, GVL]].each do |sides|
        result = tool("diff", "--thread=index", *sides)
        assert_equal [2, ""], [result.status, result.out]
        assert_match(/\Avm-trace: diff: #{b}: no thread matches --thread=index; /, result.err)
      end
    end
  end
end
