# Texts of compiled versions: `vm-trace history`, `check`, `scrub` and the page.
require "csv"
require "open3"
require_relative "tool_helper"
require_relative "page_helper"
require_relative "code_trace"

class TestCodeTexts < Minitest::Test
  include PageHelper

  def run_tool(bytes, command, *options)
    with_file(bytes) { |path| return tool(command, *options, path) }
  end

  # Of each version: [line, change, exits, fallbacks, text].
  def rows(bytes)
    result = run_tool(bytes, "history", "--format=csv", "--table=code", "--method=*")
    assert_equal 0, result.status, result.err
    CSV.parse(result.out, headers: true).map do |row|
      version, exits, fallbacks = row.values_at("version", "exits", "fallbacks").map(&:to_i)
      [version, row["line"]&.to_i, row["change"].to_s.delete("'"), exits, fallbacks, row["text"]]
    end
  end

  def test_exits_of_each_instruction
    first, second = rows(CodeTrace.build).partition { |version, *| version == 1 }
    assert_equal CodeTrace::FIRST.lines(chomp: true), first.map(&:last)
    assert_equal [[8, 4]], first.filter_map { |_, line, _, exits, _| [line, exits] if exits > 0 }
    assert_equal [[8, 1]], second.filter_map { |_, line, _, _, fallbacks| [line, fallbacks] if fallbacks > 0 }
  end

  # Numbers of values and blocks are no change.
  def test_what_changed_between_versions
    second = rows(CodeTrace.build).select { |version, *| version == 2 }
    changes = second.filter_map { |_, _, change, _, _, text| change + text.strip unless change.empty? }
    assert_equal ["-v16:Fixnum = GuardType v9, Fixnum", "-v17:Fixnum = FixnumAdd v16, v16",
                  "+v11:BasicObject = Send v8, :+, v8 # <b>polymorphic</b>",
                  "-bb4(v20:Fixnum):", "+bb4(v20:BasicObject):"].sort, changes.sort
    assert_equal CodeTrace::SECOND.lines(chomp: true), second.reject { |_, _, change, *| change == "-" }.map(&:last)
  end

  def test_as_people_read_it
    out = run_tool(CodeTrace.build, "history", "--method=Foo#add").out
    assert_includes out, <<~TEXT
      HIR of version 1 of Foo#add (/app/foo.rb:3)
             exits     lost  code
                             ...
                             bb3(v9:BasicObject):
                               PatchPoint SingleRactorMode
                 4  8.00 ms    v16:Fixnum = GuardType v9, Fixnum
                               v17:Fixnum = FixnumAdd v16, v16
                               Jump bb4(v17)
                             ...
    TEXT
    assert_includes out, "HIR of version 2 of Foo#add (/app/foo.rb:3), made after GuardType(Fixnum); " \
                         "- and + compare it with version 1\n"
    refute_includes out, "EntryPoint"
    whole = run_tool(CodeTrace.build, "history", "--whole-code", "--method=Foo#add").out
    assert_equal 2, whole.scan("EntryPoint").size
  end

  # The reference is diff --minimal: as many lines are the same.
  def test_as_many_lines_are_the_same_as_diff_finds
    random = Random.new(5)
    20.times do
      texts = Array.new(2) { Array.new(random.rand(1..40)) { "  op#{random.rand(6)}\n" }.join }
      trace = CodeTrace.build(texts.map { |text| [text] }, line: 1) { |t| t.sites.pop }
      rows = rows(trace).select { |version, *| version == 2 }
      assert_equal texts[1].lines(chomp: true), rows.reject { |_, _, change, *| change == "-" }.map(&:last)
      assert_equal texts[0].lines(chomp: true), rows.reject { |_, _, change, *| change == "+" }.map(&:last)
      files = texts.map.with_index { |text, i| File.join(Dir.mktmpdir, i.to_s).tap { |path| File.write(path, text) } }
      diff, = Open3.capture2("diff", "--minimal", *files)
      assert_equal diff.lines.count { |line| line.start_with?("<", ">") }, rows.count { |_, _, change, *| change != "" }
      files.each { |path| FileUtils.remove_entry(File.dirname(path)) }
    end
  end

  def test_parts_are_put_together
    parts = CodeTrace::FIRST.lines.each_slice(4).map(&:join)
    assert_equal rows(CodeTrace.build), rows(CodeTrace.build([parts, [CodeTrace::SECOND]]))
  end

  # A trace with all texts has those of exits twice if it is saved.
  def test_a_text_that_is_there_twice_counts_once
    twice = CodeTrace.build { |t| CodeTrace.text(t, [CodeTrace::FIRST], 1) }
    assert_equal rows(CodeTrace.build), rows(twice)
  end

  def test_a_text_without_room_is_named
    bytes = CodeTrace.build([[CodeTrace::FIRST]]) do |t|
      t.sites.pop
      t.event(:instant, :main, "trace", "code", 35, kind: "hir", iseq: CodeTrace::ISEQ, version: [:uint32, 2],
              bytes: [:uint64, 70_000])
      CodeTrace.text(t, [CodeTrace::SECOND], 3)
    end
    out = run_tool(bytes, "history", "--method=*").out
    assert_match(/^HIR of version 2 of .*: 70,000 bytes, for which there was no room/, out)
    assert_match(/^HIR of version 3 of .* compare it with version 1$/, out)
    assert_equal [[1, 0, 0], [2, 1, 70_000], [3, 1, 0]], data_of(page(bytes))["code"][0][3].map { |version| version.first(3) }
  end

  def test_check_knows_lines_and_parts
    strict = lambda do |bytes|
      result = run_tool(bytes, "check", "--strict")
      [result.status, result.out + result.err]
    end
    assert_equal 0, strict[CodeTrace.build].first, strict[CodeTrace.build].last
    status, said = strict[CodeTrace.build(line: 14)]
    assert_equal 1, status
    assert_match(/trace site: no text of version 1 of its ISEQ has line 14/, said)
    status, said = strict[CodeTrace.build([[CodeTrace::FIRST]])]
    assert_equal 1, status
    assert_match(/no text of version 2 of its ISEQ has line 8/, said)
    gap = CodeTrace.build do |t|
      t.event(:instant, :main, "trace", "code", 50, kind: "hir", iseq: "Foo#x (/a.rb:1)", version: [:uint32, 1],
              bytes: [:uint64, 99], offset: [:uint64, 50], text: "rest")
    end
    assert_match(/trace code: the part of the text before this one is missing/, strict[gap].last)
  end

  # Lines stay where they are, whatever is removed.
  def test_scrub_keeps_lines
    named = CodeTrace::FIRST.sub("SingleRactorMode", "StableConstantNames(0x5, /home/me/Acme)")
    with_file(CodeTrace.build([[named], [CodeTrace::SECOND]])) do |path|
      out = "#{path}.scrubbed"
      result = tool("scrub", "--remove=Acme", "-o", out, path)
      assert_equal 0, result.status, result.err
      text = tool("dump", out).out.lines.find { |line| line.include?("FixnumAdd") }
      refute_match(%r{/app|/home|Acme}, text)
      assert_equal CodeTrace::FIRST.lines.size, JSON.parse(text)["args"]["text"].lines.size
      assert_match(/fn add@\*\/foo.rb:3:/, text)
      assert_match(/^ +4 .*GuardType v9, Fixnum$/, tool("history", "--method=Foo#add", out).out)
      assert_equal 0, tool("check", "--strict", out).status
    end
  end

  def test_the_page_shows_versions
    browse(CodeTrace.build, tab: "Code") do |browser|
      texts = ->(what) { browser.map("#code #{what}", "e.innerText") }
      assert_equal ["Foo#add (/app/foo.rb:3) 8.00 ms lost, 4 exits, 2 versions"], texts["summary"]
      assert_equal ["Version 1", "Version 2, made after GuardType(Fixnum), compared with version 1"], texts["h3"]
      costly = cells(browser, "#code tr.costly")
      assert_equal [["8.00 ms", "4", "8", "", "v16:Fixnum = GuardType v9, Fixnum"],
                    ["1", "8", "+", "v11:BasicObject = Send v8, :+, v8 # <b>polymorphic</b>"]], costly
      assert_equal ["− v16:Fixnum = GuardType v9, Fixnum", "− v17:Fixnum = FixnumAdd v16, v16", "− bb4(v20:Fixnum):"],
                   cells(browser, "#code tr.removed").map { |row| row.last(2).join(" ") }
      before = texts["tr"].size
      browser.run("document.querySelector('#code-lines button:last-child').click()") # all lines
      assert_operator texts["tr"].size, :>, before
      search(browser, "nothing like it")
      wait_for(browser, "document.querySelectorAll('#code details').length === 0")
      search(browser, "FixnumAdd")
      wait_for(browser, "document.querySelectorAll('#code details').length === 1")
    end
  end

  def test_without_texts_there_is_no_tab
    data = data_of(page(StatesTrace.new { |t| t.exits(:main, "a", "Foo#a (/a.rb:1)", 1, lost: nil) }.build))
    assert_empty data["code"]
  end
end
