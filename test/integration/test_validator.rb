# The validator that checks all traces finds each fault.
#
# Once: the tool reads these traces.
require_relative "helper"

class TestValidator < Integration::Test
  PADDING = 2 # a string record with index 0

  def setup
    super
    @trace = trace("def foo = (::RubyVM::ZJIT.induce_side_exit!)\n20.times { foo }\n", "--zjit-trace-compiles").trace
    @bytes = File.binread(@trace.path)
  end

  # The trace with one event turned into padding.
  def without(event)
    words = @bytes[event["offset"], 8].unpack1("Q<") >> 4 & 0xfff
    changed([words << 4 | PADDING].pack("Q<"), event["offset"])
  end

  def changed(bytes, offset)
    path = File.join(File.dirname(@trace.path), "changed")
    File.binwrite(path, @bytes.dup.tap { |copy| copy[offset, bytes.bytesize] = bytes })
    Trace.new(path)
  end

  def assert_invalid(trace, **options)
    assert_raises(Trace::Invalid) { trace.validate(**options) }
  end

  def test_a_trace_that_was_not_changed_is_valid
    changed("", 0).validate
  end

  def test_a_missing_exit_is_seen
    assert_invalid without(@trace.exits.first)
  end

  def test_a_missing_site_is_seen
    assert_invalid without(@trace.events.find { |event| event["name"] == "site" })
  end

  def test_missing_settings_are_seen
    assert_invalid without(@trace.events.first)
  end

  def test_a_missing_summary_is_seen_unless_the_process_was_killed
    trace = without(@trace.events.last)
    assert_invalid trace
    trace = without(@trace.events.last)
    trace.validate(ended: false)
  end

  def test_a_begin_without_its_end_is_seen
    assert_invalid without(@trace.in_category("compile").find { |event| event["ph"] == "E" })
  end

  def test_a_broken_record_is_seen
    assert_invalid changed([0].pack("Q<"), @trace.events.last["offset"])
  end

  def test_a_wrong_count_of_a_site_is_seen
    site = @trace.events.find { |event| event["name"] == "site" }
    record = @bytes[site["offset"], (@bytes[site["offset"], 8].unpack1("Q<") >> 4 & 0xfff) * 8]
    hits = [site["args"]["hits"]].pack("Q<")
    assert record.end_with?(hits), "hits are the last argument"
    assert_invalid changed([site["args"]["hits"] + 1].pack("Q<"), site["offset"] + record.bytesize - 8)
  end
end
