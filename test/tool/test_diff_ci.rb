# What `vm-trace diff` writes for CI: a comment in Markdown, and JUnit XML.
require_relative "tool_helper"
require "rexml/document"

class TestDiffCi < Minitest::Test
  include ToolHelper

  # Many methods, with names that Markdown and XML could take for something else.
  def trace(exits)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1, args: { "pid" => [:uint32, 42], "exit_rate" => [:uint64, 1] })
      exits.times { |i| b.exit("Reason#{i % 30}", "A#<&>|\"m`#{i % 90} (/app/a|b.rb:#{i % 90})", ts: 10 + i) }
    end
  end

  # Runs diff with the files, and returns its result and what it wrote.
  def compare(before, after, *options)
    Dir.mktmpdir do |dir|
      { "a.fxt" => before, "b.fxt" => after }.each { |name, trace| File.binwrite("#{dir}/#{name}", trace.bytes) }
      result = tool("diff", "--comment=#{dir}/c.md", "--junit=#{dir}/j.xml", *options, "#{dir}/a.fxt", "#{dir}/b.fxt")
      return result, File.read("#{dir}/c.md"), REXML::Document.new(File.read("#{dir}/j.xml"))
    end
  end

  def cases(xml)
    xml.get_elements("//testcase").to_h do |test|
      [test.attributes["name"], test.elements["failure"]&.attributes&.[]("message")]
    end
  end

  def test_growth_is_a_failed_test_and_a_comment
    result, comment, xml = compare(trace(1000), trace(3000), "--fail-over=5", "--fail-over=exits:900")
    assert_equal 1, compare(trace(1000), trace(3000), "--fail-over=5").first.status
    assert_equal 0, result.status # the last one counts
    result, comment, xml = compare(trace(1000), trace(3000), "--fail-over=5", "--fail-over=lost:5")
    assert_equal 1, result.status
    suite = xml.get_elements("//testsuite").first.attributes
    assert_equal %w[2 2 0], suite.values_at("tests", "failures", "errors").map(&:to_s) if suite.respond_to?(:values_at)
    assert_equal [["exits", "lost"], result.err], [cases(xml).keys, cases(xml).values.join]
    assert_match(/exits grew by 200\.0 % of all exits before, more than --fail-over=5\n/, cases(xml)["exits"])
    assert_match(/\A# vm-trace: 2 of 2 limits are exceeded\n/, comment)
    assert_match(/^\| exits \| 1,000 \| 3,000 \| grew \| \+200\.0% \| exceeded \|$/, comment)
    assert_operator comment.lines.size, :<=, 60
    assert_operator comment.lines.size, :>, 30
  end

  def test_without_growth_all_is_met
    result, comment, xml = compare(trace(50), trace(50), "--fail-over=5")
    assert_equal [0, { "exits" => nil }], [result.status, cases(xml)]
    assert_match(/\A# vm-trace: all limits are met\n/, comment)
    assert_match(/unchanged \| \+0\.0% \| met \|$/, comment)
    refute_match(/by method/, comment)
    _, comment, xml = compare(trace(50), trace(50))
    assert_match(/\A# vm-trace: no limit was given \(--fail-over\)\n/, comment)
    assert_empty cases(xml)
  end

  # All streams at once: the longest comment that there is.
  def test_a_comment_has_at_most_60_lines
    Dir.mktmpdir do |dir|
      %w[states calls allocations gvl kernel].each { |name| FileUtils.cp(File.join(TRACES, "#{name}.fxt"), dir) }
      File.binwrite("#{dir}/many.fxt", trace(3000).bytes)
      Dir.mkdir("#{dir}/less")
      %w[states calls allocations gvl].each { |name| FileUtils.cp(File.join(TRACES, "#{name}.fxt"), "#{dir}/less") }
      tool("diff", "--comment=#{dir}/c.md", "#{dir}/less", dir)
      lines = File.readlines("#{dir}/c.md")
      assert_operator lines.size, :<=, 60
      assert_match(/^\| waiting \|/, lines.join)
    end
  end

  def test_files_that_cannot_be_written
    with_file(trace(5)) do |path|
      %w[comment junit].each do |option|
        result = tool("diff", "--#{option}=/nonesuch/x", path, path)
        assert_equal ["vm-trace: /nonesuch/x: cannot be written: No such file or directory\n", 3], [result.err, result.status]
        result = tool("diff", "--#{option}=#{path}", path, path)
        assert_equal ["vm-trace: F: is an input, so it cannot be the output; give another file\n", 3],
                     [result.err.gsub(path, "F"), result.status]
        assert_equal trace(5).bytes, File.binread(path)
      end
    end
  end
end
