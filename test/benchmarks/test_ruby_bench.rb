# Benchmarks of ruby-bench: compare --ruby-bench, its harness, and what recording costs them
# (benchmarks/ruby-bench). The clone is a small folder of the same shape, and the tracer is made up.

require_relative "bench_helper"
require_relative "../ruby_bench_folder"
require "ruby_bench_costs"

class TestRubyBench < BenchTest
  TOOL = ENV["VM_TRACE"] || "#{ROOT}/build/tool/vm-trace"
  FIXTURE = "#{ROOT}/test/traces/exits.fxt"
  ITERATIONS = { "WARMUP_ITRS" => "2", "MIN_BENCH_ITRS" => "3", "MIN_BENCH_TIME" => "0" }.freeze

  # It writes down what it is told, and leaves a trace.
  TRACER = <<~RUBY
    class RubyVM
      module Trace
        def self.log(*words) = File.write(ENV.fetch("LOG"), words.join(" ") + "\\n", mode: "a")
        def self.start(streams:, file:)
          log("start", streams, file)
          @file = file
        end
        def self.span(name)
          log("span", name)
          yield
        end
        def self.stop
          log("stop")
          File.binwrite(@file, File.binread("#{FIXTURE}"))
          { exits: 42, lost: 1 }
        end
      end
    end
  RUBY

  def setup
    super
    RubyBenchFolder.make(path("bench"), {
      "small.rb" => "run_benchmark(5) { log }\n",
      "large/benchmark.rb" => "Dir.chdir __dir__\nuse_gemfile\nrun_benchmark(5) { log }\n",
      "broken/benchmark.rb" => "use_gemfile extra_setup_cmd: 'echo fine; echo Could not find it; echo for this Ruby; exit 1'\nrun_benchmark(5) { log }\n",
      "no_data/benchmark.rb" => "File.read('/no/such/file')\nrun_benchmark(5) { log }\n",
      "failing/benchmark.rb" => "run_benchmark(5) { raise 'of the iteration' }\n",
    })
    write("log.rb", "def log = File.write(ENV.fetch('LOG'), \"iteration\\n\", mode: 'a')\n")
    write("tracer.rb", TRACER)
    write("bin/bundle", "#!/bin/sh\nexit 0\n").then { |file| FileUtils.chmod(0o755, file) }
    @env = ITERATIONS.merge("LOG" => path("log"), "PATH" => "#{path("bin")}:#{ENV["PATH"]}", "VM_TRACE" => TOOL)
  end

  # A ruby that says that it has a JIT, with the made-up tracer or without.
  def side(name, *libraries)
    write(name, <<~SH)
      #!/bin/sh
      case "$*" in *"print RUBY_DESCRIPTION"*) echo "ruby 4.1.0 +ZJIT +PRISM"; exit ;; esac
      exec #{RbConfig.ruby} -r#{path("log.rb")} #{libraries.map { |library| "-r#{library}" }.join(" ")} "$@"
    SH
    FileUtils.chmod(0o755, path(name))
    path(name)
  end

  def tracing_side(name = "traced") = side(name, path("tracer.rb"))
  def log = File.exist?(path("log")) ? File.readlines(path("log"), chomp: true) : []

  # Real times decide whether something is slower, so only failures (3) are no result.
  def compare_bench(*arguments, status: [0, 1, 4])
    assert_compare(status, side("a"), side("b"), "-n", "2", "--json", path("out.json"), "--ruby-bench", path("bench"),
                   *arguments, env: @env)
  end

  def entries = JSON.parse(File.read(path("out.json")))["workloads"].to_h { |entry| [entry["name"], entry] }

  def test_benchmarks_have_the_names_of_folders_and_files
    assert_equal %w[broken failing large no_data small], Bench::RubyBench.find(path("bench"), []).map(&:name)
  end

  def test_each_process_warms_up_and_times_as_many_iterations_as_ruby_bench_says
    out, = compare_bench("--", "large", "small")
    assert_equal [[true, 2], [true, 2]],
                 entries.values_at("large", "small").map { |entry| [entry["in_process"], entry["baseline_seconds"].size] }
    assert_equal 2 * 2 * 3 * (2 + 3), log.size, "two benchmarks, two sides, one run that does not count and two that do"
    assert_match(/^large .*\d [mu]s/, out)
  end

  def test_what_cannot_be_set_up_is_named_with_the_reason_and_the_others_run
    out, = compare_bench("--", "broken", "no_data", "small")
    fault = "echo fine; echo Could not find it; echo for this Ruby; exit 1: Could not find it for this Ruby"
    assert_includes out, "note: broken was not run: baseline: it cannot be set up: #{fault}\n"
    assert_match(%r{^note: no_data was not run: baseline: it cannot be set up: status 1: .*/no/such/file \(Errno::ENOENT\)$}, out)
    assert_match(/^small .* [mu]s/, out)
    refute_includes out, "failed"
  end

  def test_an_iteration_that_fails_is_a_failure
    out, = compare_bench("--", "failing", status: 3)
    assert_includes out, "of the iteration"
  end

  def test_wrong_names_and_folders_are_errors
    _, err = compare_bench("--", "nosuch", status: 2)
    assert_includes err, "nosuch: no benchmark of #{path("bench")}, which has: broken failing large no_data small"
    _, err = assert_compare(2, side("a"), side("b"), "--ruby-bench", path("bin"), env: @env)
    assert_includes err, "no clone of ruby-bench: it has no benchmarks/*/benchmark.rb"
  end

  def test_saved_runs_are_found_again_by_name
    assert_compare([0, 1, 4], side("a"), "--save", "monday", "-n", "2", "--ruby-bench", path("bench"), "--", "small", env: @env)
    out, = assert_compare([0, 1, 4], side("b"), "--against", "monday", "-n", "2", "--ruby-bench", path("bench"), env: @env)
    assert_match(/^small .* [mu]s/, out)
  end

  def test_exits_are_traced_after_the_warm_up_only
    skip "build/tool/vm-trace is not built (make tool)" unless File.executable?(TOOL)
    out, = assert_compare([0, 1, 4], tracing_side("a"), tracing_side("b"), "-n", "2", "--trace", "--json", path("out.json"),
                          "--ruby-bench", path("bench"), "--", "small", env: @env)
    traced = log.last(2 * (2 + 2 + 2 * 3)).each_slice(10).to_a
    traced.each do |lines|
      assert_match(/\Astart exits:rate=97,markers /, lines[2])
      assert_equal %w[iteration iteration], lines.first(2)
      assert_equal (1..3).flat_map { |i| ["span iteration #{i}", "iteration"] }, lines[3..8]
    end
    assert_equal 2, traced.size
    assert_includes out, "small: (its iterations after the warm-up)"
    refute_empty entries["small"]["exits"]["rows"]
  end

  def test_a_side_whose_tracer_cannot_start_later_is_not_traced
    out, = compare_bench("--trace", "--", "small")
    assert_match(/not traced: baseline: .* has no tracer that starts after the warm-up/, out)
  end

  def run_alone(ruby, **env)
    Open3.capture2e({ **@env, **env.transform_keys(&:to_s) }, ruby, "-I", RubyBenchFolder::HARNESS,
                    path("bench/benchmarks/large/benchmark.rb"), chdir: dir)
  end

  def test_alone_the_harness_leaves_a_trace_with_the_name_of_the_benchmark
    out, status = run_alone(tracing_side)
    assert_predicate status, :success?, out
    file = log.grep(/\Astart default,markers /).first.split.last
    assert_match(%r{\A#{dir}/large-\d+\.fxt\z}, file)
    assert_includes out, "3 iterations, 42 exits, 1 events lost: vm-trace report #{file}\n"
    assert_path_exists file
    run_alone(tracing_side, VM_TRACE_STREAMS: "states", VM_TRACE_FILE: "here.fxt")
    assert_equal "start states,markers #{path("here.fxt")}", log.grep(/\Astart/).last
  end

  def test_alone_without_a_tracer_it_says_so
    out, status = run_alone(side("plain"))
    refute_predicate status, :success?
    assert_match(/^this Ruby has no tracer: ruby /, out)
  end

  # --- what recording costs

  def costs(*arguments)
    out, err, status = Open3.capture3(@env, RbConfig.ruby, "-w", "#{ROOT}/benchmarks/ruby-bench", *arguments, chdir: dir)
    [out, err, status.exitstatus]
  end

  def test_recordings_take_turns_in_one_process_and_become_rows
    skip "build/tool/vm-trace is not built (make tool)" unless File.executable?(TOOL)
    out, err, status = costs(path("bench"), tracing_side, "-n", "2", "--json", path("rows"), "--", "small", "broken")
    assert_equal 0, status, err
    lines = log.map { |line| line.split.values_at(0, 1).compact.join(" ") }
    traced = ->(streams) { ["start #{streams}", "iteration", "stop"] }
    round = ["iteration", *%w[exits:rate=1 exits:rate=97 default states].flat_map(&traced)]
    turned = [*%w[states default exits:rate=97 exits:rate=1].flat_map(&traced)]
    assert_equal ["iteration"] * 2 + round + ["iteration"] + turned, lines
    row = JSON.parse(File.readlines(path("rows")).first)
    assert_equal ["small", 2, 42, 2, File.size(FIXTURE)],
                 [row["benchmark"], row["rounds"], *row["K=97"].values_at("exits", "lost", "bytes")]
    assert_match(/^\| `small` \| 4\.1 ZJIT \| \d+ ms \| 42 \| \d+\.\d % \| \d+\.\d\d \(/, out)
    assert_match(/^- `broken` \(4\.1 ZJIT\): it cannot be set up: .*Could not find it for this Ruby$/, out)
    again, = costs("--table", path("rows"))
    assert_equal out, again
  end

  def test_ratios_are_those_of_a_round
    costs = Bench::RubyBenchCosts.new(rounds: 3, timeout: 1)
    values = Hash.new(0.0)
    [[1.0, 2.0], [2.0, 2.0], [4.0, 12.0]].each_with_index do |(untraced, traced), round|
      values.merge!("cpu_#{round}_0" => untraced, "cpu_#{round}_1" => traced)
    end
    values.default = nil
    3.times { |round| (1..4).each { |kind| %w[cpu exits bytes lost].each { |key| values["#{key}_#{round}_#{kind}"] ||= 1.0 } } }
    assert_equal [2.0, 1.0, 3.0], costs.send(:measured, values)["K=1"]["ratio"]
  end

  def test_the_table_has_the_last_row_of_each_benchmark_and_ruby_side_by_side
    row = ->(name, ruby, fault) { { "benchmark" => name, "ruby" => "ruby #{ruby}.5 +YJIT", "fault" => fault } }
    rows = [row.("a", "4.0", "old"), row.("b", "4.0", "none"), row.("a", "4.1", "new"), row.("a", "4.0", "new")]
    assert_equal ["- `a` (4.0 YJIT, 4.1 YJIT): new", "- `b` (4.0 YJIT): none"], Bench::RubyBenchCosts.table(rows).last(2)
  end

  # Bundler ends with this, far behind what the extension's compiler said.
  def test_an_extension_that_cannot_be_built_is_named
    write("bin/bundle", "#!/bin/sh\necho Gem::Ext::BuildError: ERROR: Failed; echo An error occurred while installing x, and Bundler\necho cannot continue.; exit 1\n")
    out, = compare_bench("--", "large", status: 4)
    assert_includes out, "bundle install: An error occurred while installing x, and Bundler cannot continue.\n"
  end

  def test_a_benchmark_that_measures_nothing_has_failed
    write("bench/benchmarks/small.rb", "require_relative '../harness/loader'\n")
    out, _, status = costs(path("bench"), tracing_side, "-n", "2", "--", "small")
    assert_equal 3, status
    assert_match(/^- `small` \(4\.1 ZJIT\): it ended well, but measured nothing$/, out)
  end

  # Seen: Bundler executed the script again, with the version of the lock file and without the flags.
  def test_bundler_is_told_to_stay_as_it_is
    write("bench/benchmarks/small.rb", "require_relative '../harness/loader'\nrun_benchmark(5) { log(ENV['BUNDLE_VERSION']) }\n")
    write("log.rb", "def log(what) = File.write(ENV.fetch('LOG'), what.to_s, mode: 'a')\n")
    compare_bench("--", "small")
    assert_match(/\A(?:system)+\z/, log.first)
  end

  def test_a_benchmark_that_fails_has_status_3_and_no_figures
    out, _, status = costs(path("bench"), tracing_side, "-n", "2", "--", "failing")
    assert_equal 3, status
    assert_match(/^- `failing` \(4\.1 ZJIT\): status 1: .*of the iteration/, out)
  end
end
