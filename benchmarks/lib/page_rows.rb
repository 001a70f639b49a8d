# The page of `vm-trace html` for a trace with 100,000 places: its size, and when a headless Chromium shows it.
require "statistics"
require_relative "../../test/tool/browser"
require_relative "../../test/tool/places_trace"

module Bench
  class PageRows
    MEGABYTES, SECONDS = 5, 1.0 # the budgets
    # First paint, and the end of the script, which has filled the tables then.
    TIMES = <<~JS.freeze
      const paint = performance.getEntriesByType("paint").find((entry) => entry.name === "first-contentful-paint");
      const [page] = performance.getEntriesByType("navigation");
      return paint && page.loadEventEnd > 0 ? [paint.startTime, page.loadEventEnd] : null;
    JS

    attr_reader :trace, :page

    # size: of PlacesTrace.build.
    def initialize(dir, **size)
      @trace, @page = %w[places.fxt places.html].map { |name| File.join(dir, name) }
      File.binwrite(@trace, PlacesTrace.build(**size).bytes)
    end

    # The page must be there. Medians of the runs but the first.
    def lines(runs)
      size = File.size(@page) / 1e6
      [format("page of 100,000 places   %.2f MB  <= %d MB: %s", size, MEGABYTES, yes(size <= MEGABYTES)), *paint_lines(runs)]
    end

    private

    def paint_lines(runs)
      missing = Browser.missing
      return ["its first paint: not measured, without #{missing.join(" and ")}"] unless missing.empty?
      browser = Browser.new
      all = Array.new(runs + 1) { load_once(browser) }.drop(1).transpose
      paint, ready = all.map { |times| Statistics.median(times) }
      [format("its first paint       %7.3f s  <= %.2f s: %s (slowest %.3f s)", paint, SECONDS, yes(paint <= SECONDS), all[0].max),
       format("its tables are there  %7.3f s  <= %.2f s: %s (slowest %.3f s)", ready, SECONDS, yes(ready <= SECONDS), all[1].max)]
    ensure
      browser&.close
    end

    def load_once(browser)
      browser.visit("about:blank")
      browser.open(@page)
      100.times do
        times = browser.run(TIMES)
        return times.map { |ms| ms / 1000.0 } if times
        sleep 0.05
      end
      raise Failed, "#{@page}: the browser did not paint it"
    end

    def yes(met) = met ? "yes" : "NO"
  end
end
