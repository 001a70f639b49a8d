# The traces in test/traces/: the output of check, and of report and info in every format, against
# kept text. UPDATE=1 writes that text again; read the difference before you commit it.
require_relative "tool_helper"
require_relative "../traces/make"

class TestTraces < Minitest::Test
  include ToolHelper

  FORMATS = { "text" => "txt", "json" => "json", "markdown" => "md", "csv" => "csv" }.freeze

  def assert_kept(kept, *command)
    kept = File.join(TRACES, kept)
    text = Dir.chdir(TRACES) { tool(*command).out }
    File.write(kept, text) if ENV["UPDATE"]
    assert_equal File.read(kept), text, command.join(" ")
  end

  def test_files_are_what_make_rb_makes
    Traces.all.each do |name|
      assert_equal Traces.public_send(name).bytes, File.binread(File.join(TRACES, "#{name}.fxt")), "run test/traces/make.rb"
    end
  end

  def test_reports
    Traces.all.each do |name|
      options = { calls: %w[--calls], kernel: %w[--syscalls --sched] }.fetch(name, [])
      assert_kept("#{name}.report.txt", "report", "--all", *options, "#{name}.fxt")
    end
  end

  def test_first_screens
    Traces.all.each { |name| assert_kept("#{name}.first.txt", "report", "#{name}.fxt") }
  end

  def test_report_in_every_format
    FORMATS.each do |format, suffix|
      assert_kept("exits.report.#{suffix}", "report", "--all", "--format=#{format}", "exits.fxt")
      assert_kept("gvl.report.#{suffix}", "report", "--all", "--format=#{format}", "gvl.fxt")
      assert_kept("states.report.#{suffix}", "report", "--all", "--format=#{format}", "states.fxt")
      assert_kept("allocations.report.#{suffix}", "report", "--all", "--format=#{format}", "allocations.fxt")
      assert_kept("calls.report.#{suffix}", "report", "--calls", "--format=#{format}", "calls.fxt")
      assert_kept("kernel.report.#{suffix}", "report", "--syscalls", "--sched", "--format=#{format}", "kernel.fxt")
      assert_kept("processes.top-2.report.#{suffix}", "report", "--all", "--format=#{format}", "--top=2", "processes.fxt")
    end
  end

  def test_history
    assert_kept("recompiled.history.txt", "history", "recompiled.fxt", "Foo#bar")
    assert_kept("recompiled.history.json", "history", "--format=json", "recompiled.fxt", "block in Foo#all")
  end

  def test_info
    assert_kept("processes.info.txt", "info", "processes.fxt")
    assert_kept("killed.info.json", "info", "--format=json", "killed.fxt")
  end

  # Its tables of hashes are in another order each time.
  def test_what_a_command_prints_is_the_same_in_each_run
    commands = [%w[dump], %w[report --advice --format=json], %w[annotate --format=json], %w[diff --format=json exits.fxt],
                %w[html], %w[merge exits.fxt], %w[cut --since=1us], %w[metrics], %w[check], %w[export --format=firefox],
                *%w[folded speedscope pprof chrome].map { |format| ["export", "--format=#{format}"] },
                *%w[blocked calls allocations samples].map { |kind| ["export", "--format=folded", "--kind=#{kind}"] }]
    traces = INSTRUMENTED ? Traces.all.first(2) : Traces.all
    traces.product(commands).each do |name, command|
      first, second = Array.new(2) { Dir.chdir(TRACES) { tool(*command, "#{name}.fxt") } }
      assert_equal first, second, "#{command.join(" ")} #{name}.fxt"
    end
  end

  def test_check_finds_no_fault
    Traces.all.each do |name|
      result = tool("check", File.join(TRACES, "#{name}.fxt"))
      assert_equal 0, result.status, result.err
    end
  end
end
