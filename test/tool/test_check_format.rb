# `vm-trace check`: faults of the format, each with its offset. test_check_schema.rb has the rules
# for traces of the tracer.
require_relative "tool_helper"

class TestCheckFormat < Minitest::Test
  include ToolHelper

  def event(builder, **more)
    builder.event(:instant, "cat", "name", ts: 1000, **more)
  end

  # --- whole files ---

  def test_good_file_gets_one_line_with_counts
    trace = FxtBuilder.simple { |b| event(b, args: { "a" => 1, "b" => "text" }) }
    result = check(trace)
    assert_equal "F: ok: 15 records, 1 events, 1 chunks\n", result.out
    assert_equal "", result.err
    assert_equal 0, result.status
  end

  def test_magic_record_alone_is_fine
    assert_fine(FxtBuilder.new)
  end

  def test_every_argument_type_inline_and_from_the_table_is_fine
    trace = FxtBuilder.simple do |b|
      values = { "null" => nil, "int32" => -1, "uint32" => [:uint32, 2**32 - 1], "int64" => [:int64, -2**63],
                 "uint64" => [:uint64, 2**64 - 1], "double" => -0.5, "string" => "s", "empty" => "",
                 "pointer" => [:pointer, 0xdead], "koid" => [:koid, 7], "bool" => true,
                 FxtBuilder::Inline.new("inline key") => FxtBuilder::Inline.new("inline value") }
      event(b, args: values)
    end
    assert_fine(trace)
  end

  def test_durations_are_paired_by_time_not_by_place_in_the_file
    trace = FxtBuilder.simple do |b|
      b.event(:end, "c", "inner", ts: 300)
      b.event(:end, "c", "outer", ts: 400)
      b.provider(2)
      b.init
      b.thread(1, 42, 43)
      b.event(:begin, "c", "inner", ts: 200)
      b.event(:begin, "c", "outer", ts: 100)
    end
    assert_fine(trace)
  end

  def test_padding_of_any_size_is_skipped
    trace = FxtBuilder.simple do |b|
      event(b)
      [1, 2, 4095].each { |words| b.padding(words) }
      event(b)
    end
    assert_fine(trace)
  end

  def test_four_gigabytes_of_padding_are_read_through_and_offsets_stay_right
    megabyte = FxtBuilder.new(magic: false).tap { |b| 32.times { b.padding(4095) }; b.padding(32) }.bytes
    assert_equal 1024 * 1024, megabyte.bytesize
    head = FxtBuilder.simple
    times = 4200
    bad = FxtBuilder.new(magic: false).tap { |b| b.event(:instant, 9, 0, ts: 1) }
    Open3.popen3(TOOL, "check", "-") do |stdin, stdout, stderr, thread|
      stdin.binmode
      stdin.write(head.bytes)
      times.times { stdin.write(megabyte) }
      stdin.write(bad.bytes)
      stdin.close
      assert_equal "", stdout.read
      offset = head.offset + times * megabyte.bytesize
      assert_operator offset, :>, 2**32
      assert_equal "vm-trace: standard input: offset #{offset}: string 9, the category, is not defined\n", stderr.read
      assert_equal 1, thread.value.exitstatus
    end
  end

  # --- damaged files ---

  def test_empty_file
    assert_fault(0, "the file is empty", "", status: 4)
  end

  def test_other_file
    assert_fault(0, "not a Fuchsia trace: it does not begin with the magic number record", "#!/bin/sh\necho hello\n", status: 4)
  end

  def test_file_shorter_than_the_magic_record
    assert_fault(0, "not a Fuchsia trace: it does not begin with the magic number record", FxtBuilder::MAGIC[0, 7], status: 4)
  end

  def test_missing_file
    result = tool("check", "/nonexistent/a\nb.fxt")
    assert_equal "vm-trace: /nonexistent/a\\nb.fxt: cannot be opened: No such file or directory\n", result.err
    assert_equal 3, result.status
  end

  def test_directory
    result = tool("check", "/")
    assert_equal "vm-trace: /: the folder has no traces (*.fxt)\n", result.err
    assert_equal 3, result.status
  end

  def test_file_cut_at_any_byte_is_whole_or_names_the_record_that_is_cut
    starts = []
    trace = FxtBuilder.simple do |b|
      b.string(100, "some text that is a little longer")
      event(b, args: { "a" => 1, "b" => 2**40, FxtBuilder::Inline.new("c") => FxtBuilder::Inline.new("inline") })
      b.event(:counter, "cat", "count", ts: 2000, args: { "n" => 1 }, extra: 7)
    end
    at = 0
    while at < trace.offset
      starts << at
      at += 8 * (trace.bytes[at, 8].unpack1("Q<") >> 4 & 0xfff)
    end
    whole, cut = (8..trace.offset).partition { |size| size == trace.offset || starts.include?(size) }
    assert_equal [0, "", whole], check_cuts(trace.bytes, whole)
    status, errors, fine = check_cuts(trace.bytes, cut)
    assert_equal [1, []], [status, fine]
    assert_equal cut.size, errors.lines.size
    cut.zip(errors.lines) do |size, error|
      start = starts.reverse.find { |s| s < size }
      fault = "offset #{start}: the file is truncated: it ends after #{size - start} bytes of a record"
      assert_match(/\Avm-trace: #{size}: #{fault}('s first word| of \d+)\n\z/, error, "cut after #{size} bytes")
    end
  end

  # Checks the first bytes of a trace, once for each size, in one run. Returns its exit status, what it
  # wrote to stderr, and the sizes that were fine.
  def check_cuts(bytes, sizes)
    Dir.mktmpdir do |dir|
      sizes.each { |size| File.binwrite(File.join(dir, size.to_s), bytes[0, size]) }
      result = tool("check", *sizes.map { |size| File.join(dir, size.to_s) })
      [result.status, result.err.gsub("#{dir}/", ""), result.out.scan(/^#{dir}\/(\d+): ok: /).flatten.map(&:to_i)]
    end
  end

  # --- records ---

  def test_record_of_size_0_ends_the_reading
    trace = FxtBuilder.simple { |b| @at = b.words(0); b.words(0); event(b, thread: 99) }
    assert_fault(@at, "record of size 0; nothing after it can be read (Perfetto refuses such a file)", trace)
  end

  def test_record_larger_than_the_file
    trace = FxtBuilder.simple { |b| @at = b.record(2, 1 << 16, "text", size: 4095) }
    assert_fault(@at, "the file is truncated: it ends after 16 bytes of a record of 32760", trace)
  end

  def test_record_of_unknown_type_is_a_warning
    trace = FxtBuilder.simple { |b| @at = b.record(12, 0, "x" * 16); event(b) }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: warning: record of the unknown type 12 is skipped\n", result.err
    assert_equal 0, result.status
    assert_match(/: ok: /, result.out)
  end

  def test_event_longer_than_its_content
    trace = FxtBuilder.simple { |b| @at = event(b, extra: [0, 0]) }
    assert_fault(@at, "event record of 4 words holds 2 words of content", trace)
  end

  def test_event_that_ends_within_itself
    trace = FxtBuilder.simple do |b|
      b.string(1, "c")
      @at = b.record(4, 1 << 24 | 1 << 32 | 1 << 48)
      b.record(4, 0, [5].pack("Q<"))
    end
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: the record ends within its time stamp\n" \
                 "vm-trace: F: offset #{@at + 8}: the record ends within its thread\n", result.err
  end

  def test_counter_without_its_id
    trace = FxtBuilder.simple { |b| @at = b.event(:counter, "c", "n", ts: 1, args: { "v" => 1 }) }
    assert_fault(@at, "the record ends within its counter id", trace)
  end

  def test_counter_that_is_no_number
    trace = FxtBuilder.simple { |b| @at = b.event(:counter, "c", "n", ts: 1, args: { "v" => "one" }, extra: 1) }
    assert_fault(@at, "the counter's value v is not a number", trace)
  end

  def test_duration_that_ends_before_it_begins
    trace = FxtBuilder.simple { |b| @at = b.event(:complete, "c", "n", ts: 100, extra: 99) }
    assert_fault(@at, "the duration ends at 99 ns, before it begins at 100 ns", trace)
  end

  def test_event_of_unknown_type_is_a_warning
    trace = FxtBuilder.simple { |b| @at = b.event(13, "c", "n", ts: 1) }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: warning: event of the unknown type 13\n", result.err
    assert_equal 0, result.status
  end

  # --- strings and threads ---

  def test_undefined_strings
    trace = FxtBuilder.simple do |b|
      b.string(1, "defined")
      @at = [b.event(:instant, 500, 1, ts: 1), b.event(:instant, 1, 501, ts: 1),
             b.event(:instant, 1, 1, ts: 1, args: [b.arg(502, 1)]), b.event(:instant, 1, 1, ts: 1, args: [b.arg(1, [:string, 503])])]
    end
    result = check(trace)
    assert_equal ["vm-trace: F: offset #{@at[0]}: string 500, the category, is not defined",
                  "vm-trace: F: offset #{@at[1]}: string 501, the name, is not defined",
                  "vm-trace: F: offset #{@at[2]}: string 502, the name of an argument, is not defined",
                  "vm-trace: F: offset #{@at[3]}: string 503, the argument's value, is not defined"], result.err.lines.map(&:chomp)
    assert_equal 1, result.status
  end

  def test_undefined_thread
    trace = FxtBuilder.simple { |b| @at = event(b, thread: 9) }
    assert_fault(@at, "thread 9 is not defined; taken for process 0, thread 0", trace)
  end

  def test_introducing_a_provider_again_empties_its_tables
    trace = FxtBuilder.simple do |b|
      b.string(7, "seven")
      b.provider(1, "test")
      b.init
      @at = b.event(:instant, 7, 0, ts: 1)
      @at2 = b.event(:instant, 0, 0, ts: 1)
    end
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: thread 1 is not defined; taken for process 0, thread 0\n" \
                 "vm-trace: F: offset #{@at}: string 7, the category, is not defined\n" \
                 "vm-trace: F: offset #{@at2}: thread 1 is not defined; taken for process 0, thread 0\n", result.err
  end

  def test_section_of_a_provider_that_was_never_introduced
    trace = FxtBuilder.simple { |b| @at = b.section(77); @at2 = b.event(:instant, 0, 0, ts: 1) }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: provider 77 was never introduced; all up to the next provider record is lost\n" \
                 "vm-trace: F: offset #{@at2}: the record belongs to no provider; dropped\n", result.err
  end

  def test_string_record_with_reserved_bits
    trace = FxtBuilder.simple { |b| @at = b.record(2, 1 << 16 | 1 << 31 | 1 << 32, "x"); b.record(2, 2 << 16 | 1 << 32 | 1 << 60, "x") }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: reserved bits of the string record are set\n" \
                 "vm-trace: F: offset #{@at + 16}: reserved bits of the string record are set\n", result.err
  end

  def test_string_record_shorter_than_its_text
    trace = FxtBuilder.simple { |b| @at = b.record(2, 1 << 16 | 100 << 32, "x" * 16) }
    assert_fault(@at, "the record ends within its string", trace)
  end

  def test_string_record_longer_than_its_text
    trace = FxtBuilder.simple { |b| @at = b.record(2, 1 << 16 | 1 << 32, "x" + "\0" * 23) }
    assert_fault(@at, "string record of 4 words holds 2 words of content", trace)
  end

  def test_text_that_is_not_padded_with_zeros
    trace = FxtBuilder.simple { |b| @at = b.record(2, 1 << 16 | 3 << 32, "abcd") }
    assert_fault(@at, "bytes after the string are not zero", trace)
  end

  def test_text_that_is_not_utf8_is_a_warning
    trace = FxtBuilder.simple { |b| @at = b.string(1, "ab\xff".b) }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: warning: string 1 is not UTF-8 at its byte 2\n", result.err
    assert_equal 0, result.status
  end

  def test_thread_record_of_wrong_size
    trace = FxtBuilder.simple { |b| @at = b.record(3, 2 << 16, [1].pack("Q<")); @at2 = b.record(3, 3 << 16, [1, 2, 3].pack("Q<*")) }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: the record ends within its thread's ids\n" \
                 "vm-trace: F: offset #{@at2}: thread record of 4 words holds 3 words of content\n", result.err
  end

  def test_thread_record_for_index_0
    trace = FxtBuilder.simple { |b| @at = b.thread(0, 1, 2) }
    assert_fault(@at, "thread record for index 0, which cannot be defined", trace)
  end

  def test_thread_whose_process_is_no_koid
    trace = FxtBuilder.simple { |b| @at = b.kernel_object(2, 44, "t", "process" => 42) }
    result = check(trace)
    assert_match(/offset \d+: a thread's argument process is not a kernel object id\n\z/, result.err)
    assert_equal 1, result.status
  end

  # --- arguments ---

  def test_argument_whose_size_is_not_that_of_its_content
    trace = FxtBuilder.simple { |b| @at = event(b, args: [b.arg("a", 2**40, size: 1)]) }
    result = check(trace)
    assert_match(/: argument 1, a, is 2 words long, but its header says 1\n\z/, result.err)
  end

  def test_argument_that_ends_past_its_record
    trace = FxtBuilder.simple { |b| @at = event(b, args: [b.arg("a", 1, size: 4000)]) }
    result = check(trace)
    assert_match(/: argument 1, a, is 1 words long, but its header says 4000\n\z/, result.err)
  end

  def test_argument_of_unknown_type
    trace = FxtBuilder.simple { |b| event(b, args: [b.arg("a", [11, nil])]) }
    result = check(trace)
    assert_match(/: an argument has the unknown type 11\n\z/, result.err)
  end

  def test_more_arguments_than_there_are
    trace = FxtBuilder.simple { |b| event(b, args: { "a" => 1 }, arg_count: 3) }
    result = check(trace)
    assert_match(/: the record ends before argument 2 of 3\n\z/, result.err)
  end

  def test_inline_text_that_runs_past_its_record
    trace = FxtBuilder.simple do |b|
      b.string(1, "c")
      @at = b.record(4, 1 << 20 | 1 << 24 | 1 << 32 | 1 << 48, [1, 0 | 1 << 4 | 0xffff << 16].pack("Q<*"))
    end
    assert_fault(@at, "the record ends within its name of an argument", trace)
  end

  # --- time ---

  def test_events_without_an_initialization_record_are_said_once
    builder = FxtBuilder.new
    builder.provider(5, "p")
    builder.thread(1, 42, 43)
    builder.string(1, "c")
    at = builder.event(:instant, 1, 1, ts: 1)
    builder.event(:instant, 1, 1, ts: 2)
    assert_fault(at, "no initialization record before this event; ticks are taken for nanoseconds", builder)
  end

  def test_zero_ticks_per_second
    trace = FxtBuilder.simple { |b| @at = b.init(0); b.string(1, "c"); @at2 = b.event(:instant, 1, 1, ts: 7) }
    result = check(trace)
    assert_equal "vm-trace: F: offset #{@at}: 0 ticks per second\n" \
                 "vm-trace: F: offset #{@at2}: time stamp of 7 ticks at 0 per second is a time that does not fit\n", result.err
  end

  def test_time_beyond_what_can_be_held
    trace = FxtBuilder.simple { |b| b.string(1, "c"); @at = b.event(:instant, 1, 1, ts: 2**63) }
    assert_fault(@at, "time stamp of 9223372036854775808 ticks at 1000000000 per second is a time that does not fit", trace)
  end

  # --- durations ---

  def test_end_without_begin
    trace = FxtBuilder.simple { |b| b.string(1, "c"); @at = b.event(:end, 1, 1, ts: 7) }
    assert_fault(@at, "end of duration c, but none is open on its thread", trace)
  end

  def test_end_on_another_thread_than_its_begin
    trace = FxtBuilder.simple do |b|
      b.thread(2, 42, 44)
      b.event(:begin, "c", "n", ts: 1)
      @at = b.event(:end, "c", "n", ts: 2, thread: 2)
    end
    result = check(trace)
    assert_match(/offset #{@at}: end of duration n, but none is open on its thread\n/, result.err)
    assert_match(/warning: duration n never ends\n/, result.err)
    assert_equal 1, result.status
  end

  def test_end_of_another_duration_than_the_innermost
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "c", "outer", ts: 1)
      @inner = b.event(:begin, "c", "inner", ts: 2)
      @at = b.event(:end, "c", "outer", ts: 3)
      @at2 = b.event(:end, "c", "inner", ts: 4)
    end
    result = check(trace)
    assert_match(/\Avm-trace: F: offset #{@at}: end of duration outer, but inner is the innermost \(offset #{@inner}\)\n/, result.err)
    assert_match(/offset #{@at2}: end of duration inner, but outer is the innermost/, result.err)
  end

  def test_begin_that_never_ends_is_a_warning
    trace = FxtBuilder.simple { |b| b.event(:begin, "c", "n", ts: 1) }
    result = check(trace)
    assert_match(/: warning: duration n never ends\n\z/, result.err)
    assert_equal 0, result.status
  end

  def test_end_of_an_async_event_that_did_not_begin
    trace = FxtBuilder.simple do |b|
      b.event(:async_begin, "c", "n", ts: 1, extra: 5)
      @at = b.event(:async_end, "c", "n", ts: 2, extra: 6)
      b.event(:async_end, "c", "n", ts: 3, extra: 5)
    end
    assert_fault(@at, "end of async event 6, which did not begin", trace)
  end

  def test_durations_nested_deeper_than_perfetto_keeps
    trace = FxtBuilder.simple do |b|
      513.times { |i| @at = b.event(:begin, "c", "n", ts: i) }
      512.times { |i| b.event(:end, "c", "n", ts: 1000 + i) }
    end
    assert_fault(@at, "duration is nested more than 512 deep: Perfetto drops it", trace)
  end

  # --- limits and options ---

  def test_faults_beyond_the_limit_are_counted
    trace = FxtBuilder.simple { |b| 20.times { b.event(:instant, 99, 0, ts: 1) } }
    result = check(trace, "--max-faults=3")
    assert_equal 4, result.err.lines.size
    assert_match(/\Avm-trace: F: 17 more faults and warnings are not shown/, result.err.lines.last)
    assert_equal 1, result.status
  end

  def test_more_names_than_memory_was_granted_for
    trace = FxtBuilder.simple { |b| 500.times { |i| b.string(1, format("%05d", i) * 1000) } }
    result = check(trace, "--memory=1")
    assert_match(/\Avm-trace: F: offset \d+: names and tables need more than 1 MiB; reading ends here/, result.err)
    assert_equal 1, result.status
    assert_equal 0, check(trace, "--memory=16").status
  end

  def test_very_many_providers_do_not_take_memory_without_bound
    trace = FxtBuilder.simple { |b| 2000.times { |i| b.provider(i); b.string(32767, "x"); b.thread(255, 1, 1) } }
    result = check(trace, "--memory=4")
    assert_match(/names and tables need more than 4 MiB/, result.err)
  end

  def test_tables_of_strings_count_as_memory
    trace = FxtBuilder.simple { |b| 2000.times { |i| b.provider(i); b.string(32767, "x"); b.string(1, "x") } }
    assert_match(/names and tables need more than 4 MiB/, check(trace, "--memory=4").err)
    without = FxtBuilder.simple { |b| 2000.times { |i| b.provider(i) } }
    assert_equal 0, check(without, "--memory=4").status
  end

  def test_several_files_and_the_worst_status
    with_file(FxtBuilder.simple) do |good|
      with_file(FxtBuilder.simple { |b| b.event(:instant, 99, 0, ts: 1) }) do |bad|
        result = tool("check", good, bad, good)
        assert_equal 2, result.out.lines.size
        assert_equal 1, result.err.lines.size
        assert_equal 1, result.status
        assert_equal 3, tool("check", good, bad, "/nonexistent").status
      end
    end
  end

  def test_standard_input
    result = tool("check", "-", stdin: FxtBuilder.simple.bytes)
    assert_match(/\Astandard input: ok: /, result.out)
  end

  def test_control_characters_of_a_trace_are_shown_escaped
    trace = FxtBuilder.simple { |b| b.event(:end, "c", "\e[31m\n\x7f\u202eevil\xff", ts: 7) }
    result = check(trace)
    assert_includes result.err, "end of duration \\x1B[31m\\n\\x7F\\u202Eevil\\xFF, but none is open"
  end

  # --- blobs of Perfetto's packets ------------------------------------------------------------------------

  # A blob record of type 3 with an empty name.
  def blob(bytes) = FxtBuilder.simple { |b| b.record(5, bytes.bytesize << 32 | 3 << 48, bytes) }

  # Fields: a timestamp, 1; a sequence, 7.
  PACKET = "\x0a\x04\x40\x01\x50\x07".b

  # The exit status, and the message without its place.
  def check_blob(bytes)
    with_file(blob(bytes)) do |path|
      result = tool("check", path)
      return result.status, result.err.sub(/.*offset \d+: /, "").chomp
    end
  end

  def test_whole_packets_are_no_fault
    assert_equal [0, ""], check_blob(PACKET * 3)
    assert_equal [0, ""], check_blob("")
  end

  def test_a_packet_that_goes_on_past_its_blob_is_a_warning
    [PACKET[0...-1], PACKET[0, 1]].each do |part|
      assert_equal [0, "warning: the packet at byte 6 goes on past the blob's end; not read"], check_blob(PACKET + part)
    end
  end

  def test_the_rest_of_such_a_packet_is_skipped_in_the_next_blob
    trace = FxtBuilder.simple do |b|
      [PACKET[0, 4], PACKET[4..] + PACKET].each { |bytes| b.record(5, bytes.bytesize << 32 | 3 << 48, bytes) }
    end
    with_file(trace) { |path| assert_equal 1, tool("check", path).err.lines.size }
  end

  def test_what_is_no_packet_is_a_fault
    ["garbage!", PACKET + "\x0f".b, PACKET + "\x08\x01".b, PACKET + "\x0a\x02\x40\x80".b].each do |bytes|
      status, message = check_blob(bytes)
      assert_equal 1, status, bytes.inspect
      assert_match(/\Abyte [06] of the blob is not a packet\z/, message)
    end
  end
end
