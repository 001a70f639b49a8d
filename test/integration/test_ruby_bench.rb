# The harness for ruby-bench, with a small folder in its place: the trace has the iterations after the warm-up
# and their exits, and nothing else.
#
# Once for each JIT: the harness is the same, and each of its calls is tested elsewhere for each base.
require_relative "helper"
require_relative "../ruby_bench_folder"

class TestRubyBench < Integration::Test
  ITERATIONS = { "WARMUP_ITRS" => "40", "MIN_BENCH_ITRS" => "3" }.freeze

  def run_benchmark(code, **env)
    dir = scratch_dir
    RubyBenchFolder.make(dir, "busy/benchmark.rb" => jit(code))
    result = run_in(dir, jit("--zjit"), jit("--zjit-call-threshold=2"), "-I", RubyBenchFolder::HARNESS,
                    "benchmarks/busy/benchmark.rb",
                    env: ITERATIONS.merge("VM_TRACE_STREAMS" => "exits:rate=1", **env))
    assert_predicate result.status, :success?, result.err
    validate_all(result)
  end

  def test_the_trace_has_a_span_for_each_iteration_and_its_exits_alone
    result = run_benchmark("def foo = (::RubyVM::ZJIT.induce_side_exit!)\nrun_benchmark(10) { 7.times { foo } }\n")
    assert_equal ["busy-#{result.pid}.fxt"], Dir.children(result.dir).grep(/fxt/)
    exits = result.trace.exits(jit("DirectiveInduced"))
    assert_equal 3 * 7, exits.size
    spans = result.trace.events.select { |event| event["name"].start_with?("iteration ") }
    assert_equal (1..3).map { |i| "iteration #{i}" }, spans.map { |span| span["name"] }.uniq
    assert_includes result.out, "3 iterations, "
  end

  def jit(text) = Integration.jit(text)
end
