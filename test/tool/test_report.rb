# `vm-trace report` and `info`: what they count. test_traces.rb has their output in every format.
require "csv"
require "terminal"
require_relative "tool_helper"
require_relative "consistency"

class TestReport < Minitest::Test
  include ToolHelper

  def report(bytes, *options)
    with_file(bytes) { |path| return tool("report", "--all", *options, path) }
  end

  # Several files, in the order given.
  def report_of_files(*contents, options: [], names: contents.each_index.map { |i| "#{i}.fxt" })
    Dir.mktmpdir do |dir|
      names.zip(contents) { |name, bytes| File.binwrite(File.join(dir, name), bytes.is_a?(FxtBuilder) ? bytes.bytes : bytes) }
      return Dir.chdir(dir) { tool("report", "--all", *options, *names) }
    end
  end

  def json(bytes, *options) = JSON.parse(report(bytes, "--format=json", *options).out)

  # Rows of a table as arrays of the named columns.
  def rows(data, table, *columns) = data.fetch(table)["rows"].map { |row| columns.map { |column| row.fetch(column) } }

  def head(out, title) = out.lines.grep(/^  #{title} /).map { |line| line.sub(/^  #{title} +/, "").chomp }

  def exit_event(builder, reason = "r", frame = "A#a (/a.rb:1)", ts: 1, insn: "send", version: 1, kind: "side_exit", thread: 1, **more)
    args = { "0" => frame, "insn" => insn, "version" => [:uint32, version] }.merge(more.transform_keys(&:to_s))
    builder.event(:instant, kind, reason, ts: ts, args: args, thread: thread)
  end

  # --- exits ---

  def test_exits_are_counted_by_reason_line_and_instruction
    data = json(OurTrace.new.build)
    assert_equal [["GuardType(Fixnum)", "side_exit", 2, 0.666667], ["NoProfileSend", "recompile_exit", 1, 0.333333]],
                 rows(data, "exits_by_reason", "reason", "kind", "count", "share")
    assert_equal [["Foo#bar (/app/foo.rb:3)", 2], ["Foo#baz (/app/foo.rb:9)", 1]], rows(data, "exits_by_line", "method", "count")
    assert_equal [["opt_plus", 2], ["send", 1]], rows(data, "exits_by_instruction", "instruction", "count")
    assert_equal [["profiling", 1]], rows(data, "outcomes", "outcome", "count")
    assert_equal [["SendPolymorphic", "Foo#bar (/app/foo.rb:4)", 1]], rows(data, "fallbacks", "reason", "method", "count")
    assert_equal [3, 3, 1], data["totals"]["rows"][0].values_at("exits", "exits_recorded", "fallbacks")
  end

  # Also where only the site says so; and a trace that says it of none has no such column.
  def test_fallbacks_are_told_apart_by_line_and_callee
    trace = OurTrace.new(fallback_rate: 5)
    [["go", 4, 10], ["stop", 4, 3], ["go", 7, 2]].each do |callee, line, hits|
      trace.sites << trace.site("fallback", "SendPolymorphic", "Foo#bar (/app/foo.rb:#{line})", "send", hits).tap { |site| site[:args]["callee"] = callee }
    end
    trace.exits[3][:args]["callee"] = "go"
    trace.sites.reject! { |site| site[:args]["kind"] == "fallback" && !site[:args]["callee"] }
    report = json(trace.build)
    assert_equal [["go", "Foo#bar (/app/foo.rb:4)", 10, 1], ["stop", "Foo#bar (/app/foo.rb:4)", 3, 0], ["go", "Foo#bar (/app/foo.rb:7)", 2, 0]],
                 rows(report, "fallbacks", "callee", "method", "count", "recorded")
    text = report(trace.build).out
    assert_match(/ callee +method$/, text)
    refute_match(/callee/, report(OurTrace.new.build).out)
  end

  # Two calls on one line: the instruction has its index, and what it calls. Tables by instruction lack it.
  def test_exits_of_two_instructions_of_one_line_are_told_apart
    trace = FxtBuilder.simple do |b|
      place = "Foo#bar (/app/foo.rb:3)"
      4.times { |i| b.exit("GuardType(Fixnum)", place, ts: 10 + i, insn: "send", insn_index: 7, callee: "size") }
      2.times { |i| b.exit("GuardType(Fixnum)", place, ts: 20 + i, insn: "send", insn_index: 12, callee: "length") }
      b.exit("GuardType(Fixnum)", "Foo#bar (/app/foo.rb:4)", ts: 30, insn: "send")
    end
    data = json(trace)
    assert_equal [["send@7", "size", 4], ["send@12", "length", 2]],
                 rows(data, "exits_of_shared_lines", "instruction", "callee", "count")
    assert_equal [["send", 7]], rows(data, "exits_by_instruction", "instruction", "count")
    assert_match(/Exits on lines that have their instruction more than once: 6\n.*\n +4 .* send@7 +size +Foo#bar/,
                 report(trace).out)
    refute_match(/more than once/, report(OurTrace.new.build).out)
  end

  def test_worst_pairs_are_of_a_method_whatever_its_line_and_a_reason
    trace = FxtBuilder.simple do |b|
      exit_event(b, "X", "A#a (/x y (z).rb:1)", ts: 10)
      exit_event(b, "X", "A#a (/x y (z).rb:22)", ts: 30)
      exit_event(b, "Y", "A#a (/x y (z).rb:1)", ts: 20)
      exit_event(b, "X", "block (2 levels) in B#b (/b.rb:1)", ts: 40)
      exit_event(b, "X", "no label at all", ts: 50)
      exit_event(b, "X", "(<cfunc>)", ts: 60)
    end
    assert_equal [["X", "A#a (/x y (z).rb)", 2, 0, 20], ["X", "(<cfunc>)", 1, 50, 50], ["X", "block (2 levels) in B#b (/b.rb)", 1, 30, 30],
                  ["X", "no label at all", 1, 40, 40], ["Y", "A#a (/x y (z).rb)", 1, 10, 10]],
                 rows(json(trace), "worst", "reason", "method", "count", "first_ns", "last_ns")
  end

  def test_origin_is_among_the_settings
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1_000_000_000, args: { "pid" => [:uint32, 42] })
      [2, 9].each do |s|
        unix_ns = [:uint64, (1_795_696_725 + s) * 1_000_000_000]
        b.event(:instant, "trace", "host", ts: s * 1_000_000_000,
                args: { "host" => "web7", "unix_ns" => unix_ns, "service" => "cart", "version" => "2.5" })
      end
    end
    assert_equal [%w[pid 42], %w[host web7], %w[service cart], ["service version", "2.5"], ["began", "2026-11-26T12:38:46Z"]],
                 rows(json(trace), "settings", "setting", "value")
  end

  def test_rate_over_time_adds_up_and_stands_where_the_exits_are
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 0, args: { "pid" => 1 })
      100.times { |i| exit_event(b, "early", ts: i * 1_000_000) }
      1000.times { |i| exit_event(b, "late", ts: 900_000_000 + i * 100_000) }
      exit_event(b, "last", ts: 1_000_000_000)
    end
    rates = rows(json(trace), "exits_by_reason", "reason", "rate").to_h
    assert_in_delta 100, rates["early"].sum, 0.1
    assert_in_delta 1000, rates["late"].sum, 0.1
    assert_equal [0] * 16, rates["early"].last(16), "100 ms of a second are 2 of 20 parts, and a bin may lie over an edge"
    assert_equal [0] * 17, rates["late"].first(17)
    assert_match(/ +▁+█+ +side_exit +late$|  +[▁-█]{2,3} +side_exit +late$/, report(trace).out)
  end

  def test_events_that_are_older_than_the_first_have_negative_times
    trace = FxtBuilder.simple { |b| exit_event(b, ts: 5_000_000_000); exit_event(b, ts: 3_000_000_000) }
    assert_equal [[-2_000_000_000, 0]], rows(json(trace), "worst", "first_ns", "last_ns")
    assert_in_delta 2, rows(json(trace), "worst", "rate")[0][0].sum
  end

  def test_times_at_the_end_of_what_can_be_held
    trace = FxtBuilder.simple { |b| exit_event(b, ts: 0); exit_event(b, ts: 2**63 - 1) }
    assert_equal [[0, 2**63 - 1]], rows(json(trace), "worst", "first_ns", "last_ns")
    assert_equal [1.0, 1.0], rows(json(trace), "worst", "rate")[0][0].values_at(0, -1).map { |n| n.round(6) }
  end

  def test_last_of_two_arguments_of_one_name_counts
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "side_exit", "r", ts: 1, args: [b.arg("0", "first"), b.arg(FxtBuilder::Inline.new("0"), "second")])
    end
    assert_equal [["second"]], rows(json(trace), "exits_by_line", "method")
  end

  def test_exits_that_are_not_instants_are_not_exits
    trace = FxtBuilder.simple { |b| b.event(:counter, "side_exit", "n", ts: 1, extra: 1); b.event(:complete, "side_exit", "n", ts: 1, extra: 2) }
    assert_empty json(trace)["exits_by_reason"]["rows"]
    refute_match(/^Exits/, report(trace).out)
  end

  def test_exits_without_arguments_are_counted_all_the_same
    trace = FxtBuilder.simple { |b| b.event(:instant, "side_exit", "r", ts: 1) }
    assert_equal [["(unknown)"]], rows(json(trace), "exits_by_line", "method")
  end

  def test_ties_stand_in_the_order_of_names
    trace = FxtBuilder.simple { |b| %w[c a b].each { |n| exit_event(b, n) } }
    assert_equal [["a"], ["b"], ["c"]], rows(json(trace), "exits_by_reason", "reason")
  end

  def test_more_rows_than_top_are_summed
    trace = FxtBuilder.simple { |b| 12.times { |i| (i + 1).times { exit_event(b, "Reason#{i}", "F#f#{i} (/f.rb:1)") } } }
    data = json(trace, "--top=2")
    assert_equal [["Reason11", 12], ["Reason10", 11]], rows(data, "exits_by_reason", "reason", "count")
    %w[exits_by_reason exits_by_line worst].each do |table|
      assert_equal [10, 55], [data[table]["more_rows"], data[table]["more"]["count"]], table
    end
    assert_match(/^ +55 +70\.5% +in 10 more$/, report(trace, "--top=2").out)
    all = json(trace, "-n", "12")["exits_by_reason"]
    assert_equal [12, nil], [all["rows"].size, all["more_rows"]]
  end

  # --- sampled ---

  def test_sampled_exits_count_what_their_sites_counted
    result = report(OurTrace.new(rate: 97).build)
    assert_match(/^  counts         exits are exact \(hits of their sites\)/, result.out)
    assert_match(/^Exits by reason: exactly 296; 3 recorded$/, result.out)
    assert_equal [["GuardType(Fixnum)", 199, 2], ["NoProfileSend", 97, 1]],
                 rows(json(OurTrace.new(rate: 97).build), "exits_by_reason", "reason", "count", "recorded")
  end

  def test_sampled_exits_without_their_sites_count_their_weight
    killed = OurTrace.new(rate: 97).tap { |trace| trace.summary = nil; trace.sites.shift(2) }
    partly = OurTrace.new(rate: 97).tap { |trace| trace.summary[:args] = trace.summary_args; trace.sites.shift }
    [killed, partly].each do |trace|
      result = report(trace.build)
      assert_match(/^  counts         exits are estimates \(events times their weight\)$/, result.out)
      assert_match(/^Exits by reason: about 291, from 3 recorded$/, result.out)
      assert_equal [["GuardType(Fixnum)", 194], ["NoProfileSend", 97]], rows(json(trace.build), "exits_by_reason", "reason", "count")
    end
  end

  def test_exact_counts_are_not_used_for_what_the_sites_do_not_know
    [%w[--since=0], %w[--until=1], %w[--thread=main]].each do |option|
      result = report(OurTrace.new(rate: 97).build, *option)
      assert_match(/^  counts         exits are estimates .*: exact counts have no time or thread$/, result.out)
      assert_match(/^Exits by reason: about 291, from 3 recorded$/, result.out)
    end
    assert_match(/^Exits by reason: exactly 199; 2 recorded$/, report(OurTrace.new(rate: 97).build, "--reason=Guard*").out)
  end

  def test_sites_that_no_recorded_exit_shows_are_counted
    trace = OurTrace.new(rate: 97)
    trace.sites << trace.site("side_exit", "Rare", "Foo#rare (/app/foo.rb:99)", "leave", 12)
    row = json(trace.build)["worst"]["rows"].find { |r| r["reason"] == "Rare" }
    assert_equal [12, 0, nil, nil], row.values_at("count", "recorded", "first_ns", "rate")
  end

  def test_unsampled_exits_are_counted_by_their_events
    trace = OurTrace.new
    trace.sites[0][:args]["location"] = "what the site was called last"
    data = json(trace.build)
    assert_equal [["Foo#bar (/app/foo.rb:3)", 2], ["Foo#baz (/app/foo.rb:9)", 1]], rows(data, "exits_by_line", "method", "count")
    refute_match(/^  counts|about|exactly/, report(trace.build).out)
  end

  def test_exits_that_were_lost_are_counted_by_their_sites
    trace = OurTrace.new
    trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 40], "reason" => "disk full" } }
    trace.sites[0][:args]["hits"] = [:uint64, 42]
    assert_equal [["GuardType(Fixnum)", 42, 2], ["NoProfileSend", 1, 1]],
                 rows(json(trace.build), "exits_by_reason", "reason", "count", "recorded")
  end

  # Its sites cover a longer time than its events.
  def test_snapshot_from_which_older_events_gave_way_is_counted_by_its_events
    trace = OurTrace.new
    trace.settings["snapshot"] = "save"
    trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 40], "reason" => "older events gave way" } }
    trace.sites[0][:args]["hits"] = [:uint64, 42]
    assert_equal [["GuardType(Fixnum)", 2, 2], ["NoProfileSend", 1, 1]],
                 rows(json(trace.build), "exits_by_reason", "reason", "count", "recorded")
    assert_match(/^  counts         exits are those in the snapshot/, report(trace.build).out)
  end

  def assert_sums(bytes, **options)
    with_file(bytes) { |path| assert_empty Consistency.disagreements(TOOL, path, **options) }
  end

  def test_all_tables_of_all_fixtures_sum_up_to_the_same
    files = Dir[File.join(TRACES, "*.fxt")]
    refute_empty files
    assert_empty ReportSums.disagreements(TOOL, *files.sort, summaries: false)
    [%w[--reason=Guard*], %w[--method=Foo#ba*], %w[--since=1us], %w[--thread=main]].each do |options|
      files.each { |path| assert_empty ReportSums.disagreements(TOOL, path, options: options), "#{path} #{options}" }
    end
  end

  # Differences between an event and its site: the class that the method was called on, the ISEQ
  # that has no room in the event, the owner of an inlined frame that the tracer learns late.
  def unlike_their_sites(rate: 97)
    trace = OurTrace.new(rate: rate)
    trace.exits = [
      trace.exit_event("side_exit", "GuardType(Fixnum)", 2000, "Other#bar (/app/foo.rb:3)", "opt_plus", "weight" => [:uint32, rate]),
      trace.exit_event("recompile_exit", "NoProfileSend", 4000, "Foo#inlined (/app/foo.rb:9)", "send", "weight" => [:uint32, rate], "outcome" => "version_limit"),
      trace.exit_event("side_exit", "Moved", 4100, "Foo#moved (/app/foo.rb:11)", "send", "weight" => [:uint32, rate]),
      *trace.exits.last(1),
    ]
    trace.sites = [
      trace.site("side_exit", "GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", "opt_plus", 200),
      trace.site("recompile_exit", "NoProfileSend", "Foo#inlined (/app/foo.rb:9)", "send", 90),
      trace.site("side_exit", "GuardType(Fixnum)", "Foo#baz (/app/foo.rb:9)", "opt_plus", 600),
      trace.site("side_exit", "Moved", "Foo#moved (/app/foo.rb:12)", "send", 5),
      trace.sites.last,
    ]
    trace.sites[1][:args]["iseq"] = "Foo#outer (/app/foo.rb:1)"
    trace
  end

  def test_recorded_exits_whose_sites_have_other_names_are_in_all_tables
    trace = unlike_their_sites.build
    assert_sums trace
    data = json(trace)
    assert_equal [895, 3], data["totals"]["rows"][0].values_at("exits", "exits_recorded")
    assert_equal [["Foo#baz (/app/foo.rb:9)", 600, 0], ["Foo#bar (/app/foo.rb:3)", 200, 1], ["Foo#inlined (/app/foo.rb:9)", 90, 1],
                  ["Foo#moved (/app/foo.rb:12)", 5, 1]], rows(data, "exits_by_line", "method", "count", "recorded")
    inlined = data["worst"]["rows"].find { |row| row["method"] == "Foo#inlined (/app/foo.rb)" }
    assert_equal [3000, 3000], inlined.values_at("first_ns", "last_ns")
    refute_nil inlined["rate"]
    assert_equal [["version_limit", 90]], rows(data, "outcomes", "outcome", "count"), "as many as there were, not the weights of those recorded"
    assert_equal [90], rows(data, "recompile_loops", "at_limit").flatten
  end

  def test_outcomes_of_exits_that_were_not_recorded_are_not_made_up
    trace = OurTrace.new(rate: 97)
    trace.sites << trace.site("recompile_exit", "NoProfileSend", "Foo#other (/app/foo.rb:50)", "send", 40)
    assert_sums trace.build
    assert_equal [["profiling", 97], ["(none recorded)", 40]], rows(json(trace.build), "outcomes", "outcome", "count")
  end

  def test_exact_exits_are_shared_out_to_threads_as_the_recorded_ones_are
    trace = OurTrace.new(rate: 97)
    trace.exits[1][:thread] = 2
    assert_sums trace.build
    assert_equal [198, 98], rows(json(trace.build), "threads", "count").flatten
    trace.exits = []
    assert_sums trace.build
    assert_equal [[296, "(none recorded)"], [0, "main"]], rows(json(trace.build), "threads", "count", "thread")
  end

  # --- names of sites ---

  # A site without a recorded exit, in an inlined frame: the tracer does not know the owner.
  # `known`: the other labels of the trace.
  def name_of_site(location, *known, events: [], iseq: nil)
    trace = OurTrace.new(rate: 97)
    trace.sites << trace.site("side_exit", "Rare", location, "leave", 12)
    trace.sites.last[:args]["iseq"] = iseq if iseq
    known.each_with_index { |label, i| trace.exits[0][:args][(2 + i).to_s] = label }
    events.each { |label| trace.exits << trace.exit_event("side_exit", "GuardType(Fixnum)", 2500, label, "opt_plus", "weight" => [:uint32, 97]) }
    assert_sums trace.build, summaries: events.empty?
    json(trace.build)["worst"]["rows"].find { |row| row["reason"] == "Rare" }["method"].sub(/ .*/, "")
  end

  def test_sites_get_the_owner_that_other_labels_of_the_method_have
    assert_equal "render", name_of_site("render (/b.rb:7)")
    assert_equal "Foo#render", name_of_site("render (/b.rb:7)", "Foo#render (/b.rb:9)")
    assert_equal "Foo::Bar.render", name_of_site("render (/b.rb:7)", "rescue in block (2 levels) in Foo::Bar.render (/b.rb:9)")
    assert_equal "Foo#==", name_of_site("== (/b.rb:7)", "Foo#== (/b.rb:9)")
    assert_equal "render", name_of_site("render (/b.rb:7)", "Foo#render (/other.rb:7)")
    assert_equal "render", name_of_site("render (/b.rb:7)", "Foo#render (/b.rb:9)", "Bar#render (/b.rb:20)")
    assert_equal "Bar#render", name_of_site("render (/b.rb:20)", "Foo#render (/b.rb:9)", "Bar#render (/b.rb:20)")
    assert_equal "Foo#render", name_of_site("render (/b.rb:7)", iseq: "Foo#render (/b.rb:1)")
    assert_equal "Baz#render", name_of_site("Baz#render (/b.rb:7)", "Foo#render (/b.rb:7)"), "one that has its owner keeps it"
    assert_equal "<main>", name_of_site("<main> (/b.rb:7)", "Foo#<main> (/b.rb:7)")
  end

  # A class without a name: its recorded exits have no owner either.
  def test_methods_without_an_owner_keep_their_names
    assert_equal "render", name_of_site("render (/b.rb:7)", "Foo#render (/b.rb:9)", events: ["render (/b.rb:8)"])
  end

  def test_blocks_of_the_method_are_named_as_well
    trace = OurTrace.new(rate: 97)
    trace.sites << trace.site("side_exit", "Rare", "block in render (/b.rb:7)", "leave", 12)
    trace.exits[0][:args]["2"] = "Foo#render (/b.rb:9)"
    assert_equal [["Rare", 12]], rows(json(trace.build, "--method=block in Foo#render"), "worst", "reason", "count")
    assert_match(/exactly 12;/, report(trace.build, "--method=block in Foo#*").out)
  end

  def test_methods_that_may_be_asked_for_and_have_no_owner_are_told
    trace = OurTrace.new(rate: 97)
    trace.sites << trace.site("side_exit", "Rare", "block in render (/b.rb:7)", "leave", 1200)
    told = ->(*options) { head(report(trace.build, *options).out, "not counted").map { |line| line[/^[\d,]+ exits? in inlined methods/] } }
    assert_equal ["1,200 exits in inlined methods"], told["--method=Foo#*"]
    assert_equal ["1,200 exits in inlined methods"], told["--method=Foo#render"]
    assert_empty told["--method=Foo#bar"]
    assert_empty told["--method=block in render"], "they are counted"
    assert_empty told[]
    trace.exits[0][:args]["2"] = "Other#render (/b.rb:9)"
    assert_empty told["--method=Foo#*"], "it is another's"
  end

  # --- addresses ---

  def with_addresses
    trace = OurTrace.new
    trace.exits[0][:name] = "GuardType(Object@VALUE(0x7f19aa00))"
    trace.exits[1][:name] = "GuardType(Object@VALUE(0x7f20))"
    trace.sites = []
    trace.extra << { type: :begin, cat: "invalidation", name: "CME 0x1 is invalidated", ts: 6000 } << { type: :end, cat: "invalidation", name: "CME 0x1 is invalidated", ts: 6001 }
    trace.extra << { type: :begin, cat: "invalidation", name: "CME 0xff0 is invalidated", ts: 6002 } << { type: :end, cat: "invalidation", name: "CME 0xff0 is invalidated", ts: 6003 }
    trace.build
  end

  def test_a_reason_is_one_row_whatever_addresses_it_holds
    data = json(with_addresses)
    assert_equal [["GuardType(Object@VALUE(0x...))", 2], ["NoProfileSend", 1]], rows(data, "exits_by_reason", "reason", "count")
    assert_equal [["CME 0x... is invalidated", 2]], rows(data, "invalidations", "name", "count")
    assert_equal [2], rows(json(with_addresses, "--reason=*VALUE(0x...))"), "exits_by_reason", "count").flatten
    with_file(with_addresses) do |path|
      assert_includes tool("export", "--format=folded", path).out, ";GuardType(Object@VALUE(0x...)) 2\n"
      refute_match(/0x7f/, tool("html", path).out)
      refute_match(/0x7f/, tool("history", path, "Foo#bar").out)
      assert_equal 2, tool("dump", path).out.scan(/VALUE\(0x7f/).size, "as it stands in the file"
    end
  end

  # --- recompilation ---

  def loops(&block) = rows(json(FxtBuilder.simple(&block)), "recompile_loops", "method", "instruction", "count", "versions", "at_limit")

  def test_places_that_exit_in_successive_versions_are_called_out
    found = loops do |b|
      3.times { exit_event(b, "NoProfileSend", "A#a (/a.rb:1)", version: 1, kind: "recompile_exit", outcome: "profiling") }
      exit_event(b, "NoProfileSend", "A#a (/a.rb:1)", version: 1, kind: "recompile_exit", outcome: "invalidated")
      20.times { exit_event(b, "GuardType(String)", "A#a (/a.rb:1)", version: 2) }
      50.times { exit_event(b, "GuardType(String)", "A#b (/a.rb:9)", version: 1) }
      exit_event(b, "GuardType(String)", "A#a (/a.rb:1)", version: 2, insn: "leave")
    end
    assert_equal [["A#a (/a.rb:1)", "send", 24, "1: 4, 2: 20", 0]], found
  end

  def test_places_at_the_version_limit_are_called_out
    found = loops do |b|
      5.times { exit_event(b, "NoProfileSend", version: 2, kind: "recompile_exit", outcome: "version_limit") }
      9.times { exit_event(b, "NoProfileSend", "B#b (/b.rb:1)", version: 2, kind: "recompile_exit", outcome: "profiling") }
    end
    assert_equal [["A#a (/a.rb:1)", "send", 5, "2: 5", 5]], found
  end

  def test_exits_that_recompiling_cannot_change_are_not_called_out
    ["Throw", "ExceptionHandler", "UnhandledYARVInsn(once)", "UnknownSpecialVariable(1)", "CompileError(OutOfMemory)"].each do |reason|
      assert_empty(loops { |b| (1..3).each { |v| 9.times { exit_event(b, reason, insn: "throw", version: v) } } }, reason)
    end
    assert_equal 1, loops { |b| (1..2).each { |v| exit_event(b, "Interrupt", version: v, kind: "recompile_exit", outcome: "version_limit") } }.size
    assert_equal 1, loops { |b| (1..2).each { |v| exit_event(b, "ThrowsSomething", version: v) } }.size
  end

  def with_jit(jit)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 0, args: { "pid" => 1, "jit" => jit })
      compile(b, "a@/a.rb:1", 10, 20, iseq: "A#a (/a.rb:1)", version: 1, code_bytes: 1)
      compile(b, "a@/a.rb:1", 30, 40, iseq: "A#a (/a.rb:1)", version: 2, code_bytes: 1)
      exit_event(b, "opt_plus_overflow", version: 1, ts: 50, kind: "recompile_exit", outcome: "profiling")
      9.times { |i| exit_event(b, "opt_plus_overflow", version: 2, ts: 60 + i) }
    end
  end

  # YJIT compiles a basic block once for each state at its entry.
  def test_versions_of_blocks_are_no_recompilations
    %w[recompiled recompile_loops].each do |table|
      assert_equal 1, json(with_jit("ZJIT"))[table]["rows"].size, table
      assert_empty json(with_jit("YJIT"))[table]["rows"], table
    end
    refute_match(/^(Recompiled|Exits that go on)/, report(with_jit("YJIT")).out)
    both = report_of_files(with_jit("YJIT"), with_jit("ZJIT"), options: ["--format=json"])
    assert_equal [[10, "1: 1, 2: 9"]], rows(JSON.parse(both.out), "recompile_loops", "count", "versions"), "each file has its own JIT"
    assert_match(/^Recompiled: 1 of 1 ISEQ$/, report_of_files(with_jit("YJIT"), with_jit("ZJIT")).out)
  end

  # Version 1 has so many exits in its first millisecond; version 2 lives so many times as long,
  # with ten exits.
  def saved(exits:, times:, rate: 1, again: false)
    ms = 1_000_000
    trace = FxtBuilder.simple do |b|
      compile(b, "x", 10, 20, iseq: "A#a (/a.rb:1)", version: 1)
      exits.times { |i| exit_event(b, version: 1, ts: 20 + i * (ms - 40) / exits, **(rate > 1 ? { weight: [:uint32, rate] } : {})) }
      b.event(:begin, "invalidation", "NoProfileSend", ts: ms, args: { "iseq" => "A#a (/a.rb:1)", "version" => [:uint32, 1] })
      b.event(:end, "invalidation", "NoProfileSend", ts: ms + 1)
      compile(b, "x", ms + 10, ms + 20, iseq: "A#a (/a.rb:1)", version: 1) if again
      compile(b, "x", ms + 10, ms + 20, iseq: "A#a (/a.rb:1)", version: 2)
      10.times { |i| exit_event(b, version: 2, ts: ms + 20 + i) }
      b.event(:instant, "c", "n", ts: ms + times * ms)
    end
    [json(trace)["recompiled"]["rows"][0].fetch("saved"), report(trace).out]
  end

  def test_saved_exits_are_estimated_only_from_many_exits_in_a_time_as_long
    estimate, out = saved(exits: 200, times: 5)
    assert_in_delta 5 * 200 - 10, estimate, 1
    assert_match(/^Recompiled: 1 of 1 ISEQ; saved: fewer exits than at the rate of the version before$/, out)
    [{ exits: 3, times: 5 }, { exits: 99, times: 5 }, { exits: 200, times: 11 }, { exits: 3, times: 5, rate: 97 },
     { exits: 200, times: 5, again: true }].each do |weak|
      estimate, out = saved(**weak)
      assert_nil estimate, weak
      assert_match(/^Recompiled: 1 of 1 ISEQ$/, out)
      refute_match(/saved/, out)
    end
  end

  # Templates: each evaluation makes an ISEQ with the same label.
  def test_iseqs_of_one_label_are_no_recompilations_of_one
    trace = FxtBuilder.simple do |b|
      50.times { |i| compile(b, "x", 100 + i * 10, 105 + i * 10, iseq: "block in <main> ((erb):1)", version: 1, code_bytes: 1) }
    end
    assert_empty json(trace)["recompiled"]["rows"]
    assert_equal [["block in <main> ((erb):1)", 50]], rows(json(trace), "compiled_iseqs", "iseq", "count")
  end

  def test_of_very_many_versions_the_last_are_shown
    found = loops { |b| (1..20).each { |v| v.times { exit_event(b, version: v) } } }
    assert_equal "14 more, 15: 15, 16: 16, 17: 17, 18: 18, 19: 19, 20: 20", found[0][3]
  end

  def test_sampled_loops_have_exact_counts
    trace = OurTrace.new(rate: 97)
    trace.sites << trace.site("side_exit", "GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", "opt_plus", 1000)
    trace.sites.last[:args]["version"] = [:uint32, 2]
    assert_equal [["Foo#bar (/app/foo.rb:3)", 1199, "1: 199, 2: 1,000"]],
                 rows(json(trace.build), "recompile_loops", "method", "count", "versions")
  end

  def test_an_unknown_outcome_is_counted_as_such
    trace = FxtBuilder.simple { |b| exit_event(b, kind: "recompile_exit", outcome: "frobnicated") }
    assert_equal [["(unknown)", 1]], rows(json(trace), "outcomes", "outcome", "count")
  end

  # --- durations ---

  def test_compilations_are_counted_once_and_their_phases_apart
    assert_match(/^Compilations: 1 of 1 ISEQ, 400 ns in all, 640 bytes of code$/, report(OurTrace.new.build).out)
    assert_equal [["(whole)", 1, 400], ["build_hir", 1, 100]], rows(json(OurTrace.new.build), "compile_phases", "name", "count", "total_ns")
  end

  def test_code_bytes_and_compilations_that_made_nothing
    trace = OurTrace.new
    trace.spans.last[:args] = { "iseq" => "x", "version" => [:uint32, 0], "code_bytes" => [:uint64, 1234] }
    assert_match(/^Compilations: 1 of 1 ISEQ, 400 ns in all, 1234 bytes of code; 1 without code$/, report(trace.build).out)
  end

  # Each [name, from, to, phases within, arguments of its end], on a thread.
  def compile(builder, name, from, to, phases = [], thread: 1, **args)
    builder.event(:begin, "compile", name, ts: from, thread: thread)
    phases.each do |phase, begun, ended|
      builder.event(:begin, "compile", phase, ts: begun, thread: thread)
      builder.event(:end, "compile", phase, ts: ended, thread: thread)
    end
    args = args.to_h { |key, value| [key.to_s, value.is_a?(Integer) ? [:uint64, value] : value] }
    builder.event(:end, "compile", name, ts: to, thread: thread, args: args)
  end

  # As ZJIT writes them: few of its outermost durations are compilations of ISEQs.
  def compilations
    FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      compile(b, "a@/a.rb:1", 1000, 1500, [["codegen", 1100, 1200], ["mark_executable", 1300, 1310]], iseq: "A#a (/a.rb:1)", version: 1, code_bytes: 100)
      compile(b, "compile_stub", 2000, 2040, [["codegen", 2010, 2013]])
      3.times { |i| compile(b, "mark_executable", 3000 + i * 10, 3005 + i * 10) }
      compile(b, "a@/a.rb:1", 4000, 4100, iseq: "A#a (/a.rb:1)", version: 2, code_bytes: 50)
      compile(b, "b@/a.rb:9", 5000, 5300, [["codegen", 5010, 5050]], iseq: "A#b (/a.rb:9)", version: 0, code_bytes: 7)
      b.event(:begin, "compile", "c@/c.rb:1", ts: 6000) # ends last, while another thread does other work
      compile(b, "compile_stub", 6100, 6200, [["codegen", 6110, 6111]], thread: 2)
      b.event(:begin, "compile", "emit", ts: 6150)
      b.event(:end, "compile", "emit", ts: 6160)
      b.event(:end, "compile", "c@/c.rb:1", ts: 7000, args: { "iseq" => "C#c (/c.rb:1)", "version" => [:uint32, 1], "code_bytes" => [:uint64, 11] })
    end
  end

  def test_other_work_of_the_compiler_counts_as_no_compilation
    data = json(compilations)
    assert_match(/^Compilations: 4 of 3 ISEQs, 1\.90 us in all, 168 bytes of code; 1 without code$/, report(compilations).out)
    assert_equal [4, 3, 1, 168], data["totals"]["rows"][0].values_at("compilations", "compiled_iseqs", "compiled_nothing", "code_bytes")
    assert_equal [["(whole)", 4, 1900], ["codegen", 2, 140], ["emit", 1, 10], ["mark_executable", 1, 10]],
                 rows(data, "compile_phases", "name", "count", "total_ns"), "phases of what is no compilation are none"
    assert_equal [["compile_stub", 2, 140], ["mark_executable", 3, 15]], rows(data, "compile_other", "name", "count", "total_ns")
    assert_in_epsilon 300, data["compile_phases"]["rows"][0]["median_ns"], 0.02
  end

  def test_compilations_by_iseq_have_their_time_and_code
    data = json(compilations)
    assert_equal [["C#c (/c.rb:1)", 1, 1000, 1000, 11, 0], ["A#a (/a.rb:1)", 2, 600, 500, 150, 0], ["A#b (/a.rb:9)", 1, 300, 300, 7, 1]],
                 rows(data, "compiled_iseqs", "iseq", "count", "total_ns", "longest_ns", "code_bytes", "nothing")
    rest = json(compilations, "--top=1")["compiled_iseqs"]
    assert_equal [2, [3, 900, 157, 1]], [rest["more_rows"], rest["more"].values_at("count", "total_ns", "code_bytes", "nothing")]
  end

  def test_compilations_that_began_before_the_time_count_with_none_of_their_phases
    data = json(compilations, "--since=#{6145 - 1000}ns")
    assert_equal [["C#c (/c.rb:1)", 1]], rows(json(compilations, "--since=4600ns"), "compiled_iseqs", "iseq", "count")
    assert_empty data["compiled_iseqs"]["rows"]
    assert_empty data["compile_phases"]["rows"]
  end

  def test_median_and_95_percent_are_right_within_1_percent
    lengths = (1..1000).map { |i| i * i * 37 }
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "compile", "whole", ts: 0)
      at = 1
      lengths.shuffle(random: Random.new(1)).each do |length|
        b.event(:begin, "compile", "phase", ts: at)
        b.event(:end, "compile", "phase", ts: at + length)
        at += length
      end
      b.event(:end, "compile", "whole", ts: at, args: { "iseq" => "A#a (/a.rb:1)" })
    end
    phase = json(trace)["compile_phases"]["rows"].find { |row| row["name"] == "phase" }
    assert_equal [1000, lengths.sum, lengths.max], phase.values_at("count", "total_ns", "longest_ns")
    assert_in_epsilon lengths[499], phase["median_ns"], 0.01
    assert_in_epsilon lengths[949], phase["p95_ns"], 0.01
  end

  def test_quantiles_of_few_are_some_of_them
    trace = FxtBuilder.simple { |b| [7, 100_003, 300_017].each { |ns| b.event(:complete, "invalidation", "n", ts: 1, extra: 1 + ns) } }
    row = json(trace)["invalidations"]["rows"][0]
    assert_in_epsilon 100_003, row["median_ns"], 0.01
    assert_equal 300_017, row["p95_ns"]
  end

  def test_time_of_durations_is_that_of_the_paired_ends
    trace = FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.event(:begin, "invalidation", "a", ts: 1000)
      b.event(:begin, "invalidation", "a", ts: 2000, thread: 2)
      b.event(:end, "invalidation", "a", ts: 5000)
      b.event(:end, "invalidation", "a", ts: 12_000, thread: 2)
      b.event(:complete, "invalidation", "b", ts: 20_000, extra: 20_500)
    end
    assert_equal [["a", 2, 14_000, 10_000], ["b", 1, 500, 500]], rows(json(trace), "invalidations", "name", "count", "total_ns", "longest_ns")
  end

  def test_durations_that_took_most_time_come_first
    trace = FxtBuilder.simple do |b|
      3.times { |i| b.event(:complete, "x", "often", ts: i * 10, extra: i * 10 + 1) }
      b.event(:complete, "y", "long", ts: 100, extra: 200)
    end
    assert_equal [%w[y long], %w[x often]], rows(json(trace), "durations", "kind", "name")
  end

  def test_durations_that_never_end_are_told_and_not_counted
    out = report(FxtBuilder.simple { |b| b.event(:begin, "compile", "x", ts: 1) }).out
    assert_match(/^  never ended    1 duration, not counted below$/, out)
    refute_match(/^Compilations/, out)
  end

  # --- filters ---

  def ten_exits
    FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.thread_name(42, 44, "worker")
      10.times { |i| exit_event(b, "R#{i}", "A#m#{i} (/lib/a.rb:#{i})", ts: 1_000_000_000 + i * 100_000_000, thread: i.even? ? 1 : 2) }
    end
  end

  def reasons(*options) = rows(json(ten_exits, *options), "exits_by_reason", "reason").flatten

  def test_since_and_until_count_from_the_first_event
    assert_equal %w[R2 R3 R4], reasons("--since=0.2", "--until=.5")
    assert_equal %w[R2 R3 R4], reasons("--since=200ms", "--until", "500000us")
    assert_equal %w[R9], reasons("-s", "900000000ns")
    assert_equal %w[R0], reasons("-u", "0.1s")
    assert_match(/^  only           from 0\.2 s to the end$/, report(ten_exits, "--since=0.2").out)
  end

  def test_reason_and_method_are_globs
    assert_equal %w[R3], reasons("--reason=R3")
    assert_equal %w[R3 R4], reasons("--reason=R[34]")
    assert_equal %w[R7], reasons("--method=A#m7"), "the name without its path"
    assert_equal %w[R7], reasons("--method=*a.rb:7)"), "the whole label"
    assert_equal 10, reasons("--method=A#*").size
    assert_empty reasons("--method=m7")
    assert_match(/^  only           reason R3: exits and fallbacks$/, report(ten_exits, "--reason=R3").out)
  end

  def test_parentheses_in_a_name_are_not_those_of_its_path
    ["<top (required)>", "block (2 levels) in <top (required)>", "rescue in block (12 levels) in Foo.bar"].each do |name|
      trace = FxtBuilder.simple { |b| b.event(:instant, "side_exit", "R", ts: 1, args: { "0" => "#{name} (/app (1)/a.rb:3)" }) }
      assert_equal 1, json(trace, "--method=#{name}")["exits_by_reason"]["rows"].size, name
    end
  end

  def test_thread_is_a_tid_or_a_glob_of_the_name
    assert_equal %w[R1 R3 R5 R7 R9], reasons("--thread=44")
    assert_equal %w[R1 R3 R5 R7 R9], reasons("--thread=work*")
    assert_equal %w[R0 R2 R4 R6 R8], reasons("-t", "main")
  end

  def test_filters_meet
    assert_equal %w[R5], reasons("--thread=worker", "--since=0.4", "--until=0.6", "--reason=R*")
  end

  def test_durations_are_in_when_they_began_in_time
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "invalidation", "a", ts: 1000)
      b.event(:end, "invalidation", "a", ts: 5000)
      b.event(:begin, "invalidation", "b", ts: 6000)
      b.event(:end, "invalidation", "b", ts: 9000)
    end
    assert_equal [["a", 4000]], rows(json(trace, "--until=2us"), "invalidations", "name", "total_ns")
    assert_equal [["b", 3000]], rows(json(trace, "--since=2us"), "invalidations", "name", "total_ns")
    assert_empty json(trace, "--reason=*")["invalidations"]["rows"], "reasons of exits are asked for"
  end

  # --- processes, threads, losses ---

  def test_losses_are_told_with_their_reason
    trace = OurTrace.new
    2.times { |i| trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 500 + i], "reason" => "disk full" } } }
    assert_equal ["1,001 events: 1,001 disk full"], head(report(trace.build).out, "lost")
    assert_equal ["nothing"], head(report(OurTrace.new.build).out, "lost")
    assert_equal [[42, 1001, "disk full"]], rows(json(trace.build), "losses", "pid", "events", "reason")
  end

  def test_trace_without_its_summary_does_not_claim_that_nothing_was_lost
    trace = OurTrace.new
    trace.summary = nil
    assert_match(/nothing known; the trace has no summary/, head(report(trace.build).out, "lost")[0])
  end

  def test_processes_of_one_file_have_their_own_settings_summary_and_sites
    first = OurTrace.new(pid: 100).build.bytes
    second = OurTrace.new(pid: 200, rate: 97).build.bytes
    third = OurTrace.new(pid: 300, rate: 5).tap { |t| t.summary = nil; t.sites = [] }.build.bytes
    data = json(first + second + third)
    assert_equal [[100, 3, 4, "all", "yes"], [200, 296, 4, "exact", "yes"], [300, 15, 4, "estimates", "no"]],
                 rows(data, "processes", "pid", "exits", "recorded", "counts", "ended")
    assert_equal 3 + 296 + 15, data["totals"]["rows"][0]["exits"]
    out = report(first + second + third).out
    assert_includes out, "  exit_rate      97   (1 of 3 processes)\n"
    assert_match(/^  jit            ZJIT$/, out)
    assert_equal ["1 of 3 processes have no summary: they still run, or ended abruptly"], head(out, "lost")
    refute_match(/^  pid  +\d+$/, out)
  end

  def test_several_files_are_one_run
    result = report_of_files(OurTrace.new(pid: 100).build.bytes, OurTrace.new(pid: 200).build.bytes, options: ["--format=json"])
    data = JSON.parse(result.out)
    assert_equal [[100, "0.fxt"], [200, "1.fxt"]], rows(data, "processes", "pid", "file")
    assert_equal [["GuardType(Fixnum)", 4], ["NoProfileSend", 2]], rows(data, "exits_by_reason", "reason", "count")
  end

  def test_files_whose_processes_have_the_same_pid_are_told_apart
    result = report_of_files(OurTrace.new.build, OurTrace.new(rate: 97).build, options: ["--format=json"])
    data = JSON.parse(result.out)
    assert_equal [[42, 3, "0.fxt"], [42, 296, "1.fxt"]], rows(data, "processes", "pid", "exits", "file")
    assert_equal 2, rows(data, "threads", "tid").size
  end

  def piece(reason, rate: 97)
    trace = OurTrace.new(rate:)
    trace.settings["snapshot"] = reason
    trace.build
  end

  # A process that got the pid of another one begins with number 1.
  def test_pieces_of_a_spool_are_those_of_one_process
    names = %w[221504-1-time 221509-2-time 221510-11-exit 231504-1-exit].map { |name| "a-b-1-42-20261126T#{name}.fxt" }
    pieces = [piece("time"), piece("time", rate: 1), piece("exit"), piece("exit")]
    result = report_of_files(*pieces, names:, options: ["--format=json"])
    data = JSON.parse(result.out)
    assert_equal [[names[0], 3, 296 + 3 + 296], [names[3], 1, 296]], rows(data, "processes", "file", "pieces", "exits")
    assert_equal [[296 + 3 + 296, 43], [296, 43]], rows(data, "threads", "count", "tid")
    text = report_of_files(*pieces, names:).out
    assert_match(/^Processes: 2, in 4 pieces$/, text)
    assert_match(/^  snapshot       time   \(1 of 2 processes\)$/, text)
    assert_match(/^  snapshot       exit$/, text)
  end

  def test_other_names_are_those_of_processes_of_their_own
    [%w[x-42-20261126T221504-1-time.fxt y-42-20261126T221509-2-time.fxt], # another host
     %w[x-42-20261126T221504-1-time.fxt x-43-20261126T221509-2-time.fxt],
     %w[x-42-20261126T221504-2-time.fxt x-42-20261126T221509-1-time.fxt],
     %w[x-42-2026-1-time.fxt x-42-2026-2-time.fxt]].each do |names|
      data = JSON.parse(report_of_files(piece("time"), piece("time"), names:, options: ["--format=json"]).out)
      assert_equal [1, 1], rows(data, "processes", "pieces").flatten, names
    end
  end

  # One of them lost events: there events count, in the other one hits of sites.
  def test_pieces_are_exact_on_their_own
    lossy = OurTrace.new(rate: 97)
    lossy.settings["snapshot"] = "time"
    args = { "lost" => [:uint64, 4], "reason" => "full" }
    lossy.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: }
    names = %w[x-42-20261126T221504-1-time.fxt x-42-20261126T221509-2-time.fxt]
    data = JSON.parse(report_of_files(lossy.build, piece("time"), names:, options: ["--format=json"]).out)
    assert_equal [[3 * 97 + 296, 4, "estimates"]], rows(data, "processes", "exits", "lost", "counts")
    assert_equal [3 * 97 + 296], rows(data, "threads", "count").flatten
  end

  def test_of_very_many_files_the_first_are_shown
    names = (1..30).map { |i| format("x-42-20261126T2215%02d-%d-time.fxt", i, i) }
    text = report_of_files(*Array.new(30) { piece("time") }, names:).out
    assert_equal 20, text.scan(/-time\.fxt: /).size
    assert_match(/^                 and 10 more: .* events$/, text)
  end

  def test_threads_are_listed_where_there_is_more_than_one
    refute_match(/^Threads/, report(OurTrace.new.build).out)
    trace = FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.thread_name(42, 44, "worker")
      b.event(:instant, "c", "n", ts: 1)
      2.times { exit_event(b, ts: 1, thread: 2) }
    end
    assert_equal [[2, 2, 42, 44, "worker"], [0, 1, 42, 43, "main"]], rows(json(trace), "threads", "count", "events", "pid", "tid", "thread")
    assert_match(/^Threads, including those of ractors: 2$/, report(trace).out)
  end

  def test_threads_that_share_a_native_one_are_listed_and_chosen_by_their_own_names
    trace = FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.thread_name(42, 44, "M:N thread")
      exit_event(b, "R0", ts: 1)
      %w[one two two].each_with_index { |name, i| exit_event(b, "R#{i + 1}", ts: 2 + i, thread: 2, "thread" => name) }
      b.event(:instant, "c", "n", ts: 9, thread: 2)
    end
    assert_equal [[2, nil, "two"], [1, 43, "main"], [1, nil, "one"], [0, 44, "M:N thread"]].sort_by(&:to_s),
                 rows(json(trace), "threads", "count", "tid", "thread").sort_by(&:to_s)
    { "two" => %w[R2 R3], "M:N*" => %w[R1 R2 R3], "44" => %w[R1 R2 R3], "0" => [] }.each do |wanted, reasons|
      assert_equal reasons, rows(json(trace, "--thread=#{wanted}"), "exits_by_reason", "reason").flatten.sort, wanted
    end
  end

  # --- untrusted input ---

  def test_control_characters_do_not_reach_the_terminal
    trace = OurTrace.new
    trace.settings["command"] = "ruby \e]0;title\a\r\n"
    trace.exits[0][:name] = "\e[31mred"
    trace.exits[0][:args]["0"] = "a\u009bb\u202e\x00\xff"
    %w[text markdown csv].each do |format|
      out = report(trace.build, "--format=#{format}").out
      refute_match(/[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202e]/, out, format)
      assert_includes out.delete("\\"), "ruby x1B]0;titlex07rn"
      assert_includes out.delete("\\"), "x1B[31mred"
    end
    assert_equal "\e[31mred", json(trace.build)["exits_by_reason"]["rows"].map { |row| row["reason"] }.grep(/red/)[0]
  end

  def test_what_markdown_would_take_for_its_own_is_escaped
    trace = OurTrace.new
    trace.exits[0][:name] = "a|b*c_<d>`"
    assert_includes report(trace.build, "--format=markdown").out, "a\\|b\\*c\\_\\<d\\>\\`"
  end

  def test_csv_is_one_table_that_ruby_reads
    trace = OurTrace.new
    trace.exits[0][:name] = "say \"hello\", twice"
    table = CSV.parse(report(trace.build, "--format=csv").out, headers: true)
    by_reason = table.select { |row| row["table"] == "exits_by_reason" }
    assert_equal [["GuardType(Fixnum)", "1"], ["NoProfileSend", "1"], ["say \"hello\", twice", "1"]], by_reason.map { |row| [row["reason"], row["count"]] }
  end

  # For spreadsheets: texts that are no formula, numbers that are numbers. JSON has what the trace has.
  def test_csv_has_no_formulas
    names = ["=1+1", "+a", "-a", "@a", "\uff1d1", "\uff0da", "'=a", " =a", "a=1", "\t=1", "\r=1", "\n=1", "\uff3d1", "\uff411", "7"]
    trace = trace_of(*names.map.with_index { |name, i| [name, names.size - i, "send"] })
    rows = JSON.parse(report(trace, "--format=json", "--top=99").out)["exits_by_reason"]["rows"]
    assert_equal names.sort, rows.map { |row| row["reason"] }.sort
    [%w[--format=csv], %w[--format=csv --table=exits_by_reason]].each do |options|
      table = CSV.parse(report(trace, *options, "--top=99").out, headers: true)
      found = table.select { |row| [nil, "exits_by_reason"].include?(row["table"]) }.map { |row| row["reason"] }
      escaped = names.map { |name| name.sub(/\A[\t\r\n]/, "\t" => "\\t", "\r" => "\\r", "\n" => "\\n") }
      assert_equal escaped.map { |name| name.sub(/\A(?=[-=+@\uff1d\uff0d])/, "'") }.sort, found.sort
      counts = table.flat_map { |row| row.to_h.slice("count", "first_ns", "last_ns").values.compact }
      assert_empty counts.grep_v(/\A-?\d+\z/)
    end
  end

  def test_cut_trace_is_reported_up_to_there_with_status_1
    result = report(OurTrace.new.build.bytes[0..-9])
    assert_equal 1, result.status
    assert_match(/the file is truncated/, result.err)
    assert_match(/^Exits by reason: 3$/, result.out)
  end

  def test_file_that_is_no_trace_gets_no_screen
    %w[text json csv markdown].each do |format|
      result = report("hello, hello", "--format=#{format}")
      assert_empty result.out
      assert_equal 4, result.status
    end
  end

  def test_trace_among_files_that_are_none_is_reported
    result = report_of_files("hello, hello", OurTrace.new.build)
    assert_match(/^Exits by reason: 3$/, result.out)
    assert_equal 4, result.status
  end

  def test_trace_without_exits_says_so
    trace = OurTrace.new
    trace.exits = trace.sites = []
    assert_match(/^  exits          none$/, report(trace.build).out)
  end

  def test_a_million_events_fit_in_little_memory
    skip "a sanitizer, or an emulator, takes address space of its own" if INSTRUMENTED
    skip "no bash to limit memory with" unless system("bash", "-c", "ulimit -v 1000000", err: File::NULL)
    events = FxtBuilder.new(magic: false)
    1000.times { |i| events.event(:instant, 100, 100, ts: 9000 + i, args: [events.arg(101, [:string, 102])]) }
    Dir.mktmpdir do |dir|
      path = File.join(dir, "large.fxt")
      head = FxtBuilder.simple { |b| b.string(100, "side_exit"); b.string(101, "0"); b.string(102, "frame") }
      File.open(path, "wb") { |f| f << head.bytes; 1000.times { f << events.bytes } }
      # 32 MB of trace with 60 MB of address space, which includes the program and its libraries.
      out = IO.popen(["bash", "-c", 'ulimit -v 60000; exec "$0" report --all "$1"', TOOL, path], &:read)
      assert_equal 0, $?.exitstatus
      assert_match(/^Exits by reason: 1,000,000$/, out)
    end
  end

  # --- the page ---

  # Paths like those of libraries, and reasons like ZJIT's.
  def wide_trace
    FxtBuilder.simple do |b|
      reasons = ["GuardType(String)", "GuardType(Union[Class(Liquid::Template),Class(Liquid::Context),Fixnum,NilClass])"]
      12.times do |i|
        exit_event(b, reasons[i % 2], "Liquid::BlockBody#render_node (/usr/local/lib/ruby/gems/4.1.0/gems/liquid-5.5.0/lib/" \
                                      "liquid/#{%w[block_body.rb 文書.rb][i % 2]}:#{100 + i})", ts: 1000 * i)
      end
    end
  end

  def wide_report(columns, *arguments)
    with_file(wide_trace) do |path|
      out, = Open3.capture2({ "COLUMNS" => columns }, TOOL, "report", "--all", *arguments, path)
      return out.force_encoding("UTF-8").lines(chomp: true).reject { |line| line.start_with?(path) }
    end
  end

  # Chinese and Japanese characters take two columns.
  def columns_of(line) = line.each_char.sum { |c| c.match?(/\p{Han}|\p{Hiragana}|\p{Katakana}/) ? 2 : 1 }

  def test_tables_fit_the_page
    { nil => 100, "80" => 80, "132" => 132 }.each do |columns, most|
      lines = wide_report(columns)
      assert_empty lines.select { |line| columns_of(line) > most }, columns
      assert_operator lines.grep(/block_body\.rb:110\)$/).size, :>=, 1, "the file and the line stay"
    end
    wide = wide_report("400")
    assert_includes wide.join("\n"), "Liquid::BlockBody#render_node (/usr/local/lib/ruby/gems/4.1.0/gems/liquid-5.5.0/lib/liquid/block_body.rb:110)"
    refute_includes wide.join("\n"), "…"
  end

  def test_what_is_left_out_for_want_of_room_is_named
    note = wide_report("80").last
    assert_match(/\A"over time" is left out of tables over 80 columns wide; COLUMNS=\d+ shows it\.\z/, note)
    refute_match(/left out/, wide_report(note[/COLUMNS=(\d+)/, 1]).last)
  end

  # It says nothing that the page has no room for: the names do.
  def test_a_kind_that_all_rows_have_is_left_out_of_a_table_that_is_too_wide
    trace = FxtBuilder.simple { |b| %w[one two].each_with_index { |name, i| exit_event(b, name, ts: i) } }
    with_file(trace.bytes) do |path|
      heads = [200, 45].map do |columns|
        out, = Open3.capture2({ "COLUMNS" => columns.to_s }, TOOL, "report", "--all", path)
        out[/^Exits by reason.*\n(.*)/, 1].split
      end
      assert_equal [true, false], heads.map { |head| head.include?("kind") }, heads
      assert_equal [true, true], heads.map { |head| head.include?("reason") }, heads
    end
  end

  def test_columns_line_up_where_a_wide_character_does_not_fit
    trace = FxtBuilder.simple { |b| ["短い理由" * 12, "short"].each_with_index { |name, i| exit_event(b, name, ts: i) } }
    (60..80).each do |columns|
      with_file(trace.bytes) do |path|
        out, = Open3.capture2({ "COLUMNS" => columns.to_s }, TOOL, "report", "--all", "--table=worst", path)
        starts = out.force_encoding("UTF-8").lines.grep(/A#a/).map { |line| columns_of(line[0, line.index("A#a")]) }
        assert_equal 1, starts.uniq.size, out
      end
    end
  end

  def test_programs_get_all_of_it
    assert_operator wide_report("80", "--format=csv").grep(%r{/usr/local/lib/ruby/gems/4\.1\.0/gems/liquid-5\.5\.0/lib/liquid/block_body\.rb:110}).size, :>=, 1
  end

  def test_columns_line_up_behind_wide_characters
    trace = FxtBuilder.simple { |b| ["短い理由", "short", "Cafe\u0301", "👨‍👩‍👧"].each_with_index { |name, i| exit_event(b, name, ts: i) } }
    lines = report(trace.bytes).out.lines.drop_while { |line| !line.start_with?("Worst methods") }.drop(1).take(5)
    widths = { "短い理由" => 8, "short" => 5, "Cafe\u0301" => 4, "👨‍👩‍👧" => 2 }
    widths.each do |name, width|
      line = lines.find { |l| l.include?(name) }
      assert_match(/#{name} {#{10 - width}}\S/, line, lines.join)
    end
  end

  # --- tables that would repeat each other ---

  def titles(trace, *options) = report(trace, *options).out.scan(/^(Exits by [a-z ]+)/).flatten

  # [reason, line, instruction] of each exit.
  def trace_of(*exits)
    FxtBuilder.simple { |b| exits.each_with_index { |(reason, line, insn), i| exit_event(b, reason, "A#a (/a.rb:#{line})", ts: i, insn: insn) } }.bytes
  end

  def test_tables_of_the_same_rows_are_one
    trace = trace_of(["R1", 1, "send"], ["R1", 1, "send"], ["R2", 2, "opt_plus"])
    assert_equal ["Exits by reason"], titles(trace)
    table = report(trace).out[/^Exits by reason: 3\n(.*?)\n\n/m, 1].lines.map(&:split)
    assert_equal %w[count share over time kind reason instruction method], table[0]
    assert_equal [%w[2 side_exit R1 send A#a (/a.rb:1)], %w[1 side_exit R2 opt_plus A#a (/a.rb:2)]], table.drop(1).map { |row| row.values_at(0, -5..-1) }
    assert_equal ["## Exits by reason: 3"], report(trace, "--format=markdown").out.scan(/^## Exits by .*/)
  end

  def test_tables_with_rows_of_their_own_stay
    assert_equal ["Exits by reason", "Exits by method and line", "Exits by instruction"], titles(trace_of(["R1", 1, "send"], ["R2", 1, "send"], ["R2", 2, "opt_plus"]))
    # One instruction for both.
    assert_equal ["Exits by reason", "Exits by instruction"], titles(trace_of(["R1", 1, "send"], ["R2", 2, "send"]))
    # As many rows, but not for the same exits: there is each pair of a reason and a line.
    assert_equal 3, titles(trace_of(["R1", 1, "send"], ["R1", 2, "send"], ["R2", 1, "send"], ["R2", 2, "send"])).size
  end

  def test_programs_get_the_tables_as_they_are
    data = json(trace_of(["R1", 1, "send"], ["R2", 2, "opt_plus"]))
    assert_equal [%w[count share recorded rate kind reason], %w[count share recorded rate method]],
                 %w[exits_by_reason exits_by_line].map { |name| data[name]["rows"][0].keys }
    rows = report(trace_of(["R1", 1, "send"], ["R2", 2, "opt_plus"]), "--format=csv").out.lines.map { |line| line[/\A\w+/] }
    assert_equal [2, 2, 2], %w[exits_by_reason exits_by_line exits_by_instruction].map { |name| rows.count(name) }
  end

  def test_what_is_not_shown_of_one_table_is_summed_up
    out = report(trace_of(*Array.new(5) { |i| ["R#{i}", i, "i#{i}"] }), "--top=2").out
    assert_match(/^ +3 +60\.0% +in 3 more$/, out[/^Exits by reason.*?\n\n/m])
  end

  # --- one table ---

  def test_one_table_as_csv_has_its_own_columns
    with_file(OurTrace.new.build) do |path|
      assert_equal <<~CSV, tool("report", "--format=csv", "--table=exits_by_instruction", path).out.gsub(/([\d.]+ ){19}[\d.]+/, "RATE")
        count,share,recorded,rate,instruction
        2,0.666667,2,RATE,"opt_plus"
        1,0.333333,1,RATE,"send"
      CSV
      few = tool("report", "--format=csv", "-Texits_by_instruction", "--top=1", path)
      assert_equal ["vm-trace: 1 more rows of the table exits_by_instruction are not shown (--top=N shows more)\n", 2], [few.err, few.out.lines.size]
    end
  end

  def test_one_table_in_other_formats
    with_file(OurTrace.new.build) do |path|
      assert_equal %w[totals], JSON.parse(tool("report", "-fjson", "-Ttotals", path).out).keys
      assert_match(/\A#{path}\n\nTotals\n +exits +exits_recorded /, tool("report", "--all", "-Ttotals", path).out,
                   "also one that is for programs")
      assert_match(/^## Exits by reason: 3\n/, tool("report", "--all", "-fmarkdown", "-Texits_by_reason", path).out)
      wrong = tool("report", "--all", "-Ttotal", path)
      assert_match(/there are: history$/, tool("history", "--method=*", "--table=x", path).err)
      assert_match(/\Avm-trace: there is no table total here; there are: settings .* totals exits_by_reason /, wrong.err)
      assert_equal ["", 2], [wrong.out, wrong.status]
    end
  end

  def test_history_has_one_table_for_each_iseq
    File.join(TRACES, "recompiled.fxt").then do |path|
      lines = tool("history", "-fcsv", "-Thistory", path, "*").out.lines
      assert_equal 1, lines.grep(/^time_ns,/).size
      assert_operator lines.grep(/Foo#bar/).size, :>, 0
      assert_operator lines.grep(/block in Foo#all/).size, :>, 0
    end
  end

  # --- on a terminal ---

  def on_terminal(environment)
    with_file(OurTrace.new.build) do |path|
      Terminal.open do |terminal|
        pid = Process.spawn(environment, TOOL, "report", "--all", path, out: terminal.side, err: File::NULL)
        return terminal.wait(pid).first
      end
    end
  end

  def test_colour_is_for_terminals_and_no_color_turns_it_off
    assert_includes on_terminal("TERM" => "xterm", "NO_COLOR" => nil), "\e[1mExits by reason: 3\e[0m"
    refute_includes on_terminal("TERM" => "xterm", "NO_COLOR" => "1"), "\e"
    refute_includes on_terminal("TERM" => "dumb", "NO_COLOR" => nil), "\e"
    assert_includes on_terminal("TERM" => "xterm", "NO_COLOR" => ""), "\e", "an empty one does not count"
    refute_includes report(OurTrace.new.build).out, "\e"
  end

  # --- info ---

  def test_info_has_files_processes_and_providers
    with_file(FxtBuilder.simple { |b| b.provider(7, "other"); b.init; b.provider(1, "test"); b.init; exit_event(b, thread: 0) }) do |path|
      data = JSON.parse(tool("info", "--format=json", path).out)
      assert_equal [[1, "test", 2], [7, "other", 1]], rows(data, "providers", "id", "provider", "chunks")
      assert_equal [File.size(path), 3], data["files"]["rows"][0].values_at("bytes", "chunks")
      assert_equal %w[files losses partial processes providers settings time_span], data.keys.sort
      assert_equal ["1 fault in its records, whose contents may be missing (vm-trace check lists them)", 0, 1],
                   data["partial"]["rows"][0].values_at("partial", "stopped", "faults")
    end
  end
end
