# `vm-trace dump`: events as JSON; the other tests that read traces depend on it.
require_relative "tool_helper"

class TestDump < Minitest::Test
  include ToolHelper

  def test_members_of_an_instant
    at = nil
    result, events = dump(FxtBuilder.simple { |b| at = b.event(:instant, "cat", "name", ts: 1234, args: { "a" => "b" }) })
    assert_equal 0, result.status
    assert_equal [{ "ts" => 1234, "ph" => "i", "cat" => "cat", "name" => "name", "pid" => 42, "tid" => 43, "thread" => "main",
                    "provider" => 1, "offset" => at, "args" => { "a" => "b" } }], events
  end

  # Events that are not printed are read and checked, too.
  def test_categories_are_chosen_by_their_whole_names
    trace = FxtBuilder.simple do |b|
      %w[gc side_exit gcx recompile_exit g].each_with_index { |category, i| b.event(:instant, category, "n", ts: i) }
    end
    with_file(trace.bytes + "cut") do |path|
      { "gc" => %w[gc], "side_exit,recompile_exit" => %w[side_exit recompile_exit], "gc,g" => %w[gc g],
        "blocked" => [] }.each do |chosen, categories|
        result = tool("dump", "--category=#{chosen}", path)
        assert_equal categories, result.out.lines.map { |line| JSON.parse(line)["cat"] }, chosen
        assert_equal 1, result.status
      end
      { "gc,zork" => "zork", "side-exit" => "side-exit; did you mean side_exit" }.each do |chosen, what|
        result = tool("dump", "--category=#{chosen}", path)
        assert_includes result.err, "vm-trace: dump: no events have the category #{what}\n"
        assert_equal 2, result.status
      end
    end
  end

  def test_letters_of_all_kinds
    _, events = dump(FxtBuilder.simple do |b|
      FxtBuilder::EVENT_TYPES.each_with_index do |type, i|
        b.event(type, "c", "n", ts: i, extra: %i[instant begin end].include?(type) ? [] : [100])
      end
    end)
    assert_equal %w[i C B E X b n e s t f], events.map { |e| e["ph"] }
    assert_equal [96], events.map { |e| e["dur"] }.compact
    assert_equal 8, events.count { |e| e["id"] == 100 } + 1
  end

  def test_values_of_all_types
    values = { "int32" => -2**31, "uint32" => [:uint32, 2**32 - 1], "int64" => [:int64, -2**63], "uint64" => [:uint64, 2**64 - 1],
               "double" => 0.1, "string" => "text", "pointer" => [:pointer, 0xabc], "koid" => [:koid, 7], "true" => true,
               "false" => false, "null" => nil, "nan" => Float::NAN }
    _, events = dump(FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1, args: values) })
    assert_equal({ "int32" => -2**31, "uint32" => 2**32 - 1, "int64" => -2**63, "uint64" => 2**64 - 1, "double" => 0.1,
                   "string" => "text", "pointer" => "0xabc", "koid" => 7, "true" => true, "false" => false, "null" => nil,
                   "nan" => "nan" }, events[0]["args"])
  end

  def test_json_is_valid_whatever_bytes_are_in_names
    name = "\0\e[1m\"\\\u00ff\u{1f600}\u2028\xff\xc0\x80\xed\xa0\x80\xe0\x80\x80\xf0\x80\x80\x80".b
    result, events = dump(FxtBuilder.simple { |b| b.event(:instant, "c", name, ts: 1, args: { FxtBuilder::Inline.new(name) => name }) })
    assert result.out.valid_encoding?
    refute_match(/[\x00-\x09\x0b-\x1f\x7f]/, result.out)
    clean = "\0\e[1m\"\\\u00ff\u{1f600}\u2028" + "\ufffd" * 13
    assert_equal clean, events[0]["name"]
    assert_equal({ clean => clean }, events[0]["args"])
  end

  def test_strings_can_be_defined_again
    _, events = dump(FxtBuilder.simple do |b|
      b.string(9, "first")
      b.event(:instant, 9, 9, ts: 1)
      b.string(9, "second")
      b.event(:instant, 9, 9, ts: 2)
    end)
    assert_equal %w[first second], events.map { |e| e["name"] }
  end

  def test_ticks_become_nanoseconds
    rates = { 1 => 7_000_000_000, 1_000_000 => 7000, 3 => 2_333_333_333, 2_400_000_000 => 2 }
    rates.each do |rate, ns|
      _, events = dump(FxtBuilder.simple { |b| b.init(rate); b.event(:instant, "c", "n", ts: 7) })
      assert_equal ns, events[0]["ts"], "7 ticks at #{rate} a second"
    end
  end

  def test_large_times_do_not_overflow
    _, events = dump(FxtBuilder.simple { |b| b.init(10**9); b.event(:instant, "c", "n", ts: 2**63 - 1) })
    assert_equal 2**63 - 1, events[0]["ts"]
  end

  def test_ids_are_cut_to_32_bits
    _, events = dump(FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1, pid: 2**32 + 5, tid: 2**33 + 6) })
    assert_equal [5, 6], events[0].values_at("pid", "tid")
  end

  # Like Perfetto: the size of an argument says where the next one begins, even if that is inside
  # it.
  def test_next_argument_begins_where_the_size_of_the_last_says
    _, events = dump(FxtBuilder.simple do |b|
      key = b.ref("hidden")
      b.event(:instant, "c", "n", ts: 1, args: [b.arg("a", [:uint64, 9 | 1 << 4 | key << 16 | 1 << 32], size: 1)], arg_count: 2)
    end)
    assert_equal true, events[0]["args"]["hidden"]
  end

  def test_what_can_be_read_before_a_fault_is_printed
    result, events = dump(FxtBuilder.simple do |b|
      b.event(:instant, "c", "one", ts: 1)
      b.event(:instant, 99, 99, ts: 1)
      b.event(:instant, "c", "two", ts: 1)
      b.words(0)
      b.event(:instant, "c", "never", ts: 1)
    end)
    assert_equal %w[one two], events.map { |e| e["name"] }
    assert_equal 1, result.status
    assert_equal 2, result.err.lines.size
  end

  # The query of the design: exits by reason and innermost frame.
  def test_exits_can_be_joined_with_their_innermost_frame
    _, events = dump(OurTrace.new.build)
    exits = events.select { |e| e["args"].key?("0") }
    counts = exits.map { |e| [e["name"], e["args"]["0"]] }.tally
    assert_equal 2, counts[["GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)"]]
  end
end
