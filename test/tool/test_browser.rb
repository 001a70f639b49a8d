# The browser that the tests of a file share: each gets one that knows nothing of the test before, and
# the next one gets another if it has died.
require_relative "page_helper"

class TestBrowser < Minitest::Test
  include PageHelper

  def browse_page(html, **look, &)
    head = "<!doctype html><meta charset=utf-8><meta name=color-scheme content='light dark'>"
    with_file(head + html, "page.html") do |path|
      browse_file(path, **look, &)
    end
  end

  def look_of(browser)
    browser.run("return [outerWidth, outerHeight, matchMedia('(prefers-color-scheme: dark)').matches, " \
                "document.hasFocus(), document.visibilityState, history.length]")
  end

  def test_each_test_has_the_window_and_the_colors_that_it_asks_for
    looks = [{ width: 500, height: 900, dark: true }, {}, { height: 3000 },
             { width: 800, height: 1200, dark: true }, {}]
    looks.each do |look|
      expected = { width: 1300, height: 1000, dark: false }.merge(look).values
      browse_page("text", **look) do |browser|
        assert_equal [*expected, true, "visible", 2], look_of(browser)
        browser.visit("about:blank")
        assert_equal expected.last, look_of(browser)[2], "colors of the next page"
      end
    end
  end

  def test_a_new_browser_looks_as_one_that_is_used_again
    Browser.close_shared
    looks = Array.new(2) { browse_page("text", width: 700, dark: true) { |browser| break look_of(browser) } }
    assert_equal [[700, 1000, true, true, "visible", 2]] * 2, looks
  end

  def test_a_page_finds_nothing_of_earlier_ones
    store = "for (const store of [localStorage, sessionStorage]) store.setItem('key', 'value');"
    found = "return [localStorage.length, sessionStorage.length, document.getElementById('pressed').innerText]"
    pressed = "<p id=pressed></p><script>document.onkeydown = (event) => " \
              "document.getElementById('pressed').append(event.key, event.shiftKey)</script>"
    2.times do
      browse_page(pressed) do |browser|
        assert_equal [0, 0, ""], browser.run(found)
        browser.run(store)
        browser.press("a")
        assert_equal [1, 1, "afalse"], browser.run(found)
        browser.run("open('about:blank')")
        hold_shift(browser)
        assert_equal "afalseShifttrue", browser.text("#pressed")
      end
    end
  end

  def hold_shift(browser)
    keys = { "type" => "key", "id" => "keyboard", "actions" => [{ "type" => "keyDown", "value" => "\uE008" }] }
    browser.send(:call, "#{browser.instance_variable_get(:@session)}/actions", "actions" => [keys])
  end

  # Even if the test before has not asked for them.
  def test_problems_are_those_of_this_test
    browser = Browser.shared
    with_file("<script>console.error('before')</script>", "page.html") { |path| browser.open(path) }
    browse_page("text") { |again| assert_empty again.problems }
    fault = assert_raises(Minitest::Assertion) { browse_page("<script>console.error('mine')</script>") {} }
    assert_match(/mine/, fault.message)
    browse_page("text") { |again| assert_empty again.problems }
  end

  # What a process is and its group, of those that are still there.
  def processes_of(browser)
    driver = browser.instance_variable_get(:@driver)
    Dir["/proc/[0-9]*/stat"].filter_map do |path|
      pid, name, state, _, group = File.read(path).match(/\A(\d+) \((.*)\) (\S) (\d+) (\d+)/).captures
      [pid.to_i, name] if group.to_i == driver && state != "Z"
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end
  end

  def shared_browser
    skip_without_browser
    Browser.shared
  end

  { "browser" => "chromium", "driver" => "chromedriver" }.each do |what, name|
    define_method(:"test_a_#{what}_that_died_is_replaced") do
      first = shared_browser
      killed = processes_of(first).select { |_, program| program == name }
      refute_empty killed
      killed.each { |pid, _| Process.kill(:KILL, pid) rescue Errno::ESRCH }
      _, message = capture_io do
        browse_page("<p>text</p>") { |browser| assert_equal [false, "text"], [browser.equal?(first), browser.text("p")] }
      end
      assert_match(/\Aanother browser is started: .+\n\z/, message)
      assert_empty processes_of(first)
    end
  end

  def test_nothing_is_left_of_a_closed_browser
    browser = shared_browser
    folder = browser.instance_variable_get(:@dir)
    refute_empty processes_of(browser)
    assert_path_exists folder
    Browser.close_shared
    assert_empty processes_of(browser)
    refute_path_exists folder
  end

  def test_the_same_browser_is_used_again
    browsers = Array.new(2) { shared_browser }
    assert_same(*browsers)
  end

  def test_settled_is_after_timers_and_frames
    later = "setTimeout(() => requestAnimationFrame(() => setTimeout(() => p.append('later'), 50)), 50);" \
            "const never = () => p.append('never'); clearTimeout(setTimeout(never, 100_000)); " \
            "cancelAnimationFrame(requestAnimationFrame(never))"
    browse_page("<p id=p></p>") do |browser|
      browser.run(later)
      browser.settle
      assert_equal "later", browser.text("p")
    end
  end
end
