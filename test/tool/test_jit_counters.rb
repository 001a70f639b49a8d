# Counters of ZJIT's statistics by method and line: what the commands make of the events `trace` `counter`.
require_relative "tool_helper"
require "csv"

class TestJitCounters < Minitest::Test
  include ToolHelper

  class CountersTrace < StatesTrace
    attr_accessor :counted, :places

    def initialize(**options, &block)
      @counted = @places = 0
      super(settings: { flags: "counters" }, **options, &block)
    end

    def counts(counter, location, hits, version: 1)
      @counted += hits
      @places += 1
      event(:instant, :main, "trace", "counter", 90, counter: counter, version: [:uint32, version], location: location,
            hits: [:uint64, hits])
    end

    def build(**counts) = super(counted: @counted, counted_places: @places, **counts)
  end

  AT_12, AT_13, OTHER = "Foo#bar (/app/foo.rb:12)", "Foo#bar (/app/foo.rb:13)", "Foo#baz (/app/foo.rb:20)"
  SENDS = "send_fallback_send_polymorphic"

  def trace(sends: 620)
    CountersTrace.new do |t|
      t.counts(SENDS, AT_12, sends - 20)
      t.counts(SENDS, AT_12, 20, version: 2)
      t.counts(SENDS, AT_13, 100)
      t.counts(SENDS, OTHER, 300)
      t.counts("zjit_insn_count", AT_12, 5000)
      yield t if block_given?
    end.build
  end

  def rows(bytes, table, *options)
    out = with_file(bytes) { |path| tool("report", "--counters", "--format=json", *options, path).out }
    JSON.parse(out)[table]["rows"]
  end

  def test_the_report_has_sums_by_counter_and_by_method
    bar = "Foo#bar (/app/foo.rb)"
    assert_equal [["zjit_insn_count", 5000, 1, 5000, bar], [SENDS, 1020, 3, 720, bar]],
                 rows(trace, "counters").map { |row| row.values_at("counter", "hits", "lines", "most", "method") }
    assert_equal [[SENDS, 720, 2, 620, AT_12], [SENDS, 300, 1, 300, OTHER]],
                 rows(trace, "counters_left").map { |row| row.values_at("counter", "hits", "lines", "most", "location") }
    assert_equal [5000, 720, 300], rows(trace, "counters_by_method").map { |row| row["hits"] }
    assert_equal [5000, 620, 300, 100], rows(trace, "counters_by_line").map { |row| row["hits"] }
    out = with_file(trace) { |path| tool("report", "--counters", path).out }
    assert_match(/^ +720 +#{SENDS} +2 +620 +Foo#bar \(\/app\/foo\.rb:12\)$/, out)
  end

  def test_of_lines_with_equally_many_hits_the_first_by_name_is_shown
    bytes = CountersTrace.new { |t| [AT_13, AT_12, OTHER].each { |at| t.counts(SENDS, at, 50) } }.build
    assert_equal [[100, 50, AT_12], [50, 50, OTHER]],
                 rows(bytes, "counters_left").map { |row| row.values_at("hits", "most", "location") }
  end

  def test_what_was_left_to_the_vm_is_fallbacks_and_exits
    left = %w[send_fallback_a setivar_fallback_b getivar_fallback_c definedivar_fallback_d exit_e]
    bytes = CountersTrace.new do |t|
      (left + %w[zjit_insn_count inline_cfunc_optimized_send_count]).each { |name| t.counts(name, AT_12, 1) }
    end.build
    assert_equal left.sort, rows(bytes, "counters_left").map { |row| row["counter"] }.sort
  end

  def test_options_choose_counters_and_methods
    assert_equal [5000], rows(trace, "counters", "--reason=zjit_*").map { |row| row["hits"] }
    assert_equal [300], rows(trace, "counters", "--method=Foo#baz").map { |row| row["hits"] }
    assert_empty rows(trace, "counters", "--since=1ms")
  end

  def test_annotate_has_what_was_left_to_the_vm
    out = with_file(trace) { |path| tool("annotate", "--format=json", path).out }
    reasons = JSON.parse(out)["annotated_reasons"]["rows"]
    assert_equal [[12, SENDS, 620], [13, SENDS, 100], [20, SENDS, 300]],
                 reasons.map { |row| row.values_at("line", "reason", "counted") }.sort
  end

  def test_diff_says_which_counters_moved_where
    with_file(trace) do |a|
      with_file(trace(sends: 1620)) do |b|
        moved = JSON.parse(tool("diff", "--format=json", a, b).out)["counters"]["rows"]
        assert_equal [[SENDS, "Foo#bar (/app/foo.rb)", 720, 1720]],
                     moved.map { |row| row.values_at("counter", "method", "a", "b") }
      end
    end
  end

  def test_query_has_a_view
    with_file(trace) do |path|
      sql = "SELECT counter, location, SUM(hits) FROM vm_counter GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 2"
      assert_equal [["zjit_insn_count", AT_12, "5000"], [SENDS, AT_12, "620"]],
                   CSV.parse(tool("query", path, sql).out).drop(1)
    end
  end

  def test_check_compares_the_sums_with_the_summary
    with_file(trace) { |path| assert_equal 0, tool("check", "--strict", path).status, tool("check", path).err }
    with_file(trace { |t| t.counted += 1 }) do |path|
      assert_match(/counted: 6021, but hits of counters add up to: 6020/, tool("check", path).err)
    end
    with_file(trace { |t| t.places += 1 }) do |path|
      assert_match(/counted_places: 6, but the file holds: 5/, tool("check", path).err)
    end
  end

  def test_a_cut_has_none
    with_file(trace) do |path|
      Dir.mktmpdir do |dir|
        part = File.join(dir, "part.fxt")
        tool("cut", "--since=0", "--until=50ms", "-o", part, path)
        refute_match(/"name":"counter"/, tool("dump", part).out)
      end
    end
  end
end
