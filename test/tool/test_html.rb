# `vm-trace html`: the data of the page, and that it works in a browser, opened from disk.
require_relative "tool_helper"
require_relative "page_helper"

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

  # Sums over the cells of rows: [bin, count, bin, count ...]
  def in_bins(rows) = rows.sum { |row| row[9].each_slice(2).sum(&:last) }

  # Every event is in the bin of its time.
  def assert_binned(times_ns, data)
    bins = data["bins"]
    expected = times_ns.map { |ts| (ts - times_ns.min - bins["start_ns"]) / bins["width_ns"] }.tally
    found = data["rows"].flat_map { |row| row[9].each_slice(2).to_a }.group_by(&:first).transform_values { |cells| cells.sum(&:last) }
    assert_equal expected, found
    assert_equal 0, (times_ns.min + bins["start_ns"]) % bins["width_ns"], "bins begin at multiples of their width"
  end

  def test_counts_of_rows_bins_and_stacks_agree
    data = data_of(page(exits(3000)))
    assert_equal 3000, data["exits"]
    assert_equal 3000, data["rows"].sum { |row| row[6] }
    assert_equal 3000, in_bins(data["rows"])
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

  def test_sampled_exits_are_scaled
    trace = OurTrace.new(rate: 97).build
    data = data_of(page(trace))
    assert_equal 3 * 97, data["exits"]
    assert_equal 1, data["fallbacks"]
    assert_equal 4, data["recorded"]
  end

  def test_what_is_not_shown_one_by_one_is_summed
    data = data_of(page(exits(6000, methods: 3000, reasons: 3)))
    summed, single = data["rows"].partition { |row| row[5] != 1 }
    assert_equal 1000, single.size
    assert_equal 2000, summed.sum { |row| row[5] }
    assert_equal %w[Reason0 Reason1 Reason2], summed.map { |row| data["strings"][row[1]] }.sort
    assert_equal 6000, in_bins(data["rows"])
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
    compiling = data_of(page(trace))["compiling"]
    assert_equal [1, 900_000, 1], compiling.values_at("compiles", "compile_ns", "invalidations"), "only ISEQs are compiled"
    assert_equal 900_500, compiling["ns"].each_slice(2).sum(&:last)
    assert_equal 1, compiling["invalidated"].each_slice(2).sum(&:last)
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
      browser.type("#table-search", "EVEN foo")
      assert_equal ["Foo#even /app/foo.rb:3"], method_column(browser)
      assert_match(/\A1 row: 1,000 exits, 25.0 %/, browser.text("#table-sum"))
      browser.run("const s = document.getElementById('table-search'); s.value = ''; s.dispatchEvent(new Event('input'))")
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
      browser.type("#flame-search", "foo.rb")
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
