# benchmarks/compare on its command line: verdicts, exit statuses, messages for bad arguments and
# failing workloads.

require_relative "bench_helper"

class TestCompare < BenchTest
  def setup
    super
    @one, @slow = ruby("one"), ruby("slow", speed: 1.05)
    @work = made_up("work.rb")
  end

  def test_equal_sides_have_status_0
    out, = assert_compare(0, @one, @one, "-n", "6", "--", @work)
    assert_match(/no difference seen \(of \d+\.\d % or more\)$/, row(out, "work"))
  end

  # Seen: "1.000  1.000 .. 1.000  slower".
  def test_a_difference_that_rounds_to_nothing_is_none
    work = made_up("work.rb", noise: 0)
    out, = assert_compare(0, @one, ruby("other", speed: 1.0004), "-n", "6", "--threshold", "0", "--json", path("out.json"), "--", work)
    assert_match(/ 1\.000  1\.000 \.\. 1\.000 .*no difference seen/, row(out, "work"))
    assert_equal "no difference seen", JSON.parse(File.read(path("out.json")))["workloads"][0]["verdict"]
  end

  def test_five_percent_slower_has_status_1_and_is_named
    out, = assert_compare(1, @one, @slow, "-n", "8", "--", @work)
    assert_match(/ 1\.0[45]\d .* slower$/, row(out, "work"))
    assert_includes out, "slower by more than 2 %: work"
  end

  def test_slower_by_less_than_the_threshold_has_status_0
    out, = assert_compare(0, @one, @slow, "-n", "8", "--threshold", "10", "--", @work)
    assert_match(/ slower$/, row(out, "work"))
  end

  def test_faster_has_status_0
    out, = assert_compare(0, @slow, @one, "-n", "8", "--", @work)
    assert_match(/ faster$/, row(out, "work"))
  end

  def test_one_ruby_with_two_sets_of_flags
    flagged = write("flagged.rb", <<~RUBY)
      File.write(ENV.fetch("VM_TRACE_BENCH"), "iteration \#{$VERBOSE ? 0.02 : 0.01}\n")
    RUBY
    out, = assert_compare(1, @one, "#{@one} -w", "-n", "4", "--", flagged)
    assert_match(/ 2\.000 /, row(out, "flagged"))
  end

  def test_sides_alternate_a_b_b_a_after_a_warm_up
    { "a" => "A", "b" => "B" }.each { |name, letter| ruby(name, before: "case \"$*\" in *work.rb*) echo #{letter} >> #{path('order')} ;; esac") }
    assert_compare(0, path("a"), path("b"), "-n", "4", "--", @work)
    order = File.read(path("order")).delete("\n")
    assert_equal "ABABBAABBA", order
  end

  def test_a_script_without_iterations_is_timed_as_a_whole_process
    write("plain.rb", "1 + 1\n")
    out, = assert_compare([0, 4], @one, @one, "-n", "3", "--json", path("out.json"), "--threshold", "500", "--", path("plain.rb"))
    assert_match(/ ms \*/, row(out, "plain"))
    entry = JSON.parse(File.read(path("out.json")))["workloads"][0]
    assert_equal false, entry["in_process"]
    assert_equal 3, entry["baseline_seconds"].size
    entry["baseline_seconds"].zip(entry["baseline_cpu_seconds"]) { |wall, cpu| assert_includes 0.001..wall * 1.2, cpu }
    assert_operator entry["baseline_peak_kib"], :>, 1000
  end

  # --- processor time

  # Seen: 21 % slower, on a busy machine, was "no difference seen (of 74 % or more)".
  def test_processor_time_finds_what_a_noisy_clock_hides
    work = made_up("work.rb", noise: 1.5, cpu: "0.01 * ENV['SPEED'].to_f * (1 + 0.002 * random.rand)")
    out, = assert_compare(1, @one, @slow, "-n", "8", "--json", path("out.json"), "--", work)
    assert_match(/ 1\.0[45]\d .* slower by CPU$/, row(out, "work"))
    entry = JSON.parse(File.read(path("out.json")))["workloads"][0]
    assert_equal ["slower", "CPU"], entry.values_at("verdict", "verdict_by")
    assert_operator entry["low"], :<, 1
    assert_operator entry["cpu_low"], :>, 1.02
  end

  def test_a_program_that_mostly_waits_is_not_judged_by_processor_time
    work = made_up("work.rb", noise: 1.5, cpu: "0.001 * (1 + 0.002 * random.rand)")
    out, = assert_compare(4, @one, @one, "-n", "8", "--", work)
    assert_match(/ too noisy: to see 2 % takes about \d+ runs$/, row(out, "work"))
  end

  def test_a_busy_clock_is_no_hindrance_where_processor_time_is_quiet
    work = made_up("work.rb", noise: 0.6, cpu: "0.01 * (1 + 0.002 * random.rand)")
    out, = assert_compare(0, @one, @one, "-n", "8", "--", work)
    assert_match(/ no difference seen by CPU \(of 0\.\d % or more\)$/, row(out, "work"))
  end

  def test_faster_by_the_clock_and_slower_by_the_processor_says_both
    work = made_up("work.rb", cpu: "0.01 / ENV['SPEED'].to_f * (1 + 0.002 * random.rand)")
    out, = assert_compare(1, @slow, @one, "-n", "8", "--", work)
    assert_match(/ faster, but slower by CPU$/, row(out, "work"))
    assert_includes out, "slower by more than 2 %: work"
  end

  # --- runs that cannot tell

  # Seen: "no difference seen (of 431 % or more)", with exit status 0.
  def test_too_noisy_to_judge_has_status_4_and_the_number_of_runs_it_takes
    work = made_up("work.rb", noise: 0.5)
    out, = assert_compare(4, @one, @one, "-n", "6", "--json", path("out.json"), "--", work)
    needed = row(out, "work")[/ too noisy: to see 2 % takes about (\d+) runs$/, 1].to_i
    assert_operator needed, :>, 50
    assert_includes out, "cannot be judged: work"
    entry = JSON.parse(File.read(path("out.json")))["workloads"][0]
    assert_equal ["too noisy", needed], entry.values_at("verdict", "runs_needed")
    assert_compare(0, @one, @one, "-n", "6", "--threshold", "400", "--", work)
  end

  def test_two_runs_are_too_few_and_have_status_4
    out, = assert_compare(4, @one, @one, "-n", "2", "--", @work)
    assert_match(/ too few runs$/, row(out, "work"))
  end

  def test_runs_far_from_the_others_are_counted
    work = made_up("work.rb", body: "ENV['SPEED'] = '9' if File.size?('#{path('processes')}') == 9")
    out, = assert_compare([0, 4], @one, @one, "-n", "9", "--", work)
    assert_match(/^note: far from the other runs: 1 of work/, out)
  end

  def test_the_geometric_mean_has_an_interval_that_holds_the_truth
    made_up("folder/x.rb")
    made_up("folder/y.rb")
    out, = assert_compare(1, @one, @slow, "-n", "8", "--", path("folder"))
    low, high = out[/geometric mean 1\.0[45]\d \(([\d.]+ \.\. [\d.]+)\) over 2 workloads/, 1].split(" .. ").map(&:to_f)
    assert_includes low..high, 1.05
    assert_operator low, :>, 1.04
    assert_match(/^exit status 1 finds a slowdown of [\d.]+ % \([xy]\) to [\d.]+ % \([xy]\) or more, in four cases of five$/, out)
  end

  # --- what is given

  def test_a_folder_stands_for_its_scripts
    made_up("folder/x.rb")
    made_up("folder/y.rb")
    out, = assert_compare(0, @one, @one, "-n", "3", "--", path("folder"))
    assert row(out, "x") && row(out, "y")
  end

  def test_peak_memory_is_set_side_by_side
    made_up("large.rb", body: 'KEPT = "x" * (ENV["SPEED"].to_f > 1 ? 64 << 20 : 1)')
    out, = assert_compare(0, @one, @slow, "-n", "3", "--threshold", "50", "--", path("large.rb"))
    assert_in_delta 64, row(out, "large")[/([-+][\d.]+) MiB/, 1].to_f, 4
  end

  # --- what fails

  def test_a_workload_that_fails_on_one_side_is_named_and_the_rest_goes_on
    write("bad.rb", "raise ArgumentError, 'not with this one' if ENV['SPEED'].to_f > 1\n")
    out, = assert_compare(3, @one, ruby("other", speed: 1.0001), "-n", "4", "--", path("bad.rb"), @work)
    assert_match(/failed$/, row(out, "bad"))
    assert_match(/candidate: status 1: .*bad\.rb:1:.*not with this one/, out)
    assert_match(/no difference seen|slower|faster/, row(out, "work"))
    assert_includes out, "failed: bad"
  end

  def test_slower_counts_before_failed
    write("bad.rb", "exit 7\n")
    out, = assert_compare(1, @one, @slow, "-n", "8", "--", path("bad.rb"), @work)
    assert_includes out, "baseline: status 7"
  end

  def test_a_workload_that_is_killed_says_so
    write("bad.rb", "Process.kill(:KILL, $$)\n")
    out, = assert_compare(3, @one, @one, "-n", "3", "--", path("bad.rb"))
    assert_includes out, "baseline: killed by signal 9"
  end

  def test_a_workload_that_hangs_is_ended_with_all_that_it_started
    write("bad.rb", "spawn('sleep 600').then { |pid| File.write('#{path('pid')}', pid.to_s) }; sleep\n")
    out, = assert_compare(3, @one, @one, "-n", "3", "--timeout", "2", "--", path("bad.rb"))
    assert_includes out, "baseline: it did not end within 2.0 s"
    # Its parent has ended, so it may be a zombie until init reaps it.
    assert_match(/\A\z|^State:\s+[ZX]/, (File.read("/proc/#{File.read(path('pid'))}/status") rescue ""))
  end

  def test_iterations_on_one_side_only_are_a_failure
    write("odd.rb", "File.write(ENV['VM_TRACE_BENCH'], \"iteration 1\\n\") if ENV['SPEED'].to_f > 1\n")
    out, = assert_compare(3, @one, @slow, "-n", "3", "--", path("odd.rb"))
    assert_includes out, "both: it reports iterations on one side only"
  end

  # --- bad arguments: status 2, one line with the argument and the reason

  def assert_refused(pattern, *arguments)
    out, err = assert_compare(2, *arguments)
    assert_match(pattern, err.lines.first)
    assert_empty out
  end

  def test_bad_executables
    assert_refused(/\Acompare: baseline: .*nowhere: no such file/, path("nowhere"), @one)
    assert_refused(/\Acompare: candidate: .*work\.rb: not an executable/, @one, @work)
    assert_refused(/\Acompare: candidate: .*a folder/, @one, dir)
    assert_refused(/\Acompare: candidate: no-such-ruby: no such file in PATH/, @one, "no-such-ruby")
    assert_refused(/\Acompare: candidate: no executable/, @one, " ")
    assert_refused(/\Acompare: candidate: .*Unmatched/, @one, "ruby 'x")
    assert_refused(/\Acompare: candidate: \/bin\/false does not run Ruby: status 1/, @one, "/bin/false")
    assert_refused(/\Acompare: candidate: .*does not run Ruby: .*--no-such-flag/, @one, "#{@one} --no-such-flag")
  end

  def test_bad_workloads
    assert_refused(/no-such: no such workload.*ours are: .*fib/, @one, @one, "--", "no-such")
    FileUtils.mkdir(path("empty"))
    assert_refused(/empty: the folder holds no \.rb file/, @one, @one, "--", path("empty"))
  end

  def test_bad_numbers_of_executables
    assert_refused(/two executables .* 1 are given/, @one)
    assert_refused(/two executables .* 0 are given/)
    assert_refused(/--against NAME takes an executable/, "--against", "x")
  end

  def test_bad_options
    assert_refused(/--runs/, @one, @one, "--runs", "0")
    assert_refused(/invalid argument: --runs many/, @one, @one, "--runs", "many")
    assert_refused(/--confidence/, @one, @one, "--confidence", "100")
    assert_refused(/--threshold/, @one, @one, "--threshold", "-1")
    assert_refused(/--timeout/, @one, @one, "--timeout", "0")
    assert_refused(/invalid option: --frobnicate/, @one, @one, "--frobnicate")
    assert_refused(/no-such-folder is no folder/, @one, @one, "--json", path("no-such-folder/x.json"))
  end

  def test_help_lists_the_statuses_and_list_the_workloads
    out, = assert_compare(0, "--help")
    assert_match(/Exit status: 0 .*1 .*2 .*3 .*130/m, out)
    out, = assert_compare(0, "--list")
    assert_match(/^fib +What do method calls/, out)
    assert_operator out.lines.size, :>=, 10
  end

  # --- budgets and interruption

  def test_time_ends_the_runs
    write("naps.rb", "sleep 0.3\n")
    out, = assert_compare([0, 4], @one, @one, "-n", "1000", "--time", "3", "--threshold", "500", "--", path("naps.rb"))
    assert_includes 1..10, row(out, "naps")[/ (\d+)  \S+( \S+)*$/, 1].to_i
  end

  def test_ctrl_c_prints_what_there_is
    made_up("naps.rb", body: "File.open('#{path('began')}', 'a') { |f| f.puts }; sleep 0.1")
    reader, writer = IO.pipe
    pid = spawn(RbConfig.ruby, COMPARE, @one, @one, "-n", "1000", "--", path("naps.rb"), out: writer, err: writer, in: File::NULL, pgroup: true)
    writer.close
    wait_until("twelve runs have begun") { File.exist?(path("began")) && File.size(path("began")) > 12 }
    Process.kill(:INT, pid)
    out = reader.read
    Process.wait(pid)
    assert_equal 130, $?.exitstatus, out
    assert_includes out, "interrupted: these are the runs until then"
    assert_operator row(out, "naps")[/ (\d+)  (?:no|slower|faster|too)/, 1].to_i, :>=, 3, out
  end

  # --- outputs

  def test_json_has_all_that_was_measured
    assert_compare(1, @one, @slow, "-n", "8", "--json", path("out.json"), "--", @work)
    data = JSON.parse(File.read(path("out.json")))
    assert_equal [@one, @slow], [data["baseline"]["command"], data["candidate"]["command"]]
    entry = data["workloads"][0]
    assert_equal ["work", "slower", true, 8], [entry["name"], entry["verdict"], entry["in_process"], entry["candidate_seconds"].size]
    assert_operator entry["low"], :<, entry["ratio"]
    assert_operator entry["ratio"], :<, entry["high"]
    assert_operator entry["smallest_difference_seen"], :>, 0
  end

  def test_json_on_standard_output_stands_alone
    out, err = assert_compare(0, @one, @one, "-n", "3", "--json", "-", "--", @work)
    assert_equal 1, JSON.parse(out)["workloads"].size
    assert row(err, "work")
  end

  def test_the_plot_is_a_drawing_or_says_why_there_is_none
    out, = assert_compare(0, @one, @one, "-n", "3", "--plot", path("out.svg"), "--", @work)
    if system("command -v gnuplot >/dev/null")
      assert_includes out, "plot: #{path('out.svg')}"
      assert_match(/<svg.*work.*<\/svg>/m, File.read(path("out.svg")))
    end
    out, = assert_compare(0, @one, @one, "-n", "3", "--plot", path("two.svg"), "--", @work, env: { "PATH" => path_without_gnuplot })
    assert_includes out, "no plot: gnuplot is not installed"
  end

  # The rubies here do not need it.
  def path_without_gnuplot
    FileUtils.mkdir_p(path("bin"))
    path("bin")
  end

  # --- saved baselines

  def test_a_saved_baseline_is_compared_with_later
    assert_compare(0, @one, "--save", "monday", "-n", "8", "--", @work)
    out, = assert_compare(1, @slow, "--against", "monday", "-n", "8")
    assert_match(/ 1\.0[45]\d .* slower$/, row(out, "work"))
    assert_match(/^baseline   #{Regexp.escape(@one)} \(saved 20/, out)
    assert_compare(0, @one, "--against", "monday", "-n", "8")
  end

  def test_save_keeps_the_candidate_of_two
    assert_compare(1, @one, @slow, "--save", path("kept.json"), "-n", "8", "--", @work)
    assert_compare(0, @slow, "--against", path("kept.json"), "-n", "8")
  end

  def test_bad_saved_baselines
    assert_refused(/no such saved comparison/, @one, "--against", "never")
    assert_compare(0, @one, "--save", "monday", "-n", "3", "--", @work)
    assert_refused(/never.*there are: monday/, @one, "--against", "never")
    write("other.rb", "")
    assert_refused(/other: not in .*which has: work/, @one, "--against", "monday", "--", path("other.rb"))
    assert_refused(/a name is made of/, @one, "--save", "a b")
    write("broken.json", "{")
    assert_refused(/broken\.json: /, @one, "--against", path("broken.json"))
    write("foreign.json", '{"format": 99}')
    assert_refused(/foreign\.json: not a saved comparison/, @one, "--against", path("foreign.json"))
  end

  def test_a_baseline_of_another_machine_is_pointed_out
    assert_compare(0, @one, "--save", path("kept.json"), "-n", "3", "--", @work)
    data = JSON.parse(File.read(path("kept.json")))
    data["machine"]["cpu"] = "another one"
    write("kept.json", JSON.generate(data))
    out, = assert_compare(0, @one, "--against", path("kept.json"), "-n", "3")
    assert_includes out, "saved on another machine"
  end
end
