# `vm-trace export --tables`: the schema, the numbers, judged by `vm-trace report` and `query`, names of files, and
# traces that something is wrong with.
require_relative "tool_helper"
require "csv"
require "zlib"

class TestTables < Minitest::Test
  include ToolHelper

  TABLES = %w[processes threads sites stacks frames events spans states counters].freeze
  NOON = 1_795_694_400_000_000_000 # 2026-11-26 12:00:00 UTC

  def setup = @dir = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@dir)

  def export(*arguments) = tool("export", "--tables=#{@dir}/out", *arguments)
  def files = Dir["**/*", base: "#{@dir}/out"].select { |path| File.file?("#{@dir}/out/#{path}") }.sort
  def text_of(path) = Zlib.gunzip(File.binread(path)).force_encoding("UTF-8")
  def csv(path) = CSV.parse(text_of(path), headers: true).map(&:to_h)
  def rows(table) = Dir["#{@dir}/out/#{table}/*/*/*.csv.gz"].sort.flat_map { |path| csv(path) }
  def ndjson(table)
    Dir["#{@dir}/out/#{table}/*/*/*.ndjson.gz"].sort.flat_map { |path| text_of(path).lines.map { |line| JSON.parse(line) } }
  end

  def write(name, trace)
    "#{@dir}/#{name}".tap { |path| File.binwrite(path, trace.is_a?(String) ? trace : trace.bytes) }
  end

  def sum(rows, column) = rows.sum { |row| Integer(row[column]) }

  def report(table, *files)
    CSV.parse(tool("report", "--format=csv", "--table=#{table}", "--top=100000", *files).out, headers: true).map(&:to_h)
  end

  def query(sql, file) = JSON.parse(tool("query", "--format=json", file, sql).out)

  def host(ts, name: "web1", unix: NOON, service: nil, version: nil)
    args = { "host" => name, "unix_ns" => [:uint64, unix + ts], "service" => service, "version" => version }.compact
    { type: :instant, cat: "trace", name: "host", ts: ts, args: args }
  end

  # A trace as new recorders write it: with its host at the beginning and at the end.
  def our_trace(pid: 42, ends: 8500, jump: 0, **options)
    OurTrace.new(pid: pid).tap do |trace|
      trace.spans.unshift(host(1001, **options)) # goes into the order of time
      trace.extra = [host(ends, **options, unix: options.fetch(:unix, NOON) + jump)]
      yield trace if block_given?
    end.build
  end

  FIXTURES = Dir["#{TRACES}/*.fxt"].sort.freeze

  # --- many processes -----------------------------------------------------------------------------------

  # More than can have their files open. With little memory their rows wait in a temporary file.
  def test_events_of_many_processes_that_take_turns
    random = Random.new(3)
    expected = Hash.new { |hash, pid| hash[pid] = [] }
    file = write("many.fxt", FxtBuilder.new.tap do |b|
      b.provider(1, "test")
      b.init
      20.times do |i|
        args = { "host" => "web1", "unix_ns" => [:uint64, NOON + i] }
        b.event(:instant, "trace", "host", ts: i, pid: 100 + i, tid: 1, args: args)
      end
      3000.times do |n|
        expected[pid = 100 + random.rand(20)] << [1000 + n, "Reason#{n % 50}", "M#m#{n % 9}"]
        args = { "0" => "M#m#{n % 9} (/m.rb:1)", "insn" => "send" }
        b.event(:instant, "side_exit", "Reason#{n % 50}", ts: 1000 + n, pid: pid, tid: 1, args: args)
      end
    end)
    outputs = ["--memory=1024", "--memory=2"].map do |memory|
      FileUtils.rm_rf("#{@dir}/out")
      result = export(memory, file)
      assert_equal ["", 0], [result.err.gsub(/^.* has no summary.*\n/, ""), result.status]
      frames = rows("frames").to_h { |row| [row["frame_id"], row["method"]] }
      found = rows("events").group_by { |row| row["process"][/-(\d+)-/, 1].to_i }
      found.transform_values! { |all| all.map { |row| [row["ts_ns"].to_i, row["name"], frames[row["frame_id"]]] } }
      assert_equal expected.sort, found.sort, memory
      assert_empty Dir.glob("**/.*", base: "#{@dir}/out").select { |path| File.file?("#{@dir}/out/#{path}") }
      files.to_h { |path| [path, path.end_with?("gz") ? text_of("#{@dir}/out/#{path}") : ""] }
    end
    assert_equal 20 * TABLES.size + 1, outputs.first.size
    assert_equal(*outputs)
  end

  # --- the numbers: others are compared by consistency.rb -----------------------------------------------

  def each_fixture
    FIXTURES.each do |file|
      FileUtils.rm_rf("#{@dir}/out")
      assert_operator export(file).status, :<, 2, file
      yield file, File.basename(file)
    end
  end

  def test_sums_are_those_of_the_report
    each_fixture do |file, name|
      exits = rows("sites").reject { |row| row["kind"] == "fallback" }
      lost = report("exits_by_reason", file).sum { |row| row["lost_ns"].to_i }
      assert_equal lost, sum(exits, "lost_ns"), name if lost > 0
      assert_equal report("losses", file).sum { |row| row["events"].to_i }, sum(rows("processes"), "lost_events"), name
    end
  end

  def test_events_and_spans_are_those_of_query
    each_fixture do |file, name|
      next if name == "killed.fxt" || name == "threads.fxt" # names that SQL shows otherwise
      sql = "SELECT ts, dur, category, name FROM slice WHERE category NOT IN ('trace', 'reprofile')"
      slices = query(sql, file)
      wanted = slices.map { |row| [row["ts"], row["dur"], row["category"], row["name"].gsub(/0x\h+/, "0x...")] }
      spans = rows("spans").map do |row|
        [row["start_ns"].to_i, row["open"] == "1" ? -1 : row["dur_ns"].to_i, *row.values_at("category", "name")]
      end
      events = rows("events").select { |row| row["kind"] == "instant" }
      events.map! { |row| [row["ts_ns"].to_i, 0, *row.values_at("category", "name")] }
      assert_equal wanted.sort, (spans + events).sort, name
      counters = query("SELECT ts, value FROM counter", file).map { |row| row.values.map(&:to_f) }
      assert_equal counters.sort, rows("counters").map { |row| row.values_at("ts_ns", "value").map(&:to_f) }.sort, name
    end
  end

  # Weighted stacks, outermost frame first, as `export --format=folded` prints them.
  def test_stacks_are_those_of_folded
    each_fixture do |file, name|
      frames = rows("frames").to_h { |row| [row["frame_id"], row["frame"]] }
      stacks = rows("stacks").group_by { |row| row.values_at("process", "stack_id") }
      stacks.transform_values! do |same|
        same.sort_by { |row| -row["depth"].to_i }.map { |row| frames.fetch(row["frame_id"]) }.join(";")
      end
      exits = rows("events").select { |row| %w[side_exit recompile_exit].include?(row["category"]) }
      found = exits.group_by { |row| "#{stacks[row.values_at("process", "stack_id")]};#{row["name"]}" }
      found = found.map { |stack, same| "#{stack} #{sum(same, "weight")}" }
      next if exits.any? { |row| row["stack_id"] == "0" }
      assert_equal tool("export", "--format=folded", file).out.lines(chomp: true).sort, found.sort, name
    end
  end

  def test_repeated_and_left_out_frames
    rest = "A#a (m.rb:20) x3 < B#b (m.rb:21) < 34 more frames"
    trace = FxtBuilder.simple do |b|
      args = (0..9).to_h { |i| [i.to_s, "M#f#{i} (m.rb:#{i})"] }.merge("10+" => rest)
      2.times { |i| b.event(:instant, "side_exit", "One", ts: 1000 + i, args: args) }
    end
    export(write("t.fxt", trace))
    frames = rows("frames").to_h { |row| [row["frame_id"], row] }
    stack = rows("stacks").sort_by { |row| row["depth"].to_i }
    assert_equal (0..9).map { |i| "M#f#{i}" } + %w[A#a A#a A#a B#b] + ["(more frames)"],
                 stack.map { |row| frames[row["frame_id"]]["method"] }
    assert_equal stack.size, stack.map { |row| row["depth"] }.uniq.size
    assert_equal ["m.rb", "21"], frames.values.find { |row| row["method"] == "B#b" }.values_at("path", "line")
  end

  # --- the schema -------------------------------------------------------------------------------------

  def test_schema_json_describes_each_column
    export(FIXTURES.first)
    schema = JSON.parse(File.read("#{@dir}/out/schema.json"))
    assert_equal 3, schema["schema"]
    assert_equal TABLES, schema["tables"].map { |table| table["name"] }
    schema["tables"].each do |table|
      path = Dir["#{@dir}/out/#{table["name"]}/*/*/*.csv.gz"].first
      head = Zlib.gunzip(File.binread(path)).lines.first.chomp.split(",")
      assert_equal table["columns"].map { |column| column["name"] }, head
      assert_equal %w[schema process], head.first(2)
      table["columns"].each { |column| assert_match(/\S/, column["meaning"]) }
    end
  end

  # The guide has the same tables, columns and meanings: it is what people read.
  def test_the_guide_describes_each_column
    export(FIXTURES.first)
    guide = File.read("#{ROOT}/doc/guide/tables.md")
    JSON.parse(File.read("#{@dir}/out/schema.json"))["tables"].each do |table|
      part = guide[/^### #{table["name"]}\n.*?(?=^##|\z)/m] or flunk "no section #{table["name"]}"
      lines = table["columns"].map { |column| "| `#{column["name"]}` | #{column["type"]} | #{column["meaning"]} |\n" }
      assert_equal lines, part.lines.grep(/^\| `/), table["name"]
    end
  end

  # Columns may be added at the end, with a new version; others are in somebody's database.
  def test_columns_of_version_3_stay
    assert_equal "6ec33bc98d93", begin
      export(FIXTURES.first)
      tables = JSON.parse(File.read("#{@dir}/out/schema.json"))["tables"]
      names = tables.map { |t| [t["name"], *t["columns"].map { |column| column.values_at("name", "type") }] }
      require "digest"
      Digest::SHA256.hexdigest(names.to_s)[0, 12]
    end
  end

  # A mark for spreadsheets, as in `report --format=csv`, would be a part of the text for a database.
  def test_texts_that_begin_like_formulas_stay
    names = ["=1+1", "+a", "-a", "@a", "'=a"]
    trace = OurTrace.new
    trace.exits.first(4).zip(names) { |exit, name| exit[:name] = name }
    file = write("formulas.fxt", trace.build)
    %w[csv ndjson].each do |format|
      export("--table-format=#{format}", file)
      found = format == "csv" ? rows("events") : ndjson("events")
      assert_equal names.first(4), found.map { |row| row["name"] } & names, format
    end
    assert_includes tool("report", "--format=csv", file).out, %("'=1+1")
    found = query("SELECT DISTINCT name FROM slice", file).map { |row| row["name"] }
    assert_equal names.first(4), found & names
    assert_includes tool("query", file, "SELECT name FROM slice").out.lines(chomp: true), '"=1+1"'
  end

  def test_ndjson_has_the_same_rows
    FIXTURES.each do |file|
      export(file)
      as_csv = TABLES.to_h { |table| [table, rows(table)] }
      export("--table-format=ndjson", file)
      TABLES.each do |table|
        found = ndjson(table)
        assert_equal as_csv[table].size, found.size, file
        next if file.end_with?("threads.fxt") # bytes that are not UTF-8
        as_csv[table].zip(found) do |one, other|
          as_text = ->(value) { value.is_a?(Float) && value == value.to_i ? value.to_i.to_s : value.to_s }
          assert_equal(one, other.transform_values(&as_text), file)
        end
      end
      FileUtils.rm_rf("#{@dir}/out")
    end
  end

  # --- host and time ----------------------------------------------------------------------------------

  def test_partitions_keys_and_times
    result = export(write("t.fxt", our_trace(service: "shop", version: "42")))
    assert_equal ["", 0], [result.err, result.status]
    assert_equal "1 of 1 trace written to #{@dir}/out: 1 process, schema 3\n", result.out
    key = "web1-42-#{NOON + 1000}"
    wanted = TABLES.map { |table| "#{table}/day=2026-11-26/host=web1/#{key}.csv.gz" }
    assert_equal (wanted + ["schema.json"]).sort, files
    process = rows("processes").first
    assert_equal [key, "web1", "shop", "42", "t.fxt", "1", "host"],
                 process.values_at("process", "host_name", "service", "version", "trace", "complete", "time_from")
    assert_equal [NOON + 1000, NOON + 9000, NOON],
                 process.values_at("start_unix_ns", "end_unix_ns", "boot_unix_ns").map(&:to_i)
    exit = rows("events").first
    assert_equal [2000, NOON + 2000], exit.values_at("ts_ns", "unix_ns").map(&:to_i)
  end

  def test_names_of_hosts_are_no_paths
    result = export(write("t.fxt", our_trace(name: "../a b/é")))
    assert_equal 0, result.status
    assert_equal ["host=%2E.%2Fa%20b%2F%C3%A9"], Dir["#{@dir}/out/events/*/*"].map { |path| File.basename(path) }
    assert_equal ["../a b/é"], rows("processes").map { |row| row["host_name"] }
    FileUtils.rm_rf("#{@dir}/out")
    assert_equal 0, export(write("t.fxt", our_trace(name: "é" * 500))).status
    assert_equal ["é" * 500], rows("processes").map { |row| row["host_name"] }
  end

  def test_a_trace_without_host_has_the_time_of_its_file
    path = write("t.fxt", OurTrace.new.build)
    File.utime(Time.at(0), Time.at(NOON / 1_000_000_000), path)
    result = export(path)
    assert_equal 0, result.status
    assert_equal "vm-trace: #{path}: does not name its host (an older recorder): host unknown, " \
                 "times end at the file's own time\n", result.err
    assert_includes result.out, "1 without a host\n"
    assert_includes files, "events/day=2026-11-26/host=unknown/unknown-42-boot1000.csv.gz"
    assert_equal ["unknown", NOON.to_s, "mtime"],
                 rows("processes").first.values_at("host_name", "end_unix_ns", "time_from")
  end

  # --- again ------------------------------------------------------------------------------------------

  def test_exporting_again_replaces_the_files
    path = write("t.fxt", our_trace)
    export(path)
    before = files
    events = rows("events")
    export("--with-arguments", path)
    assert_equal before, files
    assert_equal events.size, rows("events").size
    refute_equal events, rows("events")
    export("--table-format=ndjson", path)
    assert_equal before.map { |name| name.sub("csv.gz", "ndjson.gz") }.sort, files, "nothing is there twice"
  end

  def test_the_same_trace_twice_is_written_once
    path = write("a.fxt", our_trace)
    result = export(path, write("b.fxt", our_trace))
    assert_equal "vm-trace: #{@dir}/b.fxt: process 42 was exported from #{path}\n", result.err
    assert_includes result.out, "1 of 2 traces written"
    assert_includes result.out, "1 skipped: the same as another one\n"
    assert_equal 1, rows("processes").size
  end

  # More than are open at once.
  def test_each_process_of_a_merged_trace_has_its_own_files
    one_by_one = (1..35).map { |pid| write("#{pid}.fxt", our_trace(pid: pid, name: "web#{pid % 2}")) }
    tool("merge", "-o", "#{@dir}/all.fxt", *one_by_one)
    result = export("#{@dir}/all.fxt")
    assert_equal ["", 0], [result.err, result.status]
    merged = TABLES.to_h { |table| [table, rows(table).map { |row| row.except("trace") }] }
    FileUtils.rm_rf("#{@dir}/out")
    export(*one_by_one)
    TABLES.each { |table| assert_equal rows(table).map { |row| row.except("trace") }, merged[table], table }
    assert_equal 35, rows("processes").size
  end

  # A process of another container, whose trace ends later. Its first event has another time.
  def test_equal_process_ids_in_a_merged_trace_are_two_processes
    one_by_one = { 1 => 50, 2 => 90 }.map do |from, ends|
      trace = CallsTrace.new(settings: nil, ends: ends, provider: "ruby vm_trace") do |t|
        t.event(:instant, :main, "trace", "settings", from, pid: [:uint32, 42], flags: "calls markers threads")
        t.event(:instant, :main, "trace", "host", from, host: "web", unix_ns: [:uint64, NOON + t.ns(from)])
        t.event(:begin, :main, "marker", "open until #{ends}", from)
        t.call(:main, "Foo#bar (/app/foo.rb:3)", from + 1, from + 2)
        t.runs(:main, from + 1)
        t.blocks(:main, "Queue#pop", from + 3, ends)
      end
      write("web#{from}.fxt", trace.build)
    end
    tool("merge", "-o", "#{@dir}/all.fxt", *one_by_one)
    assert_equal 0, export("#{@dir}/all.fxt").status
    merged = TABLES.to_h { |table| [table, rows(table).map { |row| row.except("trace") }] }
    assert_equal [[1, 49_000_000], [1, 88_000_000]],
                 merged["spans"].select { |row| row["open"] == "1" }.map { |row| row.values_at("open", "dur_ns").map(&:to_i) }
    FileUtils.rm_rf("#{@dir}/out")
    export(*one_by_one)
    TABLES.each { |table| assert_equal rows(table).map { |row| row.except("trace") }, merged[table], table }
  end

  # --- privacy ----------------------------------------------------------------------------------------

  def test_arguments_and_command_lines_are_left_out
    secret = { type: :instant, cat: "marker", name: "login", ts: 4600, args: { "user" => "alice" } }
    path = write("t.fxt", our_trace { |trace| trace.extra << secret })
    export(path)
    private_files = files.grep(/gz\z/).select { |name| text_of("#{@dir}/out/#{name}").match?(/alice|app\.rb/) }
    assert_empty private_files
    export("--with-arguments", path)
    marker = rows("events").find { |row| row["category"] == "marker" }
    assert_equal({ "user" => "alice" }, JSON.parse(marker["arguments"]))
    assert_equal "", rows("processes").first["command"]
    export("--with-command", path)
    assert_equal "ruby --zjit-trace-exits app.rb", rows("processes").first["command"]
  end

  # --- bad input --------------------------------------------------------------------------------------

  def test_what_is_wrong_with_one_trace_does_not_stop_the_others
    good = write("good.fxt", our_trace)
    whole = our_trace(pid: 43).bytes
    half = write("half.fxt", whole[0, whole.bytesize - 300])
    other = write("other.fxt", "no trace")
    empty = write("empty.fxt", FxtBuilder.simple)
    clock = write("clock.fxt", our_trace(pid: 44, jump: 3600 * 1_000_000_000))
    boot = write("boot.fxt", our_trace(pid: 45, unix: NOON + 100 * 1_000_000_000))
    stable = "ruby 4.0.5 (2026-05-19) +YJIT [x86_64-linux]"
    ruby = write("ruby.fxt", our_trace(pid: 46) { |trace| trace.settings["ruby"] = stable })
    again = write("again.fxt", our_trace(pid: 47) { |trace| trace.settings["ruby"] = stable })
    result = export(good, half, other, empty, clock, boot, ruby, again, "#{@dir}/none.fxt")
    assert_equal 4, result.status
    [/half\.fxt: offset \d+: /, /half\.fxt: has no summary/, /other\.fxt: offset 0: not a Fuchsia trace/,
     /empty\.fxt: has no events/, /clock\.fxt: the wall clock was set by 3600\.0 s/,
     /boot\.fxt: host web1 booted at another time than in \S*good\.fxt/,
     /ruby\.fxt: has ruby 4\.0\.5, while \S*good\.fxt has ruby 4\.1\.0dev/,
     /none\.fxt: cannot be opened: No such file/].each do |message|
      assert_equal 1, result.err.scan(message).size, "#{message}\n#{result.err}"
    end
    assert_equal <<~TEXT, result.out
      6 of 9 traces written to #{@dir}/out: 6 processes, schema 3
      2 skipped: cannot be read, or no trace
      1 skipped: no events
      1 damaged: written up to the damage
      1 incomplete: no summary
      1 with a clock that jumped
      1 of a host that booted at another time
      2 of another Ruby
    TEXT
    assert_equal %w[42 43 44 45 46 47], rows("processes").map { |row| row["pid"] }.sort
    assert_equal 3600 * 1_000_000_000, rows("processes").find { |row| row["pid"] == "44" }["clock_jump_ns"].to_i
    assert_equal 2, rows("processes").map { |row| row["boot_unix_ns"] }.uniq.size
  end

  def test_a_newer_schema_is_left_alone
    FileUtils.mkdir_p("#{@dir}/out")
    File.write("#{@dir}/out/schema.json", %({"schema": 7}))
    result = export(write("t.fxt", our_trace))
    assert_equal 0, result.status
    assert_match(/schema\.json: has schema 7, and this tool writes 3: the column schema/, result.err)
    assert_equal %({"schema": 7}), File.read("#{@dir}/out/schema.json")
    assert_equal 1, rows("processes").size
    File.write("#{@dir}/out/schema.json", %({"schema": 0}))
    export("#{@dir}/t.fxt")
    assert_equal 3, JSON.parse(File.read("#{@dir}/out/schema.json"))["schema"]
  end

  def test_a_folder_that_cannot_be_written
    path = write("t.fxt", our_trace)
    File.write("#{@dir}/out", "a file")
    result = export(path)
    assert_equal 3, result.status
    assert_match(/out\S*: cannot be/, result.err)
    File.delete("#{@dir}/out")
    FileUtils.mkdir_p("#{@dir}/out/spans")
    File.write("#{@dir}/out/spans/day=2026-11-26", "a file")
    result = export(path)
    assert_equal 3, result.status
    assert_match(%r{out/spans/day=2026-11-26/host=web1: cannot be made: Not a directory}, result.err)
    assert_includes result.out, "0 of 1 trace written"
    assert_equal ["schema.json", "spans/day=2026-11-26"], files, "what was begun is removed"
  end

  def test_wrong_usage
    file = FIXTURES.first
    [[["--format=folded", file], /--format has no effect with --tables/],
     [["-o", "x", file], /--output has no effect with --tables/],
     [["--table-format=parquet", file], /--table-format takes csv or ndjson/],
     [["-"], /reads each trace twice: give a file/]].each do |arguments, message|
      result = export(*arguments)
      assert_equal 2, result.status
      assert_match message, result.err
    end
    assert_empty files
  end
end
