# Entries: tests
#
# The commands of the guides are run as they stand, page by page and in order, and print what the
# page shows.
#
# A block of `sh` has commands, each of which succeeds. A block of `console` has commands behind "$ "
# (on several lines with \ at the end of each but the last) and lines that they print, in this order;
# others may stand between. In those PID is any number, "…" any text, and "..." stands for lines left
# out. What can't be run says why in a comment before it: <!-- not run: reason -->; what needs a package
# names a file of it: <!-- needs: pattern -->. /tmp/ is a folder of the test's own.
require "minitest/autorun"
require "open3"
require "tmpdir"

class TestGuide < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  # Pages whose example has a test of its own, which looks closer.
  ELSEWHERE = {
    "doc/guide/recompilation.md" => "test_recompilation.rb",
    "doc/guide/flight-recorder.md" => "test_flight_recorder.rb",
    "doc/internals/reprofile.md" => "test_reprofile.rb",
    "doc/guide/slow-requests.md" => "test_slow_requests.rb",
  }.freeze
  PAGES = Dir.glob("doc/**/*.md", base: TOP).sort.freeze
  BLOCK = /
    ^(?:\ *<!--\ (?:not\ run:\ (?<reason>.+?)|needs:\ (?<needs>.+?))\ -->\n)?
    (?<indent>\ *)```(?<kind>sh|console)\n
    (?<text>.*?)^\k<indent>```$
  /mx

  def self.blocks(page) = File.read(File.join(TOP, page)).to_enum(:scan, BLOCK).map { $~.named_captures }

  PAGES.each do |page|
    blocks = blocks(page).reject { |block| block["reason"] }
    next if blocks.empty? || ELSEWHERE[page]
    define_method "test_commands_of_#{page.gsub(/\W/, "_")}" do
      skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
      needs = blocks.filter_map { |block| block["needs"] }.find { |pattern| Dir.glob(pattern).empty? }
      skip "#{page} needs #{needs}" if needs
      @dir = Dir.mktmpdir
      blocks.each { |block| block["kind"] == "sh" ? run_all(block["text"]) : show(block["text"], block["indent"]) }
    ensure
      FileUtils.rm_rf(@dir) if @dir
    end
  end

  def test_pages_that_others_run_are_run
    ELSEWHERE.each { |page, test| assert_includes File.read(File.join(__dir__, test)), page }
  end

  def test_blocks_are_of_a_known_kind
    PAGES.each do |page|
      kinds = File.read(File.join(TOP, page)).scan(/^ *```(\w*)\n.*?^ *```$/m).flatten.uniq
      assert_empty kinds - ["", "sh", "console", "ruby", "c", "sql"], page
    end
  end

  private

  def run_all(commands)
    out, status = run_command("set -e\n#{commands}")
    assert_predicate status, :success?, "#{commands}\n#{out}"
  end

  def show(text, indent)
    text.gsub(/^#{indent}/, "").split(/^\$ /).drop(1).each do |part|
      command, *shown = part.lines(chomp: true)
      command << "\n#{shown.shift}" while command.end_with?("\\")
      out, = run_command(command)
      lines = out.lines.map(&:chomp)
      shown.reject { |line| line == "..." || line.empty? }.each do |line|
        at = lines.index { |printed| pattern(line).match?(printed) }
        assert at, "#{command}\nprints no (further) line like\n#{line}\nbut\n#{out}"
        lines.shift(at + 1)
      end
    end
  end

  # A line as it is shown, at the end of a printed one: before it may stand a path or a position.
  # How many events there are depends on whether sites end early.
  def pattern(line)
    text = Regexp.escape(line.strip).gsub("PID", "\\d+").gsub("…", ".*").gsub(/\d+(?=\\ events)/, "\\d+")
    /(?:\A|[ \/])#{text}\z/
  end

  def run_command(command)
    path = "#{TOP}/build/#{ENV.fetch("BASE", "ruby-4.0")}:#{TOP}/build/tool:#{ENV["PATH"]}"
    out, status = Open3.capture2e({ "PATH" => path, "RUBYOPT" => nil, "COLUMNS" => "200", "LC_ALL" => "C.UTF-8" },
                                  "sh", "-c", command.gsub("/tmp/", "#{@dir}/"), chdir: TOP)
    [out.gsub("#{@dir}/", "/tmp/").gsub(/^\s*#{Regexp.escape(TOP)}\//, ""), status]
  end
end
