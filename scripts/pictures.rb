# Makes the pictures, doc/pictures/, from traces of examples/demo.rb, examples/greedy.rb and
# examples/slow_requests/shop.rb: the pages of `vm-trace html` as a browser shows them, and the way
# of an exit from compiled code to a report, with the trace's own figures.
#   pictures.rb RUBY TOOL      (called by `make pictures`)
# Needs chromium and chromedriver. Look at the pictures before you commit them.
require "csv"
require "fileutils"
require "json"
require "open3"
require_relative "../test/tool/browser"

class Pictures
  TOP = File.expand_path("..", __dir__)
  OUT = "doc/pictures"
  TRACE = "build/pictures.fxt"
  THREADS = "build/pictures-threads.fxt"
  SLOW = "build/pictures-slow"
  PAGE = "build/pictures.html"
  MOST_BYTES = 200_000 # a reader on a slow line waits for these

  def initialize(ruby, tool)
    @ruby, @tool = ruby, tool
  end

  def make
    missing = Browser.missing
    fail_with("#{missing.join(" and ")} not found; on Debian: apt-get install chromium chromium-driver") if missing.any?
    FileUtils.mkdir_p(OUT)
    FileUtils.rm_f([TRACE, THREADS])
    flags = %W[--zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-compiles --zjit-trace-file=#{TRACE}]
    run(@ruby, *flags, "examples/demo.rb")
    page("#{OUT}/page.png", TRACE, height: 1110)
    run(@ruby, "--vm-trace=threads,gc", "--vm-trace-file=#{THREADS}", "examples/greedy.rb")
    page("#{OUT}/threads.png", THREADS, height: 860)
    slow_request("#{OUT}/slow-request.png")
    flow("#{OUT}/data-flow.svg")
    Dir["#{OUT}/*"].each do |path|
      puts format("%6d bytes  %s", File.size(path), path)
      fail_with("#{path} has more than #{MOST_BYTES} bytes") if File.size(path) > MOST_BYTES
    end
  end

  private

  # The calls of one request. The trace goes on while it is written, which is cut off.
  def slow_request(path)
    FileUtils.rm_rf(SLOW)
    FileUtils.mkdir_p(SLOW)
    run(@ruby, "--yjit", "examples/slow_requests/shop.rb", "5000", SLOW)
    trace = Dir["#{SLOW}/*-4999.fxt"].first
    calls = run(@tool, "query", trace, "SELECT MAX(ts + dur) - MIN(ts) FROM slice WHERE category = 'call'")
    run(@tool, "cut", "--until=#{calls.lines.last.to_i}ns", "-o", "#{SLOW}/request.fxt", trace)
    page(path, "#{SLOW}/request.fxt", height: 900) { |page| page.run("document.getElementById('calls').scrollIntoView()") }
  end

  def page(path, trace, height:)
    run(@tool, "html", "-o", PAGE, trace)
    browser = Browser.new(width: 1040, height: height)
    browser.open(File.join(TOP, PAGE))
    yield browser if block_given?
    browser.screenshot(path)
    problems = browser.problems
    fail_with("the page has problems: #{problems}") if problems.any?
  ensure
    browser&.close
  end

  # One box for each step; what stands under a box is counted in the trace.
  def flow(path)
    report = JSON.parse(run(@tool, "report", "--format=json", TRACE))
    totals, file = %w[totals files].map { |name| report.fetch(name)["rows"].first }
    sites = run(@tool, "query", TRACE, "SELECT COUNT(*) FROM slice WHERE category = 'trace' AND name = 'site'")
    sites = sites.lines.last.to_i
    steps = [
      ["Compiled code", "#{sites} sites", ["An exit counts the hit", "of its site. Every K-th", "calls the tracer."]],
      ["Ractor state", "#{number(totals["exits"])} exits",
       ["Walks the stack, names", "each frame once, and", "composes the event."]],
      ["Chunks of 1 MiB", "#{number(file["events"])} events",
       ["One writer each. Valid", "at any instant: in a file,", "or in memory as a ring."]],
      ["Trace (FXT)", format("%.1f MB", file["bytes"] / 1e6),
       ["Settings, events, exact", "hits of all sites,", "losses, a summary."]],
    ]
    File.write(path, svg(steps))
  end

  WIDTH, HEIGHT, BOX, GAP, TALL = 1000, 300, 190, 45, 120
  FONT = "font-family='Helvetica, Arial, sans-serif'"

  def svg(steps)
    x = ->(i) { 52 + i * (BOX + GAP) }
    boxes = steps.each_with_index.map { |(title, figure, lines), i| box(x[i], 30, title, lines, figure) }
    arrows = (0...steps.size - 1).map { |i| arrow(x[i] + BOX + 4, 90, x[i + 1] - 6, 90) }
    readers = [["vm-trace report, diff, html, query", 0], ["Perfetto", 2], ["speedscope, pprof", 3]]
    widths = [x[1] + BOX - x[0], BOX, BOX]
    ends = readers.each_with_index.map { |(text, i), n| reader(x[i], widths[n], text) }
    <<~SVG
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{HEIGHT}" width="#{WIDTH}" height="#{HEIGHT}">
      <title>From an exit to a report</title>
      <!-- Made by scripts/pictures.rb -->
      <rect width="#{WIDTH}" height="#{HEIGHT}" rx="10" fill="#f6f7f9"/>
      #{[*boxes, *arrows].join("\n")}
      <path d="M #{x[3] + BOX / 2} 188 V 210 H #{x[0] + widths[0] / 2} V 230
               M #{x[2] + BOX / 2} 210 V 230 M #{x[3] + BOX / 2} 210 V 230"
            fill="none" stroke="#5b6478" stroke-width="2"/>
      #{ends.join("\n")}
      </svg>
    SVG
  end

  def box(x, y, title, lines, figure)
    text = lines.each_with_index.map do |line, i|
      %(<text x="#{x + 14}" y="#{y + 54 + i * 20}" #{FONT} font-size="14" fill="#2b3244">#{line}</text>)
    end
    <<~SVG.chomp
      <rect x="#{x}" y="#{y}" width="#{BOX}" height="#{TALL}" rx="8" fill="#ffffff" stroke="#c9cedb"/>
      <text x="#{x + 14}" y="#{y + 28}" #{FONT} font-size="16" font-weight="bold" fill="#20263a">#{title}</text>
      #{text.join("\n")}
      <text x="#{x + BOX / 2}" y="#{y + TALL + 24}" text-anchor="middle" #{FONT} font-size="14"
            fill="#2c5cc5">#{figure}</text>
    SVG
  end

  def arrow(x1, y1, x2, y2)
    %(<path d="M #{x1} #{y1} H #{x2 - 2}" stroke="#5b6478" stroke-width="2"/>) +
      %(<path d="M #{x2 - 9} #{y2 - 6} L #{x2} #{y2} L #{x2 - 9} #{y2 + 6} z" fill="#5b6478"/>)
  end

  def reader(x, width, text)
    <<~SVG.chomp
      <rect x="#{x}" y="230" width="#{width}" height="44" rx="8" fill="#e8eefb" stroke="#b9c9ee"/>
      <text x="#{x + width / 2}" y="257" text-anchor="middle" #{FONT} font-size="14" fill="#20263a">#{text}</text>
    SVG
  end

  def number(count) = count.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")

  def run(*command)
    out, err, status = Open3.capture3(*command)
    status.success? ? out : fail_with("#{command.join(" ")} failed: #{err}")
  end

  def fail_with(message) = abort("pictures.rb: #{message}")
end

Dir.chdir(Pictures::TOP) { Pictures.new(*ARGV).make }
