# What was read in part says so first of all, in each output, and nothing is concluded from the missing end: the trace
# needs more memory than it gets, is truncated, or has damaged records.
require "csv"
require "zlib"
require_relative "page_helper"
require_relative "pprof_reader"

class TestPartial < Minitest::Test
  include PageHelper
  include PprofReader

  S = 1_000_000_000
  PID, TID = 42, 43
  LITTLE = ["-M", "1"].freeze # MiB: the names in the trace need more
  FRAME = "Foo#bar (/app/foo.rb:3)".freeze

  # Exits of the first 14 s, and a system call of the 86th, which the recorder writes into another chunk. Behind many
  # names: more exits.
  def trace(first = 0)
    FxtBuilder.simple(pid: PID) do |b|
      b.event(:instant, "trace", "settings", ts: 0, args: { "pid" => [:uint32, PID], "flags" => "exits threads syscalls" })
      b.switch(1 * S, 0, 1)
      yield b if block_given?
      (first..14).each { |i| b.exit("GuardType(Fixnum)", FRAME, ts: i * S, lost_ns: 10) }
      b.event(:complete, "syscall", "read", ts: 85 * S, extra: [86 * S])
      60.times { |i| b.string(1000 + i, "#{i} ".ljust(30_000, "x")) }
      14.times { |i| b.exit("GuardType(Fixnum)", FRAME, ts: (20 + i) * S) }
      b.switch(60 * S, 1, 0, state: 3)
    end.bytes
  end

  # Each output of a part has the text, the status of faults, and what a whole one has not.
  def in_part(*command, arguments: ->(path) { [path] })
    with_file(trace) do |path|
      result = tool(*command, *LITTLE, *arguments[path])
      assert_equal 1, result.status, result.err
      yield result.out, path
      whole = tool(*command, *arguments[path])
      assert_equal 0, whole.status, whole.err
      refute_match(/only a part was read/, whole.out.b, command.inspect)
      refute_match(/^(> \*\*)?partial:|"partial"/i, whole.out.b, command.inspect)
    end
  end

  def assert_part(text, path, before: "")
    size = '(\d+) bytes of (\d+) \((\d+\.\d) %\)'
    why = Regexp.escape("names and tables need more than 1 MiB; reading ends here (--memory=MIB grants more, vm-trace cut " \
                        "makes a shorter trace)")
    match = /\A#{before}#{Regexp.escape(path)}: only a part was read, #{size}, up to 14\.000000 s: #{why}/.match(text)
    assert match, text
    assert_equal File.size(path), match[2].to_i
    assert_in_delta 100.0 * match[1].to_i / match[2].to_i, match[3].to_f, 0.06
  end

  # --- documents -------------------------------------------------------------------------------------

  def test_documents_begin_with_it
    [%w[report], %w[report --samples], %w[info], %w[annotate], %w[explain], %w[report --table=exits_by_reason]].each do |command|
      in_part(*command) { |out, path| assert_part(out, path, before: "partial: ") }
      in_part(*command, "--format=markdown") { |out,| assert_match(/\A> \*\*Partial\*\*: .* only a part was read/, out) }
    end
  end

  def test_documents_of_several_arguments_begin_with_it
    in_part("history", arguments: ->(path) { [path, "Foo#*"] }) { |out, path| assert_part(out, path, before: "partial: ") }
    with_file(trace) do |path|
      result = tool("diff", *LITTLE, path, path, "--comment=#{path}.md", "--junit=#{path}.xml", "--fail-over=5")
      assert_equal 5, result.status
      assert_part result.out, path, before: "partial: "
      assert_match(/\A> \*\*Partial\*\*: .*^# vm-trace: of what was read, all limits are met$/m, File.read("#{path}.md"))
      assert_match(/tests="2" failures="0" errors="1".*name="partial">\s*<error message=".*only a part was read/m,
                   File.read("#{path}.xml"))
    end
  end

  def test_programs_see_it
    [%w[report], %w[info], %w[annotate], %w[report --table=exits_by_reason]].each do |command|
      in_part(*command, "--format=json") do |out, path|
        data = JSON.parse(out)
        assert_equal "partial", data.keys.first
        row = data["partial"]["rows"].fetch(0)
        assert_part "#{row["file"]}: #{row["partial"]}", path
        assert_equal [1, File.size(path), 14 * S, 0], row.values_at("stopped", "file_bytes", "read_ns", "faults")
      end
    end
    in_part("report", "--format=csv") { |out,| assert_equal "partial", CSV.parse(out, headers: true).first["table"] }
    in_part("report", "--format=csv", "--table=exits_by_reason") do |out,|
      row = CSV.parse(out, headers: true).first
      assert_equal ["15", true], [row["count"], row["partial"].start_with?("only a part was read")]
    end
  end

  def test_metrics_count_the_files
    with_file(trace) do |path|
      [[LITTLE, 1], [[], 0]].each do |options, count|
        assert_match(/^vm_trace_partial_files #{count}$/, tool("metrics", *options, path).out)
      end
    end
  end

  # --- query and export ----------------------------------------------------------------------------------

  def test_query
    without = with_file(trace) { |path| tool("query", path, "select 1").err.include?("built without SQLite") }
    skip "the tool was built without SQLite" if without
    sql = "select name from slice where category = 'side_exit' limit 2"
    little = ["-M", "2"]
    with_file(trace) do |path|
      ask = ->(*options, of: sql) { tool("query", *little, *options, path, of).out }
      rows = CSV.parse(ask[], headers: true)
      assert_equal %w[name partial], rows.headers
      assert_match(/only a part was read/, rows[0]["partial"])
      assert_nil rows[1]["partial"]
      rows = JSON.parse(ask["--format=json"])
      assert_match(/only a part was read/, rows[0].delete("partial"))
      assert_equal [{ "name" => "GuardType(Fixnum)" }] * 2, rows
      assert_equal [["partial"]], JSON.parse(ask["--format=json", of: "select 1 where 0"]).map(&:keys)
      assert_match(/\Apartial: .*only a part was read/, ask["--format=table"])
      assert_equal "\"name\"\n", tool("query", "-M", "100", path, "select name from slice where 0").out
    end
  end

  def test_exports
    in_part("export", "--format=folded") { |out, path| assert_part(out, path, before: "# partial: ") }
    in_part("export", "--format=folded", "--kind=blocked") { |out, path| assert_part(out, path, before: "# partial: ") }
    in_part("export", "--format=speedscope") do |out, path|
      data = JSON.parse(out)
      assert_part data["partial"], path
      assert_equal "(partial) #{path}", data["name"]
    end
    in_part("export", "--format=chrome") { |out, path| assert_part(JSON.parse(out)["otherData"]["partial"], path) }
    in_part("export", "--format=firefox") do |out, path|
      meta = JSON.parse(out)["meta"]
      assert_equal "partial", meta.keys.first
      assert_part meta["partial"], path
      assert_match(/\A\(partial\) /, meta["product"])
    end
    with_file(trace) do |path|
      tool("export", "--format=pprof", *LITTLE, "-o", "#{path}.pb.gz", path)
      profile = fields(Zlib.gunzip(File.binread("#{path}.pb.gz")))
      assert_part profile[6][profile[13].first], path, before: "partial: "
    end
  end

  # Of a table that was exported.
  def rows_of_table(folder, table)
    Dir["#{folder}/#{table}/*/*/*.gz"].flat_map { |file| CSV.parse(Zlib.gunzip(File.binread(file)), headers: true).map(&:to_h) }
  end

  def test_tables
    with_file(trace) do |path|
      [[LITTLE, /\Aonly a part was read/], [[], /\A\z/]].each_with_index do |(options, text), i|
        tool("export", "--tables=#{path}.#{i}", *options, path)
        rows = rows_of_table("#{path}.#{i}", "processes")
        assert_equal 1, rows.size
        assert_match text, rows[0].values.last.to_s
      end
    end
  end

  # The trace is read twice for them.
  def test_tables_have_the_record_at_which_the_reading_ended
    offsets = []
    bytes = FxtBuilder.simple(pid: PID) do |b|
      60.times do |i|
        name = FxtBuilder::Inline.new("#{i} ".ljust(30_000, "x"))
        offsets << b.event(:complete, "marker", name, ts: i * 1000, extra: [i * 1000 + 10])
      end
    end
    with_file(bytes) do |path|
      ended = tool("export", "--tables=#{path}.tables", *LITTLE, path).err[/offset (\d+): names and tables need/, 1]
      read = offsets.count { |offset| offset <= ended.to_i }
      assert_includes 1..59, read
      assert_equal read, rows_of_table("#{path}.tables", "spans").size
    end
  end

  # As the states of its thread do.
  def test_open_spans_of_tables_end_where_the_reading_ended
    with_file(trace { |b| b.event(:begin, "marker", "request", ts: 1 * S) }) do |path|
      { 13 * S => LITTLE, 84 * S => [] }.each do |length, options|
        tool("export", "--tables=#{path}.#{length}", *options, path)
        spans = rows_of_table("#{path}.#{length}", "spans").select { |row| row["name"] == "request" }
        assert_equal [["1", length.to_s]], spans.map { |row| row.values_at("open", "dur_ns") }
      end
    end
  end

  # --- the page ------------------------------------------------------------------------------------------

  def test_page_has_the_part_first
    data = data_of(page(trace, *LITTLE, status: 1))
    assert data["stopped"]
    assert_match(/only a part was read, .* up to 14\.000000 s/, data["partial"].fetch(0))
    assert_equal [false, []], data_of(page(trace)).values_at("stopped", "partial")
  end

  # The thread runs until its last exit that was read, though a later system call was.
  def test_open_states_end_where_the_reading_ended
    segments = ->(data) { data["timeline"]["tracks"].flat_map(&:last) }
    assert_equal [3, 1 * S, 13 * S], segments[data_of(page(trace, *LITTLE, status: 1))]
    assert_equal [3, 1 * S, 59 * S, 1, 0, 25 * S], segments[data_of(page(trace))]
    with_file(trace) do |path|
      running = lambda do |*options|
        report = JSON.parse(tool("report", "--format=json", *options, path).out)
        report["thread_states"]["rows"].map { |row| row["running_ns"] }
      end
      assert_equal [13 * S], running[*LITTLE]
      assert_equal [59 * S], running[]
    end
  end

  def test_verdicts_need_the_end
    skip_without_browser
    { LITTLE => 1, [] => 0 }.each do |options, status|
      with_file(trace) do |path|
        assert_equal status, tool("html", *options, path, "-o", "#{path}.html").status
        browse_file("#{path}.html") do |browser|
          findings = browser.run("return document.getElementById('findings').innerText")
          banner = browser.run("return [document.body.firstElementChild.tagName, document.getElementById('partial').hidden, " \
                               "document.getElementById('partial').innerText, document.title]")
          part = status == 1
          assert_equal part, !banner[1]
          assert_equal part, banner[2].include?("only a part was read")
          assert_equal part, banner[3].start_with?("Part of ")
          assert_equal !part, findings.include?("the code has settled"), findings
          assert_equal !part, findings.include?("still runs, or ended abruptly"), findings
        end
      end
    end
  end

  def test_report_does_not_say_how_an_unread_trace_ended
    with_file(trace) do |path|
      refute_includes tool("report", "--all", *LITTLE, path).out, "still runs"
      assert_includes tool("report", "--all", path).out, "still runs"
      ended = ->(*options) { JSON.parse(tool("report", "--format=json", *options, path).out)["processes"]["rows"][0]["ended"] }
      assert_equal ["not read", "no"], [ended[*LITTLE], ended[]]
    end
  end

  # A part of a trace that `cut` made ends, too, where nothing ends.
  def test_page_of_a_cut_trace_does_not_say_how_it_ends
    with_file(trace) do |path|
      tool("cut", "--until=80", path, "-o", "#{path}.cut")
      data = data_of(tool("html", "#{path}.cut").out)
      assert_equal [true, false], data.values_at("cut", "summarized")
    end
  end

  # --- other reasons -------------------------------------------------------------------------------------

  def test_truncated_compressed_and_unread_files
    with_file(trace) do |path|
      File.binwrite("#{path}.short", File.binread(path)[0...-20])
      assert_match(/\Apartial: \S+short: only a part was read, \d+ bytes of \d+ .*: the file is truncated: it ends after 12 bytes of a record of 32/,
                   tool("report", "--all", "#{path}.short").out)
      packed = Zlib.gzip(File.binread(path))
      File.binwrite("#{path}.gz", packed[0...-40])
      assert_match(/\Apartial: \S+gz: only a part was read, #{packed.bytesize - 40} bytes of #{packed.bytesize - 40} .*: the compressed data are damaged/,
                   tool("report", "--all", "#{path}.gz").out)
      assert_match(/\Apartial: \S+none: nothing of it was read: cannot be opened: No such file/,
                   tool("report", "--all", path, "#{path}.none").out)
      assert_match(/\Apartial: standard input: only a part was read, \d+ bytes, up to/,
                   tool("report", "--all", *LITTLE, "-", stdin: File.binread(path)).out)
    end
  end

  def test_damaged_records
    bytes = FxtBuilder.simple { |b| b.exit("GuardType(Fixnum)", FRAME, ts: 1); b.event(:instant, 77, "x", ts: 2) }.bytes
    with_file(bytes) do |path|
      result = tool("report", "--all", path)
      assert_equal 1, result.status
      assert_match(/\Apartial: \S+: 1 fault in its records, whose contents may be missing \(vm-trace check lists them\)$/, result.out)
      data = data_of(tool("html", path).out)
      assert_match(/1 fault in its records/, data["partial"].fetch(0))
      refute data["stopped"], "its end was read"
    end
  end
end
