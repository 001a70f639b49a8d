# The worked example of doc/guide/recompilation.md: its commands are run as they stand, in order,
# and show what the text says of them.
#
# Bases: ruby-4.1
require "minitest/autorun"
require "open3"

class TestRecompilationDoc < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  DOC = File.read(File.join(TOP, "doc/guide/recompilation.md"))
  COMMANDS = DOC.scan(/^```sh\n(.*?)^```/m).flat_map { |(block)| block.lines.map(&:strip) }

  def test_commands_show_what_the_text_says
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    outputs = COMMANDS.to_h do |command|
      out, status = Open3.capture2e({ "COLUMNS" => "200" }, command, chdir: TOP)
      assert status.success?, "#{command}\n#{out}"
      [command[%r{vm-trace \w+ .*?(\w+\.fxt)}] ? [command[/vm-trace (\w+)/, 1], command[/\w+\.fxt/]] : command, out]
    end
    report, before = outputs.fetch(%w[report before.fxt]), outputs.fetch(%w[history before.fxt])
    difference, after = outputs.fetch(%w[diff before.fxt]), outputs.fetch(%w[history after.fxt])
    # Titles and heads of tables are shown as they are printed.
    blocks = DOC.scan(/^```(\w*)\n(.*?)^```$/m).select { |kind, _| kind.empty? }
    shown = blocks.map(&:last).join.lines.grep(/\A(?:[A-Z][^:]*: \d|  +[a-z])/).grep_v(/\A  in all/)
    code = outputs.fetch(%w[history code.fxt])
    plain = ->(line) { line.gsub(/0x\h{6,}/, "0x").split.join(" ") }
    printed = [report, before, code, difference, after].join.lines.map(&plain)
    assert_operator shown.size, :>=, 12
    shown.each { |line| assert_includes printed, plain[line] }
    assert_match(/^ +[\d,]+ +v\d+:Fixnum = FixnumMult /, code)
    assert_match(/^ +6 +SideExit NoProfileSend recompile$/, code)
    assert_match(/^ +- +v\d+:Bignum = GuardType .*\n.*\n +\+ +v\d+:BasicObject = Send .*polymorphic call site$/, code)
    # The loop: the same reason in each version there is.
    versions = report[/^Recompiled: .*\n.*\n +(\d+) .*Index#bucket \(examples/, 1].to_i
    assert_operator versions, :>=, 3, report
    exits = report[/^Exits that go on after recompilation.*?\n\n/m]
    loop = exits.lines.grep(/FixnumMultOverflow +opt_mult +Index#bucket/)
    assert_equal 1, loop.size, report
    assert_equal (1..versions).to_a, loop[0].scan(/\b(\d): [\d,]+/).flatten.map(&:to_i)
    reasons = before.scan(/ invalidated +(\w+) .*?index.rb:(\d+)/)
    assert_equal [%w[NoProfileSend 17], %w[NoProfileSend 18], %w[NoProfileSend 19]].first(versions - 1), reasons
    assert_match(/^  gone .* FixnumMultOverflow$/, difference)
    assert_match(/^  gone .* NoProfileSend$/, difference)
    assert_operator after.scan(/ compiled /).size, :<, before.scan(/ compiled /).size
  end

  def test_links_of_the_readme_lead_here
    assert_includes File.read(File.join(TOP, "README.md")), "doc/guide/recompilation.md"
  end
end
