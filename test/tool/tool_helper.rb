# What the tests of the command-line tool share. VM_TRACE names the tool.
require "minitest/autorun"
require "json"
require "open3"
require "tempfile"
require "tmpdir"
require_relative "conformance"
require_relative "fxt_builder"
require_relative "served_tool"

module ToolHelper
  ROOT = File.expand_path("../..", __dir__)
  TOOL = File.expand_path(ENV["VM_TRACE"] || File.join(ROOT, "build/tool/vm-trace"), ROOT)
  TRACES = File.join(ROOT, "test/traces")

  # A command that runs the tool, such as `valgrind --quiet`: make check-sanitizers.
  WRAPPER = ENV["TOOL_WRAPPER"].to_s.split.freeze
  # It is for another processor: scripts/check-arm64.sh.
  EMULATED = !ENV["EMULATED"].to_s.empty?
  # Then, or built with a sanitizer, it takes much more memory and time.
  INSTRUMENTED = WRAPPER.any? || EMULATED || ENV.key?("ASAN_OPTIONS") || ENV.key?("MSAN_OPTIONS")

  Result = Struct.new(:out, :err, :status)

  # Runs the tool; its output is read as UTF-8, however broken.
  def tool(*args, stdin: nil, tool: TOOL)
    out, err, status = if WRAPPER.empty? && stdin.nil?
      ServedTool.capture3(tool, *args)
    else
      Open3.capture3(ServedTool::ENVIRONMENT, *WRAPPER, tool, *args, stdin_data: stdin.to_s, binmode: true)
    end
    flunk "#{args.inspect}: killed by signal #{status.termsig}\n#{err}" if status.signaled?
    Result.new(out.force_encoding("UTF-8"), err.force_encoding("UTF-8"), status.exitstatus)
  end

  # CSV of `query` without the last column that says that a file was not read as a whole, which no text of a trace has.
  PARTIAL_COLUMN = /,(?:"partial"|"[^"\n]*(?:only a part|nothing of it) was read[^"\n]*"|)$/

  # The tool of a kind that `make instrumented` builds beside the tool, or that KIND_TOOL names. If no
  # compiler here could build it, the test is skipped: `cannot` says what that is.
  def instrumented_tool(kind, cannot)
    path = ENV["#{kind.upcase}_TOOL"] || File.expand_path("../#{kind}/vm-trace", File.dirname(TOOL))
    compiler, fault = %w[compiler fault].map { |name| File.join(File.dirname(path), name) }
    skip "#{cannot}: #{File.foreach(fault).first}" if File.size?(fault) && !File.size?(compiler)
    flunk "there is no #{path}: make instrumented" unless File.executable?(path)
    path
  end

  def with_files(*traces)
    Dir.mktmpdir do |dir|
      yield(*traces.each_with_index.map { |trace, i| File.join(dir, "#{i}.fxt").tap { |path| File.binwrite(path, trace.bytes) } })
    end
  end

  def with_file(bytes, name = "trace.fxt")
    bytes = bytes.bytes if bytes.is_a?(FxtBuilder)
    Dir.mktmpdir do |dir|
      path = File.join(dir, name)
      File.binwrite(path, bytes)
      yield path
    end
  end

  def check(bytes, *options)
    with_file(bytes) do |path|
      result = tool("check", *options, path)
      result.err.gsub!(path, "F")
      result.out.gsub!(path, "F")
      return result
    end
  end

  # The file has only this fault, at that place.
  def assert_fault(offset, message, bytes, *options, status: 1)
    result = check(bytes, *options)
    assert_equal "vm-trace: F: offset #{offset}: #{message}\n", result.err
    assert_equal status, result.status
    assert_empty result.out
  end

  def assert_fine(bytes)
    result = check(bytes)
    assert_equal "", result.err
    assert_match(/\AF: ok: \d+ records, \d+ events, \d+ chunks\n\z/, result.out)
    assert_equal 0, result.status
  end

  def dump(bytes)
    with_file(bytes) do |path|
      result = tool("dump", path)
      result.err.gsub!(path, "F")
      return result, result.out.each_line.map { |line| JSON.parse(line) }
    end
  end

  def conformance_files
    Conformance.files("*.fxt")
  end
end
