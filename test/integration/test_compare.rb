# diff, merge, cut and export on real traces: runs before and after a method is fixed, a process
# with its children, a long run.
#
# Once: the tool reads these traces.
require_relative "helper"
require "json"
require "csv"

class TestCompare < Integration::Test
  def tool(*arguments, status: 0)
    out, err, result = Open3.capture3(Trace::TOOL, *arguments)
    assert_equal status, result.exitstatus, err
    [out.force_encoding("UTF-8"), err]
  end

  # Many calls that exit, in several methods; `%s` fixes one of them.
  PROGRAM = <<~'RUBY'
    class Account
      def add(x)
        x + 1
      end

      def name(x)
    %s
      end

      def other(x)
        x - -1
      end
    end
    account = Account.new
    30.times { account.add(1); account.name(:a); account.other(1) }
    big = 4_611_686_018_427_387_903
    2000.times { account.name(rand(2)) }
    500.times { account.add(big) }
    300.times { account.other(big) }
  RUBY
  BROKEN = PROGRAM % "::RubyVM::ZJIT.induce_side_exit!"
  FIXED = PROGRAM % "# One line more, so that what follows moves.\n    x"

  def runs(script, count) = Array.new(count) { trace(script).trace.path }

  def test_the_method_that_was_fixed_comes_first
    before, after = runs(BROKEN, 2), runs(FIXED, 2)
    out, = tool("diff", *before, "vs", *after, "--format=json")
    result = JSON.parse(out)
    first = result["methods"]["rows"].first
    assert_equal ["gone", 0, "Account#name (script.rb)"], first.values_at("change", "b", "method")
    assert_operator first["a"], :>=, 2000
    assert_equal ["gone", jit("DirectiveInduced"), "Account#name (script.rb:7)"], result["sites"]["rows"].first.values_at("change", "reason", "place")
    untouched = result["methods"]["rows"].map { |row| row["method"] }
    refute_includes untouched, "Account#add (script.rb)"
    refute_includes untouched, "Account#other (script.rb)", "it only moved"

    tool("diff", *before, "vs", *after, "--fail-over=5")
    _, err = tool("diff", *after, "vs", *before, "--fail-over=5", status: 1)
    assert_match(/exits in Account#name \(script\.rb\) grew by/, err)
  end

  def test_a_sampled_run_is_compared_by_its_exact_hits
    every = trace(BROKEN).trace.path
    sampled = trace(BROKEN, "--zjit-trace-exits-sample-rate=97").trace.path
    out, = tool("diff", every, sampled, "--format=json")
    assert_equal ["unchanged"], JSON.parse(out)["total"]["rows"].map { |row| row["change"] }
  end

  FAMILY = <<~'RUBY'
    def work
      ::RubyVM::ZJIT.induce_side_exit!
    end
    30.times { work }
    3.times do |i|
      fork { (i + 1).times { 20.times { work } } }
    end
    Process.waitall
  RUBY

  EVENTS = "SELECT s.ts, s.dur, s.category, s.name, t.tid, t.name, p.pid, p.name FROM slice s JOIN thread_track k ON s.track_id = k.id " \
           "JOIN thread t USING (utid) JOIN process p USING (upid) ORDER BY s.ts, t.tid, s.name, s.dur"
  ARGUMENTS = "SELECT s.ts, s.name, a.key, a.display_value FROM slice s JOIN args a USING (arg_set_id) ORDER BY 1, 2, 3, 4"

  def rows(sql, *files) = tool("query", *files, sql).first

  def test_a_process_and_its_children_are_one_file
    result = trace(FAMILY)
    files = result.traces.map(&:path)
    assert_equal 4, files.size
    merged = File.join(result.dir, "merged")
    _, err = tool("merge", *files, "-o", merged)
    assert_empty err
    tool("check", merged)
    [EVENTS, ARGUMENTS].each { |sql| assert_equal rows(sql, *files), rows(sql, merged) }
    pids = CSV.parse(rows("SELECT pid FROM process WHERE pid > 0 ORDER BY pid", merged)).drop(1).flatten.map(&:to_i)
    assert_equal result.traces.map { |t| t.settings["pid"] }.sort, pids
  end

  # Several chunks, with ractors that write side by side and nested durations.
  LONG = <<~'RUBY'
    def work(n)
      n > 0 ? work(n - 1) : ::RubyVM::ZJIT.induce_side_exit!
    end
    ractors = Array.new(2) { Ractor.new { 8000.times { |i| work(i % 30) } } }
    6000.times { |i| work(i % 25) }
    ractors.each(&:value)
  RUBY

  def test_cuts_of_a_long_trace_are_all_of_it
    result = run_traced(LONG, "--zjit-trace-compiles", recorders: 3)
    assert_predicate result.status, :success?, result.err
    whole = result.trace.path
    chunks = tool("check", whole).first[/(\d+) chunks/, 1].to_i
    assert_operator chunks, :>=, 3
    start, finish = CSV.parse(rows("SELECT MIN(ts), MAX(ts) FROM slice", whole)).last.map(&:to_i)
    edges = [0, (finish - start) / 3, (finish - start) / 2, finish - start + 1]
    exits = "SELECT s.ts, s.name, a.key, a.display_value FROM slice s JOIN args a USING (arg_set_id) " \
            "WHERE s.category LIKE '%_exit' ORDER BY 1, 2, 3, 4"
    parts = edges.each_cons(2).map do |since, till|
      part = File.join(result.dir, "part#{since}")
      _, err = tool("cut", "--since=#{since}ns", "--until=#{till}ns", "-o", part, whole)
      assert_match(/kept \d+ of \d+ events.*; site counts and summary left out/, err)
      tool("check", part)
      assert_equal rows(exits.sub("ORDER", "AND s.ts >= #{start + since} AND s.ts < #{start + till} ORDER"), whole), rows(exits, part)
      part
    end
    assert_operator parts.sum { |part| File.size(part) }, :<, File.size(whole) * 1.2
    compiled = "SELECT s.name, COUNT(*) FROM slice s WHERE s.category = 'compile' AND s.dur >= 0 GROUP BY 1 ORDER BY 1"
    counts = parts.map { |part| CSV.parse(rows(compiled, part)).drop(1).to_h }
    all = CSV.parse(rows(compiled, whole)).drop(1).to_h
    all.each { |name, count| assert_operator counts.sum { |part| part[name].to_i }, :<=, count.to_i, name }
  end

  def test_exported_stacks_are_those_of_the_events
    script = <<~'RUBY'
      def down(n)
        n > 1 ? down(n - 1) : ::RubyVM::ZJIT.induce_side_exit!
      end
      30.times { |i| down(1 + i) }
    RUBY
    result = trace(script).trace
    expected = result.exits.map do |event|
      labels, left_out = Trace.frames(event)
      assert_equal 0, left_out
      [*labels.reverse, event["name"]].join(";")
    end
    lines = tool("export", "--format=folded", result.path).first.lines.map { |line| line.chomp.rpartition(" ").values_at(0, 2) }
    assert_equal expected.tally, lines.to_h { |stack, count| [stack, count.to_i] }
  end
end
