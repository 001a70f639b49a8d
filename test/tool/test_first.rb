# The first screen of `vm-trace report`: where the time went, and what to change first. test/traces/ has the screens of
# the kept traces.
require "shellwords"
require_relative "tool_helper"
require_relative "page_helper"
require_relative "samples_trace"
require_relative "../traces/make"

class TestFirst < Minitest::Test
  include PageHelper

  MS = 1_000_000
  A, B, C = "Foo#a (/app/foo.rb:3)", "Foo#b (/app/foo.rb:9)", "block in Foo#c (/app/foo.rb:20)"

  def screen(bytes, *options) = with_file(bytes) { |path| tool("report", *options, path).out }

  def findings(bytes, *options)
    with_file(bytes) { |path| JSON.parse(tool("report", "--format=json", *options, path).out)["findings"]["rows"] }
  end

  def head_of(text) = text[/^Where the time went: (.*)$/, 1]
  def lines_of(text) = text.scan(/^\d\. (.*)$/).flatten

  def test_a_screen_is_a_screen
    windows = [[], %w[--since=0 --until=9], %w[--method=* --reason=* --thread=* --since=0]]
    Traces.all.each do |name|
      windows.each do |options|
        text = Dir.chdir(TRACES) { tool("report", *options, "#{name}.fxt").out }
        assert_operator text.lines.size, :<=, 24, "#{name} #{options}"
        assert_operator text.lines.map { |line| line.chomp.size }.max, :<=, 80, "#{name} #{options}"
      end
    end
    rows = lines_of(Dir.chdir(TRACES) { tool("report", "states.fxt").out })
    assert_equal 5, rows.size, "one has all the rows that there may be"
  end

  # The last title counts. Of several processes the first one is the program.
  def test_a_title_names_the_program
    titled = lambda do |pid, *titles|
      OurTrace.new(pid: pid).build.tap { |b| titles.each { |title| b.process_name(pid, title) } }
    end
    head = ->(*traces) { with_files(*traces) { |*paths| tool("report", *paths).out.lines.first[/.*?(?=: ruby 4)/] } }
    assert_match(/\Aruby --zjit-t/, head[titled[42]])
    assert_equal "shop: worker 7", head[titled[42, "shop: worker", "shop: worker 7"]]
    assert_match(/\Aruby --zjit-t/, head[titled[42], titled[43, "shop: worker"]])
    rows = with_files(titled[42], titled[43, "shop: worker"]) do |*paths|
      JSON.parse(tool("report", "--format=json", *paths).out)["processes"]["rows"]
    end
    assert_equal [[42, nil], [43, "shop: worker"]], rows.map { |row| row.values_at("pid", "title") }
  end

  def test_top_is_the_number_of_causes
    causes = ->(top) { lines_of(Dir.chdir(TRACES) { tool("report", "--top=#{top}", "states.fxt").out }).size }
    assert_equal [2, 5], [causes[2], causes[9]]
  end

  def test_causes_of_all_subjects_compete
    trace = StatesTrace.new(settings: { flags: "exits compiles threads gc states" }) do |t|
      t.states(:main, compiled: 40, exited: 30, uncompilable: 20, compiling: 10)
      t.site("Guard", A, 7, lost: 30)
      t.interpreted(B, "cannot be compiled", 70, 20, first: 1, last: 2)
    end.build
    rows = findings(trace)
    assert_equal [["exits", A], ["interpreted", B], ["compiling", nil]], rows.map { |row| row.values_at("subject", "place") }
    rows.each do |row|
      assert_equal 100 * MS, row["whole_ns"]
      assert_operator row["least_ns"], :<=, row["gain_ns"] || row["most_ns"]
      assert_operator row["gain_ns"] || 0, :<=, row["most_ns"]
    end
    assert_equal 30 * MS, rows[0]["most_ns"], "no more than what the exits lost"
    assert_nil rows[2]["gain_ns"], "what compiling less would gain is not known"
    text = screen(trace)
    assert_match(/\A1\. about \d+ % \(\d+ to 30 %, [\d.]+ ms\): exits at Foo#a/, text[/^1\..*/])
    assert_match(/^3\. at most 10 % \(10\.0 ms\): compiling$/, text)
  end

  def test_what_is_small_is_no_finding
    trace = ->(lost) do
      StatesTrace.new do |t|
        t.states(:main, compiled: 100 - lost, exited: lost)
        t.site("Guard", A, 7, lost: lost)
      end.build
    end
    assert_equal 1, findings(trace[3]).size
    assert_empty findings(trace[0.9])
    nothing = /^Nothing to gain here: no cause took 1 % of the time\. Most of it was\ncompiled code \(99 %\)\.$/
    assert_match(nothing, screen(trace[0.9]))
  end

  # The main thread of a server waits all the time; of a program with helpers it does the work.
  def test_whose_time_it_is
    of = ->(main, worker) do
      screen(StatesTrace.new do |t|
        t.thread(:worker, 44)
        t.states(:main, **main)
        t.states(:worker, **worker)
      end.build)
    end
    text = of[{ compiled: 60, blocked: 40 }, { compiled: 10, blocked: 90 }]
    assert_equal "100 ms of the main thread", head_of(text)
    assert_match(/^   40\.0 % +40\.0 ms  blocked$/, text)
    text = of[{ compiled: 5, blocked: 95 }, { compiled: 50, waiting: 10, blocked: 40 }]
    assert_equal "65.0 ms of 2 threads, without blocked time", head_of(text)
    refute_match(/ blocked$/, text.lines.drop(2).join)
  end

  def test_shares_of_states_add_up
    Traces.all.each do |name|
      lines = Dir.chdir(TRACES) { tool("report", "#{name}.fxt").out }.scan(/^ +([\d.]+) %  +[\d.,]+ \w+  \S/).flatten.map(&:to_f)
      assert_in_delta 100, lines.sum, 0.1 * lines.size, name unless lines.empty?
    end
  end

  def test_without_times_exits_count
    text = Dir.chdir(TRACES) { tool("report", "exits.fxt").out }
    assert_match(/^What to change first \(of the number of exits: their cost is not recorded\)$/, text)
    assert_match(/^1\. 67 % \(2\): at Foo#bar \(\/app\/foo\.rb:3\)$/, text)
    assert_match(/^Counts are not cost: --vm-trace=states /, text)
  end

  # Of a thread that only waits there is nothing that a gain could be a part of.
  def test_no_time_to_gain
    waits = SamplesTrace.new do |t|
      t.thread(:worker, 44)
      t.sample(:worker, 3, 60, "blocked", "<main> (/app/main.rb:1)", A)
    end.build
    assert_empty findings(waits)
    refute_match(/nan|inf/, screen(waits))
  end

  def test_what_is_missing_is_said_before_the_numbers
    lost = Dir.chdir(TRACES) { tool("report", "lost.fxt").out }
    assert_match(/\A.*\nlost: 1,234 events: 1,234 no space left on device\n/, lost)
    assert_match(/\A.*\nonly: from 2 s to /, Dir.chdir(TRACES) { tool("report", "--since=2", "states.fxt").out })
  end

  def test_the_option_of_a_row_shows_what_the_row_is_of
    Dir.chdir(TRACES) do
      JSON.parse(tool("report", "--format=json", "states.fxt").out)["findings"]["rows"].each do |row|
        result = tool("report", *Shellwords.split(row["evidence"]), "--format=json", "states.fxt")
        assert_equal 0, result.status, row["evidence"]
        assert_includes result.out, row["place"], row["evidence"]
      end
    end
  end

  # Most is known of samples, calls and collections, but not what a change would gain.
  def test_methods_by_own_time
    sampled = SamplesTrace.new do |t|
      t.sample(:main, 3, 60, "compiled", "<main> (/app/main.rb:1)", A)
      t.sample(:main, 63, 36, "interpreted", "<main> (/app/main.rb:1)", B)
      t.sample(:main, 99, 1, "compiled", "<main> (/app/main.rb:1)", C)
    end.build
    rows = findings(sampled)
    assert_equal [["method", A], ["method", B]], rows.map { |row| row.values_at("subject", "place") }
    errors = rows.zip([60, 36]).map { |row, own_ms| (row["most_ns"] - own_ms * MS) / MS }
    assert_equal [9, 9], errors, "bounds include what samples can be wrong by"
    assert_equal [[0, nil]] * 2, rows.map { |row| row.values_at("least_ns", "gain_ns") }
  end

  # What a method has libraries and C do is what it would not do without the call.
  def test_the_time_of_a_place_includes_what_it_calls
    main, library = "<main> (/app/main.rb:1)", "JSON.parse (/usr/lib/ruby/3.4.0/json/common.rb:10)"
    trace = SamplesTrace.new do |t|
      t.sample(:main, 3, 40, "compiled", main, A, "Array#include? (/app/foo.rb:3)")
      t.sample(:main, 43, 30, "interpreted", main, "Foo#a (/app/foo.rb:5)", library,
               "Array#map (/usr/lib/ruby/3.4.0/json/common.rb:12)")
      t.sample(:main, 73, 7, "compiled", main, A, "Foo#inner (/app/foo.rb:30)")
      t.sample(:main, 80, 20, "compiled", library)
    end.build
    rows = findings(trace).map { |row| row.values_at("place", "cause") }
    assert_equal [[A, "57 % of it in Array#include?"], [library, "100 % of it in compiled code"],
                  ["Foo#inner (/app/foo.rb:30)", "100 % of it in compiled code"]], rows
  end

  # The method for which it ran, past blocks of its own, methods in C and Ruby's own files.
  def test_the_caller_of_a_place
    main, block = "<main> (/app/main.rb:1)", "block in Foo#a (/app/foo.rb:4)"
    each = "Array#each (<internal:array>:3)"
    trace = SamplesTrace.new do |t|
      t.sample(:main, 3, 50, "compiled", main, B, each, A, each, block)
      t.sample(:main, 53, 30, "compiled", main, C, "Array#map (/app/foo.rb:20)", "Foo#e (/app/foo.rb:50)")
      t.sample(:main, 83, 9, "compiled", main, "Foo#d (/app/foo.rb:40)")
      t.sample(:main, 92, 8, "compiled", "(frames left out)", "Foo#f (/app/foo.rb:60)")
    end.build
    rows = findings(trace).map { |row| row.values_at("place", "cause", "caller") }
    assert_includes rows, ["block in Foo#a (/app/foo.rb:4)", "100 % of it in a block of its own", "Foo#b"]
    assert_includes rows, ["Foo#e (/app/foo.rb:50)", "100 % of it in compiled code", "Foo#c"]
    assert_includes rows, ["Foo#d (/app/foo.rb:40)", "100 % of it in compiled code", nil], "<main> is nobody's caller"
    assert_includes rows, ["Foo#f (/app/foo.rb:60)", "100 % of it in compiled code", nil]
    text = screen(trace).gsub(/\s+/, " ")
    assert_includes text, "its own. Call it less often, or do less in it. [--samples]", "there is no such file"
  end

  # From a file that the trace is younger than: else it need not be what ran.
  def test_the_line_of_a_place_is_shown
    Dir.mktmpdir do |dir|
      source = File.join(dir, "foo.rb")
      File.write(source, "def b = a\n\n  \tlist.include?(\e1)\n")
      trace = SamplesTrace.new do |t|
        t.sample(:main, 3, 90, "compiled", "<main> (/app/main.rb:1)", "Foo#b (#{source}:1)", "Foo#a (#{source}:3)")
      end.build
      File.utime(0, 0, source)
      row = /^1\. .*\n   100 % of it in compiled code; called by Foo#b\n   list\.include\?\(\\x1B1\) \[--samples\]$/
      assert_match(row, screen(trace))
      File.utime(Time.now, Time.now + 3600, source)
      refute_includes screen(trace), "include?"
      File.write(source, "shorter\n")
      File.utime(0, 0, source)
      assert_includes screen(trace), "Call it less often, or do less in it."
    end
  end

  # The innermost frame of a sample in `require` is nothing that a user could change. A file of the application is a
  # place of its own while it is loaded.
  def test_a_place_whose_time_is_in_require_loads_code
    main, require = "<main> (/app/main.rb:1)", "Kernel#require (<internal:/usr/lib/ruby/rubygems/kernel_require.rb>:37)"
    loaded, parsing = "<top (required)> (/app/foo.rb:2)", "<parsing> (<internal:vm_trace>)"
    trace = SamplesTrace.new do |t|
      t.sample(:main, 3, 30, "interpreted", main, require, "<top (required)> (/gems/a-1.0/lib/a.rb:1)", require, parsing)
      t.sample(:main, 33, 20, "interpreted", main, "Kernel#load (/app/main.rb:1)", "<class:B> (/gems/b-1.0/lib/b.rb:1)")
      t.sample(:main, 53, 20, "interpreted", main, "Array#sort (/app/main.rb:1)")
      t.sample(:main, 73, 27, "interpreted", main, require, loaded, "Kernel#loader (/app/foo.rb:2)")
    end.build
    rows = findings(trace).map { |row| row.values_at("what", "place", "cause") }
    assert_equal ["loading code in", main, "71 % of its time is in require and load"], rows[0]
    assert_equal ["time in", loaded, "100 % of it in Kernel#loader"], rows[1]
    assert_includes screen(trace).gsub(/\s+/, " "), "Load less, or when it is needed"
  end

  # On a busy machine states have the time without a CPU in the state in which the thread waited for one. Samples know it.
  def test_time_without_a_cpu_is_no_gain
    trace = SamplesTrace.new(settings: { jit: "ZJIT", flags: "exits states samples" }) do |t|
      t.sample(:main, 3, 60, "no_cpu", "<main> (/app/main.rb:1)", A)
      t.sample(:main, 63, 30, "interpreted", "<main> (/app/main.rb:1)", A)
      t.sample(:main, 93, 10, "compiled", "<main> (/app/main.rb:1)", A)
      site = { reason: "Guard", kind: "side_exit", insn: "send", version: [:uint32, 1], location: A, hits: [:uint64, 9] }
      t.event(:instant, :main, "trace", "site", 99, **site, lost_ns: [:uint64, 90 * MS], lost_max_ns: [:uint64, 9 * MS])
      t.event(:instant, :main, "trace", "states", 99, compiled: [:uint64, 10 * MS], exited: [:uint64, 90 * MS])
    end.build(exits: 9, sites: 1)
    row = findings(trace).first
    assert_equal [40 * MS, A], row.values_at("whole_ns", "place")
    assert_operator row["gain_ns"], :<, 40 * MS, "not the 90 ms that states have"
    assert_match(/^   60\.0 % +60\.00 ms  waiting for a CPU$/, screen(trace))
  end

  # What is compiled most may be little of it. The time of the method itself can only depend on it if it is most of it.
  def test_compiling_names_a_method_with_its_share
    compiling = lambda do |ms|
      trace = SamplesTrace.new(settings: { jit: "ZJIT", flags: "exits compiles states samples" }) do |t|
        t.sample(:main, 3, 50, "compiled", "<main> (/app/main.rb:1)", A)
        ends = ->(iseq) { { iseq: iseq, version: [:uint32, 1], code_bytes: [:uint64, 512] } }
        [ms, 19, 1].zip([A, B, C]).inject(60) do |at, (time, iseq)|
          t.during(:main, "compile", "a@/app/foo.rb:3", at, at + time / 2.0, ends: ends[iseq])
          at + time / 2.0
        end
        t.event(:instant, :main, "trace", "states", 99, compiled: [:uint64, 50 * MS], compiling: [:uint64, 20 * MS])
      end
      findings(trace.build).find { |row| row["subject"] == "compiling" }
    end
    assert_equal ["compiling, 50 % of it", A], compiling[20].values_at("what", "place")
    assert_equal ["compiling, 49 % of it", A], compiling[19.5].values_at("what", "place")
    assert_operator compiling[20]["most_ns"], :>, 60 * MS
    assert_in_delta 20 * MS, compiling[19.5]["most_ns"], MS
  end

  # For states it is blocked. Samples know that it had a CPU.
  def test_c_without_the_gvl_is_not_blocked
    trace = SamplesTrace.new(settings: { jit: "ZJIT", flags: "exits states samples" }) do |t|
      t.sample(:main, 3, 40, "without_gvl", "<main> (/app/main.rb:1)", "Zlib.deflate (/app/main.rb:1)")
      t.event(:instant, :main, "trace", "states", 99, compiled: [:uint64, 40 * MS], blocked: [:uint64, 60 * MS])
    end.build
    text = screen(trace)
    assert_match(/^ +40\.0 % +40\.0 ms  C without the GVL$/, text)
    assert_match(/^ +20\.0 % +20\.0 ms  blocked/, text)
  end

  # One row has all that is known of a place: the causes add up, and the most is all of its time.
  def test_causes_of_a_place_are_one_row
    trace = StatesTrace.new do |t|
      t.states(:main, compiled: 50, exited: 30, uncompilable: 20)
      t.site("Guard", A, 7, lost: 20)
      t.site("Other", "Foo#a (/app/foo.rb:4)", 7, lost: 10)
      t.interpreted("Foo#a (/app/foo.rb:2)", "cannot be compiled", 70, 20, first: 1, last: 2)
    end.build
    row, *rest = findings(trace)
    assert_empty rest
    assert_equal ["exits", A], row.values_at("subject", "place")
    alone = ->(&block) do
      findings(StatesTrace.new { |t| t.states(:main, compiled: 50, exited: 50); block.(t) }.build)[0]["gain_ns"]
    end
    parts = [alone.() { |t| t.site("Guard", A, 7, lost: 30) },
             alone.() { |t| t.interpreted(A, "cannot be compiled", 70, 20, first: 1, last: 2) }]
    assert_equal parts.sum, row["gain_ns"]
    assert_match(/^Guard, /, row["cause"])
  end

  # What libraries do for a method of the application is of its place. One change ends one reason there.
  def test_a_row_gains_what_one_change_ends
    list, set = "List#each (/usr/lib/ruby/3.4.0/list.rb:7)", "List#set (/usr/lib/ruby/3.4.0/list.rb:70)"
    trace = SamplesTrace.new(settings: { jit: "ZJIT", flags: "exits states samples" }) do |t|
      t.sample(:main, 3, 50, "interpreted", A, list)
      t.sample(:main, 53, 40, "interpreted", A, set)
      sites = [["Guard", list, 12, 20], ["Guard", set, 5, 10], ["Other", set, 9, 15], ["Third", list, 9, 4]]
      sites.each do |reason, location, hits, lost_ms|
        site = { reason: reason, kind: "side_exit", insn: "send", version: [:uint32, 1], location: location }
        t.event(:instant, :main, "trace", "site", 99, **site, hits: [:uint64, hits], lost_ns: [:uint64, lost_ms * MS])
      end
      t.event(:instant, :main, "trace", "states", 99, compiled: [:uint64, 51 * MS], exited: [:uint64, 49 * MS])
    end.build(exits: 35, sites: 4)
    rows = findings(trace)
    row = rows.find { |found| found["subject"] == "exits" }
    assert_equal ["exits", list, "Guard, send: 12 times, each 1.67 ms; 5 more elsewhere"],
                 row.values_at("subject", "place", "cause")
    # Guard in both, and what is in the same method.
    assert_in_delta 0.95 * (20 + 10 + 4), row["gain_ns"].fdiv(MS), 0.1
    assert_in_delta 50, row["most_ns"] / MS, 10, "the sampled time of the method"
    place = rows.find { |found| found["subject"] == "method" }
    assert_equal [A, nil], place.values_at("place", "gain_ns")
    assert_operator place["most_ns"] / MS, :>=, 90
  end

  # What else is known of the place is little: that is no estimate of what the loop would take.
  def test_a_loop_that_no_jit_sees_has_no_estimate
    main = "<main> (/app/run.rb:1)"
    trace = StatesTrace.new do |t|
      t.states(:main, compiled: 40, exited: 0.1, uncompiled: 59)
      t.site("Guard", "<main> (/app/run.rb:9)", 7, lost: 0.1)
      t.interpreted(main, "not compiled yet", 1, 59, first: 1, last: 1)
    end.build
    row, *rest = findings(trace)
    assert_empty rest
    assert_equal ["interpreted", main, nil], row.values_at("subject", "place", "gain_ns")
    assert_equal 0, row["least_ns"] / MS
    assert_in_delta 59.1, row["most_ns"] / MS.to_f, 0.1
  end

  # With few samples the place of a sample is chance.
  def test_garbage_has_a_place_only_if_enough_was_sampled
    trace = ->(samples) do
      ThreadsTrace.new(settings: { allocations: [:uint64, 1000] }) do |t|
        t.runs(:main, 1)
        t.during(:main, "gc", "GC minor", 10, 60, count: [:uint64, 1], reason: "newobj")
        samples.times { |i| t.allocates(:main, "String", 61 + i, sample: i, weight: 1000, frames: [i.even? ? A : B]) }
        t.leaves(:main, 100, ThreadsTrace::DEAD)
      end.build
    end
    row, *rest = findings(trace[30])
    assert_equal ["gc", "gc"], [row, *rest].map { |one| one["subject"] }
    assert_equal [A, B], [row, *rest].map { |one| one["place"] }.sort
    assert_operator row["least_ns"], :<, 0.3 * 25 * MS, "half of thirty samples can be a third"
    assert_equal [["gc", nil]], findings(trace[10]).map { |one| one.values_at("subject", "place") }
  end

  # --- the page ---

  def test_the_page_begins_with_it
    trace = File.binread(File.join(TRACES, "states.fxt"))
    first = data_of(page(trace))["first"]
    members = %w[subject what place cause helps least_ns most_ns gain_ns whole_ns]
    assert_equal findings(trace).map { |row| row.values_at(*members) }, first["findings"].map { |row| row.values_at(*members) }
    where = with_file(trace) { |path| JSON.parse(tool("report", "--format=json", path).out)["where"]["rows"] }
    assert_equal where.map { |row| row.values_at("state", "ns") }, first["where"]
    chosen = data_of(page(trace, "--since=2", "--until=3"))["first"]
    assert_empty chosen["where"], "sums of states are of the whole trace"
  end

  # The titles of the sections that have a place on the page.
  def shown_sections(browser)
    browser.map("main section", "e.offsetHeight > 0 ? (e.querySelector('h2') || e).innerText.split('\\n')[0] : null").compact
  end

  def pressed_tab(browser) = browser.texts("#tabs [aria-pressed=true]")

  # Graphs are drawn when their tab is opened; a search goes through all tabs; a link keeps the tab.
  def test_tabs_show_one_subject
    browse(File.binread(File.join(TRACES, "states.fxt")), tab: nil) do |browser|
      assert_equal %w[Overview Exits Trace All], browser.texts("#tabs button")
      assert_equal [["Overview"], "What to change first"], [pressed_tab(browser), shown_sections(browser).first]
      assert_operator browser.run("return document.documentElement.scrollHeight"), :<, 1000, "one screen"
      browser.click("#tabs button:nth-child(2)")
      assert_equal ["What exits cost", "When", "Where", "How it got there"], shown_sections(browser)
      assert_operator browser.map("#flame .frame", "e.getBoundingClientRect().width").max, :>, 500
      link = browser.run("return location.href")
      assert_match(/#tab=Exits\z/, link)
      browser.click("#tabs button:nth-child(1)")
      search(browser, "Parser#scan")
      assert_equal ["All"], pressed_tab(browser)
      browser.visit("about:blank")
      browser.visit(link)
      assert_equal ["Exits"], pressed_tab(browser)
    end
  end

  def test_a_row_of_the_page_leads_to_its_evidence
    browse(File.binread(File.join(TRACES, "states.fxt")), tab: nil) do |browser|
      rows = browser.map("#first-findings li", "e.innerText")
      assert_equal 5, rows.size
      gain = /\Aabout [\d.]+ % \([\d.]+ % to [\d.]+ %, [\d.]+ s\): /
      assert_match(/#{gain}exits at Parser#scan \(\/app\/parser\.rb:31\)\n/, rows.first)
      browser.run("document.querySelector('#first-findings button').click()")
      assert_equal "Parser#scan", browser.run("return document.getElementById('search').value")
      assert_equal ["Exits"], pressed_tab(browser)
      assert_equal [true], rows_of(browser, "#table-section table").map { |row| row.join.include?("Parser#scan") }.uniq
    end
  end

  def test_a_page_of_standard_input_has_no_such_head
    data = data_of(tool("html", "-o", "-", "-", stdin: File.binread(File.join(TRACES, "states.fxt"))).out)
    assert_equal [[], []], data["first"].values_at("where", "findings")
    refute_empty data["rows"]
  end
end
