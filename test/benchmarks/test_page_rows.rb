# The rows of `make bench-tool` about the page: what they say of a page that is there.
require_relative "bench_helper"
require "side"
require "page_rows"

class TestPageRows < BenchTest
  def lines_of(html)
    rows = Bench::PageRows.new(dir, places: 10, events: 20)
    assert_operator File.size(rows.trace), :>, 1000
    File.write(rows.page, html)
    rows.lines(1)
  end

  def test_a_page_that_is_too_large
    skip "needs #{Browser.missing.join(" and ")}" unless Browser.missing.empty?
    size, paint, ready = lines_of("<p>text</p><!--#{"x" * 5_100_000}-->")
    assert_match(/\Apage of 100,000 places +5\.10 MB  <= 5 MB: NO\z/, size)
    assert_match(/\Aits first paint +\d+\.\d{3} s  <= 1\.00 s: (yes|NO) \(slowest \d+\.\d{3} s\)\z/, paint)
    assert_match(/\Aits tables are there /, ready)
  end

  def test_a_small_page_that_paints_nothing
    skip "needs #{Browser.missing.join(" and ")}" unless Browser.missing.empty?
    assert_raises(Bench::Failed) { lines_of("") }
  end
end
