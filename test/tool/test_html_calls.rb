# Calls in the page of `vm-trace html`: every slice is there, sums are exact, and a browser can zoom,
# search and select them.
require_relative "page_helper"

class TestHtmlCalls < Minitest::Test
  include PageHelper

  MAIN, WORKER, FIBER = 1, 2, 3
  Call = Struct.new(:track, :name, :from, :to, :args, :inner, :above) do
    def ns = to - from
    def own = ns - inner.sum(&:ns)
    def recursive? = above.any? { |call| call.name == name }
  end

  # A trace with calls, written as they return. It keeps them as a tree: what the page must say.
  class Calls
    attr_reader :all, :builder

    def initialize
      @all, @open = [], []
      @builder = FxtBuilder.simple(pid: 42)
      define_threads
      yield self
    end

    def define_threads
      @builder.thread(WORKER, 42, 44)
      @builder.thread(FIBER, 42, 3 * 2**29)
      @builder.thread_name(42, 44, "worker")
      @builder.thread_name(42, 3 * 2**29, "main fiber 1")
    end

    def call(name, from, to, track: MAIN, **args)
      call = Call.new(track, name, from, to, args, [], @open.dup)
      @open.last.inner << call if @open.any?
      @open << call
      yield if block_given?
      @open.pop
      @all << call
      write(call)
    end

    def write(call)
      args = call.args.to_h { |key, value| [key.to_s, value.is_a?(Integer) ? [:uint64, value] : value] }
      @builder.event(:complete, "call", call.name, ts: call.from, thread: call.track, args: args, extra: call.to)
    end

    def new_chunk
      @builder.provider(1, "test")
      @builder.init
      @builder.thread(MAIN, 42, 43)
      define_threads
    end

    def build = @builder.bytes

    # { name => [calls, total, own, longest] }
    def sums
      @all.group_by(&:name).transform_values do |calls|
        [calls.size, calls.reject(&:recursive?).sum(&:ns), calls.sum(&:own), calls.map(&:ns).max]
      end
    end
  end

  FIB = "Object#fib (/app/fib.rb:3)"

  def fib(trace, depth, from, to)
    trace.call(FIB, from, to) do
      next if depth == 0
      middle = from + (to - from) * 2 / 3
      fib(trace, depth - 1, from + 3, middle)
      fib(trace, depth - 1, middle + 1, to - 2) if depth > 1
    end
  end

  # Of 1 ms: main runs fib, a worker serves requests, a fiber begins in the middle.
  def app
    Calls.new do |t|
      t.call("<main> (/app/run.rb:1)", 1_000, 1_001_000) do
        t.call("App#boot (/app/app.rb:5)", 2_000, 300_000) { t.call("Array#each", 10_000, 250_000) }
        fib(t, 6, 400_000, 900_000)
      end
      3.times do |i|
        at = 100_000 + i * 250_000
        t.call("App#serve (/app/app.rb:9)", at, at + 200_000, track: WORKER) do
          t.call("App#find (/app/app.rb:20)", at + 10_000, at + 40_000 * (i + 1), track: WORKER)
          t.call("String#gsub", at + 180_000, at + 190_000, track: WORKER)
        end
      end
      t.call("block in App#boot (/app/app.rb:6)", 500_000, 700_000, track: FIBER)
    end
  end

  # The slices in the page: [tid, method, begin, length], and the extras by slice.
  def slices_of(page)
    slices, extras = PageNumbers.calls(page, data_of(page))
    [slices.map { |(_, tid), *slice| [tid, *slice] }, extras]
  end

  def sums_of(page)
    data = data_of(page)
    data["calls"]["methods"].to_h { |name, *numbers| [data["strings"][name], numbers] }
  end

  def expected_slices(calls)
    tids = { MAIN => 43, WORKER => 44, FIBER => 3 * 2**29 }
    calls.map { |call| [tids[call.track], call.name, call.from - 1_000, call.ns] }.sort
  end

  # --- the data ----------------------------------------------------------------------------------

  def test_sums_are_exact
    sums = sums_of(page(app.build))
    assert_equal app.sums, sums
    assert_equal sums.values.map { |row| row[2] }.sort.reverse, sums.values.map { |row| row[2] }
    assert_equal 500_000, sums[FIB][1], "a recursion counts once in the total"
  end

  def reported(bytes)
    with_file(bytes) do |path|
      rows = JSON.parse(tool("report", "--calls", "--format=json", "--top=100000", path).out)["calls"]["rows"]
      methods = rows.reject { |row| row["method"] == "(outside recorded calls)" }
      methods.to_h { |row| [row["method"], row.values_at("calls", "total_ns", "own_ns", "max_ns")] }
    end
  end

  # So many calls in one caller that the report sums up some before their caller returns.
  def wide
    Calls.new do |t|
      t.call("<main> (a.rb:1)", 1_000, 200_003_000) do
        500.times { |i| t.call("A#first (a.rb:2)", 1_100 + i, 1_101 + i) }
        t.call("Integer#times", 2_000, 200_002_500) do
          100_000.times { |i| t.call("A#m#{i % 7} (a.rb:#{i % 7})", 3_000 + i * 2000, 3_900 + i * 2000) }
        end
      end
    end
  end

  def test_sums_are_those_of_the_report
    [app.build, File.binread(File.join(TRACES, "calls.fxt")), wide.build].each do |trace|
      assert_equal reported(trace), sums_of(page(trace))
    end
  end

  def test_every_call_is_a_slice_outer_ones_first
    slices, extras = slices_of(page(app.build))
    assert_equal expected_slices(app.all), slices.sort
    assert_empty extras
    slices.group_by(&:first).each_value do |track|
      assert_equal track.map { |slice| slice[2] }.sort, track.map { |slice| slice[2] }
    end
  end

  # A ractor's chunks are in any order, and a caller may be in another one.
  def test_calls_nest_across_chunks
    expected = nil
    trace = Calls.new do |t|
      t.call("A#outer (a.rb:1)", 1_000, 9_000) do
        t.call("A#inner (a.rb:2)", 5_000, 6_000)
        t.new_chunk
        t.call("A#inner (a.rb:2)", 2_000, 3_000)
      end
      expected = t
    end
    assert_equal [1, 8_000, 6_000, 8_000], expected.sums["A#outer (a.rb:1)"]
    assert_equal expected.sums, sums_of(page(trace.build))
  end

  def test_of_calls_that_begin_at_once_the_longer_is_the_caller
    trace = Calls.new do |t|
      t.call("A#outer (a.rb:1)", 1_000, 9_000) { t.call("A#inner (a.rb:2)", 1_000, 3_000) }
    end
    assert_equal ["A#outer (a.rb:1)", "A#inner (a.rb:2)"], slices_of(page(trace.build)).first.map { |slice| slice[1] }
    assert_equal 0, data_of(page(trace.build))["calls"]["misfits"]
  end

  def test_arguments_of_calls
    trace = Calls.new do |t|
      t.call("A#old (a.rb:1)", 1_000, 9_000, began: "before the trace", left_out: 300, left_out_ns: 2**33) do
        t.call("A#plain (a.rb:3)", 2_000, 3_000)
        t.call("A#last (a.rb:2)", 4_000, 9_000, ended: "after the trace") do
          t.call("A#inner (a.rb:2)", 5_000, 9_000, left_out: 7, left_out_ns: 80, ended: "after the trace")
        end
      end
    end
    result = page(trace.build)
    assert_equal [[0, 1, 300, 2**33], [2, 2, 0, 0], [3, 2, 7, 80]], slices_of(result).last
    assert_equal 307, data_of(result)["calls"]["unrecorded"]
  end

  def test_longest_calls_are_kept_and_sums_have_all
    trace = app
    kept = trace.all.map(&:ns).max(40)
    result = page(trace.build, "--max-calls=40")
    calls = data_of(result)["calls"]
    assert_equal [trace.all.size, 40], calls.values_at("recorded", "slices")
    slices, = slices_of(result)
    assert_equal kept.sort, slices.map(&:last).sort
    assert_equal trace.sums, sums_of(result)
    assert_operator trace.all.map(&:ns).tally.values.max, :>, 1, "some are equally long"
  end

  def test_extras_stay_with_their_calls_when_others_are_left_out
    trace = Calls.new do |t|
      t.call("A#a (a.rb:1)", 1_000, 9_000) do
        t.call("A#b (a.rb:2)", 2_000, 2_100, left_out: 1)
        t.call("A#c (a.rb:3)", 3_000, 8_000, left_out: 2)
      end
    end
    assert_equal [[1, 0, 2, 0]], slices_of(page(trace.build, "--max-calls=2")).last
  end

  def test_calls_that_overlap_are_dropped_and_counted
    trace = Calls.new do |t|
      t.call("A#a (a.rb:1)", 1_000, 5_000)
      t.call("A#b (a.rb:2)", 4_000, 6_000)
      t.call("A#c (a.rb:3)", 7_000, 8_000)
    end
    result = page(trace.build)
    assert_equal [2, 1], data_of(result)["calls"].values_at("recorded", "misfits")
    assert_equal({ "A#a (a.rb:1)" => [1, 4_000, 4_000, 4_000], "A#c (a.rb:3)" => [1, 1_000, 1_000, 1_000] }, sums_of(result))
  end

  def test_trace_without_calls_has_none
    result = page(OurTrace.new.build)
    refute data_of(result).key?("calls")
    refute_includes result, 'id="calls-data"'
  end

  def test_equal_process_ids_of_two_files_are_two_tracks
    one = Calls.new { |t| t.call("A#a (a.rb:1)", 1_000, 5_000) }
    two = Calls.new { |t| t.call("A#a (a.rb:1)", 4_000, 6_000) }
    with_file(one.build) do |first|
      with_file(two.build) do |second|
        assert_equal({ "A#a (a.rb:1)" => [2, 6_000, 6_000, 4_000] }, sums_of(tool("html", first, second).out))
      end
    end
  end

  # --- in a browser ------------------------------------------------------------------------------

  def browse_calls(bytes, *html_options, **options)
    browse(bytes, *html_options, **options) do |browser|
      wait_for_calls(browser)
      yield browser
    end
  end

  def key(browser, name)
    browser.run("document.getElementById('lanes')" \
                ".dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))", name)
  end

  # What is at a time of a lane, whose rows begin at y.
  def point(browser, share, y, *types)
    browser.run(<<~JS, share, y, types)
      const [share, y, types] = arguments, canvas = document.getElementById("lanes-canvas");
      const box = canvas.getBoundingClientRect();
      for (const type of types) {
        canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, clientY: box.top + y,
                                                      clientX: box.left + 168 + share * (box.width - 168) }));
      }
    JS
  end

  def hover(browser, share, y)
    point(browser, share, y, "pointermove")
    browser.run("return document.getElementById('tip').hidden") ? "" : browser.text("#tip")
  end

  # setPointerCapture refuses pointers that do not exist.
  def click(browser, share, y)
    browser.run("document.getElementById('lanes').setPointerCapture = () => {}")
    point(browser, share, y, "pointerdown", "pointerup")
  end

  def wheel(browser, share, delta, **more)
    browser.run(<<~JS, share, delta, more)
      const canvas = document.getElementById("lanes-canvas"), box = canvas.getBoundingClientRect();
      document.getElementById("lanes").focus();
      canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: arguments[1],
        clientX: box.left + 168 + arguments[0] * (box.width - 168), clientY: box.top + 50, ...arguments[2] }));
    JS
  end

  def drag(browser, from, to)
    share = browser.run("return 1 - 168 / document.getElementById('lanes-canvas').getBoundingClientRect().width")
    browser.drag("#lanes", 1 - share * (1 - from), 1 - share * (1 - to))
    browser.settle
  end

  def window(browser) = browser.text("#calls-window")[/\A([\d.]+(?: \S+)? to [^,]*)/, 1]
  LANES = { main: 26, worker: 26 + 8 * 18 + 10 }.freeze
  def row(lane, depth) = LANES[lane] + depth * 18 + 9

  # { method => [own, total, longest] in ns, exact, as the tips of the cells have them }
  def shown_methods(browser)
    browser.run(<<~JS).to_h { |name, *ns| [name, ns.map { |text| text.delete(", ns").to_i }] }
      return [...document.querySelectorAll("#call-methods-body tr")].map((row) =>
        [row.cells[6].title, row.cells[0].title, row.cells[2].title, row.cells[5].title]);
    JS
  end

  def test_browser_table_is_exact
    browse_calls(app.build) do |browser|
      assert_equal "Calls", browser.text("#title")
      assert_equal app.sums.transform_values { |_, total, own, longest| [own, total, longest] }, shown_methods(browser)
      calls = cells(browser, "#call-methods-body tr").to_h { |row| [row[6][/\A\S+/], row[3].delete(",").to_i] }
      assert_equal app.sums[FIB][0], calls["Object#fib"]
      assert_match(/\A8 methods, #{app.all.size} calls, 1.80 ms own time\z/, browser.text("#call-methods-sum"))
    end
  end

  # Each call counts as far as it is in the window.
  def test_browser_table_follows_the_window
    browse_calls(app.build) do |browser|
      drag(browser, 0.55, 0.75)
      from, to = browser.text("#calls-window").scan(/[\d.]+/).first(2).map { |text| (text.to_f * 1000).round + 1_000 }
      shown = shown_methods(browser)
      cut = ->(call) { [[call.to, to].min - [call.from, from].max, 0].max }
      expected = app.all.select { |call| cut[call] > 0 }.group_by(&:name).transform_values do |calls|
        [calls.sum { |call| cut[call] - call.inner.sum(&cut) }, calls.reject(&:recursive?).sum(&cut), calls.map(&cut).max]
      end
      assert_equal expected.keys.sort, shown.keys.sort
      refute_includes expected.keys, "App#boot (/app/app.rb:5)"
      expected.each { |name, numbers| numbers.zip(shown[name]) { |a, b| assert_in_delta a, b, 2_000, name } }
      assert_match(/calls are cut at the borders/, browser.text("#call-methods-sum"))
      browser.click("#calls-whole")
      browser.settle
      assert_equal app.sums.size, shown_methods(browser).size
    end
  end

  def test_browser_hover_and_click_say_what_a_call_took
    browse_calls(app.build) do |browser|
      assert_equal "<main>\n/app/run.rb:1\n1.00 ms, own 202 µs\nat 0 ns", hover(browser, 0.95, row(:main, 0))
      assert_match(/\AArray#each\n240 µs, own 240 µs/, hover(browser, 0.1, row(:main, 2)))
      assert_equal "", hover(browser, 0.95, row(:main, 1)), "nothing is there"
      click(browser, 0.1, row(:main, 2))
      detail = browser.text("#call-detail")
      assert_match(/^Array#each$/, detail)
      assert_match(/took 240 µs/, detail)
      assert_match(/own time 240 µs, 100.0 %/, detail)
      assert_match(/thread main/, detail)
      assert_equal %w[<main> App#boot], browser.texts("#call-ancestors button")
      browser.click("#call-ancestors button:last-child")
      assert_match(/\AApp#boot .*own time 58.0 µs, 19.5 %/m, browser.text("#call-detail"))
      click(browser, 0.99, row(:main, 3))
      assert_equal "", browser.text("#call-detail")
    end
  end

  def test_browser_says_what_is_not_recorded
    trace = Calls.new do |t|
      t.call("A#old (a.rb:1)", 1_000, 9_000, began: "before the trace", ended: "after the trace",
                                             left_out: 300, left_out_ns: 2_000)
    end
    browse_calls(trace.build) do |browser|
      assert_match(/\A300 calls inside others were not recorded/, browser.text("#calls-note"))
      click(browser, 0.5, row(:main, 0))
      began_and_ended = /It was running when the trace began\.\s+It had not returned when the trace ended\./
      assert_match(/#{began_and_ended}\s+300 calls inside are not recorded; 2.00 µs/, browser.text("#call-detail"))
    end
  end

  def test_browser_wheel_zooms_at_the_pointer
    browse_calls(app.build) do |browser|
      wheel(browser, 0.5, -100)
      from, to = browser.text("#calls-window").scan(/[\d.]+/).first(2).map(&:to_f)
      assert_in_delta 500, (from + to) / 2, 1
      assert_operator to - from, :<, 700
      wheel(browser, 0.5, 50, shiftKey: true)
      moved = browser.text("#calls-window").scan(/[\d.]+/).first(2).map(&:to_f)
      assert_operator moved[0], :>, from
      assert_in_delta to - from, moved[1] - moved[0], 0.01
      browser.settle
      assert_match(/cut at the borders/, browser.text("#call-methods-sum"))
      6.times { wheel(browser, 0.5, 100) }
      assert_nil window(browser), "it does not leave the trace"
    end
  end

  # Before a click the wheel belongs to the page.
  def test_browser_wheel_without_focus_scrolls_the_page
    browse_calls(app.build) do |browser|
      prevented = browser.run(<<~JS)
        document.activeElement.blur();
        return !document.getElementById("lanes-canvas").dispatchEvent(
          new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: -100, clientX: 600, clientY: 300 }));
      JS
      refute prevented
      assert_nil window(browser)
    end
  end

  def test_browser_by_keyboard
    browse_calls(app.build) do |browser|
      key(browser, "+")
      assert_equal "250.0 µs to 750.0 µs", window(browser)
      key(browser, "ArrowRight")
      assert_equal "350.0 µs to 850.0 µs", window(browser)
      key(browser, "Home")
      click(browser, 0.1, row(:main, 0))
      key(browser, "ArrowDown")
      assert_match(/\AApp#boot/, browser.text("#call-detail"))
      key(browser, ".")
      assert_match(/\AObject#fib/, browser.text("#call-detail"))
      key(browser, ",")
      key(browser, "Enter")
      assert_match(/, 314 µs\z/, browser.text("#calls-window"))
      key(browser, "Escape")
      assert_equal "", browser.text("#call-detail")
      key(browser, "Escape")
      assert_nil window(browser)
    end
  end

  def test_browser_search_steps_through_the_matches
    browse_calls(app.build) do |browser|
      search(browser, "app#serve")
      assert_equal "3 calls", browser.text("#calls-found")
      browser.click("#calls-next")
      assert_equal "1 of 3 calls", browser.text("#calls-found")
      assert_match(/\AApp#serve .*begins 99 µs/m, browser.text("#call-detail"))
      browser.click("#calls-previous")
      assert_equal "3 of 3 calls", browser.text("#calls-found")
      key(browser, "n")
      assert_equal "1 of 3 calls", browser.text("#calls-found")
      search(browser, "nothing")
      assert_equal "0 calls", browser.text("#calls-found")
      search(browser, "")
      assert_equal "", browser.text("#calls-found")
    end
  end

  # Matches have the color of marks, and only they.
  def test_browser_highlights_matches
    browse_calls(app.build) do |browser|
      pixel = lambda do |share, y|
        browser.run(<<~JS, share, y)
          const canvas = document.getElementById("lanes-canvas"), scale = canvas.width / canvas.clientWidth;
          const copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          copy.getContext("2d", { willReadFrequently: true }).drawImage(canvas, 0, 0);
          const x = (168 + arguments[0] * (canvas.clientWidth - 168)) * scale;
          return [...copy.getContext("2d", { willReadFrequently: true }).getImageData(x, arguments[1] * scale, 1, 1).data];
        JS
      end
      mark = [255, 224, 138, 255]
      refute_equal mark, pixel[0.29, row(:main, 1)]
      search(browser, "App#boot")
      browser.settle
      assert_equal mark, pixel[0.29, row(:main, 1)]
      refute_equal mark, pixel[0.9, row(:main, 0)]
    end
  end

  # A match far away and too short to see: the window goes there.
  def test_browser_search_moves_the_window_to_a_short_call
    trace = Calls.new do |t|
      t.call("<main> (a.rb:1)", 1_000, 1_000_001_000) { t.call("A#tiny (a.rb:2)", 700_000_000, 700_000_200) }
    end
    browse_calls(trace.build) do |browser|
      search(browser, "tiny")
      browser.click("#calls-next")
      assert_match(/699\.\d+ ms to 700\.\d+ ms, 20\.0 µs/, browser.text("#calls-window"))
      assert_match(/\AA#tiny/, hover(browser, 0.5, row(:main, 1)))
      browser.click("#calls-back")
      assert_nil window(browser)
    end
  end

  def test_browser_flame_graph_has_total_and_own_times
    browse_calls(app.build) do |browser|
      frames = lambda do
        browser.run("return [...document.querySelectorAll('#call-flame .frame')].map((f) => f.getAttribute('aria-label'))")
      end
      assert_includes frames[], "all calls  1.80 ms, 100.0 %; own 0 ns"
      assert_includes frames[], "App#serve (/app/app.rb:9)  600 µs, 33.3 %; own 360 µs"
      assert_equal 1, frames[].count { |label| label.start_with?("App#serve") }, "equal paths are one frame"
      browser.run("[...document.querySelectorAll('#call-flame .frame')].find((f) => f.innerText === 'App#serve').click()")
      assert_equal ["all calls", "App#serve"], browser.texts("#call-flame-path button")
      refute frames[].any? { |label| label.start_with?("<main>") }
      browser.type("#search", "gsub")
      assert_equal "1.67 % of the time is in matching calls", browser.text("#call-flame-sum")
      assert_equal ["String#gsub"], browser.texts("#call-flame .frame.match")
      search(browser, "")
      browser.run("document.getElementById('lanes').scrollIntoView()")
      drag(browser, 0.0, 0.09)
      refute frames[].any? { |label| label.start_with?("App#serve") }, "it follows the window"
      assert_match(/in the window\z/, browser.text("#call-flame-sum"))
    end
  end

  def test_browser_own_time_is_in_the_tip_of_the_flame_graph
    browse_calls(app.build) do |browser|
      browser.run(<<~JS)
        const frame = [...document.querySelectorAll("#call-flame .frame")].find((f) => f.innerText === "App#boot");
        frame.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 400, clientY: 400 }));
      JS
      assert_equal "App#boot (/app/app.rb:5)\ntotal 298 µs, 16.6 % of all\nown 58.0 µs, 19.5 % of it\n1 call", browser.text("#tip")
    end
  end

  # Exits and threads show the window that was chosen on the calls, and the other way round.
  def test_browser_window_is_that_of_the_page
    trace = app
    20.times { |i| trace.builder.exit("Reason#{i / 10}", "Foo#m#{i / 10} (a.rb:1)", ts: 1_000 + i * 50_000) }
    browse_calls(trace.build, height: 1600) do |browser|
      drag(browser, 0.6, 1.0)
      assert_equal ["Reason1"], browser.texts("#table-body td.reason")
      browser.click("#window-clear")
      browser.settle
      assert_nil window(browser)
      browser.drag("#timeline", 0.2, 0.4)
      browser.settle
      refute_nil window(browser)
      assert_match(/cut at the borders/, browser.text("#call-methods-sum"))
      refute_includes shown_methods(browser).keys, "block in App#boot (/app/app.rb:6)"
    end
  end

  # The work of a frame depends on the pixels, not on the calls, and the last call is found by its pixel.
  def test_browser_looks_at_a_few_slices_per_pixel
    trace = Calls.new do |t|
      t.call("<main> (a.rb:1)", 1_000, 40_002_000) do
        40_000.times { |i| t.call(i.even? ? "A#even (a.rb:2)" : "A#odd (a.rb:3)", 2_000 + i * 1000, 2_900 + i * 1000) }
      end
    end
    browse_calls(trace.build) do |browser|
      assert_operator browser.run("return +document.getElementById('lanes').dataset.slices"), :<=, 2 * 1300
      assert_match(/\AA#(even|odd)\n/, hover(browser, 0.9995, row(:main, 1)))
      assert_equal 20_000, sums_of(page(trace.build))["A#odd (a.rb:3)"][0]
    end
  end

  def test_browser_folds_a_lane
    browse_calls(app.build) do |browser|
      before = browser.run("return document.getElementById('lanes-space').clientHeight")
      browser.run("document.getElementById('lanes').setPointerCapture = () => {}")
      point(browser, -0.1, row(:main, 0), "pointerdown", "pointerup")
      assert_equal before - 8 * 18 + 36, browser.run("return document.getElementById('lanes-space').clientHeight")
      search(browser, "fib")
      browser.click("#calls-next")
      assert_equal before, browser.run("return document.getElementById('lanes-space').clientHeight"), "a match unfolds it"
    end
  end

  def test_browser_says_what_the_page_leaves_out
    browse_calls(app.build, "--max-calls=10") do |browser|
      assert_match(/\AThe page has the 10 longest of #{app.all.size} calls\./, browser.text("#calls-note"))
      assert_equal app.sums[FIB][2], shown_methods(browser)[FIB][0]
      drag(browser, 0.1, 0.6)
      assert_match(/\AAbout: /, browser.text("#call-methods-sum"))
    end
  end

  def test_browser_that_cannot_unpack_has_the_sums
    result = page(app.build).sub("<script>\n", "<script>delete globalThis.DecompressionStream;</script>\n<script>\n")
    with_file(result, "page.html") do |path|
      browse_file(path) do |browser|
        assert_match(/This browser cannot unpack/, browser.text("#calls-note"))
        assert_equal app.sums.size, shown_methods(browser).size
        refute browser.run("return document.getElementById('lanes').checkVisibility()")
      end
    end
  end

  def test_browser_shows_hostile_names_as_text
    evil = "<img src=x onerror=alert(1)></script> (a.rb:1)"
    browse_calls(Calls.new { |t| t.call(evil, 1_000, 90_000) }.build) do |browser|
      click(browser, 0.5, row(:main, 0))
      assert_equal 0, browser.run("return document.querySelectorAll('img').length")
      assert_match(/\A#{Regexp.escape("<img src=x")}/, browser.text("#call-detail"))
    end
  end

  def test_browser_dark_and_narrow
    browse_calls(app.build, dark: true, width: 500, height: 900) do |browser|
      click(browser, 0.5, row(:main, 3))
      assert_operator browser.run("return document.documentElement.scrollWidth"), :<=, 500
    end
  end
end
