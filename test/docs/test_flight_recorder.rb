# The worked example of doc/guide/flight-recorder.md: its commands are run as they stand, and name
# the cause.
require "minitest/autorun"
require "fileutils"
require "open3"

class TestFlightRecorder < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  TEXT = File.read(File.join(TOP, "doc/guide/flight-recorder.md"))
  RECORD, REPORT, DIFF = TEXT.scan(/^```sh\n(.*?)^```/m).map { |(block)| block.strip }

  def run_command(command, status: 0)
    out, err, ended = Open3.capture3({ "COLUMNS" => "200" }, command, chdir: TOP)
    assert_equal status, ended.exitstatus, "#{command}\n#{out}#{err}"
    out
  end

  def test_commands_of_the_example_name_the_cause
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    FileUtils.rm_rf(File.join(TOP, "build/flight"))
    out = run_command(RECORD)
    assert_match(/^build\/flight\/slow-2500\.fxt: 50\d\d exits$/, out)
    assert_match(/^build\/flight\/fast-1499\.fxt: \d{1,2} exits$/, out)
    assert_equal out.scan(/build\S+fxt/).sort, Dir.glob("build/flight/*", base: TOP).sort

    run_command("build/tool/vm-trace check build/flight/*.fxt")
    cause = "Invoice#line_total (examples/flight_recorder.rb:#{line_of("quantity * price")})"
    assert_match(/^ +5,000 .* #{Regexp.escape(cause)}$/, run_command(REPORT))
    assert_match(/^  new +0 +5,000 .* FixnumMultOverflow +opt_mult +#{Regexp.escape(cause)}$/, run_command(DIFF))
    assert_equal 2, TEXT.scan(cause).size
    head = /^ +count +share .*$/
    assert_equal TEXT[head].split, run_command(REPORT)[head].split
    assert_includes run_command(DIFF).lines.map(&:split), TEXT[/^ +A +B +delta.*$/].split
  end

  def line_of(text)
    File.readlines(File.join(TOP, "examples/flight_recorder.rb")).index { |line| line.include?(text) } + 1
  end

  # Further ones are there as they are seen: each of those shown is of a slow customer.
  def test_output_shown_is_of_slow_customers
    shown = TEXT[/^```\n(build\/flight.*?)^```/m, 1]
    assert_equal [500, 1500, 2500], shown.scan(/slow-(\d+)/).flatten.map(&:to_i)
  end

  def test_flags_are_those_of_help
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    help, = Open3.capture2e(File.join(TOP, "build/#{ENV.fetch("BASE", "ruby-4.0")}/ruby"), "--help")
    flags = TEXT.scan(/`(--zjit-trace-[a-z-]+)/).flatten.uniq
    assert_empty flags - help.scan(/--zjit-trace-[a-z-]+/)
  end

  def test_links_lead_to_files
    TEXT.scan(/\]\((?!http)([^)#]+)/).flatten.each { |link| assert_path_exists File.join(TOP, "doc/guide", link) }
  end
end
