# --trace: two traces become one table. The traces are fixtures, which the rubies copy to the given
# path.

require_relative "bench_helper"
require "statistics"
require "exits"

class TestExits < BenchTest
  TOOL = ENV["VM_TRACE"] || "#{ROOT}/build/tool/vm-trace"

  def setup
    super
    skip "build/tool/vm-trace is not built (make tool)" unless File.executable?(TOOL)
    @work = made_up("work.rb")
  end

  # A ruby with that JIT. It takes the JIT's trace flags, if it has a fixture, and writes that; it
  # refuses the other's.
  def tracing_ruby(name, fixture, jit: "zjit")
    exits = { "zjit" => "--zjit-trace-exits", "yjit" => "--yjit-trace-side-exits" }.fetch(jit)
    write(name, <<~SH)
      #!/bin/sh
      case "$*" in *RUBY_DESCRIPTION*) echo "ruby 4.1.0 +#{jit.upcase} +PRISM"; exit ;; esac
      n=$#
      while [ $n -gt 0 ]; do
          case #{"off" unless fixture}$1 in
          --#{jit}-trace-file=*) cp '#{ROOT}/test/traces/#{fixture}' "${1#*=}" ;;
          #{exits} | #{exits}-sample-rate=97) ;;
          *) set -- "$@" "$1" ;;
          esac
          shift
          n=$((n - 1))
      done
      SPEED=1 exec #{RbConfig.ruby} "$@"
    SH
    FileUtils.chmod(0o755, path(name))
    path(name)
  end

  # The exact counters of a trace, by an independent way: the events `site` that dump prints.
  def hits(fixture)
    `#{TOOL} dump #{ROOT}/test/traces/#{fixture}`.lines.map { |line| JSON.parse(line) }
      .select { |event| event["cat"] == "trace" && event["name"] == "site" && event["args"]["kind"].end_with?("exit") }
      .map { |event| [event["args"]["reason"], event["args"]["hits"]] }
  end

  def test_exits_stand_side_by_side_by_reason_and_method
    a, b = tracing_ruby("a", "exits.fxt"), tracing_ruby("b", "sampled.fxt")
    out, = assert_compare(0, a, b, "-n", "3", "--trace", "--json", path("out.json"), "--", @work, env: { "VM_TRACE" => TOOL })
    rows = JSON.parse(File.read(path("out.json")))["workloads"][0]["exits"]["rows"]
    refute_empty rows
    assert_equal [hits("exits.fxt"), hits("sampled.fxt")].map { |list| list.sum(&:last) }, [2, 3].map { |i| rows.sum { |row| row[i] } }
    assert_includes out, "#{rows[0][0]} in #{rows[0][1]}"
    refute_match(/ in .* \(.*:\d+\)/, out)
  end

  def test_a_side_that_cannot_trace_is_named_and_the_times_stand
    out, = assert_compare(0, tracing_ruby("a", "exits.fxt"), tracing_ruby("b", nil), "-n", "3", "--trace", "--", @work, env: { "VM_TRACE" => TOOL })
    assert_match(/not traced: candidate: /, out)
    assert row(out, "work")
  end

  def test_yjit_is_traced_by_its_own_flags
    a, b = tracing_ruby("a", "exits.fxt", jit: "yjit"), tracing_ruby("b", "exits.fxt", jit: "zjit")
    out, = assert_compare(0, a, b, "-n", "3", "--trace", "--json", path("out.json"), "--", @work, env: { "VM_TRACE" => TOOL })
    rows = JSON.parse(File.read(path("out.json")))["workloads"][0]["exits"]["rows"] or flunk out
    assert_equal [hits("exits.fxt").sum(&:last)] * 2, [2, 3].map { |i| rows.sum { |row| row[i] } }
  end

  def test_yjit_without_the_patches_is_refused_with_the_reason
    a, b = tracing_ruby("a", "exits.fxt", jit: "yjit"), tracing_ruby("b", nil, jit: "yjit")
    out, = assert_compare(0, a, b, "-n", "3", "--trace", "--", @work, env: { "VM_TRACE" => TOOL })
    assert_match(/not traced: candidate: .* has no --yjit-trace-side-exits; what the base's --yjit-trace-exits writes/, out)
  end

  def test_a_side_without_a_jit_has_no_exits
    out, = assert_compare(0, ruby("a"), tracing_ruby("b", "exits.fxt"), "-n", "3", "--trace", "--", @work, env: { "VM_TRACE" => TOOL })
    assert_match(/^ +0 +[\d,]+ +new /, out)
    out, = assert_compare(0, ruby("a"), ruby("b"), "-n", "3", "--trace", "--", @work)
    assert_match(/not traced: neither side has a JIT; add --yjit or --zjit$/, out)
  end

  def test_what_differs_most_comes_first
    rows = Bench::Exits.beside({ %w[A x] => 10, %w[B y] => 5, %w[D z] => 7 }, { %w[A x] => 12, %w[C y] => 9, %w[D z] => 7 })
    assert_equal [["C", "y", 0, 9], ["B", "y", 5, 0], ["A", "x", 10, 12], ["D", "z", 7, 7]], rows
    table = Bench::Exits.table(rows)
    assert_match(/ 0 +9 +new +C in y$/, table)
    assert_match(/ 5 +0 +gone +B in y$/, table)
    assert_match(/ 10 +12 +\+20 % +A in x$/, table)
    assert_match(/ 7 +7 += +D in z$/, table)
  end
end
