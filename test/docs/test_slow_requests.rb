# The worked example of doc/guide/slow-requests.md: its commands are run with fewer requests, and the
# trace of one slow request names its cause, which a profile of all requests does not.
require "minitest/autorun"
require "fileutils"
require "open3"

class TestSlowRequestsDoc < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  TEXT = File.read(File.join(TOP, "doc/guide/slow-requests.md"))
  PROFILE, TRACE = TEXT.scan(/^```sh\n(.*?)^```/m).map { |(block)| block.gsub("100000", "3000").gsub("99999", "2999") }
  MIDDLEWARE = File.read(File.join(TOP, "gem/lib/vm_trace/slow_requests.rb"))

  def run_commands(commands)
    out, status = Open3.capture2e({ "COLUMNS" => "200" }, "sh", "-ec", commands, chdir: TOP)
    assert_predicate status, :success?, "#{commands}\n#{out}"
    out
  end

  def test_the_profile_names_another_method_than_the_trace
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    FileUtils.rm_rf(File.join(TOP, "build/slow"))
    methods = run_commands(PROFILE).scan(/^ *\d+\.\d %  (\S+)/).flatten
    assert_includes methods, "String#gsub"
    refute_equal "Journal#position", methods.first

    assert_match CAUSE_FIRST, trace_the_slow_request
    assert_includes TEXT, CAUSE
    assert_operator Dir[File.join(TOP, "build/slow/*")].size, :<=, 10
    run_commands("build/tool/vm-trace check build/slow/*.fxt")
  end

  CAUSE = "Journal#position (examples/slow_requests/shop.rb:33)"
  # One row may be above it: that of a call in which the thread had no CPU.
  CAUSE_FIRST = /^ +own +share .*\n(?:.*\n)? +\S+ \S+ +\S+% .* 1,000 .* #{Regexp.escape(CAUSE)}$/
  ATTEMPTS = 10

  # On a busy machine so many other requests are slow that, with as many waiting as may be kept, the
  # thousandth one can be left out, or have all requests since the last that was saved in its trace.
  def trace_the_slow_request
    ATTEMPTS.times do |i|
      report = run_commands(TRACE)
      return report if i == ATTEMPTS - 1 || report.match?(CAUSE_FIRST)
    rescue Minitest::Assertion
      raise if i == ATTEMPTS - 1 || !Dir["#{TOP}/build/slow/*-2999.fxt"].empty?
    ensure
      FileUtils.rm_rf(File.join(TOP, "build/slow")) unless report&.match?(CAUSE_FIRST)
    end
  end

  def test_lines_of_the_example_are_those_shown
    lines = File.readlines(File.join(TOP, "examples/slow_requests/shop.rb"))
    { 10 => "text.gsub", 33 => "def position", 28 => "position(cents)" }.each do |line, text|
      assert_includes lines[line - 1], text
    end
  end

  # Each option of the middleware is in the table, with its default.
  def test_options_are_those_of_the_middleware
    options = MIDDLEWARE[/def initialize\(app, (.*)\)/, 1].scan(/(\w+):/).flatten
    assert_equal options.sort, TEXT.scan(/^\| (`.*?) \|/).flatten.flat_map { |cell| cell.scan(/`(\w+):`/) }.flatten.sort
    assert_includes TEXT, MIDDLEWARE[/RECORD = (\{.*\})\.freeze/, 1]
  end
end
