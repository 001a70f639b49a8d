# `vm-trace export`: stacks made from an exit's arguments, and the formats, each read by other code
# than wrote it; also by pprof and sqlite3, if installed.
require_relative "tool_helper"
require_relative "samples_trace"
require_relative "pprof_reader"
require "zlib"

class TestExport < Minitest::Test
  include ToolHelper
  include PprofReader

  # One exit for each hash of arguments; frames as the tracer writes them.
  def exits(*backtraces, reason: "GuardType(Fixnum)", category: "side_exit")
    FxtBuilder.simple do |b|
      backtraces.each_with_index do |args, i|
        b.event(:instant, category, reason, ts: 1000 + i, args: args.merge("insn" => "send", "version" => [:uint32, 1]))
      end
    end
  end

  def export(bytes, *options)
    with_file(bytes) do |path|
      result = tool("export", *options, path)
      result.err.gsub!(path, "F")
      return result
    end
  end

  def folded(bytes, *options)
    result = export(bytes, "--format=folded", *options)
    assert_equal "", result.err
    assert_equal 0, result.status
    result.out.lines.map(&:chomp)
  end

  # --- stacks ---------------------------------------------------------------------------------------

  def test_outermost_frame_comes_first_and_the_reason_last
    assert_equal ["<main> (a.rb:9);A#m (a.rb:2);GuardType(Fixnum) 2"],
                 folded(exits(*[{ "0" => "A#m (a.rb:2)", "1" => "<main> (a.rb:9)" }] * 2))
  end

  def test_without_reasons_exits_of_one_place_are_one_stack
    trace = FxtBuilder.simple do |b|
      %w[One Two].each { |reason| b.event(:instant, "side_exit", reason, ts: 1, args: { "0" => "A#m (a.rb:2)" }) }
    end
    assert_equal ["A#m (a.rb:2);One 1", "A#m (a.rb:2);Two 1"], folded(trace)
    assert_equal ["A#m (a.rb:2) 2"], folded(trace, "--no-reason")
  end

  def ten = (0..9).to_h { |i| [i.to_s, "M#f#{i} (m.rb:#{i})"] }
  def stack(trace) = folded(trace, "--no-reason").first[/\A(.*) 1\z/m, 1].split(";")
  def named = ten.values.reverse

  def test_frames_beyond_ten_are_taken_from_the_rest
    assert_equal ["<main> (m.rb:30)", "B#b (m.rb:21)", "A#a (m.rb:20)"] + named,
                 stack(exits(ten.merge("10+" => "A#a (m.rb:20) < B#b (m.rb:21) < <main> (m.rb:30)")))
  end

  def test_a_run_of_one_frame_is_written_out
    assert_equal ["<main> (m.rb:30)"] + ["A#a (m.rb:20)"] * 12 + named,
                 stack(exits(ten.merge("10+" => "A#a (m.rb:20) x12 < <main> (m.rb:30)")))
  end

  def test_frames_that_the_trace_leaves_out_are_one_frame_at_the_bottom
    ["34 more frames", "1 more frame"].each do |note|
      assert_equal ["(more frames)", "A#a (m.rb:20)"] + named, stack(exits(ten.merge("10+" => "A#a (m.rb:20) < #{note}")))
      assert_equal ["(more frames)"] + named, stack(exits(ten.merge("10+" => note)))
    end
  end

  def test_operators_do_not_break_a_rest_apart
    frames = ["A#< (m.rb:1)", "block in < (m.rb:2)", "< (m.rb:3)", "A#<< (m.rb:4)", "block (2 levels) in A#< (a < b/m.rb:5)"]
    assert_equal frames.reverse + named, stack(exits(ten.merge("10+" => frames.join(" < "))))
    assert_equal [frames[2], *[frames[1]] * 3, frames[0]] + named,
                 stack(exits(ten.merge("10+" => "#{frames[0]} < #{frames[1]} x3 < #{frames[2]}")))
  end

  def test_a_claim_of_billions_of_frames_is_cut_and_shown_so
    rest = (["A#a (m.rb:20) x4294967295"] * 50).join(" < ")
    assert_equal "(more frames)", stack(exits(ten.merge("10+" => rest))).first
    result = export(exits(ten.merge("10+" => "A#a (m.rb:20) x200000 < B#b (m.rb:1)")), "-f", "folded", "--memory=5")
    assert_match(/: names and tables need more than 5 MiB; reading ends here/, result.err)
    assert_equal 1, result.err.lines.size
    assert_equal 1, result.status
  end

  def test_exits_count_as_often_as_their_weight_says
    assert_equal ["<main> (/app/run.rb:1);Foo#bar (/app/foo.rb:3);GuardType(Fixnum) 194",
                  "<main> (/app/run.rb:1);Foo#baz (/app/foo.rb:9);NoProfileSend 97"], folded(OurTrace.new(rate: 97).build)
  end

  def test_fallbacks_are_asked_for
    assert_equal ["<main> (/app/run.rb:1);Foo#bar (/app/foo.rb:4);SendPolymorphic 5"],
                 folded(OurTrace.new(fallback_rate: 5).build, "--kind=fallbacks")
  end

  def test_several_files_are_summed_up
    with_file(OurTrace.new.build) do |path|
      lines = tool("export", "-f", "folded", path, path).out.lines
      assert_equal %w[4 2], lines.map { |line| line[/\d+$/] }
    end
  end

  def test_a_trace_without_exits_is_said_to_have_none
    trace = FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1) }
    %w[folded speedscope pprof].each do |format|
      result = export(trace, "-f", format)
      assert_equal "vm-trace: F: has no exits, so the output is empty\n", result.err
      assert_equal 0, result.status
    end
    assert_match(/no fallbacks/, export(trace, "-f", "folded", "-k", "fallbacks").err)
  end

  # --- formats --------------------------------------------------------------------------------------

  def test_folded_shows_what_would_break_a_line_by_its_code
    assert_equal ["a\\x3Bb\\nc (x.rb:1);r\\x1B 1"], folded(exits({ "0" => "a;b\nc (x.rb:1)" }, reason: "r\e"))
  end

  PLACES = {
    "A#m (/app/a.rb:3)" => ["A#m", "/app/a.rb", 3],
    "block (2 levels) in <main> (a.rb:7)" => ["block (2 levels) in <main>", "a.rb", 7],
    "A.m (/opt/my (old) app/a.rb:3)" => ["A.m", "/opt/my (old) app/a.rb", 3],
    "<main> ((eval at a.rb:3):1)" => ["<main>", "(eval at a.rb:3)", 1],
    "Integer#times (<internal:numeric>:231)" => ["Integer#times", "<internal:numeric>", 231],
    "Array#each (<cfunc>)" => ["Array#each", "<cfunc>", nil],
    "no place at all" => ["no place at all", nil, nil],
    "m (a.rb)" => ["m", "a.rb", nil],
    "" => ["", nil, nil],
  }.freeze

  def test_speedscope_tells_method_file_and_line_apart
    PLACES.each do |label, (name, file, line)|
      frame = JSON.parse(export(exits({ "0" => label }), "-f", "speedscope").out).dig("shared", "frames", 0)
      assert_equal({ "name" => name, "file" => file, "line" => line }.compact, frame, label)
    end
  end

  # The requirements of the format's schema; the profile equals the folded one.
  def test_speedscope_is_what_its_schema_says
    trace = File.join(TRACES, "sampled.fxt")
    json = JSON.parse(tool("export", "-f", "speedscope", trace).out)
    assert_equal "https://www.speedscope.app/file-format-schema.json", json["$schema"]
    profile = json["profiles"].first
    assert_equal({ "type" => "sampled", "unit" => "none", "startValue" => 0, "endValue" => 291 },
                 profile.slice("type", "unit", "startValue", "endValue"))
    assert_equal profile["samples"].size, profile["weights"].size
    assert_equal profile["endValue"], profile["weights"].sum
    frames = json["shared"]["frames"]
    assert_equal frames.uniq, frames
    stacks = profile["samples"].map { |sample| sample.map { |i| frames.fetch(i) } }
    labels = stacks.map { |stack| stack.map { |f| f["file"] ? "#{f["name"]} (#{f["file"]}:#{f["line"]})" : f["name"] }.join(";") }
    folded = labels.zip(profile["weights"]).map { |pair| pair.join(" ") + "\n" }
    assert_equal tool("export", "-f", "folded", trace).out, folded.join
  end

  def test_pprof_is_what_its_description_says
    bytes = tool("export", "-f", "pprof", File.join(TRACES, "sampled.fxt")).out.b
    types, samples, profile = read_pprof(bytes)
    assert_equal [%w[events count], %w[exits count]], types
    main = ["<main>", "/app/run.rb", 1]
    assert_equal [[[["GuardType(Fixnum)", "", 0], ["Foo#bar", "/app/foo.rb", 3], main], [2, 194]],
                  [[["NoProfileSend", "", 0], ["Foo#baz", "/app/foo.rb", 9], main], [1, 97]]], samples
    assert_equal [8000], profile[10], "duration in ns"
  end

  def test_pprof_tells_method_file_and_line_apart
    PLACES.each do |label, (name, file, line)|
      _, samples = read_pprof(export(exits({ "0" => label }), "-f", "pprof", "--no-reason").out.b)
      assert_equal [[[name, file || "", line || 0]], [1, 1]], samples.first, label
    end
  end

  # Numbers of one byte and of two.
  def test_pprof_has_many_places
    places = Array.new(200) { |i| ["A#m#{i}", "a.rb", i + 1] }
    trace = exits(*places.map { |name, file, line| { "0" => "#{name} (#{file}:#{line})" } })
    _, samples = read_pprof(export(trace, "-f", "pprof", "--no-reason").out.b)
    assert_equal places, samples.map { |stack, _| stack.first }
  end

  def test_pprof_shows_what_is_not_utf_8_by_its_code
    _, samples = read_pprof(export(exits({ "0" => "caf\xe9 (a.rb:-1)".b }), "-f", "pprof", "--no-reason").out.b)
    assert_equal [["caf\\xE9", "a.rb", -1]], samples.first.first
  end

  def test_pprof_is_read_by_pprof
    pprof = ENV["PPROF"] || "pprof"
    installed = system(pprof, "-version", out: File::NULL, err: File::NULL) || ENV["PPROF"]
    skip "pprof (github.com/google/pprof) is not installed" unless installed
    with_file(OurTrace.new(rate: 97).build) do |path|
      tool("export", "-f", "pprof", "-o", "#{path}.pb.gz", path)
      out, err, status = Open3.capture3(pprof, "-top", "-lines", "-nodefraction=0", "#{path}.pb.gz")
      assert_predicate status, :success?, err
      assert_match(/^Type: exits$/, out)
      assert_match(/^ +194 66\.67% .* GuardType\(Fixnum\)/, out)
      assert_match(/^ +0 .* 194 66\.67%  Foo#bar \/app\/foo\.rb:3$/, out)
    end
  end

  # Each event of dump is there, times in microseconds.
  def test_chrome_has_every_event
    conformance_files.each do |file|
      json = JSON.parse(tool("export", "-f", "chrome", file).out)
      events = json["traceEvents"].reject { |event| event["ph"] == "M" }
      dumped = tool("dump", file).out.lines.map { |line| JSON.parse(line) }
      keys = %w[ph cat name pid tid args]
      assert_equal dumped.map { |e| e.values_at(*keys) }, events.map { |e| e.values_at(*keys) }, file
      times = events.map { |e| [(e["ts"] * 1000).round, e["dur"] && (e["dur"] * 1000).round] }
      assert_equal dumped.map { |e| [e["ts"], e["dur"]] }, times
      assert_equal dumped.map { |e| e["id"] }, events.map { |e| e["id"]&.hex }
    end
  end

  def test_chrome_names_processes_and_threads
    with_file(FxtBuilder.simple) do |path|
      names = JSON.parse(tool("export", "-f", "chrome", path).out)["traceEvents"]
      assert_equal [{ "ph" => "M", "name" => "process_name", "pid" => 42, "args" => { "name" => "ruby" } },
                    { "ph" => "M", "name" => "thread_name", "pid" => 42, "tid" => 43, "args" => { "name" => "main" } }], names
    end
  end

  def test_chrome_says_that_it_has_no_scheduling
    file = conformance_files.find { |f| f.end_with?("gvl_as_cpu.fxt") }
    result = tool("export", "-f", "chrome", file)
    assert_match(/\Avm-trace: .*: \d+ scheduling records are left out: the format has none\n\z/, result.err)
    assert_equal 0, result.status
  end

  # --- SQLite -----------------------------------------------------------------------------------------

  # An option is refused, or there is a trace for which it changes the output.
  def test_no_option_is_ignored
    traces = ["#{TRACES}/{exits,sampled,states,gvl,calls,allocations,threads}.fxt"].flat_map { |files| Dir[files].sort }
    preempted = ThreadsTrace.new { |t| t.runs(:main, 0); t.event(:instant, :main, "preempted", "A#m (a.rb:1)", 5, "0": "A#n (a.rb:9)") }
    samples = SamplesTrace.new { |t| 2.times { |i| t.sample(:main, 5 + i, 1, "compiled", "<main> (/a.rb:1)", "A#m (/a.rb:2)") } }
    Dir.mktmpdir do |dir|
      traces += { "preempted" => preempted, "samples" => samples }.map do |name, trace|
        "#{dir}/#{name}.fxt".tap { |path| File.binwrite(path, trace.build.bytes) }
      end
      output = Hash.new do |known, (options, trace)|
        result = tool("export", *options, trace)
        out = result.out.b.start_with?("\x1f\x8b".b) ? Zlib.gunzip(result.out.b) : result.out
        known[[options, trace]] = [result.status, out, result.err]
      end
      formats = %w[folded speedscope pprof firefox chrome sqlite]
      kinds = [nil, *%w[exits fallbacks blocked preempted allocations alive calls samples]]
      formats.product(kinds, %w[--threads --no-reason --weight=events --weight=lost]) do |format, kind, option|
        options = ["--format=#{format}", *("--kind=#{kind}" if kind)]
        next if format == "sqlite" && output[[options, traces[0]]][2].include?("without SQLite")
        next if output[[options, traces[0]]][0] == 2
        next if kind == "preempted" && option == "--weight=events" # each weighs 1
        with = traces.map { |trace| output[[[*options, option], trace]] }
        refused = with.all? { |status, out, err| status == 2 && out.empty? && err.include?(option[/\A--[\w-]+/]) }
        changed = traces.zip(with).any? { |trace, found| output[[options, trace]] != found }
        assert refused || changed, "#{options} #{option} changes nothing"
        next unless refused
        assert_match(/\Avm-trace: --[\w=-]+ (has no effect with|is for|is .* with) --[\w-]+.*\n\z/, with[0][2])
      end
    end
  end

  def test_options_of_other_outputs
    file = "#{TRACES}/exits.fxt"
    { %w[-f folded --table-format=csv] => "--table-format is for --tables",
      %w[-f chrome --kind=exits] => "--kind has no effect with --format=chrome",
      %w[-f folded --with-command] => "--with-command is for --tables",
      %w[-f pprof --with-arguments] => "--with-arguments is for --tables",
      %w[--tables=none --threads] => "--threads has no effect with --tables",
      %w[--tables=none --sqlite=none] => "--sqlite has no effect with --tables",
      %w[--sqlite=none --format=folded] => "--format has no effect with --sqlite",
      %w[--sqlite=none -o none] => "--output has no effect with --sqlite",
      %w[--sqlite=none --kind=calls] => "--kind has no effect with --sqlite",
      %w[--by=minute -f pprof -o none --threads] => "--threads has no effect with --by=minute",
      %w[--by=minute -f pprof -o none --kind=calls] => "--kind has no effect with --by=minute" }.each do |options, message|
      result = tool("export", *options, file)
      assert_equal ["vm-trace: #{message}\n", 2, ""], [result.err, result.status, result.out]
      refute File.exist?("none")
    end
  end

  def sqlite(file)
    Dir.mktmpdir do |dir|
      database = File.join(dir, "trace.db")
      result = tool("export", "--sqlite", database, file)
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      assert_includes [0, 1], result.status, result.err
      assert_equal "SQLite format 3\0", File.binread(database, 16)
      skip "sqlite3 is not installed" unless system("sqlite3", "-version", out: File::NULL, err: File::NULL)
      yield ->(sql) { Open3.capture2("sqlite3", "-csv", database, sql, err: :err).then { |out, status| assert status.success?; out.lines.map(&:chomp) } }
    end
  end

  TABLES = %w[args counter counter_track flow process process_counter_track process_track sched slice stack_profile_callsite
              stack_profile_frame stack_profile_mapping stack_profile_symbol stack_sample stack_sample_async_context
              stack_sample_counter stack_sample_counter_track stack_sample_execution_context stack_sample_session
              stack_sample_task_context stats thread thread_state thread_track trace_bounds track].freeze

  def test_sqlite_has_the_rows_of_query
    (conformance_files + Conformance.files("streams/*_samples*.fxt")).uniq.each do |file|
      sqlite(file) do |ask|
        partial = ("partial" if tool("query", file, "SELECT 1").out.match?(PARTIAL_COLUMN))
        assert_equal [*TABLES, *partial].sort, ask["SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"]
        tables = TABLES + %w[slices]
        sql = rows_of_all(tables, ask)
        expected, found = [tool("query", file, sql).out.gsub(PARTIAL_COLUMN, "").lines(chomp: true).drop(1), ask[sql]].map do |lines|
          texts = lines.map { |line| line.start_with?('"') ? line[1..-2].gsub('""', '"') : line }
          texts.group_by { |text| text[/\A\w+(?= )/] }
        end
        assert_empty (expected.keys | found.keys) - tables
        tables.each { |table| assert_equal expected.fetch(table, []), found.fetch(table, []), "#{file} #{table}" }
      end
    end
  end

  # A query for the rows of tables in one column, each behind the name of its table.
  def rows_of_all(tables, ask)
    names = ask["SELECT m.name, quote(c.name) FROM sqlite_schema m, pragma_table_info(m.name) c"]
    columns = names.map { |line| line.split(",", 2) }.group_by(&:first)
    rows = tables.map do |table|
      quoted = columns.fetch(table).map { |_, name| %(quote("#{name[1..-2]}")) }
      "SELECT '#{table} ' || #{quoted.join(" || ',' || ")} AS concat FROM #{table}"
    end
    "#{rows.join(" UNION ALL ")} ORDER BY concat"
  end

  def test_sqlite_answers_the_query_of_the_event_reference
    sqlite(File.join(TRACES, "exits.fxt")) do |ask|
      assert_equal ['GuardType(Fixnum),"Foo#bar (/app/foo.rb:3)",2'],
                   ask["SELECT s.name, a.display_value, COUNT(*) AS c FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id " \
                       "AND a.key = '0' GROUP BY 1, 2 ORDER BY c DESC LIMIT 1"]
    end
  end

  # --- the output file ------------------------------------------------------------------------------

  def test_no_format_and_wrong_ones_are_said
    assert_equal "vm-trace: export needs --format or --tables; see vm-trace export --help\n", tool("export", "f").err
    assert_match(/--format takes folded, speedscope, chrome, firefox, pprof or sqlite, not svg/,
                 tool("export", "-f", "svg", "f").err)
    assert_match(/--kind takes exits, fallbacks, blocked, preempted, allocations, alive, calls or samples, not all/,
                 tool("export", "-k", "all", "f").err)
    assert_equal "vm-trace: --format=firefox takes --kind=exits, fallbacks, blocked, calls or samples, not preempted\n",
                 tool("export", "-f", "firefox", "-k", "preempted", "f").err
    assert_equal 2, tool("export", "f").status
  end

  def test_what_was_there_stays_where_nothing_can_be_made
    with_file("no trace") do |path|
      out = "#{path}.out"
      File.write(out, "precious")
      commands = [["export", "-f", "folded"], ["export", "-f", "sqlite"], ["export", "-f", "chrome"], ["merge"], ["cut"]]
      commands.delete_at(1) if tool("export", "-f", "sqlite", "-o", out, path).err.include?("built without SQLite")
      commands.each do |command|
        assert_equal 4, tool(*command, "-o", out, path).status
        assert_equal 3, tool(*command, "-o", out, "#{path}.missing").status
        assert_equal "precious", File.read(out)
      end
      assert_equal %w[trace.fxt trace.fxt.out], Dir.children(File.dirname(path)).sort, "nothing is left behind"
    end
  end

  def test_an_input_is_never_written_to
    with_file(OurTrace.new.build) do |path|
      File.link(path, "#{path}.link")
      [["export", "-f", "folded"], ["merge"], ["cut"]].each do |command|
        [path, "#{path}.link"].each do |out|
          result = tool(*command, "-o", out, path)
          assert_match(/is an input, so it cannot be the output/, result.err)
          assert_equal 3, result.status
        end
      end
      assert_equal OurTrace.new.build.bytes, File.binread(path)
    end
  end

  def test_a_replaced_file_keeps_its_mode_and_a_link_stays_one
    with_file(OurTrace.new.build) do |path|
      out, link = "#{path}.out", "#{path}.link"
      File.write(out, "old", perm: 0o640)
      File.symlink(out, link)
      assert_equal 0, tool("export", "-f", "folded", "-o", link, path).status
      assert File.symlink?(link)
      assert_equal 0o640, File.stat(out).mode & 0o777
      refute_equal "old", File.read(out)
      tool("export", "-f", "folded", "-o", "#{path}.new", path)
      assert_equal 0o600, File.stat("#{path}.new").mode & 0o777
    end
  end

  def test_a_name_that_ends_in_gz_is_compressed
    with_file(OurTrace.new.build) do |path|
      tool("export", "-f", "folded", "-o", "#{path}.gz", path)
      assert_equal tool("export", "-f", "folded", path).out, Zlib.gunzip(File.binread("#{path}.gz"))
    end
  end

  def test_a_pipe_is_written_to_as_it_is
    with_file(OurTrace.new.build) do |path|
      fifo = "#{path}.fifo"
      File.mkfifo(fifo)
      reader = Thread.new { File.read(fifo) }
      assert_equal 0, tool("export", "-f", "folded", "-o", fifo, path).status
      assert_equal tool("export", "-f", "folded", path).out, reader.value
      assert File.pipe?(fifo)
    end
  end

  def test_output_that_cannot_be_written_is_said
    skip "no /dev/full here" unless File.exist?("/dev/full")
    with_file(OurTrace.new.build) do |path|
      system(TOOL, "export", "-f", "folded", path, out: "/dev/full", err: "#{path}.err")
      assert_equal 3, $?.exitstatus
      result = tool("export", "-f", "folded", "-o", "/nonexistent/x", path)
      assert_equal "vm-trace: /nonexistent/x: cannot be written: No such file or directory\n", result.err
      assert_equal 3, result.status
    end
  end
end
