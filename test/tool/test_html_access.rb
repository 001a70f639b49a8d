# The page of `vm-trace html` for all who read it: by keyboard alone, with enough contrast in both color schemes, and
# without words that are broken in two. page_access.js measures.
require_relative "page_helper"
require_relative "page_of_all"

class TestHtmlAccess < Minitest::Test
  include PageOfAll

  ACCESS = File.read(File.join(__dir__, "page_access.js"))
  KEYS = { tab: "\uE004", enter: "\uE007", escape: "\uE00C", shift: "\uE008", home: "\uE011",
           left: "\uE012", up: "\uE013", right: "\uE014", down: "\uE015" }.freeze

  def with_all(...)
    super do |browser|
      browser.run(ACCESS)
      yield browser
    end
  end

  def click_all(browser, selector)
    browser.run("for (const e of document.querySelectorAll(arguments[0])) e.click()", selector)
  end

  # What the page shows only after a click, and states of it that have other colors.
  def each_state(browser)
    yield "at first"
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true;" \
                "document.querySelector('#legend button:nth-child(1)')?.click();" \
                "document.querySelector('#kinds button').click()")
    click_all(browser, "#table-body summary")
    browser.settle
    yield "opened"
    search(browser, "work main Fixnum1")
    browser.settle
    yield "searched for all"
    search(browser, "o")
    browser.settle
    yield "searched"
    %w[inverted sandwich].each { |mode| click_all(browser, "[data-mode=#{mode}]") }
    yield "one frame"
    search(browser, "")
    click_all(browser, "[data-mode=callers]")
    %w[flame samples call-flame].each do |id|
      browser.run("[...document.querySelectorAll(arguments[0])].at(-1).click()", "##{id} .frame")
    end
    yield "zoomed"
    browser.run("const box = document.getElementById('tracks'); " \
                "for (const key of ['ArrowDown', 'ArrowDown', '.', '+']) " \
                "box.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))")
    browser.settle
    yield "window"
  end

  { "light" => false, "dark" => true }.each do |scheme, dark|
    define_method(:"test_contrast_of_texts_#{scheme}") do
      with_all(dark: dark, height: 1200) do |browser|
        each_state(browser) do |state|
          count, poor = browser.run("return page_access.poor_contrasts()")
          assert_operator count, :>, 150, state
          assert_empty poor, state
          redraw = "() => dispatchEvent(new Event('resize'))"
          count, poor = browser.run("return page_access.poor_contrasts_of_canvas(#{redraw})")
          assert_operator count, :>, 5, state
          assert_empty poor, state
        end
      end
    end

    define_method(:"test_contrast_of_two_runs_#{scheme}") do
      names = %w[Same Grew Grew2 Shrank Shrank2 Gone]
      run = lambda do |counts|
        FxtBuilder.simple do |b|
          names.zip(counts) { |name, count| count.times { |i| b.exit("R", "#{name}#x (/a.rb:1)", ts: i) } }
        end
      end
      with_file(run[[10, 10, 10, 14, 10, 9]]) do |before|
        browse(run[[10, 12, 40, 12, 3, 1]], "--against", before, dark: dark) do |browser|
          browser.run(ACCESS)
          classes = browser.map("#flame .frame", "e.className")
          %w[same grew1 grew3 shrank1 shrank3].each { |name| assert(classes.any? { |list| list.include?(name) }, name) }
          assert_empty browser.run("return page_access.poor_contrasts()")[1]
        end
      end
    end
  end

  [1280, 800].each do |width|
    define_method(:"test_no_word_is_broken_at_#{width}_pixels") do
      with_all(width: width, height: 1200) do |browser|
        browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
        (0..4).each do |group|
          browser.run("document.querySelectorAll('#groups button')[arguments[0]].click()", group)
          assert_empty browser.run("return page_access.broken_words()")
        end
        assert_operator browser.run("return document.documentElement.scrollWidth"), :<=, width
      end
    end
  end

  # --- the keyboard ----------------------------------------------------------------------------------

  def focused(browser) = browser.run("return page_access.focused()")

  # Presses Tab until the focus is on what the selector matches.
  def tab_to(browser, selector, limit: 300)
    limit.times do
      return if browser.run("return document.activeElement.matches(arguments[0])", selector)
      browser.press(KEYS[:tab])
    end
    flunk "Tab does not reach #{selector}"
  end

  def test_tab_reaches_all_and_shows_where_it_is
    with_all(height: 1000) do |browser|
      browser.run("document.querySelector('#sources details').open = true")
      reachable, stops = browser.run("return page_access.reachable()"), []
      (reachable.size + 60).times do
        browser.press(KEYS[:tab])
        stop = focused(browser)
        break if stop["name"].nil? || (stops.any? && stops.first["number"] == stop["number"])
        stops << stop
      end
      assert_operator stops.size, :>, 80
      assert_empty reachable.reject { |number, _| stops.any? { |stop| stop["number"] == number } }
      assert_empty stops.reject { |stop| stop["outline"] >= 1 && stop["ratio"] >= 3 }, "a visible focus"
      back = Array.new(stops.size) { browser.press(KEYS[:tab], held: KEYS[:shift]).then { focused(browser) } }
      assert_operator back.uniq.size, :>, 80
      covered = (stops + back).select { |stop| stop["name"] && stop["covered"] != "" }
      assert_empty covered, "nothing lies above what has the focus"
    end
  end

  def test_each_kind_of_control_by_keys_alone
    with_all(height: 1000) do |browser|
      window = -> { browser.text("#bar-window") }
      whole = window[]
      # The search.
      browser.press("/")
      browser.press(*"fixnum13".chars)
      assert_match(/\A1 row: 7 exits/, browser.text("#table-sum"))
      browser.press(KEYS[:escape])
      assert_match(/\A15 rows/, browser.text("#table-sum"))
      # The rows of threads: a window, one thread, one of its states.
      tab_to(browser, "#tracks")
      browser.press("+")
      refute_equal whole, window[]
      browser.press(KEYS[:home])
      assert_equal whole, window[]
      browser.press(KEYS[:down], ".")
      refute_empty browser.text("#threads-detail")
      tab_to(browser, "#lanes")
      browser.press("+", KEYS[:right])
      refute_equal whole, window[]
      # A button that hides itself.
      browser.press(KEYS[:tab]) until browser.run("return document.activeElement.matches('button')")
      browser.run("document.getElementById('bar-whole').focus()")
      browser.press(KEYS[:enter])
      assert_equal whole, window[]
      # A table: its order, with the focus where it was; a search by one of its names.
      tab_to(browser, "#call-methods-head button")
      browser.press(KEYS[:tab], KEYS[:tab], KEYS[:enter])
      assert_match(/\ATotal/, browser.run("return document.activeElement.innerText"))
      assert_match(/\ATotal/, browser.text("#call-methods-head th[aria-sort=descending]"))
      # States of samples, a flame graph, its order, its path.
      tab_to(browser, "#samples-states button")
      browser.press(KEYS[:enter])
      assert_equal "false", browser.run("return document.activeElement.getAttribute('aria-pressed')")
      browser.press(KEYS[:enter])
      tab_to(browser, "#samples .frame")
      browser.press(KEYS[:down], KEYS[:down], KEYS[:enter])
      assert_equal 3, browser.texts("#samples-path button").size
      browser.press(KEYS[:escape])
      assert_equal 2, browser.texts("#samples-path button").size
      browser.run("document.querySelector('#samples-path button').focus()")
      browser.press(KEYS[:enter])
      assert_equal [0, true], [browser.texts("#samples-path button").size,
                               browser.run("return document.activeElement.matches('#samples .frame')")]
      # The timeline, and a reason.
      tab_to(browser, "#timeline")
      browser.press(KEYS[:right])
      narrow = window[]
      refute_equal whole, narrow
      browser.press(KEYS[:right], held: KEYS[:shift])
      refute_equal narrow, window[]
      browser.press(KEYS[:escape])
      assert_equal whole, window[]
      tab_to(browser, "#legend button")
      browser.press(" ")
      assert_equal "true", browser.run("return document.activeElement.getAttribute('aria-pressed')")
      assert_match(/\A1 row/, browser.text("#table-sum"))
      browser.press(" ")
      # What the table sums up by; an explanation; a source.
      tab_to(browser, "#groups button[aria-pressed=false]")
      browser.press(KEYS[:enter])
      assert_equal "true", browser.run("return document.activeElement.getAttribute('aria-pressed')")
      browser.run("document.querySelector('#groups button').focus()")
      browser.press(KEYS[:enter])
      tab_to(browser, "#table-body summary")
      browser.press(KEYS[:enter])
      assert_includes browser.text("#table-body details[open]"), "What helps:"
      tab_to(browser, "#table-body button.place")
      browser.press(KEYS[:enter])
      assert browser.run("return document.activeElement.matches('#sources tr.target')")
      tab_to(browser, "#sources summary, #flame-modes button")
      tab_to(browser, "#flame-modes [data-mode=inverted]")
      browser.press(KEYS[:enter])
      assert_match(/\AGuardType/, browser.texts("#flame .frame")[1])
    end
  end
end
