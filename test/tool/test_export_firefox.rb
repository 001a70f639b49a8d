# `vm-trace export --format firefox`: the profile keeps the rules of the Firefox Profiler's format, and its
# numbers are those of the report and of the other exports. With FIREFOX_PROFILER=DIR, the `dist` of a
# built checkout of github.com/firefox-devtools/profiler, that program shows it in a browser.
require_relative "tool_helper"
require_relative "browser"
require_relative "site"

class TestExportFirefox < Minitest::Test
  include ToolHelper

  def gvl = File.binread(File.join(TRACES, "gvl.fxt"))

  def export(bytes, *options, status: 0)
    with_file(bytes) do |path|
      result = tool("export", "-f", "firefox", *options, path)
      assert_equal status, result.status, result.err[0, 500]
      return result
    end
  end

  def profile(bytes, *options, **rest) = valid(JSON.parse(export(bytes, *options, **rest).out))

  # --- the rules of the format -------------------------------------------------------------------

  COLORS = %w[transparent purple green orange yellow lightblue blue brown magenta red lightred darkgrey grey].freeze

  def assert_table(table, columns)
    assert_equal columns.keys.sort + ["length"], (table.keys - ["length"]).sort + ["length"]
    columns.each do |name, range|
      assert_equal table["length"], table[name].size, name
      next unless range
      nullable, range = range.is_a?(Array) ? [true, range[0]] : [false, range]
      table[name].each { |value| assert value.nil? ? nullable : range.cover?(value), "#{name}: #{value.inspect}" }
    end
  end

  def below(count) = 0...count

  # Checks what the profiler takes for granted, and returns the profile.
  def valid(profile)
    meta, shared, threads = profile.values_at("meta", "shared", "threads")
    assert_equal 61, meta["preprocessedProfileVersion"]
    assert_includes meta["categories"].map { |category| category["color"] }, "grey"
    assert_empty meta["categories"].map { |category| category["color"] } - COLORS
    categories = below(meta["categories"].size)
    strings, sources, funcs, frames, stacks = shared["stringArray"].size,
      *%w[sources funcTable frameTable stackTable].map do |name|
      shared[name]["length"]
    end
    assert_table shared["sources"], "id" => nil, "filename" => below(strings), "startLine" => 1..1,
                 "startColumn" => 1..1, "sourceMapURL" => nil
    assert_table shared["funcTable"], "name" => below(strings), "isJS" => nil, "relevantForJS" => nil,
                 "resource" => -1..-1, "source" => [below(sources)],
                                      "lineNumber" => nil, "columnNumber" => nil
    assert_table shared["frameTable"], "address" => -1..-1, "inlineDepth" => 0..0, "category" => [categories],
                 "subcategory" => [0..0], "func" => below(funcs),
                                       "nativeSymbol" => nil, "innerWindowID" => nil, "line" => [(1..)], "column" => nil
    assert_table shared["stackTable"], "frame" => below(frames), "prefix" => [below(stacks)]
    shared["stackTable"]["prefix"].each_with_index { |prefix, i| assert_operator prefix, :<, i if prefix }
    schemas = meta["markerSchema"].to_h { |schema| [schema["name"], schema["fields"].map { |field| field["key"] }] }
    assert_equal meta["markerSchema"].size, schemas.size, "types are unique"
    assert_equal threads.map { |t| t["pid"] }.uniq, threads.select { |t| t["isMainThread"] }.map { |t| t["pid"] },
                 "one main thread for each process"
    assert_equal threads.size, threads.map { |t| t.values_at("pid", "tid") }.uniq.size
    meta["initialVisibleThreads"].each { |thread| assert_operator thread, :<, threads.size }
    threads.each do |thread|
      assert_table thread["samples"].except("weightType"), "stack" => [below(stacks)], "time" => (0..),
                   "weight" => (0..)
      assert_equal thread["samples"]["time"].sort, thread["samples"]["time"]
      markers = thread["markers"]
      assert_table markers, "name" => below(strings), "startTime" => (0..), "endTime" => [(0..)], "phase" => 0..1,
                   "category" => categories, "data" => nil
      markers["data"].each do |data|
        assert_includes schemas.keys, data["type"]
        assert_empty data.keys - schemas[data["type"]] - %w[type cause]
        assert_includes below(stacks), data["cause"]["stack"] if data["cause"]
      end
      markers["phase"].zip(markers["startTime"], markers["endTime"]) do |phase, from, to|
        phase == 0 ? assert_nil(to) : assert_operator(from, :<=, to)
      end
    end
    pids = threads.map { |t| t["pid"] }
    profile["counters"].each do |counter|
      assert_equal %w[category description display mainThreadIndex name pid samples], counter.keys.sort
      assert_table counter["samples"], "time" => (0..), "count" => nil
      assert_equal counter["samples"]["time"].sort, counter["samples"]["time"]
      main = threads[counter["mainThreadIndex"]]
      assert_equal [counter["pid"], true], main.values_at("pid", "isMainThread")
      assert_includes pids, counter["pid"]
    end
    names = profile["counters"].map { |counter| counter.values_at("pid", "name") }
    assert_equal names.uniq, names
    profile
  end

  # --- its contents ---------------------------------------------------------------------------------

  # Names of functions, outermost first.
  def stack(profile, index)
    shared, names = profile["shared"], []
    while index
      frame = shared["stackTable"]["frame"][index]
      names.unshift shared["stringArray"][shared["funcTable"]["name"][shared["frameTable"]["func"][frame]]]
      index = shared["stackTable"]["prefix"][index]
    end
    names
  end

  # {thread => {stack => sum of the weights}}
  def weights(profile)
    profile["threads"].to_h do |thread|
      sums = Hash.new(0)
      thread["samples"]["stack"].zip(thread["samples"]["weight"]) do |index, weight|
        sums[stack(profile, index)] += weight
      end
      [thread["name"], sums]
    end
  end

  def markers(profile, thread_name)
    thread = profile["threads"].find { |t| t["name"] == thread_name }
    thread["markers"].values_at("name", "startTime", "endTime", "data").transpose.map do |name, *rest|
      [profile["shared"]["stringArray"][name], *rest]
    end
  end

  def test_samples_are_states_weighted_by_time
    states = with_file(gvl) { |path| JSON.parse(tool("report", "--format=json", path).out)["thread_states"]["rows"] }
    found = weights(profile(gvl)).transform_values do |sums|
      sums.group_by { |stack, _| stack.first }.transform_values { |all| (all.sum(&:last) * 1e6).round }
    end
    expected = states.to_h do |row|
      [row["thread"],
       { "waiting for the GVL" => row["waiting_ns"], "blocked" => row["blocked_ns"], "in GC" => row["gc_ns"],
         "running" => row["running_ns"] }.reject { |_, ns| ns == 0 }]
    end
    assert_equal expected, found
    assert_equal [["blocked", "IO#wait"], ["blocked", "Mutex#lock"]],
                 weights(profile(gvl))["web 1"].keys.select { |stack| stack[0] == "blocked" }
    assert_equal "tracing-ms", profile(gvl)["threads"][0]["samples"]["weightType"]
  end

  # The profiler draws a sample from halfway to the one before to halfway to the next.
  def test_states_are_drawn_where_they_are
    json = profile(gvl)
    samples = json["threads"].find { |thread| thread["name"] == "main" }["samples"]
    drawn = samples["stack"].zip(samples["time"]).map { |index, time| [stack(json, index).first, time] }
    borders = drawn.each_cons(2).reject { |a, b| a[0] == b[0] }.map { |a, b| ((a[1] + b[1]) / 2).round(3) }
    assert_equal [2, 90, 90.01], borders
  end

  def test_markers_of_states_collections_and_the_program
    json = profile(gvl)
    web = markers(json, "web 1")
    lock = { "type" => "ruby blocked", "method" => "Mutex#lock", "arg_class" => "Thread::Mutex", "woken_by" => "index" }
    assert_includes web, ["blocked", 33, 35, lock]
    assert_includes web, ["waiting for the GVL", 35, 53, { "type" => "GVL wait" }]
    index = markers(json, "index")
    assert_includes index, ["build index", 6, 60, { "type" => "ruby marker" }]
    major = { "type" => "ruby gc", "arg_count" => "2", "arg_reason" => "malloc", "arg_major_by" => "oldmalloc" }
    assert_includes index, ["GC major", 22, 26, major]
    assert_includes index, ["sweep", 40.1, 40.9, { "type" => "ruby gc", "arg_freed_slots" => "2500" }]
    assert_equal ["blocked", 62, 100], index.find { |marker| marker[3]["method"] == "Queue#pop" }.first(3),
                 "it never ended"
  end

  def test_backtraces_of_blocked_times_and_of_time_slices
    trace = ThreadsTrace.new do |t|
      t.thread(:worker, 44)
      t.runs(:worker, 0)
      t.event(:instant, :worker, "preempted", "Integer#+", 10, "0" => "Integer#+ (a.rb:3)", "1" => "<main> (a.rb:1)")
      t.leaves(:worker, 10, ThreadsTrace::RUNNABLE)
      t.runs(:worker, 15)
      t.leaves(:worker, 20, ThreadsTrace::BLOCKED)
      t.event(:begin, :worker, "blocked", "Thread::Queue#pop", 20, "0" => "Thread::Queue#pop (a.rb:7)")
      t.event(:end, :worker, "blocked", "Thread::Queue#pop", 50, "1" => "A#b (a.rb:6)",
              "10+" => "C#d (a.rb:5) x2 < <main> (a.rb:1)")
      t.wakes(:worker, 50, 60)
      t.leaves(:worker, 61, ThreadsTrace::DEAD)
    end
    json = profile(trace.build)
    assert_equal({ ["running"] => 16, ["waiting for the GVL", "<main>", "Integer#+"] => 5,
                   ["blocked", "<main>", "C#d", "C#d", "A#b", "Thread::Queue#pop"] => 30,
                   ["waiting for the GVL"] => 10 }, weights(json)["worker"])
    cause = markers(json, "worker").find { |marker| marker[0] == "blocked" }[3]["cause"]["stack"]
    assert_equal ["<main>", "C#d", "C#d", "A#b", "Thread::Queue#pop"], stack(json, cause)
    frame = json["shared"]["stackTable"]["frame"][cause]
    assert_equal 7, json["shared"]["frameTable"]["line"][frame]
  end

  # As folded stacks have them, without place.
  def folded(bytes, *options)
    with_file(bytes) do |path|
      tool("export", "-f", "folded", *options, path).out.lines.each_with_object(Hash.new(0)) do |line, sums|
        stack, count = line.chomp.match(/\A(.*) (\d+)\z/).captures
        labels = stack.split(";").map { |label| label[/\A(.+?) \((?!\d+ levels\) in |required\)>).*\)\z/, 1] || label }
        sums[labels] += count.to_i
      end
    end
  end

  def test_samples_without_states_are_exits
    [[], ["--kind=fallbacks"], ["--no-reason"]].each do |options|
      bytes = OurTrace.new(rate: 97, fallback_rate: 5).build
      json = profile(bytes, *options)
      assert_equal folded(bytes, *options), weights(json).values.reduce { |a, b| a.merge(b) { |_, x, y| x + y } },
                   options.inspect
      assert_equal "samples", json["threads"][0]["samples"]["weightType"]
    end
  end

  def with_both
    ThreadsTrace.new do |t|
      t.runs(:main, 0)
      3.times do |i|
        t.event(:instant, :main, "side_exit", "GuardType(Fixnum)", i + 1, "0" => "Foo#bar (a.rb:3)", "insn" => "send")
      end
      t.blocks(:main, "sleep", 10, 90)
    end.build
  end

  def test_exits_beside_states_are_markers_and_kind_makes_them_samples
    json = profile(with_both)
    exits = markers(json, "main").select { |marker| marker[3]["type"] == "ruby side_exit" }
    assert_equal [["GuardType(Fixnum)", 1, nil, "send"]] * 3,
                 exits.map.with_index { |(name, from, to, data), i| [name, from - i, to, data["arg_insn"]] }
    assert_equal ["Foo#bar"], stack(json, exits.first[3]["cause"]["stack"])
    json = profile(with_both, "--kind=exits")
    assert_equal({ "main" => { ["Foo#bar", "GuardType(Fixnum)"] => 3 } }, weights(json))
    assert_empty markers(json, "main").select { |marker| marker[3]["type"] == "ruby side_exit" }
  end

  def test_processes_of_several_files
    with_file(gvl) do |path|
      json = valid(JSON.parse(tool("export", "-f", "firefox", path, path).out))
      assert_equal %w[42 42-2], json["threads"].map { |thread| thread["pid"] }.uniq
      assert_equal 8, json["threads"].size
    end
  end

  # What the profiler gives a meaning of its own: members of a marker's data, types of markers.
  def test_names_that_the_profiler_uses_itself
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "Network", "<script>", ts: 1,
              args: { "type" => "x", "cause" => "y", "\"\\" => FxtBuilder::Inline.new("\xFF".b) })
      b.event(:complete, "marker", "caf\xe9\n".b, ts: 1, extra: 5)
    end
    data = markers(profile(trace), "main").map(&:last)
    assert_equal({ "type" => "ruby Network", "arg_type" => "x", "arg_cause" => "y", "arg_\"\\" => "\uFFFD" }, data[0])
  end

  def test_any_trace_makes_a_valid_profile
    files = conformance_files + Dir[File.join(TRACES, "*.fxt"), File.join(__dir__, "corpus/*.fxt")]
    assert_operator files.size, :>, 20
    files.each do |file|
      result = tool("export", "-f", "firefox", file)
      valid(JSON.parse(result.out)) if result.status <= 1
    end
  end

  def test_durations_that_overlap_or_have_no_end
    trace = FxtBuilder.simple do |b|
      b.event(:end, "c", "no begin", ts: 1)
      600.times { |i| b.event(:begin, "c", "deep", ts: 2 + i) }
      600.times { |i| b.event(:end, "c", "deep", ts: 1000 + i) }
      b.event(:begin, "c", "open", ts: 2000)
      b.event(:instant, "c", "last", ts: 3000)
    end
    found = markers(profile(trace), "main")
    assert_equal 512 + 2, found.size
    assert_equal [0.001999, 0.002999], found.find { |marker| marker[0] == "open" }[1, 2]
    assert_equal [0.000001, 0.001598], found.first[1, 2]
  end

  # Values of a counter: the profiler adds up its samples.
  def counted(profile)
    profile["counters"].to_h do |counter|
      sum = 0
      [counter["name"], counter["samples"]["time"].zip(counter["samples"]["count"].map { |count| sum += count })]
    end
  end

  def test_counters_have_the_values_of_the_trace
    json = profile(gvl)
    rows = with_file(gvl) do |path|
      tool("query", "--format=csv", path,
           "SELECT t.name, c.ts - (SELECT MIN(ts) FROM (SELECT ts FROM slice UNION SELECT ts FROM sched)), c.value " \
           "FROM counter c JOIN counter_track t ON t.id = c.track_id ORDER BY c.ts").out.lines.drop(1)
    end
    expected = rows.map { |line| line.chomp.delete('"').split(",") }.group_by(&:first).transform_values do |all|
      all.map { |_, ns, value| [ns.to_i / 1e6, value.to_f] }
    end
    refute_empty expected
    assert_equal expected, counted(json)
    units = json["counters"].to_h { |counter| [counter["name"], [counter["category"], counter["display"]["unit"]]] }
    assert_equal({ "GC heap:heap_bytes:1" => %w[Memory bytes], "GC heap:live_slots:1" => ["Ruby", ""] }, units)
  end

  # A process may have nothing else; values come in any order, and JSON has no infinity.
  def test_counters_alone
    trace = FxtBuilder.simple do |b|
      b.event(:counter, "c", "queue", ts: 3000, extra: 7, args: { "jobs" => -2 })
      b.event(:counter, "c", "queue", ts: 1000, extra: 7, args: { "jobs" => 5, "load" => 0.25 })
      b.event(:counter, "c", "queue", ts: 2000, extra: 7, args: { "jobs" => 0, "load" => Float::INFINITY })
    end
    result = export(trace)
    json = valid(JSON.parse(result.out))
    assert_equal({ "queue:jobs:7" => [[0, 5], [0.001, 0], [0.002, -2]], "queue:load:7" => [[0, 0.25]] }, counted(json))
    assert_equal 1, json["threads"].size
    assert_match(/: 1 event is left out: /, result.err)
  end

  def test_what_is_left_out_is_said
    assert_empty export(gvl).err
    trace = FxtBuilder.simple { |b| b.event(:flow_begin, "c", "f", ts: 1, extra: 1) }
    assert_match(/: 1 event is left out: async events and flows, or counters that [a-z ]+\n\z/, export(trace).err)
  end

  def test_gz_and_little_memory
    with_file(gvl) do |path|
      tool("export", "-f", "firefox", "-o", "#{path}.json.gz", path)
      assert_equal tool("export", "-f", "firefox", path).out, Zlib.gunzip(File.binread("#{path}.json.gz"))
    end
    many = ThreadsTrace.new do |t|
      t.runs(:main, 0)
      40_000.times { |i| t.event(:instant, :main, "marker", "m", i / 1000.0) }
    end
    many = many.build
    result = export(many, "--memory=1", status: 1)
    assert_match(/--memory/, result.err)
    valid(JSON.parse(result.out))
  end

  # --- the real one ------------------------------------------------------------------------------------

  # Serves the profiler and a profile until the block returns.
  def serve(dist, profile, &)
    types = { ".js" => "text/javascript", ".css" => "text/css", ".svg" => "image/svg+xml" }
    answer = lambda do |path|
      next [profile, "application/json"] if path == "/profile.json"
      file = [File.join(dist, path), File.join(dist, "index.html")].find { |name| File.file?(name) }
      [File.binread(file), types.fetch(File.extname(file), "text/html")]
    end
    Site.serve(answer, &)
  end

  def test_firefox_profiler_shows_it
    dist = ENV["FIREFOX_PROFILER"]
    skip "FIREFOX_PROFILER names no built profiler" unless dist && File.file?(File.join(dist, "index.html"))
    skip "no browser" if Browser.missing.any?
    serve(dist, export(gvl).out) do |address|
      browser = Browser.new
      begin
        from = URI.encode_www_form_component("#{address}/profile.json")
        browser.visit("#{address}/from-url/#{from}/calltree/?thread=1")
        text = ""
        60.times { break if (text = browser.text("body")).include?("Running Time"); sleep 0.5 }
        ["web 1", "index", "ractor 2", "waiting for the GVL", "Running Time (ms)"].each do |part|
          assert_includes text, part
        end
        assert_match(/55%\s+29\b/, text, "web 1 waited 29 ms of 53")
      ensure
        browser.close
      end
    end
  end
end
