# What the tests of `vm-trace html` share: its page, the data in it, and a browser that shows it.
require_relative "tool_helper"
require_relative "browser"

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

  # The texts of the cells of each row that the selector matches.
  def cells(browser, rows)
    browser.run("return [...document.querySelectorAll(arguments[0])].map((row) =>" \
                " [...row.cells].map((cell) => cell.innerText.trim()))", rows)
  end

  # SCREENSHOTS=DIR keeps pictures of the browser.
  def browse(bytes, *html_options, **options)
    missing = Browser.missing.join(" and ")
    skip "the browser tests need #{missing} (Debian's packages chromium and chromium-driver)" unless missing.empty?
    with_file(bytes) do |path|
      out = "#{path}.html"
      assert_equal 0, tool("html", *html_options, path, "-o", out).status
      browser = Browser.new(**options)
      begin
        browser.open(out)
        yield browser
        assert_empty browser.problems
        browser.screenshot(File.join(ENV["SCREENSHOTS"], "#{name}.png")) if ENV["SCREENSHOTS"]
      ensure
        browser.close
      end
    end
  end
end
