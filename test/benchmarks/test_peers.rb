# benchmarks/peers: answers and costs of profilers, with a made-up Ruby.

require_relative "bench_helper"
require "peers"

class TestPeers < BenchTest
  # Its processes report what the file `answers` has for the situation and the profiler, one line a run.
  def ruby
    write("ruby", <<~'SH')
      #!/bin/sh
      case "$*" in *"print RUBY_DESCRIPTION"*) echo "ruby 4.0.5 +YJIT"; exit ;; esac
      for word; do situation=$profiler profiler=$folder folder=$word; done
      echo "$situation $profiler $BUNDLE_GEMFILE $*" >> "$LOG"
      line=$(sed -n "s/^$situation $profiler //p" "$ANSWERS")
      [ "$line" != fails ] || { echo "no such mode" >&2; exit 1; }
      for pair in $line; do echo "${pair%%=*} ${pair#*=}" >> "$VM_TRACE_BENCH"; done
    SH
    FileUtils.chmod(0o755, path("ruby"))
    path("ruby")
  end

  def run_peers(answers, *names, rounds: 1)
    write("answers", answers)
    env = { "LOG" => path("log"), "ANSWERS" => path("answers") }
    peers("--ruby", ruby, "--gems", dir, "-n", rounds.to_s, *names, env: env)
  end

  Result = Struct.new(:out, :err, :status)

  def peers(*words, env: {})
    out, err, status = Open3.capture3(env, "#{ROOT}/benchmarks/peers", *words)
    Result.new(out, err, status.exitstatus)
  end

  def test_answers_and_costs_stand_beside_the_right_ones
    result = run_peers(<<~TEXT, "gvl", rounds: 3)
      gvl none cpu=0.2 right=100
      gvl vm_trace cpu=0.21 right=200 found=198
      gvl stackprof cpu=0.3 right=100
      gvl gvltools cpu=0.24 right=1000 found=1500
    TEXT
    assert_equal 0, result.status, result.err
    situation = "waits for the GVL, four threads that compute, ms"
    assert_includes result.out, "| #{situation} | 100 | 198 (99 %) |  |  |  |  | 1,500 (150 %) |"
    assert_includes result.out, "| #{situation} | 200 | 1.05 |  |  |  |  | 1.20 |"
    runs = File.readlines(path("log")).map { |line| line.split[1] }.tally
    once = %w[stackprof vernier ruby-prof gvl-tracing].to_h { |name| [name, 1] }
    assert_equal({ "none" => 3, "vm_trace" => 3, "gvltools" => 3, **once }, runs, "what has no answer runs once")
  end

  def test_gems_are_for_those_that_need_them
    run_peers("exits none cpu=1 right=1\n", "exits")
    loaded = File.readlines(path("log")).to_h { |line| [line.split[1], line.include?("-rbundler/setup")] }
    assert_equal [false, false, true], loaded.values_at("none", "vm_trace", "vernier")
    assert_includes File.read(path("log")), "test/applications/peers/Gemfile"
  end

  def test_a_profiler_that_fails_is_named
    result = run_peers("calls none cpu=1 right=5\ncalls vernier fails\n", "calls")
    assert_equal 0, result.status, "it answers that it can't"
    assert_match(/^vernier, calls: .*no such mode/, result.out)
    assert_equal 3, run_peers("calls none cpu=1 right=5\ncalls vm_trace fails\n", "calls").status
  end

  def test_wrong_words
    assert_match(/nothing: no such situation/, run_peers("", "nothing").err)
    assert_match(/--ruby RUBY and --gems FOLDER/, peers.err)
  end
end
