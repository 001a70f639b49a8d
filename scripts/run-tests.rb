# Runs suites of tests as one queue, and ends with "N passed, N failed, N skipped" over all of them.
#   run-tests.rb [--all] SUITE...      (called by the Makefile, which sets the environment of the tests)
# --all: the level of `make check-all`, which goes on where an earlier run at the same state of the tree
# was cut. Exit status 1: something failed. What cannot run here (no CRuby source, no rustc) is named with
# the reason and counted as skipped.
#
# Three entries run side by side for each two of $JOBS (the processors, if it is not set), because many
# sleep at times: tests/plan.rb says which entries there are, tests/schedule.rb in which order they run.
# One line is printed for an entry that passed, and the whole output of one that failed (V=1: of each).
# The texts of failures are repeated at the end, so that the tail of a log shows them.
#
# What fails of at most MOST_SECOND_RUNS tests runs once more, alone, as CRuby's own runner does it: a test
# that passes then is named as unstable, with the text of its failure.
require "etc"
require_relative "tests/memory"
require_relative "tests/plan"
require_relative "tests/schedule"

class Runner
  MOST_SECOND_RUNS = 5
  SLOWEST = 10

  def initialize(all)
    @all = all
    ENV["JOBS"] = Etc.nprocessors.to_s unless ENV["JOBS"].to_i > 0
    @jobs = ENV["JOBS"].to_i * 3 / 2
    @counts = [0, 0, 0]
    @suites = Hash.new { |hash, suite| hash[suite] = { entries: 0, counts: [0, 0, 0], seconds: 0.0 } }
    @failures, @texts, @skips, @unstable, @seconds = [], [], [], [], {}
    @second_runs = 0
    @not_passed = [] # bases of entries that failed, or were skipped because there is no Ruby
    @memory = Memory.new(resume: all)
  end

  def run(suites)
    changed = @memory.changed_bases([ENV.fetch("BASE"), *ENV["BASES"]&.split].uniq)
    changed.each { |base, path| puts "#{base} is tested as a whole: #{path} changed" } unless @all
    plan = Plan.new(all: @all, changed: changed)
    entries = plan.entries(suites)
    passed, entries = entries.partition { |entry| @memory.passed(entry.name) }
    passed.each { |entry| count_passed_before(entry) }
    puts "#{passed.size} entries passed before at this state of the tree" if passed.any?
    schedule = Schedule.new(entries, @jobs) { |entry| estimate(entry) }
    schedule.run { |entry, result, progress| ended(entry, result, progress) }
    @counts[2] += plan.skipped
    @skips.concat(plan.skips)
    @memory.all_passed if @all && @counts[1] == 0 && ENV["BASES"].to_s.split.size == Dir["bases/*"].size
    @memory.bases_passed(changed.keys - @not_passed) if !@all && suites.include?("integration")
    close(plan, schedule)
    @counts[1] == 0
  end

  private

  # What took time before takes it again. A Ruby that is not built yet takes minutes.
  def estimate(entry)
    return File.exist?("build/#{entry.builds}/built") ? 5 : 300 if entry.builds
    @memory.seconds_of(entry.name) || (entry.file ? Plan.tests_in(entry.file) : 10)
  end

  # Returns entries to append.
  def ended(entry, result, progress)
    return skip(entry, result, progress) if result.is_a?(String)
    show(entry, result, progress)
    remember_time(entry, result)
    @skips.concat(result.skips)
    @texts.concat(result.texts)
    return if result.not_applicable
    again = again(entry, result)
    name_unstable(entry, result) if entry.second
    add(entry, result.counts, result.seconds)
    @memory.remember(entry.name, result) if result.ok? && !again && !entry.builds
    unless result.ok?
      @failures << "#{entry.name} (#{result.counts[1]})"
      @not_passed.concat(entry.needs)
    end
    again
  end

  # Plans a second run of the tests that failed: that one counts them. Not when they are too many, when the
  # file died, or when this is the second run.
  def again(entry, result)
    failed = result.failed_tests
    return if entry.second || failed.nil? || failed.empty? || @second_runs + failed.size > MOST_SECOND_RUNS
    @second_runs += failed.size
    result.counts[1] = 0
    [entry.again(failed)]
  end

  def name_unstable(entry, result)
    return unless result.status.success? || result.failed_tests&.any?
    (entry.second - result.failed_tests).each { |test| @unstable << "#{entry.name}: #{test}" }
  end

  def skip(entry, reason, progress)
    tests = entry.file ? Plan.tests_in(entry.file) : 1
    @not_passed.concat(entry.needs)
    puts "#{progress} skip                            #{entry.name}"
    @skips << "#{entry.name}: #{tests} tests: #{reason}"
    add(entry, [0, 0, tests], 0)
    nil
  end

  def count_passed_before(entry)
    before = @memory.passed(entry.name)
    @skips.concat(before["skips"])
    add(entry, before["counts"], 0)
  end

  def add(entry, counts, seconds)
    suite = @suites[entry.suite]
    suite[:entries] += 1 unless entry.second
    suite[:seconds] += seconds
    counts.each_with_index do |count, i|
      suite[:counts][i] += count
      @counts[i] += count
    end
  end

  # A build that had nothing to do says nothing about the next one.
  def remember_time(entry, result)
    return if entry.second || entry.builds
    @seconds[entry.name] = result.seconds
    @memory.took(entry.name, result.seconds) unless ENV["TOOL_TESTS"]
  end

  def show(entry, result, progress)
    if V || (!result.ok? && !result.not_applicable)
      puts "", "== #{entry.name}", result.output
    else
      puts result.output.scan(/^left behind: .*/)
    end
    puts format("%s %-6s %-16s %6.1f s  %s", progress, word(result), entry.builds ? "" : sums(result.counts), result.seconds, entry.name)
  end

  V = ENV["V"] == "1"

  def word(result)
    return "none" if result.not_applicable
    result.ok? ? "ok" : "FAILED"
  end

  def sums(counts) = counts.zip(%w[passed failed skipped]).reject { |count, _| count == 0 }.map { |pair| pair.join(" ") }.join(", ")

  def close(plan, schedule)
    puts "", format("%-20s %8s %8s %8s %8s %9s", "suite", "entries", "passed", "failed", "skipped", "seconds")
    @suites.each { |name, suite| puts format("%-20s %8d %8d %8d %8d %9.1f", name, suite[:entries], *suite[:counts], suite[:seconds]) }
    puts "", "slowest:"
    @seconds.max_by(SLOWEST) { |_, seconds| seconds }.each { |name, seconds| puts format("%8.1f s  %s", seconds, name) }
    idle = 1 - schedule.busy_seconds / (schedule.wall_seconds * @jobs)
    puts format("%d s with %d jobs, which were idle for %.0f %% of it", schedule.wall_seconds, @jobs, idle * 100)
    puts "make check-all runs #{plan.left_out} further files of integration tests" if plan.left_out > 0
    @skips.each { |reason| puts "skipped: #{reason}" }
    @texts.each { |text| puts "", text }
    @unstable.each { |name| puts "unstable: #{name} failed beside other tests and passed alone" }
    @failures.each { |name| puts "failed: #{name}" }
    puts "#{@counts[0]} passed, #{@counts[1]} failed, #{@counts[2]} skipped"
  end
end

# A shell starts a job in the background with SIGINT and SIGQUIT ignored, nohup one with SIGHUP, and
# whatever is started from there inherits that: tests send them.
%i[INT QUIT HUP].each { |signal| trap(signal, :DEFAULT) }
$stdout.sync = true
Thread.abort_on_exception = true
# Of the tree that was named: check-sanitizers runs this in trees of links, each with a build folder
# of its own.
Dir.chdir(File.expand_path("../..", $PROGRAM_NAME))
all = ARGV.delete("--all")
exit Runner.new(all).run(ARGV)
