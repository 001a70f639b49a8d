# Threads and garbage collections in the page of `vm-trace html`: its numbers are those of the report,
# and follow the window that is chosen in a browser.
require_relative "page_helper"

class TestHtmlThreads < Minitest::Test
  include PageHelper

  S, R = ThreadsTrace::BLOCKED, ThreadsTrace::RUNNABLE
  STATES = %w[waiting blocked gc running].freeze

  def gvl = File.binread(File.join(TRACES, "gvl.fxt"))

  def decode(numbers, texts) = PageNumbers.segments(numbers).each { |segment| segment.by &&= texts[segment.by] }

  def timeline_of(bytes) = timeline_in(data_of(page(bytes)))

  def timeline_in(data)
    texts, timeline = data.values_at("strings", "timeline")
    timeline["tracks"] = timeline["tracks"].map do |track|
      track[0, 2] + [texts[track[2]]] + track[3..8] + [texts[track[9]], decode(track[10], texts)]
    end
    timeline["pauses"] = decode(timeline["pauses"], texts)
    %w[names reasons].each { |list| timeline[list] = timeline[list].map { |row| row.map { |text| texts[text] } } }
    timeline
  end

  def reported(bytes, *options)
    with_file(bytes) do |path|
      tables = JSON.parse(tool("report", "--format=json", "--top=100000", *options, path).out)
      tables.transform_values { |table| table.is_a?(Hash) && table["rows"] || [] }
    end
  end

  # Sums of the segments' names: {name => [count, ns, longest, first ones]}
  def by_name(segments, names)
    sums = Hash.new { |all, name| all[name] = [0, 0, 0, 0] }
    segments.flat_map(&:names).each do |name, count, ns, longest, firsts|
      sum = sums[name < 0 ? nil : names[name]]
      sum[0] += count
      sum[1] += ns
      sum[2] = [sum[2], longest].max
      sum[3] += firsts
    end
    sums
  end

  def assert_as_reported(bytes)
    timeline, tables = timeline_of(bytes), reported(bytes)
    states = tables["thread_states"].to_h do |row|
      [row.values_at("tid", "thread"), row.values_at("waiting_ns", "blocked_ns", "gc_ns", "running_ns")]
    end
    shown = timeline["tracks"].to_h do |_, tid, name, *, segments|
      [[tid, name], segments.map(&:ns).transpose.map(&:sum)]
    end
    assert_equal states, shown
    held = tables["gvl_holders"].to_h do |row|
      [row["thread"], row.values_at("others_ns", "held_ns", "held_gc_ns", "longest_hold_ns")]
    end
    assert_equal held, timeline["tracks"].select { |track| track[5] > 0 }.to_h { |track| [track[2], track[4, 4]] }
    blocked = tables["blocked"].to_h do |row|
      [[row["name"], row["class"] || ""], row.values_at("count", "total_ns", "longest_ns")]
    end
    assert_equal blocked,
                 by_name(timeline["tracks"].flat_map(&:last), timeline["names"]).transform_values { |sum| sum.first(3) }
    gc = tables["gc"].to_h do |row|
      [row.values_at("kind", "reason", "major_by").map(&:to_s),
       row.values_at("pauses", "total_ns", "longest_ns", "collections")]
    end
    gc.transform_keys! { |kind, reason, by| [kind, reason == "(unknown)" ? "" : reason, by] }
    assert_equal gc, by_name(timeline["pauses"], timeline["reasons"])
    timeline
  end

  # A piece of a spool, in which a thread is blocked from its begin on, or to its end.
  def piece(from, to, ends)
    trace = ThreadsTrace.new(settings: nil, ends: ends) do |t|
      t.event(:instant, :main, "trace", "settings", from, flags: "threads", pid: [:uint32, 42])
      t.thread(:web, 50)
      t.blocks(:web, "Queue#pop", from, to)
    end
    trace.build(suspensions: 1).bytes
  end

  # The last events of a piece may be later than the first ones of the next.
  def test_what_a_thread_is_blocked_in_over_two_pieces_has_its_name_in_both
    Dir.mktmpdir do |dir|
      files = { 1 => piece(8, nil, 12), 2 => piece(11, 20, 25) }.map do |number, bytes|
        "#{dir}/web1-7-20261126T221504-#{number}-size.fxt".tap { |path| File.binwrite(path, bytes) }
      end
      timeline = timeline_in(data_of(tool("html", *files).out))
      sums = by_name(timeline["tracks"].flat_map(&:last), timeline["names"])
      assert_equal({ ["Queue#pop", ""] => [2, 12_000_000, 8_000_000] }, sums.transform_values { |sum| sum.first(3) })
    end
  end

  def test_numbers_are_those_of_the_report
    timeline = assert_as_reported(gvl)
    web = timeline["tracks"].first
    assert_equal "web 1", web[2]
    assert_equal [[0, 1, 2], [3, 2, 5], [1, 5, 20], [0, 20, 30], [3, 30, 33], [1, 33, 35], [0, 35, 53], [3, 53, 54]],
                 web.last.map { |s| [s.ns.index(&:positive?), s.from / 1_000_000, s.to / 1_000_000] }
  end

  # A thread that alternates between 20,000 short states and a few long ones.
  def busy(switches: 20_000, methods: 3)
    ThreadsTrace.new(ends: 5000) do |t|
      t.thread(:worker, 44)
      t.runs(:worker, 0)
      at = 1
      switches.times do |i|
        t.blocks(:worker, "M#m#{i % methods}", at, at + 0.01, at + 0.015, by: :main)
        at += i % 5000 == 4999 ? 300 : 0.05
        t.during(:worker, "gc", "GC minor", at - 0.02, at - 0.01, count: [:uint64, i / 2],
                 reason: i.even? ? "newobj" : "malloc") if i % 100 < 2
      end
      t.leaves(:worker, at, ThreadsTrace::DEAD)
    end.build
  end

  def test_short_states_are_folded_and_sums_stay_exact
    timeline = assert_as_reported(busy)
    segments = timeline["tracks"].first.last
    assert_operator segments.size, :<=, 16_384
    assert_operator segments.sum(&:pieces), :>=, 60_000
    assert_equal 4, segments.count { |s| s.pieces == 1 && s.to - s.from > 250_000_000 }, "long states stay as they are"
    folded = segments.select { |s| s.pieces > 1 }
    assert(folded.all? { |s| s.ns.sum == s.to - s.from })
    assert_operator folded.map { |s| s.to - s.from }.max, :<, 20_000_000
    assert_operator page(busy).bytesize, :<, 860_000
  end

  def test_many_names_in_one_segment_become_others
    timeline = timeline_of(busy(switches: 160_000, methods: 500))
    names = timeline["tracks"].first.last.flat_map(&:names)
    assert_equal 160_000, names.sum { |name| name[1] }
    assert_equal 1_600_000_000, names.sum { |name| name[2] }
    assert names.any? { |name| name[0] == -1 }
    assert_operator timeline["tracks"].first.last.map { |s| s.names.size }.max, :<=, 16
  end

  def test_more_threads_than_the_page_shows_are_summed_up
    processes = Array.new(4) do |process|
      ThreadsTrace.new(ends: 10_000, pid: 10_000 * (process + 1)) do |t|
        at = 0
        155.times do |i|
          name = :"thread #{process} #{i}"
          t.thread(name, 10_000 * (process + 1) + 100 + i)
          200.times { t.wakes(name, at, at += 0.01 * (i + 1) / 100); t.leaves(name, at += 0.02, S) }
        end
      end.build
    end
    trace = processes.first
    processes.drop(1).each { |other| trace.raw(other.bytes) }
    timeline, states = timeline_of(trace), reported(trace)["thread_states"]
    assert_equal [500, 120], [timeline["tracks"].size, timeline["left_out"]]
    assert_equal states.first(500).map { |row| row["waiting_ns"] },
                 timeline["tracks"].map { |track| track.last.sum { |s| s.ns[0] } }
    left_out = states.drop(500).map { |row| row.values_at("waiting_ns", "blocked_ns", "gc_ns", "running_ns") }
    assert_equal left_out.transpose.map(&:sum), timeline["left_out_ns"]
    assert_operator timeline["tracks"].sum { |track| track.last.size }, :<=, 40_000
  end

  # Chunks are used again from the first on. What is open at the end of the older part goes on to the first record of its
  # thread in the newer one, or to the end. Both have more switches than the window of duration_pairs.h sorts.
  def test_older_part_of_a_file_that_keeps_its_newest_events
    busy = lambda do |t, at|
      70_000.times { |i| t.runs(:worker, at + i * 0.0006); t.leaves(:worker, at + i * 0.0006 + 0.0002, S) }
    end
    trace = ThreadsTrace.new(settings: nil) do |t|
      t.thread(:worker, 44)
      t.event(:instant, :main, "trace", "settings", 50, pid: [:uint32, 42], keep: "newest")
      busy[t, 50]
      t.new_chunk
      busy[t, 1]
      t.runs(:main, 45)
    end
    timeline = assert_as_reported(trace.build)
    assert_equal 55_000_000, timeline["tracks"].find { |track| track[2] == "main" }.last.sum { |s| s.to - s.from }
  end

  def test_wakers_and_collectors_are_named
    timeline = timeline_of(gvl)
    segments = timeline["tracks"].to_h { |track| [track[2], track.last] }
    assert_equal ["index"], segments["web 1"].map(&:by).compact
    assert_equal %w[index index index], timeline["pauses"].map(&:by)
  end

  def test_trace_without_threads_has_none
    assert_equal [[], [], 0], timeline_of(OurTrace.new.build).values_at("tracks", "pauses", "left_out")
  end

  # --- in a browser ------------------------------------------------------------------------------

  def cells(browser, table)
    browser.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]" \
                ".map((row) => [...row.cells].map((cell) => cell.innerText))", "##{table}")
  end
  def key(browser, name)
    browser.run("document.getElementById('tracks')" \
                ".dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))", name)
  end
  def drag(browser, from, to)
    box = browser.run("const width = (path) => document.querySelector(path).getBoundingClientRect().width; " \
                      "return width('#tracks [data-row] svg') / width('#tracks')")
    browser.drag("#tracks", 1 - box * (1 - from), 1 - box * (1 - to))
  end

  # As the page shows times.
  def milliseconds(text)
    number, unit = text.split(" ")
    number.to_f * { "ns" => 1e-6, "µs" => 1e-3, "ms" => 1, "s" => 1000 }.fetch(unit)
  end

  def test_browser_shows_the_tables_of_the_report
    browse(gvl) do |browser|
      assert_equal "Threads", browser.text("#title")
      assert_equal ["GC pauses", "web 1", "index", "ractor 2", "main"], browser.texts("#tracks [data-row] .label")
      assert_equal ["web 1", "53.0 ms", "29.00 ms", "54.7 %", "17.0 ms", "32.1 %", "0 ms", "0.00 %", "7.00 ms",
                    "13.2 %"], cells(browser, "thread-states").first
      assert_equal ["index", "28.00 ms", "76.7 %", "28.00 ms", "18.00 ms", "35.00 ms", "build index"],
                   cells(browser, "gvl-holders").first
      assert_equal [["sleep", "", "2", "98.00 ms"], ["Queue#pop", "Thread::Queue", "1", "38.00 ms"],
                    ["IO#wait", "TCPSocket", "1", "15.00 ms"],
                    ["Mutex#lock", "Thread::Mutex", "1", "2.00 ms"]],
                   cells(browser, "blocked").map { |row| row.first(4) }
      assert_equal [["GC major", "malloc", "oldmalloc", "1", "2", "5.00 ms", "71.4 %", "4.00 ms"],
                    ["GC minor", "newobj", "", "1", "1", "2.00 ms", "28.6 %", "2.00 ms"]],
                   cells(browser, "gc")
      refute browser.run("return document.getElementById('table-section').checkVisibility()"), "there are no exits"
    end
  end

  # A unit and the decimals for each column, whatever the lengths of its times.
  def test_browser_shows_times_as_the_report_writes_them
    trace = ThreadsTrace.new(ends: 40_000) do |t|
      { long: 10_000, second: 7050, third: 20, short: 0.5 }.each_with_index do |(name, ms), i|
        t.thread(name, 50 + i)
        t.runs(name, i * 10_000)
        t.blocks(name, "IO#read #{i}", i * 10_000 + ms / 2.0, i * 10_000 + ms)
        t.leaves(name, i * 10_000 + ms, ThreadsTrace::DEAD)
      end
    end.build
    duration = /<?[\d.,]+ (?:ns|[uµ]s|ms|s)\b/
    browse(trace) do |browser|
      with_file(trace) do |path|
        { "thread-states" => ["thread_states", 0], "blocked" => ["blocked", 0] }.each do |id, (table, name)|
          lines = tool("report", "--all", "--table=#{table}", "--top=100", path).out.lines
          cells(browser, id).each do |row|
            line = lines.find { |text| text.chomp.end_with?("  #{row[name]}") }
            assert_empty row.grep(duration) - line.scan(duration), [id, row]
          end
        end
      end
      assert_equal ["10.00 s", "7.05 s", "0.02 s", "<0.01 s"], cells(browser, "thread-states").map { |row| row[1] }
    end
  end

  # The window that a drag chose, in nanoseconds from the first event.
  def test_browser_tables_follow_the_window
    browse(gvl) do |browser|
      drag(browser, 0.25, 0.40)
      from, to = browser.text("#threads-window").scan(/[\d.]+/).first(2).map(&:to_f)
      assert_in_delta 25, from, 0.5
      assert_in_delta 40, to, 0.5
      report = reported(gvl, "--since=#{from}ms", "--until=#{to}ms")
      states = { 2 => "waiting_ns", 4 => "blocked_ns", 6 => "gc_ns", 8 => "running_ns" }
      holders = { 1 => "others_ns", 3 => "held_ns", 4 => "longest_hold_ns" }
      columns = { "thread-states" => ["thread_states", 0, "thread", states],
                  "gvl-holders" => ["gvl_holders", 0, "thread", holders],
                  "blocked" => ["blocked", 0, "name", { 3 => "total_ns", 5 => "longest_ns" }] }
      columns.each do |id, (table, name_at, name, values)|
        shown = cells(browser, id).to_h { |row| [row[name_at], values.keys.map { |at| milliseconds(row[at]) }] }
        expected = report[table].to_h { |row| [row[name], values.values.map { |column| row[column] / 1e6 }] }
        assert_equal expected.keys.sort, shown.keys.sort, id
        expected.each { |key, numbers| numbers.zip(shown[key]) { |a, b| assert_in_delta a, b, 0.06, "#{id} #{key}" } }
      end
      assert_empty cells(browser, "gc"), "no pause begins there"
      refute_match(/About/, browser.text("#thread-tables"))
    end
  end

  def test_browser_collection_that_began_before_the_trace
    trace = ThreadsTrace.new do |t|
      t.runs(:main, 0)
      t.during(:main, "gc", "GC major", 10, 20, count: [:uint64, 7])
      t.during(:main, "gc", "GC minor", 30, 35, count: [:uint64, 8], reason: "newobj")
    end.build
    assert_as_reported(trace)
    browse(trace) do |browser|
      assert_equal [["GC major", "(not recorded)"], ["GC minor", "newobj"]], cells(browser, "gc").map { |row| row.first(2) }
      assert_match(/\AGC pauses\nGC major 10.0 ms\n\(not recorded\)/, hover(browser, 0, 0.15))
    end
  end

  def test_browser_holders_count_all_that_wait
    trace = ThreadsTrace.new do |t|
      t.thread(:a, 44)
      t.thread(:b, 45)
      t.runs(:main, 0)
      t.builder.wakeup(10_000_000, 44)
      t.builder.wakeup(20_000_000, 45)
      t.leaves(:main, 80, S)
      t.runs(:a, 80)
      t.leaves(:a, 90, S)
      t.runs(:b, 90)
    end.build
    browse(trace) do |browser|
      drag(browser, 0.3, 0.7)
      from, to = browser.text("#threads-window").scan(/[\d.]+/).first(2).map(&:to_f)
      row = cells(browser, "gvl-holders").first
      assert_equal "main", row[0]
      assert_in_delta 2 * (to - from), milliseconds(row[1]), 0.1
      assert_in_delta to - from, milliseconds(row[3]), 0.1
    end
  end

  def test_browser_goes_back_step_by_step
    browse(gvl) do |browser|
      window = -> { browser.text("#threads-window")[/\A[\d.]+ \S+ to [^,]+/] }
      drag(browser, 0.2, 0.8)
      first = window[]
      drag(browser, 0.2, 0.4)
      refute_equal first, window[]
      browser.run("document.getElementById('tracks').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))")
      assert_equal first, window[]
      key(browser, "Escape")
      assert_nil window[]
      assert_equal 4, cells(browser, "thread-states").size
      drag(browser, 0.2, 0.4)
      browser.click("#threads-back")
      assert_nil window[]
    end
  end

  def test_browser_by_keyboard
    browse(gvl) do |browser|
      assert browser.run("const box = document.getElementById('tracks'); box.focus(); " \
                         "return document.activeElement === box")
      2.times { key(browser, "ArrowDown") }
      assert_match(/\Aweb 1: waiting 29.0 ms, blocked 17.0 ms, running 7.00 ms\z/, browser.text("#threads-detail"))
      3.times { key(browser, ".") }
      assert_equal "web 1 at 5.00 ms; blocked 15.0 ms; in IO#wait, TCPSocket", browser.text("#threads-detail")
      key(browser, ".")
      assert_equal "web 1 at 20.0 ms; waiting for the GVL 10.0 ms; meanwhile ran index: 10.0 ms",
                   browser.text("#threads-detail")
      key(browser, ",")
      key(browser, "Enter")
      assert_match(/\A3\.50+ ms to 21\.50+ ms, 18\.0 ms\z/, browser.text("#threads-window"))
      key(browser, "ArrowRight")
      assert_match(/\A7\.10+ ms to 25\.10+ ms, 18\.0 ms\z/, browser.text("#threads-window"))
      key(browser, "-")
      assert_match(/, 36\.0 ms\z|, 34\.1 ms\z/, browser.text("#threads-window"))
      key(browser, "Home")
      assert_match(/\A100 ms\. Drag to zoom/, browser.text("#threads-window"))
    end
  end

  def hover(browser, row, part)
    browser.run(<<~JS, row, part)
      const svg = document.querySelector(`#tracks [data-row="${arguments[0]}"] svg`), box = svg.getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent("pointermove",
                                         { bubbles: true, clientX: box.left + arguments[1] * box.width,
                                           clientY: box.top + 4 }));
    JS
    browser.text("#tip")
  end

  def test_browser_hover_says_state_method_and_waker
    browse(gvl) do |browser|
      assert_match(/\Aweb 1\nblocked 2.00 ms\nin Mutex#lock, Thread::Mutex\nwoken by index\nat 34/,
                   hover(browser, 1, 0.345))
      assert_match(/\Aweb 1\nwaiting for the GVL 18.0 ms\nmeanwhile ran index: 18.0 ms\n/, hover(browser, 1, 0.45))
      assert_match(/\AGC pauses\nGC major 4.00 ms\nmalloc, oldmalloc\ncollected by index\n/, hover(browser, 0, 0.24))
    end
  end

  def test_browser_says_about_where_short_states_are_cut
    browse(busy) do |browser|
      refute_match(/About/, browser.text("#thread-tables"))
      assert_match(/short states in/, hover(browser, 1, 0.002))
      drag(browser, 0.001, 0.09)
      assert_match(/^About: where the time of/i, browser.text("#thread-tables"))
    end
  end

  def test_browser_window_is_that_of_the_exits
    trace = ThreadsTrace.new do |t|
      t.thread(:worker, 44)
      t.runs(:main, 0)
      100.times do |i|
        t.event(:instant, :main, "side_exit", i < 50 ? "Early" : "Late", i, "0" => "Foo#m#{i / 50} (a.rb:1)")
      end
      t.blocks(:main, "sleep", 99)
    end.build
    browse(trace, height: 1200) do |browser|
      assert_equal %w[100], [browser.text("#table-sum")[/\d+ exits/].to_i.to_s]
      drag(browser, 0.6, 1.0)
      assert_equal ["Late"], browser.texts("#table-body td.reason")
      browser.click("#threads-whole")
      assert_equal %w[Early Late], browser.texts("#table-body td.reason").sort
      browser.drag("#timeline", 0.1, 0.3)
      assert_match(/ to /, browser.text("#threads-window"))
    end
  end

  def test_browser_dark_and_narrow
    browse(gvl, dark: true, width: 500, height: 900) do |browser|
      assert_operator browser.run("return document.documentElement.scrollWidth"), :<=, 500
    end
  end

  # Colors that stay apart without red and green: their lightness differs.
  def test_browser_states_differ_in_lightness
    [false, true].each do |dark|
      browse(gvl, dark: dark) do |browser|
        colors = browser.run("const swatch = (i) => document.querySelector('.swatch.state' + i); " \
                             "return [0, 1, 2, 3].map((i) => getComputedStyle(swatch(i)).backgroundColor)")
        light = colors.map do |color|
          color.scan(/\d+/).map(&:to_i).zip([0.2126, 0.7152, 0.0722]).sum { |value, part| (value / 255.0)**2.2 * part }
        end
        light.combination(2) do |a, b|
          assert_operator (([a, b].max + 0.05) / ([a, b].min + 0.05)), :>, 1.2, colors.inspect
        end
      end
    end
  end

  def test_browser_shows_hostile_names_as_text
    evil = "<img src=x onerror=alert(1)></script>"
    trace = ThreadsTrace.new do |t|
      t.thread(evil.to_sym, 44)
      t.runs(evil.to_sym, 0)
      t.blocks(evil.to_sym, evil, 5, 20, 30)
    end.build
    browse(trace) do |browser|
      assert_equal 0, browser.run("return document.querySelectorAll('img').length")
      assert_includes browser.texts("#tracks .label"), evil
      assert_equal evil, cells(browser, "blocked").first.first
    end
  end
end
