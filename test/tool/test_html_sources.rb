# `vm-trace html --sources`: the page has the sources of files with exits, and what their lines cost.
require_relative "tool_helper"
require_relative "page_helper"

class TestHtmlSources < Minitest::Test
  include PageHelper

  MS = 1_000_000

  def setup
    @dir = File.realpath(Dir.mktmpdir)
    @long, @hot = path("long.rb"), path("hot.rb")
    write(@long, (1..60).map { |i| "\tline #{i} # <b>é</b>\n" }.join)
    write(@hot, "one\n  two # </script><script>document.title = 'hacked'</script>\nthree\n")
  end

  def teardown = FileUtils.remove_entry(@dir)

  def path(name) = File.join(@dir, name)

  def write(file, text)
    File.binwrite(file, text)
    File.utime(0, 0, file)
  end

  # hot.rb lost most, though long.rb has more exits.
  def trace(long = @long, hot = @hot, missing: path("gone.rb"))
    StatesTrace.new do |t|
      3.times { |i| t.exits(:main, "Often", "Foo#f (#{long}:30)", 10 + i, lost: 1) }
      t.exits(:main, "Once", "Foo#g (#{hot}:2)", 20, lost: 20)
      t.exits(:main, "Gone", "Foo#h (#{missing}:7)", 30, lost: 0)
      t.exits(:main, "Send: x", "Foo#f (#{long}:50)", 40, kind: "fallback", lost: nil)
      t.site("Often", "Foo#f (#{long}:30)", 3, lost: 3, max: 1)
      t.site("Once", "Foo#g (#{hot}:2)", 1, lost: 20)
      t.site("Gone", "Foo#h (#{missing}:7)", 1)
      t.site("Send: x", "Foo#f (#{long}:50)", 1, kind: "fallback")
      t.states(:main, exited: 23, compiled: 70)
    end.build
  end

  # [path, note, ms lost, exits, fallbacks, number of lines of text, [costly line]]; a costly line:
  # [line, ms lost, exits, fallbacks, [reason]]
  def sources(bytes, *options)
    data = data_of(page(bytes, "--sources", "--below=#{@dir}", *options))
    data["sources"].map do |path, note, lost, exits, fallbacks, text, lines|
      found = lines.map do |line, ns, *counts, reasons|
        [line, ns / MS, *counts, reasons.map { |reason| data["strings"][reason[0]] }]
      end
      [data["strings"][path], note, lost / MS, exits, fallbacks, text.size, found]
    end
  end

  def test_files_with_exits_those_that_lost_most_first
    with_file(trace) do |file|
      result = tool("html", "--sources", "--below=#{@dir}", file)
      assert_equal "vm-trace: html: the page has 2 of 3 sources, and says why not the others\n", result.err
      data = data_of(result.out)
      assert_equal ["        line 30 # <b>é</b>", 60], [data["sources"][1][5][29], data["sources"][1][5].size]
    end
    assert_equal [[@hot, "", 20, 1, 0, 3, [[2, 20, 1, 0, ["Once"]]]],
                  [@long, "", 3, 3, 1, 60, [[30, 3, 3, 0, ["Often"]], [50, 0, 0, 1, ["Send: x"]]]],
                  [path("gone.rb"), "No such file or directory", 0, 1, 0, 0, [[7, 0, 1, 0, ["Gone"]]]]], sources(trace)
  end

  # Whoever makes the trace chooses the paths in it; whoever makes the page can read more files.
  def test_only_files_of_the_folder
    write(secret = path("secret.rb"), "the secret\n" * 7)
    Dir.mkdir(app = path("app"))
    write(mine = File.join(app, "mine.rb"), "mine\n" * 60)
    File.symlink(secret, link = File.join(app, "link.rb"))
    bytes = trace(mine, secret, missing: link)
    [["--below", app], []].each do |below|
      text = with_file(bytes) do |file|
        Dir.chdir(below.empty? ? app : @dir) { tool("html", "--sources", *below, file).out }
      end
      refute_includes text, "the secret"
      data = data_of(text)
      notes = data["sources"].to_h { |name, note, *| [File.basename(data["strings"][name]), note] }
      assert_equal ["", "not in the folder of the sources: --below=FOLDER says which that is"],
                   notes.values_at("mine.rb", "secret.rb")
      assert_equal notes["secret.rb"], notes["link.rb"]
    end
    result = with_file(bytes) { |file| tool("html", "--sources", "--below=nowhere", file) }
    assert_match(/nowhere: No such file/, result.err)
  end

  def test_only_with_the_option
    text = page(trace)
    refute data_of(text).key?("sources")
    refute_includes text, "line 30"
  end

  # What is annotated is what `vm-trace annotate` shows.
  def test_same_lines_as_annotate
    with_file(trace) do |file|
      lines = JSON.parse(tool("annotate", "--format=json", file).out)["annotated_lines"]["rows"]
      expected = lines.map { |row| row.values_at("path", "line", "lost_ns", "exits", "fallbacks") }
      data = data_of(page(trace, "--sources", "--below=#{@dir}"))
      found = data["sources"].flat_map do |path, *, lines|
        lines.map { |line| [data["strings"][path], *line.first(4)] }
      end
      assert_equal expected, found
    end
  end

  def test_what_does_not_fit_is_named
    File.utime(Time.now + 100, Time.now + 100, @long)
    write(@hot, "short\n")
    assert_equal [[@hot, "the file has fewer lines than the one that ran", 1],
                  [@long, "the file has changed since the trace was written", 60],
                  ["<internal:array>", "a part of Ruby, without a file", 0]],
                 sources(trace(missing: "<internal:array>")).map { |file| file.values_at(0, 1, 5) }
  end

  # The files that cost most are in the page, as long as there is room.
  def test_limit_of_bytes
    write(@hot, "x" * 1000 + "\n" + "#{"y" * 99}\n" * 41_900)
    write(path("small.rb"), "#{"z" * 90}\n" * 100)
    write(@long, "#{"y" * 99}\n" * 100)
    found = sources(trace(missing: path("small.rb")))
    assert_equal [41_901, 0, 0], found.map { |file| file[5] }, "4 MiB are 4,194,304 bytes"
    assert_equal ["", *["left out: the page has at most 4 MiB of sources"] * 2], found.map { |file| file[1] }
    write(@long, "y\n" * 60)
    assert_equal [41_901, 60, 0], sources(trace(missing: path("small.rb"))).map { |file| file[5] }
  end

  # A trace with an exit at each of the frames.
  def exits_at(frames)
    FxtBuilder.simple { |b| frames.each_with_index { |frame, i| b.exit("R", frame, ts: i) } }
  end

  def test_limits_of_files_and_lines
    page_of = lambda do |frames|
      data_of(page(exits_at(frames.map { |frame| FxtBuilder::Inline.new(frame) }), "--sources", "--below=#{@dir}"))
    end
    data = page_of[(1..1002).map { |i| "f (/gone/#{i}.rb:1)" }]
    assert_equal [1000, 2], [data["sources"].size, data["sources_left_out"]]
    data = page_of[(1..20_001).map { |i| "f (/gone/a.rb:#{i})" }]
    assert_equal [0, 1], [data["sources"].size, data["sources_left_out"]]
  end

  def row(browser, selector)
    browser.run("return [...document.querySelector(arguments[0]).cells].map((cell) => cell.textContent)", selector)
  end

  # Clicks on the place in the table that ends like this.
  def click_place(browser, ending)
    browser.run("[...document.querySelectorAll('#table-body button.place')]" \
                ".find((button) => button.textContent.endsWith(arguments[0])).click()", ending)
  end

  def test_browser_jumps_from_the_table_to_the_line
    browse(trace, "--sources", "--below=#{@dir}", height: 2000) do |browser|
      refute_equal "hacked", browser.run("return document.title")
      names = browser.run("return [...document.querySelectorAll('#sources summary .mono')].map((e) => e.textContent)")
      assert_equal [path("hot.rb"), @long, path("gone.rb")], names
      assert_equal 0, browser.run("return document.querySelectorAll('#sources details[open]').length")
      assert_match(/20\.0 ms lost, 1 exit$/, browser.text("#sources summary"))
      assert_includes browser.texts("#sources summary")[2], "No such file or directory"
      click_place(browser, "long.rb:30")
      assert_equal ["3.00 ms", "3", "", "30", "        line 30 # <b>é</b>"], row(browser, "#sources tr.target")
      visible = browser.run("const box = document.querySelector('#sources tr.target').getBoundingClientRect();" \
                            "return box.top >= 0 && box.bottom <= innerHeight")
      assert_equal true, visible
      assert_equal true, browser.run("return document.activeElement === document.querySelector('#sources tr.target')")
      assert_equal ["3.00 ms", "3", "", "", "        ^ Often, send"], row(browser, "#sources tr.target + tr")
      assert_equal ["… 25 lines", "… 11 lines", "… 6 lines"], browser.texts("#sources .folded button")
      browser.click("#sources .folded button")
      assert_equal ["… 11 lines", "… 6 lines"], browser.texts("#sources .folded button")
      assert_equal "30", browser.run("return document.querySelector('#sources tr.target').dataset.line")
      assert_equal ["", "", "", "1", "        line 1 # <b>é</b>"],
                   row(browser, "#sources details[open] [data-line='1']")
    end
  end

  # A trace may name any line.
  def test_browser_with_lines_that_no_file_has
    frames = ["f (#{@hot}:2000000000)", "g (#{@hot}:2)", "h (#{path("gone.rb")}:9)", "i"]
    browse(exits_at(frames), "--sources", "--below=#{@dir}", height: 2000) do |browser|
      browser.run("[...document.querySelectorAll('#sources details')].forEach((d) => { d.open = true; })")
      click_place(browser, ":2000000000")
      assert_equal ["1", "2000000000", ""], row(browser, "#sources tr.target")
      assert_equal ["9"], browser.run("return [...document.querySelectorAll('#sources [data-line=\"9\"]')]" \
                                      ".map((row) => row.dataset.line)")
      assert_includes browser.texts("#sources summary").join, "fewer lines than the one that ran"
    end
  end

  def test_browser_without_sources
    browse(trace) do |browser|
      assert browser.run("return document.querySelector('#sources-section').hidden")
      assert_equal 0, browser.run("return document.querySelectorAll('#table-body button.place').length")
    end
  end
end
