# What the tests of `vm-trace html` share: its page, the data in it, and a browser that shows it.
require_relative "tool_helper"
require_relative "browser"
require_relative "page_numbers"

module PageHelper
  include ToolHelper

  def page(bytes, *options, status: 0)
    with_file(bytes) do |path|
      result = tool("html", *options, path)
      assert_equal status, result.status, result.err
      return result.out
    end
  end

  def data_of(page) = JSON.parse(page[%r{<script type="application/json" id="data">(.*?)</script>}m, 1])

  def numbers_of(data) = PageNumbers.of(data)

  # Types into the page's search.
  def search(browser, text)
    browser.run("const input = document.getElementById('search'); input.value = arguments[0]; " \
                "input.dispatchEvent(new Event('input'))", text)
  end

  # The texts of the cells of each row that the selector matches.
  def cells(browser, rows) = browser.map(rows, "[...e.cells].map((cell) => cell.innerText.trim())")

  # The same of a table's body, without the row that says that there are none.
  def rows_of(browser, table) = cells(browser, "#{table} tbody tr").reject { |row| row.size == 1 }

  Minitest.after_run { Browser.close_shared }

  # A browser that shows the page of a trace, until the next one is asked for.
  def browse(bytes, *html_options, **look, &)
    skip_without_browser
    with_file(bytes) do |path|
      out = "#{path}.html"
      assert_equal 0, tool("html", *html_options, path, "-o", out).status
      browse_file(out, **look, &)
    end
  end

  # With all sections, or those of one tab; nil: as a page begins. SCREENSHOTS=DIR keeps pictures of the browser.
  def browse_file(path, tab: "All", **look)
    skip_without_browser
    browser = Browser.shared(**look)
    browser.open(path, tab && "tab=#{tab}")
    yield browser
    assert_empty browser.problems
    browser.screenshot(File.join(ENV["SCREENSHOTS"], "#{name}.png")) if ENV["SCREENSHOTS"]
  end

  def skip_without_browser
    missing = Browser.missing.join(" and ")
    skip "the browser tests need #{missing} (Debian's packages chromium and chromium-driver)" unless missing.empty?
  end

  def wait_for(browser, condition)
    200.times do
      return if browser.run("return !!(#{condition})")
      sleep 0.02
    end
    flunk "the page never had: #{condition}"
  end

  # Calls are decoded and drawn after the page is shown.
  def wait_for_calls(browser)
    wait_for(browser, "document.getElementById('lanes').dataset.slices && " \
                      "document.querySelector('#call-flame .frame')")
  end
end
