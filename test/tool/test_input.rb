# Where traces come from: standard input, compressed files, files that are still being written.
require_relative "tool_helper"
require "stringio"
require "terminal"
require "zlib"

class TestInput < Minitest::Test
  include ToolHelper

  def gzip(bytes)
    io = StringIO.new("".b)
    Zlib::GzipWriter.wrap(io) { |gz| gz.write(bytes) }
    io.string
  end

  def test_compressed_trace_reads_as_the_trace_itself
    bytes = OurTrace.new.build.bytes
    plain = with_file(bytes) { |path| tool("dump", path) }
    assert_equal plain, with_file(gzip(bytes), "trace.fxt.gz") { |path| tool("dump", path) }
    assert_equal plain, tool("dump", "-", stdin: gzip(bytes))
  end

  def test_offset_of_a_fault_in_a_compressed_trace_is_that_in_the_trace
    trace = FxtBuilder.simple
    offset = trace.event(:end, "c", "n", ts: 7)
    assert_equal "vm-trace: F: offset #{offset}: end of duration n, but none is open on its thread\n", check(gzip(trace.bytes)).err
  end

  def test_compressed_trace_that_is_cut_is_used_up_to_there
    trace = FxtBuilder.simple { |b| 5000.times { |i| b.event(:instant, "c", "n", ts: i, args: { "i" => i * 7919 % 5000 }) } }
    result = check(gzip(trace.bytes)[0..-2000])
    assert_match(/\Avm-trace: F: offset \d{4,}: the compressed data are damaged: they are truncated\n\z/, result.err)
    assert_equal 1, result.status
  end

  def test_damaged_compressed_data
    bytes = gzip(OurTrace.new.build.bytes)
    bytes[-8, 4] = "\0\0\0\0" # its checksum
    result = check(bytes)
    assert_match(/offset \d+: the compressed data are damaged: incorrect data check/, result.err)
    assert_equal 1, result.status
  end

  def test_compressed_file_of_something_else_is_no_trace
    assert_fault 0, "not a Fuchsia trace: it does not begin with the magic number record", gzip("hello, hello"), status: 4
  end

  def test_standard_input_that_is_a_file_is_read_from_where_it_stands
    with_file("skip me!" + FxtBuilder.simple.bytes) do |path|
      File.open(path) do |file|
        file.sysread(8)
        assert_match(/ok: /, IO.popen([TOOL, "check", "-", in: file], &:read))
      end
    end
  end

  # A program that was killed, or still runs, at the worst moment: the rest of the last chunk is
  # padding, or missing.
  def test_padding_at_the_end_is_no_fault
    trace = OurTrace.new
    trace.summary = nil
    trace.sites = []
    assert_fine trace.build.tap { |b| 40.times { b.padding(512) } }
  end

  def test_progress_is_shown_on_a_terminal_when_it_takes_long
    reader, writer = IO.pipe
    Terminal.open do |terminal|
      pid = Process.spawn(TOOL, "check", "-", in: reader, out: File::NULL, err: terminal.side)
      reader.close
      writer.write FxtBuilder.simple.bytes
      sleep 1.1
      padding = FxtBuilder.new(magic: false).tap { |b| 100.times { b.padding(1000) } }.bytes
      3.times { writer.write(padding) }
      writer.close
      shown, = terminal.wait(pid)
      assert_match(/\A\rvm-trace: standard input: \d+ MB read/, shown)
      assert shown.end_with?("\r\e[K"), shown.inspect
    end
  end
end
