# The example of doc/internals/reprofile.md: its commands are run as they stand, and show what the
# text says of them.
#
# Bases: ruby-4.1
require "minitest/autorun"
require "open3"

class TestReprofileDoc < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  DOC = File.read(File.join(TOP, "doc/internals/reprofile.md"))
  COMMANDS = DOC.scan(/^```sh\n(.*?)^```/m).flat_map { |(block)| block.lines.map(&:strip) }

  def test_the_option_saves_the_exits_that_the_text_says
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    assert_equal 3, COMMANDS.size
    output = COMMANDS.map do |command|
      out, status = Open3.capture2e(command, chdir: TOP)
      assert status.success?, "#{command}\n#{out}"
      out
    end.last
    said = DOC[/^ +in all +\d+ -> \d+: shrank .*$/]
    assert_includes output.squeeze(" "), said.squeeze(" ")
    assert_match(/^ +shrank +96 +3 .* NoProfileGetIvar$/, output)
  end
end
