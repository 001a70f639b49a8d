# The validator that all traces pass finds faults, and passes on the tool's message. test/tool/test_check_counts.rb
# and test_check_schema.rb have a case for each rule.
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

  def assert_invalid(message, trace, **options)
    assert_match(message, assert_raises(Trace::Invalid) { trace.validate(**options) }.message)
  end

  def test_faults_of_a_changed_trace
    changed("", 0).validate
    site, settings, summary = %w[site settings summary].map { |name| @trace.events.find { |event| event["name"] == name } }
    assert_invalid(/says sampled: \d+, but exits in the file: /, without(@trace.exits.first))
    assert_invalid(/says sites: \d+, but the file holds: /, without(site))
    assert_invalid(/no trace settings/, without(settings))
    assert_invalid(/end of duration|never ends/, without(@trace.in_category("compile").find { |event| event["ph"] == "E" }))
    assert_invalid(/offset #{summary["offset"]}: /, changed([0].pack("Q<"), summary["offset"]))
    hits = site["offset"] + (@bytes[site["offset"], 8].unpack1("Q<") >> 4 & 0xfff) * 8 - 8
    assert_equal site["args"]["hits"], @bytes[hits, 8].unpack1("Q<"), "hits are the last argument"
    assert_invalid(/the file holds #{site["args"]["hits"]}, but the hits of its sites are/,
                   changed([site["args"]["hits"] + 1].pack("Q<"), hits))
  end

  def test_only_a_killed_program_may_lack_the_summary
    trace = without(@trace.events.last)
    assert_invalid(/has no trace summary/, trace)
    trace.validate(ended: false)
  end

  # As of a program whose ractors each count to 97 by themselves.
  def test_more_exits_without_a_record_than_the_ractors_can_leave
    flags = ["--zjit-trace-exits-sample-rate=97", "-W:no-experimental"]
    trace = trace("def foo = (::RubyVM::ZJIT.induce_side_exit!)\n4.times { Ractor.new { 90.times { foo } }.value }\n", *flags, recorders: 5).trace
    assert_invalid(/one in 97/, trace, recorders: 1)
  end
end
