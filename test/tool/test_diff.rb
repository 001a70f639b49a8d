# `vm-trace diff`: what is a difference and what is not. test/traces/diff.* keep its output in all
# formats; UPDATE=1 writes those files again.
require_relative "tool_helper"

class TestDiff < Minitest::Test
  include ToolHelper

  # A run: { [reason, label, insn] => exits }, all recorded unless there is a rate.
  def run_of(counts, rate: 1, ended: true, last_ns: 1_000_000_000)
    trace = OurTrace.new(rate: rate)
    weight = rate > 1 ? { "weight" => [:uint32, rate] } : {}
    trace.spans = []
    trace.exits = counts.flat_map do |(reason, label, insn), count|
      (0...count / rate).map { |i| trace.exit_event("side_exit", reason, 2000 + i, label, insn || "send", weight) }
    end
    trace.sites = counts.map { |(reason, label, insn), count| trace.site("side_exit", reason, label, insn || "send", count) }
    trace.sites.each { |site| site[:ts] = last_ns }
    trace.summary = ended ? { ts: last_ns, args: nil } : nil
    trace.sites = [] unless ended
    trace.build
  end

  # Runs of one reason in one method.
  def runs(*counts, **options) = counts.map { |count| run_of({ ["R", "A#m (a.rb:1)"] => count }, **options) }

  def compare(before, after, *options)
    Dir.mktmpdir do |dir|
      files = { "a" => before, "b" => after }.map do |side, traces|
        Array(traces).each_with_index.map { |trace, i| "#{side}#{i + 1}.fxt".tap { |f| File.binwrite(File.join(dir, f), trace.bytes) } }
      end
      Dir.chdir(dir) { return tool("diff", *options, *files[0], "vs", *files[1]) }
    end
  end

  # Tables of JSON, a row as [change, a, b, name...].
  def rows(table, *sides_and_options)
    result = compare(*sides_and_options, "--format=json")
    assert_equal "", result.err
    JSON.parse(result.out)[table]["rows"].map { |row| row.values_at("change", "a", "b", *%w[reason insn place method] & row.keys) }
  end

  def total(*sides_and_options) = rows("total", *sides_and_options).first

  # --- one run a side ---------------------------------------------------------------------------------

  BEFORE = { ["GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", "opt_plus"] => 40, ["Throw", "Foo#baz (/app/foo.rb:9)"] => 7,
             ["Throw", "Foo#old (/app/old.rb:2)"] => 5, ["FixnumAddOverflow", "<main> (/app/run.rb:1)", "opt_plus"] => 3 }.freeze
  AFTER = { ["GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", "opt_plus"] => 10, ["Throw", "Foo#baz (/app/foo.rb:12)"] => 9,
            ["NoProfileSend", "Foo#new (/app/foo.rb:20)"] => 1, ["FixnumAddOverflow", "<main> (/app/run.rb:1)", "opt_plus"] => 3 }.freeze

  def test_methods_are_new_gone_more_or_fewer_with_the_largest_difference_first
    assert_equal [["shrank", 40, 10, "Foo#bar (/app/foo.rb)"], ["gone", 5, 0, "Foo#old (/app/old.rb)"],
                  ["grew", 7, 9, "Foo#baz (/app/foo.rb)"], ["new", 0, 1, "Foo#new (/app/foo.rb)"]],
                 rows("methods", run_of(BEFORE), run_of(AFTER))
    assert_equal [["shrank", 40, 10, "GuardType(Fixnum)"], ["shrank", 12, 9, "Throw"], ["new", 0, 1, "NoProfileSend"]],
                 rows("reasons", run_of(BEFORE), run_of(AFTER))
    assert_equal ["shrank", 55, 23], total(run_of(BEFORE), run_of(AFTER))
  end

  def test_equal_runs_have_no_difference
    assert_equal ["unchanged", 55, 55], total(run_of(BEFORE), run_of(BEFORE))
    %w[methods reasons sites].each { |table| assert_empty rows(table, run_of(BEFORE), run_of(BEFORE)) }
  end

  def test_sites_are_a_place_an_instruction_and_a_reason
    before = { ["R", "A#m (a.rb:1)", "send"] => 4, ["R", "A#m (a.rb:1)", "opt_plus"] => 3, ["Q", "A#m (a.rb:1)", "send"] => 2 }
    after = before.merge(["R", "A#m (a.rb:1)", "opt_plus"] => 5)
    assert_equal [["grew", 3, 5, "R", "opt_plus", "A#m (a.rb:1)"]], rows("sites", run_of(before), run_of(after))
  end

  # --- lines that moved -------------------------------------------------------------------------------

  def sites(before, after)
    labels = ->(lines) { lines.to_h { |line, count| [["R", "A#m (a.rb:#{line})"], count] } }
    rows("sites", run_of(labels[before]), run_of(labels[after])).map { |row| [*row.take(3), row.last] }
  end

  def test_a_line_that_only_moved_is_no_difference
    assert_empty sites({ 3 => 5 }, { 8 => 5 })
    assert_empty sites({ 3 => 5, 4 => 6 }, { 4 => 5, 5 => 6 })
    assert_equal [["grew", 6, 9, "A#m (a.rb:4 -> 5)"]], sites({ 3 => 5, 4 => 6 }, { 4 => 5, 5 => 9 })
  end

  def test_lines_that_cannot_be_matched_are_compared_as_they_are
    assert_equal [["gone", 6, 0, "A#m (a.rb:4)"]], sites({ 3 => 5, 4 => 6 }, { 3 => 5 })
    assert_equal [["new", 0, 6, "A#m (a.rb:4)"]], sites({ 3 => 5 }, { 3 => 5, 4 => 6 })
  end

  # --- names ------------------------------------------------------------------------------------------

  def test_addresses_in_reasons_do_not_count
    reason = ->(address) { run_of({ ["PatchPoint(StableConstantNames(0x#{address}))", "A#m (a.rb:1)"] => 5 }) }
    assert_equal ["unchanged", 5, 5], total(reason["7f001234abcd"], reason["7f0099"])
    assert_empty rows("reasons", reason["7f001234abcd"], reason["7f0099"])
    other = run_of({ ["PatchPoint(StableConstantNames(0x7f99))", "A#m (a.rb:1)"] => 6 })
    assert_equal "PatchPoint(StableConstantNames(0x...))", rows("reasons", reason["7f0099"], other).first.last
  end

  def test_paths_are_mapped
    at = ->(path) { run_of({ ["R", "A#m (#{path}:1)"] => 5 }) }
    before, after = at["/old/app/a.rb"], at["/new/app/a.rb"]
    assert_equal 2, rows("methods", before, after).size
    assert_empty rows("methods", before, after, "--map=/old/=/new/")
    assert_empty rows("methods", before, after, "--map", "/x=/y", "--map", "/old=/z", "--map", "/new=/z")
    assert_empty rows("methods", at["(eval at /old/a.rb:3)"], at["(eval at /new/a.rb:3)"], "--map=/old=/new")
    assert_equal 2, rows("methods", at["/lib/old/a.rb"], at["/lib/new/a.rb"], "--map=/old=/new").size, "only from the start"
  end

  # A program that uses a library in the folder, and one of its own.
  def with_library(folder, **more)
    counts = %w[parse render find_variable].each_with_index.to_h { |name, i| [["R", "Liquid##{name} (#{folder}/lib/liquid/#{name}.rb:#{i + 1})"], 10 + i] }
    run_of({ ["R", "App#run (/app/run.rb:1)"] => 5, **counts, **more.fetch(:and, {}) })
  end

  def test_folders_of_two_versions_of_a_library_are_taken_for_one
    before, after = with_library("/gems/liquid-5.4.0"), with_library("/gems/liquid-5.5.0")
    assert_empty rows("methods", before, after)
    assert_equal 6, rows("methods", before, after, "--no-map").size
    assert_equal [["/gems/liquid-5.4.0/", "/gems/liquid-5.5.0/", 3]],
                 JSON.parse(compare(before, after, "--format=json").out)["found_maps"]["rows"].map { |row| row.values_at("from", "to", "methods") }
    assert_match(%r{^  treated as one +/gems/liquid-5\.4\.0/ and /gems/liquid-5\.5\.0/: they share 3 methods; --no-map compares the paths as they are$},
                 compare(before, after).out)
    refute_match(/treated as one/, compare(before, before).out)
  end

  def test_what_is_new_in_the_other_version_is_seen
    after = with_library("/gems/liquid-5.5.0", and: { ["R", "Liquid#tag (/gems/liquid-5.5.0/lib/liquid/tag.rb:1)"] => 7 })
    found = rows("methods", with_library("/gems/liquid-5.4.0"), after)
    assert_equal [["new", 0, 7, "Liquid#tag (/gems/liquid-5.5.0/lib/liquid/tag.rb)"]], found
  end

  def test_folders_that_one_side_has_both_of_are_two
    both = with_library("/a", and: { ["R", "Other#m (/b/lib/liquid/other.rb:1)"] => 3 })
    assert_equal 7, rows("methods", both, with_library("/b")).size
  end

  def test_one_method_that_moved_is_no_witness_enough
    at = ->(path) { run_of({ ["R", "A#m (#{path}:1)"] => 5 }) }
    assert_equal 2, rows("methods", at["/old/a.rb"], at["/new/a.rb"]).size
  end

  def test_maps_that_are_given_are_all_there_are
    before, after = with_library("/gems/liquid-5.4.0"), with_library("/gems/liquid-5.5.0")
    assert_equal 6, rows("methods", before, after, "--map=/x=/y").size
  end

  # --- several runs -------------------------------------------------------------------------------------

  def test_a_difference_within_the_spread_is_not_called_one
    assert_equal ["within spread", 10, 12], total(runs(9, 10, 11), runs(11, 12, 13))
    assert_empty rows("methods", runs(9, 10, 11), runs(11, 12, 13))
    assert_match(/^By method: 0 changed, 1 within the spread of the runs$/, compare(runs(9, 10, 11), runs(11, 12, 13)).out)
  end

  def test_a_difference_beyond_the_spread_is_called_one
    assert_equal ["grew", 10, 13], total(runs(9, 10, 11), runs(12, 13, 14))
    assert_equal ["shrank", 13, 10], total(runs(12, 13, 14), runs(9, 10, 11))
    assert_equal ["grew", 10, 12], total(runs(9, 10, 11), runs(12))
    assert_equal ["within spread", 10, 11], total(runs(9, 10, 11), runs(11))
  end

  def test_what_only_some_runs_have_is_not_new
    assert_equal ["within spread", 0, 4], total(runs(0, 0), runs(0, 8))
    assert_equal ["new", 0, 4.5], total(runs(0, 0), runs(1, 8))
    assert_equal ["gone", 4.5, 0], total(runs(1, 8), runs(0, 0))
  end

  # --- units ----------------------------------------------------------------------------------------------

  def test_counts_per_second_are_of_the_time_span_of_each_file
    before, after = runs(100, last_ns: 2_000_001_000), runs(100, last_ns: 1_000_001_000)
    assert_equal ["unchanged", 100, 100], total(before, after)
    assert_equal ["grew", 50, 100], total(before, after, "--normalize=second")
  end

  def test_without_a_unit_counts_are_of_all_files
    assert_equal ["shrank", 40, 5], total(runs(20, 20), runs(5), "--normalize=none")
    assert_equal ["shrank", 20, 5], total(runs(20, 20), runs(5))
  end

  # --- sampling ---------------------------------------------------------------------------------------------

  def test_exact_hits_are_compared_where_exits_were_sampled
    assert_equal ["grew", 1000, 1001], total(runs(1000), runs(1001, rate: 97))
    assert_match(/exits per run; exact$/, compare(runs(1000), runs(1001, rate: 97)).out)
  end

  # 97 * (10 events - 2 * sqrt(10)) is about 350, 97 * (10 + 2 * sqrt(10)) about 1590.
  def test_estimates_have_a_margin
    estimated = runs(970, rate: 97, ended: false)
    assert_equal ["within spread", 970, 1500], total(estimated, runs(1500))
    assert_equal ["grew", 970, 1700], total(estimated, runs(1700))
    assert_equal ["shrank", 970, 100], total(estimated, runs(100))
    assert_equal ["within spread", 0, 97], total(runs(0, rate: 97, ended: false), runs(97)), "one event may just not have been met"
    assert_match(/estimated, with a margin, in 1 of 2 files$/, compare(estimated, runs(1000)).out)
  end

  def test_fallbacks_are_asked_for
    assert_equal ["unchanged", 1, 1], total(OurTrace.new.build, OurTrace.new.build, "--kind=fallbacks")
    assert_equal ["unchanged", 3, 3], total(OurTrace.new.build, OurTrace.new.build)
  end

  # --- status -----------------------------------------------------------------------------------------------

  def test_fail_over_looks_at_all_exits
    assert_equal 0, compare(runs(100), runs(110), "--fail-over=10").status
    result = compare(runs(100), runs(111), "--fail-over=10")
    assert_equal 1, result.status
    assert_equal "vm-trace: diff: exits grew by 11.0 % of all exits before, more than --fail-over=10\n" \
                 "vm-trace: diff: exits in A#m (a.rb) grew by 11.0 % of all exits before, more than --fail-over=10\n", result.err
    assert_equal 0, compare(runs(111), runs(1), "--fail-over=0").status
    assert_equal 0, compare(runs(100), runs(1000)).status, "not asked for"
  end

  def test_fail_over_looks_at_each_method_too
    before = run_of({ ["R", "A#m (a.rb:1)"] => 100, ["R", "A#n (a.rb:5)"] => 100 })
    after = run_of({ ["R", "A#m (a.rb:1)"] => 50, ["R", "A#n (a.rb:5)"] => 123 })
    result = compare(before, after, "--fail-over=11%")
    assert_equal "vm-trace: diff: exits in A#n (a.rb) grew by 11.5 % of all exits before, more than --fail-over=11\n", result.err
    assert_equal 1, result.status
    assert_equal 0, compare(before, after, "--fail-over=11.6").status
  end

  def test_fail_over_does_not_mind_what_lies_within_the_spread
    assert_equal 0, compare(runs(50, 150), runs(140, 200), "--fail-over=1").status
    assert_equal 1, compare(runs(50, 150), runs(151, 200), "--fail-over=1").status
  end

  def test_exits_where_there_were_none_are_over_any_limit
    result = compare(runs(0), runs(1), "--fail-over=1000")
    assert_equal 1, result.status
    assert_match(/exits: there were none before, more than --fail-over=1000/, result.err)
  end

  # --- the command line -------------------------------------------------------------------------------------

  def test_sides
    with_file(OurTrace.new.build) do |path|
      [[path, path], [path, "vs", path], [path, path, "vs", path]].each { |files| assert_equal 0, tool("diff", *files).status }
      [[path], [path, path, path], ["vs", path], [path, "vs"], [path, "vs", path, "vs", path]].each do |files|
        result = tool("diff", *files)
        assert_equal "vm-trace: diff takes two files or folders, or `A... vs B...`; see vm-trace diff --help\n", result.err
        assert_equal 2, result.status
      end
      assert_equal 3, tool("diff", path, "#{path}.missing").status
      assert_empty tool("diff", path, "#{path}.missing").out
    end
  end

  # CI must tell a regression from a file that it cannot trust.
  def test_status_of_damaged_traces
    before, after = runs(100), runs(200)
    raw = ->(bytes) { FxtBuilder.new(magic: false).tap { |builder| builder.raw(bytes) } }
    damaged = [raw[after[0].bytes[0..-9]]]
    assert_equal [0, 1, 5, 5], [compare(before, after), compare(before, after, "--fail-over=50"),
                                compare(before, damaged), compare(before, damaged, "--fail-over=50")].map(&:status)
    result = compare(before, damaged, "--fail-over=50")
    assert_match(/the file is truncated.*more than --fail-over=50/m, result.err)
    assert_equal 2, compare(before, damaged, "--table=none").status
    assert_equal 4, compare(before, raw["no trace, but long enough"]).status
  end

  def test_wrong_options
    { "--normalize=hour" => /takes run, second or none, not hour/, "--map=x" => /takes OLD=NEW, not x/, "--map==x" => /takes OLD=NEW/,
      "--fail-over=x" => /takes a number of percent/, "--fail-over=-1" => /takes a number of percent/,
      "--fail-over=" => /takes a number of percent/, "--kind=all" => /takes exits or fallbacks/ }.each do |option, message|
      result = tool("diff", option, "a", "b")
      assert_match message, result.err
      assert_equal 2, result.status
    end
  end

  def test_traces_of_other_origin_have_no_exits_to_compare
    files = conformance_files.grep(/gvl_as_cpu|async_and_counters/)
    result = tool("diff", *files)
    assert_match(/^  in all         0 -> 0: unchanged/, result.out)
    assert_equal 0, result.status
  end

  FORMATS = { "text" => "txt", "markdown" => "md", "json" => "json", "csv" => "csv" }.freeze

  def test_how_it_looks
    before = [BEFORE, BEFORE.merge(["Throw", "Foo#baz (/app/foo.rb:9)"] => 6)].map { |counts| run_of(counts) }
    after = [AFTER, AFTER.merge(["Throw", "Foo#baz (/app/foo.rb:12)"] => 7)].map { |counts| run_of(counts) }
    FORMATS.each do |format, suffix|
      text = compare(before, after, "--format=#{format}", "--top=2").out
      kept = File.join(TRACES, "diff.#{suffix}")
      File.write(kept, text) if ENV["UPDATE"]
      assert_equal File.read(kept), text, format
    end
  end

  def test_colour_is_for_terminals_only
    with_file(OurTrace.new.build) do |path|
      refute_includes tool("diff", path, path).out, "\e"
      skip "script (bsdutils) is not installed" unless system("script", "--version", out: File::NULL, err: File::NULL)
      File.binwrite("#{path}.b", OurTrace.new.tap { |trace| trace.exits.shift }.build.bytes)
      shown = ->(env) { Open3.capture2(env, "script", "-qec", "#{TOOL} diff #{path} #{path}.b", "#{path}.log").first }
      assert_includes shown[{ "TERM" => "xterm", "NO_COLOR" => nil }], "\e[32mshrank\e[0m"
      refute_includes shown[{ "TERM" => "xterm", "NO_COLOR" => "1" }], "\e"
    end
  end
end
