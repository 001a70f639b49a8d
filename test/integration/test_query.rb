# The query that the event contract promises works as it stands, over the tool, and gives the right
# rows.
#
# Once: the tool reads these traces.
require_relative "helper"

class TestQuery < Integration::Test
  QUERY = <<~SQL
    SELECT s.name AS reason, a.display_value AS method, COUNT(*) AS count
    FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0'
    GROUP BY s.name, a.display_value ORDER BY count DESC
  SQL

  def query(trace, sql)
    out, err, status = Open3.capture3(Trace::TOOL, "query", trace.path, sql)
    assert_predicate status, :success?, err
    assert_empty err
    CSV.parse(out.force_encoding("UTF-8"))
  end

  SCRIPT = <<~'RUBY'
    class Café
      def first(x) = x + 1
      def second = (::RubyVM::ZJIT.induce_side_exit!)
    end
    c = Café.new
    i = 0
    while i < 100
      c.first(i < 50 ? 1 : 4_611_686_018_427_387_903)
      c.second
      c.second
      i += 1
    end
  RUBY

  def test_exits_by_reason_and_method
    trace = trace(SCRIPT).trace
    rows = query(trace, QUERY)
    assert_equal %w[reason method count], rows.shift
    counted = trace.exits.map { |event| [event["name"], event["args"]["0"]] }.tally
    assert_equal counted, rows.to_h { |reason, method, count| [[reason, method], count.to_i] }
    assert_equal 50, counted[[jit("FixnumAddOverflow"), "Café#first (script.rb:2)"]]
    assert_operator counted[[jit("DirectiveInduced"), "Café#second (script.rb:3)"]], :>, 190
    assert_equal rows.map { |row| row[2].to_i }.sort.reverse, rows.map { |row| row[2].to_i }, "the most frequent first"
  end

  def test_the_trace_says_its_exits_in_categories_and_on_threads
    trace = trace(SCRIPT).trace
    rows = query(trace, "SELECT s.category, t.name, t.tid, COUNT(*) FROM slice s JOIN thread_track k ON s.track_id = k.id " \
                        "JOIN thread t USING (utid) WHERE s.category LIKE '%_exit' GROUP BY 1, 2, 3 ORDER BY 1")
    expected = trace.exits.map { |event| [event["cat"], "main", trace.settings["pid"].to_s] }.tally.map { |row, count| [*row, count.to_s] }
    assert_equal expected.sort, rows.drop(1)
  end

  def test_sums_of_hits_are_exact_at_any_rate
    hits = "SELECT SUM(a.int_value) FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = 'hits' WHERE s.name = 'site'"
    every, sampled = ["--zjit-trace-exits", "--zjit-trace-exits-sample-rate=7"].map { |flag| query(trace(SCRIPT, flag).trace, hits) }
    assert_equal every, sampled
  end
end
