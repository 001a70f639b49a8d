# The search of the page of `vm-trace html`: every section shows, or marks, what matches.
require_relative "page_of_all"

class TestHtmlSearch < Minitest::Test
  include PageOfAll

  KERNEL = File.join(TRACES, "kernel.fxt")

  def reported(*options) = JSON.parse(tool("report", "--top=1000", "--format=json", *options, KERNEL).out)

  # The search and what it finds in each table of the page, by what the columns that are texts say.
  TABLES = {
    "#interpreted" => [0, 1], "#states" => [0], "#syscalls" => [0, 1], "#syscall-methods" => [0, 1],
    "#cpus" => [0, 1], "#cpu-others" => [0, 1, 2], "#thread-states" => [0], "#gvl-holders" => [0], "#blocked" => [0, 1],
    "#call-methods" => [6],
  }.freeze

  def test_each_table_has_the_rows_that_match
    with_all do |browser|
      browser.run("const more = () => document.querySelectorAll('.part button, #call-methods-more'); " \
                  "for (let i = 0; i < 9; i++) for (const button of more()) if (!button.hidden) button.click()")
      all = TABLES.keys.to_h { |id| [id, rows_of(browser, id)] }
      all.each { |id, list| refute_empty list, id }
      %w[main read compiled Adapter#EXEC web].each do |text|
        search(browser, text)
        TABLES.each do |id, columns|
          expected = all[id].select { |row| row.values_at(*columns).join(" ").downcase.include?(text.downcase) }
          assert_equal expected.map { |row| row.values_at(*columns) },
                       rows_of(browser, id).map { |row| row.values_at(*columns) }, "#{id} #{text}"
        end
      end
      search(browser, "no such text")
      TABLES.each_key { |id| assert_empty rows_of(browser, id), id }
      search(browser, "")
      TABLES.each { |id, _| assert_equal all[id], rows_of(browser, id) }
    end
  end

  # The report chooses by a pattern of its own: both find the same.
  def test_system_calls_are_those_of_the_report
    browse(File.binread(KERNEL)) do |browser|
      search(browser, "app")
      methods = reported("--syscalls", "--sched")["syscall_methods"]["rows"].map { |row| row["method"] }
      expected = methods.select { |name| name.include?("app") }
      assert_equal expected, rows_of(browser, "#syscall-methods").map(&:first)
      assert_operator expected.size, :>, 1
    end
  end

  def test_graphs_mark_what_matches
    with_all do |browser|
      search(browser, "web work3")
      assert_empty browser.texts(".flame .match"), "a frame must have all words"
      search(browser, "work3")
      assert_equal ["Foo#work3"], browser.texts("#samples .match")
      assert_match(/\A[\d.]+ % of the time is in matching frames\z/, browser.text("#samples-sum"))
      assert_empty browser.texts("#tracks .match .label")
      search(browser, "main")
      refute_empty browser.texts("#tracks .match .label")
      assert(browser.texts("#tracks .match .label").all? { |label| label.include?("main") })
      assert_includes browser.texts("#call-flame .match"), "<main>"
      assert_match(/calls\z/, browser.text("#calls-found"))
    end
  end

  # Bars, legend and table of exits count the same.
  def test_exits
    with_all do |browser|
      search(browser, "fixnum1 foo.rb")
      counts = rows_of(browser, "#table-section table").map { |row| row[3].to_i }
      assert_equal [19, 10, 9, 8, 7], counts.sort.reverse, "Fixnum1 and Fixnum10 to 13"
      assert_match(/\A53 exits,/, browser.text("#window"))
      legend = browser.texts("#legend button").to_h { |text| [text.strip[/\A\S+/], text[/([\d,]+) ·/, 1].to_i] }
      assert_equal [19, 0], legend.values_at("GuardType(Fixnum1)", "GuardType(Fixnum2)")
    end
  end

  def test_lines_of_sources
    with_all do |browser|
      browser.run("for (const file of document.querySelectorAll('#sources details')) file.open = true")
      browser.settle
      lines = -> { browser.map("#sources tr.costly", "e.dataset.line") }
      assert_equal 16, lines[].size
      search(browser, "fixnum3")
      assert_equal ["6"], lines[]
      assert_match(/: 17 exits|17 exits/, browser.text("#sources summary"))
      search(browser, "line_16_") # which no path has
      assert_equal ["16"], lines[], "the text of the line"
      search(browser, "nowhere")
      assert_empty lines[]
      assert_match(/files? without exits in the window, or that the search does not find/,
                   browser.text("#sources-more"))
    end
  end

  def test_the_link_keeps_window_and_search
    with_all do |browser|
      browser.type("#search", "main")
      browser.run("document.getElementById('tracks').focus()")
      browser.press("+")
      browser.settle
      link = browser.run("return location.href")
      shown = %w[#bar-window #threads-window #calls-window #calls-found #kernel-window #samples-sum #table-sum
                 #flame-sum]
      before = shown.map { |selector| browser.text(selector) }
      browser.visit("about:blank")
      browser.visit(link)
      wait_for(browser, "document.querySelector('#call-flame .frame')")
      assert_equal before, shown.map { |selector| browser.text(selector) }
      assert_equal "main", browser.run("return document.getElementById('search').value")
    end
  end
end
