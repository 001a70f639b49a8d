# `vm-trace annotate`: source lines with their exits in the margin.
require "csv"
require_relative "tool_helper"

class TestAnnotate < Minitest::Test
  include ToolHelper

  FOO = "class Foo\n\tdef bar(x)\n\t\tx + 1\n\tend\n\n  # far\n  # away\n  def baz = yield\nend\n".freeze

  def setup
    @dir = File.realpath(Dir.mktmpdir)
    write("app/foo.rb", FOO)
    write("app/other.rb", "one\ntwo\n")
  end

  def teardown = FileUtils.remove_entry(@dir)

  def path(name) = File.join(@dir, name)

  def write(name, text)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.binwrite(path(name), text)
    File.utime(0, 0, path(name))
    path(name)
  end

  # exits: [category, reason, frame, arguments, count]
  def record(exits, name = "trace.fxt")
    time = 0
    builder = FxtBuilder.simple do |b|
      exits.each do |category, reason, frame, args, count|
        count.times { b.exit(reason, frame, ts: time += 1000, kind: category, insn: "opt_plus", **args) }
      end
    end
    File.binwrite(path(name), builder.bytes)
    path(name)
  end

  def trace(folder = path("app"))
    bar, baz, other = "Foo#bar (#{folder}/foo.rb:3)", "Foo#baz (#{folder}/foo.rb:8)", "Other#two (#{folder}/other.rb:2)"
    record([["side_exit", "GuardType(Fixnum)", bar, { version: 1 }, 2],
            ["side_exit", "GuardType(Fixnum)", bar, { version: 2 }, 3],
            ["recompile_exit", "NoProfileSend", bar, { version: 1, outcome: "profiling" }, 6],
            ["side_exit", "Throw", "block in #{baz}", {}, 1],
            ["side_exit", "Throw", other, {}, 1],
            ["fallback", "Send: megamorphic call site", bar, { version: 2, callee: "go", insn: "send" }, 4]])
  end

  def annotated(*args, status: 0)
    result = tool("annotate", *args)
    assert_equal status, result.status, result.err
    result.out
  end

  def test_two_instructions_of_one_line_are_told_apart
    bar = "Foo#bar (#{path("app")}/foo.rb:3)"
    write("app/foo.rb", "a\nb\n  size + length\n")
    file = record([["side_exit", "GuardType(Fixnum)", bar, { insn_index: 4, callee: "size" }, 3],
                   ["side_exit", "GuardType(Fixnum)", bar, { insn_index: 9, callee: "length" }, 1]])
    assert_match(/3 .*\^ GuardType\(Fixnum\), opt_plus@4 of size\b.*\n.*1 .*\^ .*, opt_plus@9 of length\b/, annotated(file))
  end

  # Rows of a table
  def rows(table, *args) = JSON.parse(annotated("--format=json", *args)).dig("annotated_#{table}", "rows")

  def paths(*args) = rows("files", *args).map { |row| row["path"] }

  # The values of rows of annotated_lines or annotated_reasons, without their paths.
  def without_paths(table, *args) = rows(table, *args).map { |row| row.values.drop(1) }

  # The report of the same trace, in JSON.
  def report(file) = JSON.parse(tool("report", "--format=json", file).out)

  def test_lines_with_costs_reasons_and_versions
    assert_equal <<~TEXT, annotated(trace, "--context=1").gsub(@dir, "D")
      D/trace.fxt: 13 exits, 4 fallbacks in 2 files
        cost         counts are not cost; --vm-trace=states records lost time

      D/app/foo.rb: 12 exits, 4 fallbacks at 2 lines
        exits  fallbacks  line
                             2          def bar(x)
           11          4     3                  x + 1
            6                                   ^ NoProfileSend, opt_plus, version 1
            5                                   ^ GuardType(Fixnum), opt_plus, versions 1: 2, 2: 3
                       4                        ^ Send: megamorphic call site, send of go, version 2
                             4          end
                                ...
                             7    # away
            1                8    def baz = yield
            1                     ^ Throw, opt_plus
                             9  end

      D/app/other.rb: 1 exit at 1 line
        exits  fallbacks  line
                             1  one
            1                2  two
            1                   ^ Throw, opt_plus
    TEXT
  end

  # --- lost time ---

  # Many exits that lost little, in other.rb and in line 8; one that lost much in line 3.
  def timed_trace
    foo, other = path("app/foo.rb"), path("app/other.rb")
    trace = StatesTrace.new(rate: 10) do |t|
      t.exits(:main, "GuardType(Fixnum)", "Foo#bar (#{foo}:3)", 10, lost: 2)
      t.site("GuardType(Fixnum)", "Foo#bar (#{foo}:3)", 1, lost: 20.5, version: 1)
      t.site("GuardType(Fixnum)", "Foo#bar (#{foo}:3)", 3, lost: 4, version: 2)
      t.site("NoProfileSend", "Foo#bar (#{foo}:3)", 6, lost: 0.25, kind: "recompile_exit")
      t.site("Throw", "block in Foo#baz (#{foo}:8)", 2000, lost: 0.001)
      t.site("Throw", "Other#two (#{other}:2)", 4000, lost: 1)
      t.site("Send: megamorphic call site", "Other#two (#{other}:2)", 5, kind: "fallback")
      t.states(:main, exited: 25.751, compiled: 70)
    end
    File.binwrite(path("timed.fxt"), trace.build.bytes)
    path("timed.fxt")
  end

  def test_what_lost_most_comes_first
    assert_equal <<~TEXT, annotated(timed_trace, "--context=0").gsub(@dir, "D")
      D/timed.fxt: 6,010 exits, 5 fallbacks, 25.8 ms lost in 2 files
        lost         nothing
        counts       exits are exact (hits of their sites); times are those of the recorded exits

      D/app/foo.rb: 2,010 exits, 24.8 ms lost at 2 lines
                lost  exits  fallbacks  line
        24,750.00 us     10                3                  x + 1
        24,500.00 us      4                                   ^ GuardType(Fixnum), send, versions 1: 1, 2: 3
           250.00 us      6                                   ^ NoProfileSend, send, version 1
                                              ...
             1.00 us  2,000                8    def baz = yield
             1.00 us  2,000                     ^ Throw, send, version 1

      D/app/other.rb: 4,000 exits, 5 fallbacks, 1.00 ms lost at 1 line
           lost  exits  fallbacks  line
        1.00 ms  4,000          5     2  two
        1.00 ms  4,000                   ^ Throw, send, version 1
                                5        ^ Send: megamorphic call site, send, version 1
    TEXT
    assert_match(/^1 more file \(--top=N shows more\): 4,000 exits, 5 fallbacks, 1.00 ms lost$/,
                 annotated(timed_trace, "--top=1"))
  end

  def test_lost_time_for_programs
    file = timed_trace
    assert_equal [[path("app/foo.rb"), 24_751_000, 2010, 0, 2, nil],
                  [path("app/other.rb"), 1_000_000, 4000, 5, 1, nil]], rows("files", file).map(&:values)
    assert_equal [[3, 24_750_000, 10, 0, "\t\tx + 1"], [8, 1000, 2000, 0, "  def baz = yield"],
                  [2, 1_000_000, 4000, 5, "two"]], without_paths("lines", file)
    lost = rows("reasons", file).map { |row| row["lost_ns"] }
    assert_equal [20_500_000, 4_000_000, 250_000, 1000, 1_000_000, 0], lost
    csv = CSV.parse(annotated("--format=csv", "--table=annotated_lines", file), headers: true)
    assert_equal %w[path line lost_ns exits fallbacks source], csv.headers
    assert_equal %w[24750000 1000 1000000], csv["lost_ns"]
    refute_includes rows("lines", trace)[0].keys, "lost_ns"
  end

  def test_lost_time_is_that_of_the_report
    file = File.join(TRACES, "states.fxt")
    sum = report(file)["exits_by_reason"]["rows"].sum { |row| row["lost_ns"] }
    %w[files lines reasons].each do |table|
      assert_equal sum, rows(table, file, "--top=1000").sum { |row| row["lost_ns"] }, table
    end
  end

  def test_context
    # The numbers of the lines without exits.
    around = lambda do |context|
      lines = annotated(trace, "-C", context.to_s, "--reason=NoProfileSend").lines
      lines.grep(/^ {10,}\d+( |$)/).map { |line| line[/\d+/].to_i }
    end
    assert_equal [[], [2, 4], [1, 2, 4, 5], [1, 2, 4, 5, 6, 7, 8, 9]], [0, 1, 2, 1000].map(&around)
    assert_equal 1, annotated(trace, "--context=1000", "--top=1").scan("x + 1").size
  end

  def test_tables_for_programs
    file = trace
    assert_equal [[path("app/foo.rb"), 12, 4, 2, nil], [path("app/other.rb"), 1, 0, 1, nil]],
                 rows("files", file).map(&:values)
    assert_equal [[3, 11, 4, "\t\tx + 1"], [8, 1, 0, "  def baz = yield"], [2, 1, 0, "two"]],
                 without_paths("lines", file)
    assert_equal [[3, 6, 0, "NoProfileSend", "opt_plus", nil, 1],
                  [3, 2, 0, "GuardType(Fixnum)", "opt_plus", nil, 1],
                  [3, 3, 0, "GuardType(Fixnum)", "opt_plus", nil, 2],
                  [3, 0, 4, "Send: megamorphic call site", "send", "go", 2],
                  [8, 1, 0, "Throw", "opt_plus", nil, nil],
                  [2, 1, 0, "Throw", "opt_plus", nil, nil]], without_paths("reasons", file)
    csv = CSV.parse(annotated("--format=csv", "--table=annotated_lines", file), headers: true)
    assert_equal %w[11 1 1], csv["exits"]
    assert_match(/^## .*foo.rb: 12 exits.*\n\n~~~~~~~~\n  exits .*\n~~~~~~~~\n/m, annotated("--format=markdown", file))
  end

  # What is annotated is what the report counts.
  def test_sums_are_those_of_the_report
    %w[exits sampled recompiled loops processes lost].each do |name|
      file = File.join(TRACES, "#{name}.fxt")
      totals = report(file).dig("totals", "rows", 0).values_at("exits", "fallbacks")
      %w[files lines reasons].each do |table|
        found = rows(table, "--top=1000", file)
        sums = %w[exits fallbacks].map { |column| found.sum { |row| row[column] } }
        assert_equal totals, sums, [name, table]
      end
    end
  end

  def test_filters_and_windows
    file = trace
    assert_equal [[3, 6]], rows("lines", file, "--reason=NoProfile*").map { |row| row.values_at("line", "exits") }
    assert_equal [[2, 1]], rows("lines", file, "--method=Other#*").map { |row| row.values_at("line", "exits") }
    assert_equal [[3, 2]], rows("lines", file, "--until=2us").map { |row| row.values_at("line", "exits") }
    nobody = JSON.parse(annotated("--format=json", file, "--thread=nobody", status: 2))
    assert_empty nobody.dig("annotated_files", "rows")
    assert_includes annotated(file, "--thread=nobody", status: 2), ": 0 exits in 0 files\n  only         thread nobody\n"
  end

  def test_what_is_left_out_is_said
    assert_match(/\n\n1 more file \(--top=N shows more\): 1 exit\n\z/, annotated(trace, "--top=1"))
    refute_includes annotated(trace), "more file"
  end

  def test_sources_elsewhere
    file = trace("/gone/app")
    missing = annotated(file)
    assert_includes missing, "/gone/app/foo.rb: 12 exits, 4 fallbacks at 2 lines\n  (No such file or directory)\n"
    assert_match(/^ +11 +4 +3\n +6 +\^ NoProfileSend/, missing)
    refute_match(/x \+ 1|\.\.\./, missing)
    given = annotated(file, path("app/foo.rb"))
    assert_includes given, "x + 1"
    refute_includes given, "other.rb: "
    assert_equal %w[/gone/app/foo.rb /gone/app/other.rb], paths(file, path("app/other.rb"), path("app/foo.rb"))
  end

  def test_sources_that_are_not_in_the_trace
    none = tool("annotate", trace, write("app/third.rb", "x\n"))
    assert_equal "vm-trace: annotate: #{path("app/third.rb")}: the trace has no exits in this file\n", none.err
    assert_equal 0, none.status
    refute_includes none.out, ".rb: "
    gone = tool("annotate", trace, path("app/gone.rb"), path("app/foo.rb"))
    assert_equal ["vm-trace: annotate: #{path("app/gone.rb")}: cannot be read\n", 3], [gone.err, gone.status]
    assert_includes gone.out, "x + 1"
  end

  # The path with more folders in common is meant; without such a one it is an error.
  def test_files_of_one_name
    file = record([["side_exit", "A", "a (/gone/lib/foo.rb:1)", {}, 1],
                   ["side_exit", "B", "b (/gone/app/foo.rb:3)", {}, 1],
                   ["side_exit", "C", "c (/gone/app/oofoo.rb:3)", {}, 1]])
    assert_equal ["/gone/app/foo.rb"], paths(file, path("app/foo.rb"))
    unclear = tool("annotate", file, write("elsewhere/foo.rb", FOO))
    assert_match(/elsewhere\/foo.rb: several files of the trace end like this path/, unclear.err)
    assert_equal 2, unclear.status
  end

  def test_relative_paths_are_relative_to_the_current_folder
    file = record([["side_exit", "A", "a (app/foo.rb:3)", {}, 1]])
    out, = Open3.capture2(TOOL, "annotate", file, chdir: @dir)
    assert_includes out, "x + 1"
    assert_includes annotated(file), "(No such file or directory)"
  end

  def test_a_source_that_does_not_fit_is_said_to_be_so
    file = trace
    File.utime(Time.now + 100, Time.now + 100, path("app/foo.rb"))
    assert_includes annotated(file), "  (the file has changed since the trace was written)\n"
    write("app/foo.rb", "short\n")
    text = annotated(file)
    assert_includes text, "  (the file has fewer lines than the one that ran)\n"
    assert_match(/^ +1 +8\n/, text)
  end

  # A trace can name anything.
  def test_paths_that_are_no_source_files
    File.mkfifo(path("fifo"))
    names = [path("fifo"), @dir, "/dev/zero", "<internal:array>", "(eval at x.rb:1)", "\e[31mred", "x" * 5000]
    exits = names.map { |name| ["side_exit", "A", FxtBuilder::Inline.new("a (#{name}:1)"), {}, 1] }
    exits << ["side_exit", "B", "no place", {}, 2] << ["side_exit", "C", "c (<cfunc>)", {}, 1]
    file = record(exits)
    text = annotated(file, "--top=100")
    assert_equal 3, text.scan("(not a regular file)").size
    assert_includes text, "<internal:array>: 1 exit at 1 line\n  (a part of Ruby, without a file)\n"
    assert_includes text, "(no file): 2 exits at 1 line\n  (its frames name no file)\n"
    assert_includes text, "\\x1B[31mred"
    refute_includes text, "\e"
    assert_equal 10, rows("files", file, "--top=100").sum { |row| row["exits"] }
  end

  def test_source_text_is_escaped
    write("app/foo.rb", "\e[31m\n\xFF\u202E\n\t\xE9\r\nx\0y\n\u00e9\n".b)
    text = annotated(record([["side_exit", "A", "a (#{path("app/foo.rb")}:4)", {}, 1]]), "--context=9")
    lines = text.lines.map { |line| line.chomp[7..].to_s }.grep(/\A {5}[1-5]  /)
    assert_equal ["     1  \\x1B[31m", "     2  \\xFF\\u202E", "     3          \\xE9", "     4  x\\x00y",
                  "     5  \u00e9"], lines
  end

  def test_an_unreadable_trace
    result = tool("annotate", path("gone.fxt"))
    assert_equal ["", 3], [result.out, result.status]
    assert_match(/vm-trace: .*gone.fxt: cannot be opened: No such file/, result.err)
  end
end
