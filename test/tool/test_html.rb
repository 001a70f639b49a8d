# `vm-trace html`: the data of the page, and that it works in a browser, opened from disk.
require_relative "tool_helper"
require_relative "page_helper"
require_relative "places_trace"

class TestHtml < Minitest::Test
  include PageHelper

  HOSTILE = ["</script><script>document.title='broken out'</script>", "a\"b'c`d${1}\\", "\e[31m\u202Eevil\n\0", "<!--<script>", "\xFF\xFE".b,
             "]]>&lt;&amp;<img src=x onerror=alert(1)>"].freeze

  def exits(count, methods: 10, reasons: 3, span_ns: 1_000_000)
    FxtBuilder.simple do |b|
      count.times do |i|
        method = FxtBuilder::Inline.new("M#m#{i % methods} (/app/a.rb:#{i % methods})")
        b.event(:instant, "side_exit", FxtBuilder::Inline.new("Reason#{i % reasons}"), ts: 1000 + i * span_ns / count,
                args: { "0" => method, "1" => "<main> (/app/run.rb:1)", "insn" => "send" })
      end
    end
  end

  # What the bins of all rows add up to.
  def in_bins(data)
    numbers = numbers_of(data)
    data["rows"].sum { |row| numbers[row[9]].sum(&:last) }
  end

  # Every event is in the bin of its time.
  def assert_binned(times_ns, data)
    bins = data["bins"]
    expected = times_ns.map { |ts| (ts - times_ns.min - bins["start_ns"]) / bins["width_ns"] }.tally
    numbers = numbers_of(data)
    cells_by_bin = data["rows"].flat_map { |row| numbers[row[9]] }.group_by(&:first)
    found = cells_by_bin.transform_values { |cells| cells.sum(&:last) }
    assert_equal expected, found
    assert_equal 0, (times_ns.min + bins["start_ns"]) % bins["width_ns"], "bins begin at multiples of their width"
  end

  def test_counts_of_rows_bins_and_stacks_agree
    data = data_of(page(exits(3000)))
    assert_equal 3000, data["exits"]
    assert_equal 3000, data["rows"].sum { |row| row[6] }
    assert_equal 3000, in_bins(data)
    assert_equal 30, data["rows"].size
    assert_equal ["", 3000], [data["strings"][data["stacks"][0][1]], data["stacks"][0][2]]
    assert_equal "<main> (/app/run.rb:1)", data["strings"][data["stacks"][1][1]]
    assert_equal 3000, data["stacks"].select { |node| node[3] == 1 }.sum { |node| node[2] }
  end

  def test_bins_span_the_trace_and_stay_few
    [100, 1_000_000, 10**15].each do |span_ns|
      data = data_of(page(exits(500, span_ns: span_ns)))
      bins = data["bins"]
      assert_binned Array.new(500) { |i| 1000 + i * span_ns / 500 }, data
      assert_operator bins["count"], :<=, 320
      assert_operator bins["count"], :>, 100, span_ns if span_ns > 10**6
      assert_operator bins["start_ns"], :<=, 0
      assert_operator bins["start_ns"] + bins["count"] * bins["width_ns"], :>=, span_ns - span_ns / 500
    end
  end

  def test_times_that_run_back_are_binned_too
    trace = FxtBuilder.simple do |b|
      [5_000_000_000, 1_000, 9_000_000_000_000, 2_000_000].each { |ts| b.event(:instant, "side_exit", "R", ts: ts, args: { "0" => "a" }) }
    end
    data = data_of(page(trace))
    assert_binned [5_000_000_000, 1_000, 9_000_000_000_000, 2_000_000], data
    assert_equal [0, 9_000_000_000_000 - 1_000], data["rows"][0][7, 2]
  end

  # Two exits of one line: each has what its own site lost.
  def test_lost_time_of_instructions_that_a_line_repeats
    place = "Foo#f (/app/foo.rb:3)"
    trace = StatesTrace.new do |t|
      { 7 => 4, 12 => 9 }.each do |index, lost|
        t.exits(:main, "GuardType(Fixnum)", place, 10 + index, lost: lost, insn_index: [:uint32, index])
        t.site("GuardType(Fixnum)", place, 1, lost: lost, insn_index: [:uint32, index])
      end
      t.states(:main, exited: 13, compiled: 70)
    end
    data = data_of(page(trace.build))
    assert_equal [["send@12", 1, 9_000_000], ["send@7", 1, 4_000_000]],
                 data["rows"].map { |row| [data["strings"][row[3]], row[6], row[10]] }.sort
  end

  def test_sampled_exits_are_scaled
    trace = OurTrace.new(rate: 97).build
    data = data_of(page(trace))
    assert_equal 3 * 97, data["exits"]
    assert_equal 1, data["fallbacks"]
    assert_equal 4, data["recorded"]
  end

  def test_what_is_not_shown_one_by_one_is_summed
    data = data_of(page(exits(12_000, methods: 12_000, reasons: 3)))
    summed, single = data["rows"].partition { |row| row[5] != 1 }
    assert_equal 10_000, single.size
    assert_equal 2000, summed.sum { |row| row[5] }
    assert_equal %w[Reason0 Reason1 Reason2], summed.map { |row| data["strings"][row[1]] }.sort
    assert_equal 12_000, in_bins(data)
  end

  # Of places with long names the page lists fewer.
  def test_places_have_room_for_a_mebibyte_of_names
    shown = lambda do |bytes|
      trace = FxtBuilder.simple do |b|
        3000.times { |i| b.exit("R", FxtBuilder::Inline.new("m#{i.to_s.rjust(bytes - 1, "_")}"), ts: i) }
      end
      data_of(page(trace))["rows"].count { |row| row[5] == 1 }
    end
    assert_equal [3000, 2097, 1000], [shown[300], shown[500], shown[5000]]
  end

  # The budget of the page.
  def test_a_page_of_100_000_places_has_less_than_5_megabytes
    trace = PlacesTrace.build
    html = page(trace)
    assert_operator html.bytesize, :<, 5_000_000
    data = data_of(html)
    assert_equal [150_000] * 2, [in_bins(data), data["exits"]]
    assert_operator data["rows"].count { |row| row[5] == 1 }, :>, 9000
    browse(trace) do |browser|
      assert_match(/\AThe page lists the 10,000 places with most exits\. 90,000 others are summed up by reason/,
                   browser.text("#table-note"))
      assert_operator browser.run("return document.querySelectorAll('#table-body tr').length"), :<=, 40
      assert_operator browser.run("return document.querySelectorAll('*').length"), :<, 5000
    end
  end

  def test_largest_stacks_are_kept
    trace = FxtBuilder.simple do |b|
      9000.times do |i|
        (i == 8999 ? 3 : 1).times do
          b.event(:instant, "side_exit", "R", ts: i, args: { "0" => FxtBuilder::Inline.new("m#{i} (a.rb:1)"), "1" => "<main> (r.rb:1)" })
        end
      end
    end
    data = data_of(page(trace))
    assert_equal 8001, data["stacks"].size
    assert_equal 18_000 + 2 - 8001, data["stacks_left_out"]
    assert(data["stacks"].each_with_index.all? { |node, i| node[0] < i || i == 0 })
    assert(data["stacks"].any? { |node| data["strings"][node[1]] == "m8999 (a.rb:1)" && node[2] == 3 })
  end

  # Weights estimate the number of exits, which is not quite the real one.
  def test_sampled_exits_are_scaled_and_the_exact_number_is_there
    data = data_of(page(OurTrace.new(rate: 97).build))
    assert_equal [291, 296, 4], data.values_at("exits", "exact_exits", "recorded")
  end

  def test_compilations_and_invalidations_are_binned
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "compile", "m", ts: 1_000)
      b.event(:begin, "compile", "phase", ts: 2_000)
      b.event(:end, "compile", "phase", ts: 3_000)
      b.event(:end, "compile", "m", ts: 901_000, args: { "iseq" => "A#m (/a.rb:1)", "version" => [:uint32, 1] })
      b.event(:begin, "compile", "mark_executable", ts: 902_000)
      b.event(:end, "compile", "mark_executable", ts: 902_500)
      b.event(:complete, "invalidation", "x", ts: 950_000, extra: 960_000)
    end
    data = data_of(page(trace))
    compiling = data["compiling"]
    assert_equal [1, 900_000, 1], compiling.values_at("compiles", "compile_ns", "invalidations"), "only ISEQs are compiled"
    sums = compiling.values_at("ns", "invalidated").map { |number| numbers_of(data)[number].sum(&:last) }
    assert_equal [900_500, 1], sums
  end

  def test_reasons_have_their_advice
    data = data_of(page(advised))
    strings = data["strings"]
    advised = data["advised"].to_h { |reason, fallback, number| [[strings[reason], fallback], data["advice"][number]] }
    megamorphic = "Send: megamorphic call site"
    explained = JSON.parse(tool("explain", "--format=json", "GuardType", "opt_div_zero", megamorphic).out)
    texts = explained["advice"]["rows"].to_h { |row| [row["reason"], row.values_at("meaning", "cause", "help")] }
    assert_equal({ ["GuardType(Fixnum)", 0] => texts["GuardType(*)"], ["GuardType(String)", 0] => texts["GuardType(*)"],
                   ["opt_div_zero", 0] => texts["opt_div_zero"], [megamorphic, 1] => texts[megamorphic] }, advised)
    assert_equal 3, data["advice"].size
  end

  # A program with reasons that have advice, and one that has none.
  def advised
    FxtBuilder.simple do |b|
      ["GuardType(Fixnum)", "GuardType(String)", "opt_div_zero", "Newer"].each_with_index do |reason, i|
        b.exit(reason, "A#a (/a.rb:1)", ts: i, insn: "send")
      end
      b.exit("Send: megamorphic call site", "A#a (/a.rb:1)", ts: 9, kind: "fallback", insn: "send")
    end.bytes
  end

  def test_browser_shows_the_advice_for_a_reason
    browse(advised) do |browser|
      browser.click("#groups button:nth-child(4)")
      assert_equal ["GuardType(Fixnum)", "GuardType(String)", "opt_div_zero"],
                   browser.texts("#table-body details summary")
      assert_includes browser.texts("#table-body td.reason"), "Newer"
      refute_includes browser.text("#table-body"), "What helps:"
      browser.click("#table-body details summary")
      means, helps = "Meaning: A value has another type", "What helps: A recompile exit"
      advice = /#{means}.*Usual causes: .* GuardType\(ArrayExact\) at .*#{helps}/m
      assert_match advice, browser.text("#table-body")
      assert_equal "GuardType(Fixnum)", browser.texts("#table-body details code").first
      browser.click("#table-head [data-column=count]")
      assert_equal 1, browser.run("return document.querySelectorAll('#table-body details[open]').length")
    end
  end

  def test_settings_have_the_origin_once
    data = data_of(page(FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1_000_000_000, args: { "pid" => [:uint32, 42] })
      [2, 9].each do |s|
        args = { "host" => "web7", "unix_ns" => [:uint64, (1_795_696_725 + s) * 1_000_000_000] }
        b.event(:instant, "trace", "host", ts: s * 1_000_000_000, args: args)
      end
      b.event(:instant, "side_exit", "X", ts: 3_000_000_000, args: { "0" => "A#a (/a.rb:1)" })
    end))
    texts = data["strings"]
    assert_equal [%w[pid 42], %w[host web7], ["began", "2026-11-26T12:38:46Z"]],
                 data["settings"].map { |pair| pair.map { |i| texts[i] } }
  end

  def test_settings_losses_and_threads
    trace = OurTrace.new
    trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 5], "reason" => "disk full" } }
    data = data_of(page(trace.build))
    texts = data["strings"]
    assert_includes data["settings"].map { |pair| pair.map { |i| texts[i] } }, %w[base 81cefb5c9d]
    assert_equal [["disk full", 5]], data["losses"].map { |reason, events| [texts[reason], events] }
    assert_equal 5, data["lost"]
    assert_equal "main", texts[data["threads"][0][2]]
    assert data["summarized"]
  end

  def test_threads_that_share_a_native_one_are_listed_by_their_own_names
    trace = FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.thread_name(42, 44, "M:N thread")
      b.event(:instant, "side_exit", "R0", ts: 1)
      %w[one two two].each { |name| b.event(:instant, "side_exit", "R", ts: 2, thread: 2, args: { "thread" => name }) }
    end
    data = data_of(page(trace))
    assert_equal [[0, "one", 1], [0, "two", 2], [43, "main", 1]], data["threads"].map { |_, tid, name, events| [tid, data["strings"][name], events] }.sort
    assert_equal 3, data["thread_count"]
  end

  def test_names_cannot_break_out_of_the_page
    trace = FxtBuilder.simple do |b|
      HOSTILE.each { |name| b.event(:instant, "side_exit", FxtBuilder::Inline.new(name), ts: 1, args: { "0" => FxtBuilder::Inline.new("#{name}#x".b), "insn" => FxtBuilder::Inline.new(name) }) }
    end
    html = page(trace)
    assert html.valid_encoding?
    assert_equal 2, html.scan(/<\/script/i).size
    assert_equal 2, html.scan(/<script/i).size
    refute_match(/[\0-\x08\x0b-\x1f\u202E]/, html)
    texts = data_of(html)["strings"]
    assert_includes texts, HOSTILE[0]
    assert_includes texts, "\\x1B[31m\\u202Eevil\\n\\x00"
  end

  def test_page_names_no_other_place
    refute_match(%r{(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)}, page(exits(10)).gsub(HOSTILE.last, ""))
  end

  def test_cut_and_foreign_files
    assert_equal 1, data_of(page(FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1) }.bytes + "cut", status: 1))["events"]
    assert_equal 0, data_of(page(FxtBuilder.new))["events"]
    assert_empty page("no trace at all", status: 4)
  end

  def test_a_page_of_a_file_that_is_no_trace_leaves_what_was_there
    with_file("no trace") do |path|
      out = "#{path}.html"
      File.write(out, "kept")
      assert_equal 4, tool("html", path, "-o", out).status
      assert_equal "kept", File.read(out)
    end
  end

  # --- in a browser ------------------------------------------------------------------------------

  def mixed
    FxtBuilder.simple do |b|
      4000.times do |i|
        reason, frame = i % 4 == 0 ? ["Late", "Slow#late (/app/late.rb:7)"] : i % 2 == 0 ? ["Even", "Foo#even (/app/foo.rb:3)"] : ["Odd", "Foo.odd (/app/foo.rb:9)"]
        b.event(:instant, "side_exit", reason, ts: (i % 4 == 0 ? 900_000_000 : 0) + i * 20_000,
                args: { "0" => frame, "1" => "block in <main> (/app/run.rb:2)", "2" => "<main> (/app/run.rb:1)", "insn" => "send" })
      end
      7.times { |i| b.event(:instant, "fallback", "Polymorphic", ts: 1000 + i, args: { "0" => "Foo#poly (/app/foo.rb:30)" }) }
    end
  end

  def first_column(browser) = browser.texts("#table-body td:first-child")
  def method_column(browser) = browser.texts("#table-body td.name")

  def test_browser_table_sorts_searches_and_groups
    browse(mixed) do |browser|
      assert_equal ["2,000", "1,000", "1,000"], first_column(browser)
      assert_equal "Foo.odd /app/foo.rb:9", method_column(browser).first
      browser.click("#table-head [data-column=method]")
      assert_equal ["Foo#even /app/foo.rb:3", "Foo.odd /app/foo.rb:9", "Slow#late /app/late.rb:7"], method_column(browser)
      browser.click("#table-head [data-column=method]")
      assert_equal "Slow#late /app/late.rb:7", method_column(browser).first
      assert_equal "descending", browser.run("return document.querySelector('th[aria-sort]').getAttribute('aria-sort')")
      browser.type("#search", "EVEN foo")
      assert_equal ["Foo#even /app/foo.rb:3"], method_column(browser)
      assert_match(/\A1 row: 1,000 exits, 25.0 %/, browser.text("#table-sum"))
      search(browser, "")
      browser.click("#groups button:nth-child(3)")
      assert_equal ["/app/foo.rb", "/app/late.rb"], method_column(browser)
      assert_equal ["3,000", "1,000"], first_column(browser)
    end
  end

  def test_browser_window_reasons_and_fallbacks
    browse(mixed) do |browser|
      browser.drag("#timeline", 0.6, 0.999)
      assert_equal ["Slow#late /app/late.rb:7"], method_column(browser)
      assert_match(/: 1,000 exits\z/, browser.text("#window"))
      browser.click("#window-clear")
      assert_equal 3, method_column(browser).size
      browser.run("document.getElementById('timeline').focus()")
      browser.run("document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }))")
      refute_includes method_column(browser), "Slow#late /app/late.rb:7"
      browser.run("document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
      browser.click("#legend li:nth-child(2) button")
      assert_equal 1, method_column(browser).size
      browser.click("#kinds button:nth-child(2)")
      assert_equal ["Foo#poly /app/foo.rb:30"], method_column(browser)
    end
  end

  def test_browser_flame_graph_zooms_and_searches
    browse(mixed) do |browser|
      assert_equal ["all exits", "<main>", "block in <main>", "Foo.odd", "Odd"], browser.texts("#flame .frame").first(5)
      frame = "#flame .frame[aria-label^='Slow#late']"
      width = "return document.querySelector(arguments[0]).getBoundingClientRect().width / document.getElementById('flame').clientWidth"
      assert_in_delta 0.25, browser.run(width, frame), 0.01
      browser.click(frame)
      assert_in_delta 1, browser.run(width, frame), 0.01
      assert_equal ["all exits", "<main>", "block in <main>", "Slow#late"], browser.texts("#flame-path button")
      assert_match(/\ASlow#late \(\/app\/late.rb:7\) +1,000 exits, 25.0 %\z/, browser.text("#flame-detail"))
      browser.click("#flame-path button")
      browser.type("#search", "foo.rb")
      assert_equal ["Foo#even", "Foo.odd"], browser.texts("#flame .match").sort
      assert_equal "75.0 % of the exits pass through matching frames", browser.text("#flame-sum")
    end
  end

  def test_browser_flame_graph_by_keyboard
    browse(mixed) do |browser|
      key = lambda do |name|
        browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))", name)
      end
      browser.run("document.querySelector('#flame .frame').focus()")
      %w[ArrowDown ArrowDown ArrowDown ArrowRight].each(&key)
      assert_match(/\AFoo#even|\ASlow#late/, browser.run("return document.activeElement.getAttribute('aria-label')"))
      key["Enter"]
      assert_equal 4, browser.texts("#flame-path button").size
      key["Escape"]
      assert_equal 3, browser.texts("#flame-path button").size
    end
  end

  # Stacks and their weights, as another command has them.
  def folded(trace)
    with_file(trace) { |path| tool("export", "--format=folded", path).out }.lines.to_h do |line|
      stack, weight = line.chomp.match(/\A(.*) (\d+)\z/).captures
      [stack.split(";"), weight.to_i]
    end
  end

  # What is drawn: [name, exits, top] of each frame.
  def flame_frames(browser)
    browser.run("return [...document.querySelectorAll('#flame .frame')]" \
                ".map((f) => [f.getAttribute('aria-label'), parseInt(f.style.top)])").map do |label, top|
      [label[/\A(.*?)(?: \([^()]*\))?  [\d,]+ exit/, 1], label[/  ([\d,]+) exit/, 1].delete(",").to_i, top]
    end
  end

  def sums_of(stacks)
    stacks.each_with_object(Hash.new(0)) do |(name, weight), sums|
      sums[name.sub(/ \([^()]*\)\z/, "")] += weight
    end
  end

  def test_browser_flame_graph_with_the_innermost_first
    stacks = folded(mixed)
    browse(mixed) do |browser|
      browser.click("#flame-section [data-mode=inverted]")
      frames = flame_frames(browser)
      assert_equal ["all exits", stacks.values.sum, 0], frames.first
      assert_equal sums_of(stacks.map { |stack, weight| [stack.last, weight] }),
                   frames.select { |_, _, top| top == 20 }.to_h { |name, exits, _| [name, exits] }
      # Below a reason its places, and at last the outermost frame.
      assert_equal sums_of(stacks.map { |stack, weight| [stack[-2], weight] }),
                   sums_of(frames.select { |_, _, top| top == 40 }.map { |name, exits, _| [name, exits] })
      browser.click("#flame .frame[aria-label^='Odd']")
      assert_equal ["all exits", "Odd"], browser.texts("#flame-path button")
      browser.click("#flame-section [data-mode=callers]")
      assert_equal ["all exits", "<main>", "block in <main>", "Foo.odd", "Odd"], browser.texts("#flame .frame").first(5)
      assert_empty browser.problems
    end
  end

  def test_browser_flame_graph_of_one_frame
    stacks = folded(mixed)
    browse(mixed) do |browser|
      browser.click("#flame .frame[aria-label^='block in']")
      browser.click("#flame-section [data-mode=sandwich]")
      inside = stacks.select { |stack, _| stack.any? { |name| name.start_with?("block in") } }
      frames = flame_frames(browser)
      center = frames.find { |name, _, _| name.start_with?("block in") }
      assert_equal inside.values.sum, center[1]
      at = ->(stack) { stack.index { |name| name.start_with?("block in") } }
      row = lambda do |rows|
        frames.select { |_, _, top| top == center[2] + 20 * rows }.map { |name, exits, _| [name, exits] }.sort
      end
      assert_equal sums_of(inside.map { |stack, weight| [stack[at[stack] - 1], weight] }).sort, row[-1]
      assert_equal sums_of(inside.map { |stack, weight| [stack[at[stack] + 1], weight] }).sort, row[1]
      # Another frame takes its place; a key moves to its callers; Escape shows all stacks again.
      browser.click("#flame .frame[aria-label^='Slow#late']")
      assert_match(/\ASlow#late/, browser.text("#flame-detail"))
      press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))"
      key = ->(name) { browser.run(press, name) }
      browser.run("document.querySelector(\"#flame .frame[tabindex='0']\").focus()")
      key["ArrowUp"]
      assert_match(/\Ablock in/, browser.run("return document.activeElement.getAttribute('aria-label')"))
      key["ArrowDown"]
      assert_match(/\ASlow#late/, browser.run("return document.activeElement.getAttribute('aria-label')"))
      key["Escape"]
      assert_equal "all exits", browser.texts("#flame .frame").first
      assert_empty browser.problems
    end
  end

  def test_browser_flame_graphs_of_two_runs
    run = lambda do |counts|
      FxtBuilder.simple do |b|
        counts.each do |name, count|
          args = { "0" => name, "1" => "<main> (/a.rb:9)" }
          count.times { |i| b.event(:instant, "side_exit", "R", ts: i, args: args) }
        end
      end
    end
    before = run[{ "Same#x (/a.rb:1)" => 10, "Grew#y (/a.rb:2)" => 10, "Shrank#z (/a.rb:3)" => 10,
                   "Gone#w (/a.rb:4)" => 5 }]
    after = run[{ "Same#x (/a.rb:1)" => 10, "Grew#y (/a.rb:2)" => 14, "Shrank#z (/a.rb:3)" => 2,
                  "New#v (/a.rb:5)" => 4 }]
    with_file(before) do |base|
      browse(after, "--against", base) do |browser|
        classes = lambda do
          browser.run("return [...document.querySelectorAll('#flame .frame')]" \
                      ".map((f) => [f.innerText, f.className.replace(/frame|center/g, '').trim()])").to_h
        end
        assert_equal({ "Same#x" => "same", "Grew#y" => "grew2", "Shrank#z" => "shrank3", "New#v" => "grew3" },
                     classes[].slice("Same#x", "Grew#y", "Shrank#z", "New#v"))
        refute_includes classes[], "Gone#w"
        browser.click("#flame-section [aria-label='Run that is drawn'] button:nth-child(2)")
        assert_equal({ "Gone#w" => "shrank3", "Grew#y" => "grew2" }, classes[].slice("Gone#w", "Grew#y", "New#v"))
        assert_match(/\A35 exits by backtrace/, browser.text("#flame-sum"))
        # In another order the sums are those of the reason.
        browser.click("#flame-section [data-mode=inverted]")
        assert_equal "shrank1", classes[]["R"]
        reason = browser.map("#flame .frame:nth-child(2)", "e.getAttribute('aria-label')").first
        assert_match(/ 35 exits, 100/, reason)
      end
      result = tool("html", "-o", "#{base}.html", "--against", "/nonesuch", base)
      assert_equal [3, false], [result.status, File.exist?("#{base}.html")]
      assert_match(/nonesuch: cannot be opened/, result.err)
    end
  end

  def test_browser_links_keep_the_view
    browse(mixed) do |browser|
      browser.drag("#timeline", 0.3, 0.6)
      browser.type("#search", "slow & ä#")
      browser.click("#flame-section [data-mode=inverted]")
      shown = ["#window", "#table-sum"].map { |selector| browser.text(selector) }
      link = browser.run("return location.href")
      assert_match(/#tab=All&window=\d+-\d+&search=.*&flame-modes=inverted\z/, link)
      browser.visit("about:blank")
      browser.visit(link)
      assert_equal shown, ["#window", "#table-sum"].map { |selector| browser.text(selector) }
      restored = browser.run("const mode = document.querySelector('#flame-section [data-mode=inverted]'); " \
                             "return [document.getElementById('search').value, mode.getAttribute('aria-pressed')]")
      assert_equal ["slow & ä#", "true"], restored
      # What is in the middle, too; and nonsense does no harm.
      browser.run("window.old = true; " \
                  "location.hash = '#tab=All&window=9-1&flame-modes=sandwich+Foo%23even+(/app/foo.rb:30)&x=y'; " \
                  "location.reload()")
      wait_for(browser, "!window.old && document.readyState === 'complete'")
      browser.settle
      assert_match(/all exits|Foo/, browser.text("#flame"))
    end
  end

  def test_browser_shows_hostile_names_as_text
    trace = FxtBuilder.simple do |b|
      HOSTILE.each { |name| b.event(:instant, "side_exit", FxtBuilder::Inline.new(name), ts: 1, args: { "0" => FxtBuilder::Inline.new("#{name}#x".b) }) }
    end
    browse(trace) do |browser|
      assert_match(/vm-trace\z/, browser.run("return document.title"))
      assert_equal 0, browser.run("return document.querySelectorAll('img').length")
      assert_includes method_column(browser), "#{HOSTILE[0]}#x"
      assert_includes method_column(browser), "\\x1B[31m\\u202Eevil\\n\\x00#x"
    end
  end

  def test_browser_dark_and_narrow
    browse(mixed, dark: true, width: 500, height: 900) do |browser|
      assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches")
      assert_equal "rgb(17, 20, 26)", browser.run("return getComputedStyle(document.body).backgroundColor")
      assert_operator browser.run("return document.documentElement.scrollWidth"), :<=, 500
    end
  end

  def test_browser_trace_without_exits
    browse(FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1) }) do |browser|
      assert_match(/There are no side exits/, browser.text("#findings"))
      assert_equal "Nothing matches.", browser.text("#table-sum")
    end
  end
end
