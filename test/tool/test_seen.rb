# What guards have met: the arguments `seen`, `index` and `length`, and the table of vm-trace report.
require_relative "tool_helper"
require_relative "conformance"

class TestSeen < Minitest::Test
  include ToolHelper

  # exits: [reason, line, seen, more arguments]
  def trace(*exits, rate: 1)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: {
        "ruby" => "ruby 9.9", "base" => "ruby-9.9", "jit" => "ZJIT", "flags" => "exits", "command" => "ruby x.rb",
        "pid" => [:uint64, 42], "exit_rate" => [:uint64, rate], "fallback_rate" => [:uint64, 1]
      })
      exits.each_with_index do |(reason, line, seen, more), i|
        args = { "0" => "M#m (m.rb:#{line})", "insn" => "opt_plus", "version" => [:uint32, 1] }
        args["weight"] = [:uint32, rate] if rate > 1
        args["seen"] = seen if seen
        b.event(:instant, "side_exit", reason, ts: 2000 + i, args: args.merge(more || {}))
      end
    end
  end

  def report(bytes, *options)
    with_file(bytes) do |path|
      result = tool("report", "--all", *options, path)
      assert_equal 0, result.status, result.err
      return result.out
    end
  end

  def rows(bytes, *options) = JSON.parse(report(bytes, "--format=json", *options))["seen"]&.fetch("rows")

  FIXNUM = "GuardType(Fixnum)"
  MANY = [*[[FIXNUM, 7, "Float"]] * 3, *[[FIXNUM, 9, "Float"]] * 2, [FIXNUM, 9, "NilClass"],
          ["FixnumAddOverflow", 3, nil], ["GuardShape(ShapeId(7))", 5, "Point @x"]].freeze

  def test_table_by_reason_and_seen_with_the_place_of_the_most
    found = rows(trace(*MANY))
    assert_equal [[5, FIXNUM, "Float", 3, "M#m (m.rb:7)"],
                  [1, "GuardShape(ShapeId(7))", "Point @x", 1, "M#m (m.rb:5)"],
                  [1, FIXNUM, "NilClass", 1, "M#m (m.rb:9)"]],
                 found.map { |row| row.values_at("count", "reason", "seen", "most", "method") }
    assert_equal %w[count share reason seen most method], found.first.keys
    found.each { |row| assert_in_delta row["count"] / 7.0, row["share"], 1e-6 }
  end

  def test_text
    assert_includes report(trace(*MANY)).gsub(/^ +/, ""), <<~'TEXT'
      Expected and seen by guards: 7 exits
      count  share  expected                seen      most of it at
      5  71.4%  GuardType(Fixnum)       Float     M#m (m.rb:7)
      1  14.3%  GuardShape(ShapeId(7))  Point @x  M#m (m.rb:5)
      1  14.3%  GuardType(Fixnum)       NilClass  M#m (m.rb:9)
    TEXT
  end

  def test_weights_count
    assert_equal [485, 97], rows(trace(*MANY.first(6), rate: 97)).map { |row| row["count"] }
  end

  def test_filters_and_top
    assert_equal ["Point @x"], rows(trace(*MANY), "--reason=GuardShape*").map { |row| row["seen"] }
    assert_equal [2, 1], rows(trace(*MANY), "--since=0.000001003").map { |row| row["count"] }.first(2)
    assert_includes report(trace(*MANY), "--top=1"), "in 2 more"
  end

  def test_csv
    out = report(trace(*MANY), "--format=csv", "--table=seen")
    assert_equal "count,share,reason,seen,most,method", out.lines.first.chomp
    assert_equal 4, out.lines.size
  end

  def test_no_table_where_no_guard_says_it
    bytes = trace(["FixnumAddOverflow", 3, nil])
    assert_nil rows(bytes)
    refute_includes report(bytes), "Expected and seen"
  end

  # --- check --------------------------------------------------------------------------------

  def faults(more, seen: "Array", category: "side_exit")
    errors = check(trace(["GuardLess", 3, seen, more])).err.lines.grep_v(/warning/)
    errors.map { |line| line[/offset \d+: (.*)/, 1] }.compact
  end

  def test_numbers_of_a_guard_are_fine
    assert_empty faults({ "index" => [:int64, -9], "length" => [:uint64, 3] })
    assert_empty faults({ "index" => [:int32, -9], "length" => [:uint32, 3] })
    assert_empty faults({ "length" => [:uint64, 3] })
  end

  def test_faults
    assert_equal ["side_exit GuardLess has no string as its argument seen"], faults({}, seen: [:uint32, 7])
    assert_equal ["side_exit GuardLess has no signed number as its argument index"], faults({ "index" => "9" })
    assert_equal ["side_exit GuardLess has no unsigned number as its argument length"], faults({ "length" => "9" })
    assert_equal ["side_exit GuardLess has an argument index or length, but not seen"],
                 faults({ "index" => [:int64, 9] }, seen: nil)
  end

  # An event has room for 15 arguments: then "10+" begins with frame 8 or 9.
  def test_fewer_frames_of_their_own
    frames = (1..7).to_h { |i| [i.to_s, "M#f#{i} (m.rb:1)"] }.merge("10+" => "M#f8 (m.rb:1) < M#f9 (m.rb:1)")
    numbers = { "index" => [:int64, 9], "length" => [:uint64, 3] }
    full = frames.merge(numbers)
    assert_equal ["side_exit GuardLess has a gap in its backtrace: frame 8 is missing"], faults(full) # 14 arguments
    assert_empty faults(full.merge("iseq" => "M#m (m.rb:1)")) # 15 arguments
  end
end
