# Version history in the trace: exit, invalidation, profiling, the next compilation, and the flows
# between them.
require_relative "helper"
Integration.only "zjit", :recompile_exits

class TestRecompilation < Integration::Test
  # Three branches that are reached one after the other: each version but the last reaches one
  # without a profile. The callee there is inlined, and redefined in the end.
  SCRIPT = <<~'RUBY'
    class Steps
      def helper(x) = x.succ
      def go(kind, x)
        case kind
        when 0 then x.to_s
        when 1 then x.inspect
        else helper(x)
        end
      end
    end
    steps = Steps.new
    3.times { |kind| 60.times { steps.go(kind, 1) } }
    class Steps
      def helper(x) = x.pred
    end
    60.times { steps.go(2, 1) }
    puts RubyVM::ZJIT.stats.values_at(:compiled_iseq_count, :side_exit_count, :failed_iseq_count).join(" ") if ARGV.any?
  RUBY
  ALL = %w[--zjit-trace-compiles --zjit-trace-invalidation --zjit-num-profiles=3 --zjit-max-versions=4].freeze
  ISEQ = "Steps#go (script.rb:4)"

  def traced(*flags) = @traced ||= trace(SCRIPT, *ALL, *flags).trace

  # What happened to the ISEQ, in order of time: [what, version, reason].
  def life(trace)
    trace.events.sort_by.with_index { |event, i| [event["ts"], i] }.filter_map do |event|
      arguments = event["args"]
      mine = arguments["iseq"] == ISEQ || (arguments["0"].to_s.start_with?("Steps#go ") && !arguments["iseq"])
      case event.values_at("cat", "ph")
      when %w[compile E] then ["compiled", arguments["version"], nil] if mine
      when %w[recompile_exit i] then [arguments["outcome"], arguments["version"], event["name"]] if mine
      when %w[invalidation B] then ["invalidation", arguments["version"], event["name"]] if mine
      when %w[reprofile b] then ["reprofile", arguments["version"], arguments["reason"]] if event["name"] == ISEQ
      when %w[reprofile e] then ["reprofiled", nil, nil] if event["name"] == ISEQ
      end
    end
  end

  def test_chain_of_events_of_a_version
    life = life(traced)
    versions = life.filter_map { |what, version, _| version if what == "compiled" }
    assert_equal (1..versions.size).to_a, versions
    assert_operator versions.size, :>=, 3
    chunks = life.slice_when { |_, event| event[0] == "compiled" }.to_a
    chunks.shift if chunks.first.first[0] != "compiled"
    chunks.each_with_index do |events, i|
      version, reason = i + 1, events.map(&:last).compact.last
      of_version = events.reject { |what, *| what == "profiling" }
      if i < chunks.size - 1
        by_exit = of_version[1][0] == "invalidated"
        expected = [["compiled", version, nil], *([["invalidated", version, reason]] if by_exit), ["invalidation", version, reason],
                    ["reprofile", version, reason], ["reprofiled", nil, nil]]
        assert_equal expected, of_version.take(expected.size)
      end
      events.each { |what, number, _| assert_equal version, number, what if number && what != "already_invalidated" }
    end
    assert(chunks.any? { |events| events.any? { |what, _, reason| what == "invalidated" && reason == "NoProfileSend" } }, life.inspect)
    assert(chunks.any? { |events| events.any? { |what, _, reason| what == "invalidation" && reason.start_with?("CME is invalidated") } }, life.inspect)
  end

  def query(trace, sql) = CSV.parse(IO.popen([Trace::TOOL, "query", trace.path, sql], &:read)).drop(1)

  ARGUMENT = "(SELECT display_value FROM args WHERE arg_set_id = %s.arg_set_id AND key = '%s')"

  # As Perfetto binds them: slices by their order in time, not by the tracer's intention.
  def test_flows_join_exit_invalidation_and_compilation
    trace = traced
    version, iseq = %w[version iseq].map { |key| ->(slice) { format(ARGUMENT, slice, key) } }
    flows = query(trace, "SELECT a.category, #{version["a"]}, #{iseq["a"]}, b.category, #{version["b"]}, #{iseq["b"]}, a.name, b.name " \
                         "FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in ORDER BY a.ts")
    steps, ends = flows.partition { |row| row[3] == "invalidation" }
    invalidating = trace.exits.select { |exit| exit["args"]["outcome"] == "invalidated" }
    assert_equal invalidating.size, steps.size
    steps.each do |from, from_version, _, _, to_version, _, reason, why|
      assert_equal ["recompile_exit", from_version, reason], [from, to_version, why]
    end
    assert_operator ends.size, :>=, 2
    ends.each do |from, from_version, of, to, to_version, into, *|
      assert_equal ["invalidation", "compile", of], [from, to, into]
      assert_equal from_version.to_i + 1, to_version.to_i
    end
  end

  def test_profiling_is_a_span_from_the_invalidation_to_the_compilation
    trace = traced
    spans = query(trace, "SELECT ts, dur, name FROM slice WHERE category = 'reprofile' AND dur >= 0")
    refute_empty spans
    spans.each do |ts, dur, name|
      starts = query(trace, "SELECT (SELECT COUNT(*) FROM slice WHERE category = 'invalidation' AND ts = #{ts}), " \
                            "(SELECT COUNT(*) FROM slice WHERE category = 'compile' AND ts = #{ts.to_i + dur.to_i})")
      assert_equal [%w[1 1]], starts, name
    end
  end

  def test_compilation_says_exits_and_inlined_callees
    whole = traced.in_category("compile").select { |event| event["args"]["iseq"] == ISEQ }.map { |event| event["args"] }
    whole.each do |arguments|
      assert_operator arguments["exits"], :>, 0
      assert_operator arguments["exit_bytes"], :<, arguments["code_bytes"]
      refute arguments["error"]
    end
    assert(whole.any? { |arguments| arguments["inlined"].to_s.start_with?("Steps#helper (script.rb:") }, whole.inspect)
  end

  def test_counters_end_with_what_there_is
    trace = traced
    counters = query(trace, "SELECT t.name, MAX(c.value) FROM counter c JOIN track t ON c.track_id = t.id GROUP BY 1").to_h { |name, value| [name, value.to_i] }
    whole = trace.in_category("compile").filter_map { |event| event["args"] if event["args"]["iseq"] }
    assert_equal whole.sum { |arguments| arguments["code_bytes"] }, counters["code:bytes:0"]
    assert_equal whole.count { |arguments| arguments["version"] > 0 }, counters["versions:compiled:0"]
    invalidated = trace.in_category("invalidation").count { |event| event["args"].key?("version") }
    assert_equal invalidated, counters["versions:invalidated:0"]
  end

  # An exit that is not recorded, or not traced, also invalidates.
  def test_invalidation_without_its_exit
    sampled = trace(SCRIPT, *ALL, "--zjit-trace-exits-sample-rate=1000000").trace
    names = sampled.in_category("invalidation").filter_map { |event| event["name"] if event["args"]["iseq"] == ISEQ }
    assert_includes names, "NoProfileSend"
    untraced = run_ruby(SCRIPT, "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", *ALL).trace
    found = untraced.in_category("invalidation").select { |event| event["args"]["iseq"] == ISEQ && event["name"] == "recompile_exit" }
    refute_empty found
    assert_match(/\ASteps#go \(script\.rb:\d+\)\z/, found.first["args"]["0"])
  end

  FLOWS = "SELECT COUNT(*) FROM flow"

  def test_flows_stay_whole_in_parts_of_the_trace_and_where_it_is_put_together
    first = trace(SCRIPT, *ALL).trace
    start = first.events.first["ts"]
    times = first.events.select { |event| %w[invalidation compile].include?(event["cat"]) && event["ph"] == "B" }.map { |event| event["ts"] - start }
    times.each_slice(1 + times.size / 12) do |time,|
      ["--since=#{time}ns", "--until=#{time}ns"].each do |option|
        part = Trace.new(File.join(scratch_dir, "part.fxt"))
        assert system(Trace::TOOL, "cut", option, "-o", part.path, first.path, err: File::NULL)
        assert system(Trace::TOOL, "check", part.path, out: File::NULL), option
        assert_operator query(part, FLOWS)[0][0].to_i, :<=, query(first, FLOWS)[0][0].to_i
      end
    end
    second = trace(SCRIPT, *ALL).trace
    both = Trace.new(File.join(scratch_dir, "both.fxt"))
    assert system(Trace::TOOL, "merge", "-o", both.path, first.path, second.path)
    assert system(Trace::TOOL, "check", both.path, out: File::NULL)
    assert_equal query(first, FLOWS)[0][0].to_i + query(second, FLOWS)[0][0].to_i, query(both, FLOWS)[0][0].to_i
  end

  # The last attempt to compile an ISEQ that cannot be compiled has the reason.
  def test_failed_compilation_has_its_error
    trace = trace(<<~'RUBY', *ALL).trace
      eval("def deep(x) = [" + (["x"] * 300).join(", ") + ", *[x]]", nil, "deep.rb")
      30.times { deep(1) }
    RUBY
    failed = trace.in_category("compile").filter_map { |event| event["args"] if event["args"]["error"] }
    assert_equal ["IseqStackTooLarge", 0], failed.find { |arguments| arguments["iseq"].include?("deep") }&.values_at("error", "version"), failed.inspect
  end

  def test_traced_and_untraced_runs_have_the_same_versions
    common = ["--zjit-call-threshold=2", "--zjit-num-profiles=3", "--zjit-max-versions=4", "--zjit-stats-quiet"]
    untraced = run_ruby(SCRIPT, *common, args: ["stats"]).out
    assert_match(/\A\d+ \d+ \d+\n\z/, untraced)
    [1, 7].each do |rate|
      traced = run_ruby(SCRIPT, *common, *ALL, "--zjit-trace-file=%p.fxt", "--zjit-trace-exits-sample-rate=#{rate}", args: ["stats"])
      assert_equal untraced, traced.out, "one exit in #{rate}"
    end
  end
end
