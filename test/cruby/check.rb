# CRuby's own tests: with every process traced they give the results of the unpatched base with ZJIT
# and without tracing, and every trace is valid.
#   check.rb [--base] [--thresholds N,...] [--rates K,...] [--streams LIST] [--only TEXT]
#   (`make check-cruby`; the Makefile sets ENV)
# base-failures beside this file lists what the base itself fails, with reasons, and sampled-failures what fails
# because the process has the sampler's thread. A test that fails
# and is not listed runs once more, and is named either way: CRuby's tests of threads and signals
# have time limits that a busy machine misses. Processes that the tests start (assert_in_out_err and
# the like) run without RUN_OPTS, so untraced, as in CRuby's CI; forked ones are traced.

require "fileutils"
require "open3"
require "optparse"
require "tmpdir"

class CheckCRuby
  HERE = __dir__
  # For one file, or one of the other suites: with GC.stress and a threshold of 1 some take minutes.
  TIME_LIMIT = 1800
  # Traces for one run of vm-trace.
  AT_ONCE = 200

  # failed: names of tests; tests: how many ran; broken: why the whole run is invalid, or nil
  Result = Struct.new(:failed, :tests, :broken, :log)

  def initialize(argv)
    @thresholds, @rates, @only, @streams, @base = [1, 30], [1, 97], nil, nil, false
    OptionParser.new do |o|
      o.banner = "Usage: check.rb [OPTION]..."
      o.on("--base", "run the unpatched base, untraced: what it fails belongs into base-failures") { @base = true }
      o.on("--thresholds LIST", Array, "calls before compilation (#{@thresholds.join(",")})") { |list| @thresholds = list.map { |n| Integer(n) } }
      o.on("--rates LIST", Array, "one in K exits is recorded (#{@rates.join(",")})") { |list| @rates = list.map { |n| Integer(n) } }
      o.on("--streams LIST", "record these, too: --vm-trace=LIST, such as full") { |list| @streams = list }
      o.on("--only TEXT", "suites and files whose name holds it") { |text| @only = text }
    end.parse!(argv)
    @obj = ENV.fetch(@base ? "BASE_OBJ" : "RUBY_OBJ")
    @tool = ENV.fetch("VM_TRACE")
    @src = File.read(File.join(@obj, "Makefile"))[/^srcdir *= *(.*)$/, 1].then { |path| File.expand_path(path, @obj) }
    @known = self.class.known(File.join(HERE, "base-failures"))
    sampled = @streams&.any? { |stream| stream.start_with?("samples") }
    @known.update(self.class.known(File.join(HERE, "sampled-failures"))) if sampled
    @faults, @unsteady = [], []
    @tests = @traces = 0
  end

  # {"suite or file Test#name" => reason}
  def self.known(file)
    File.readlines(file, chomp: true).grep_v(/\A(#|\s*\z)/).to_h do |line|
      name, reason = line.split(/: +/, 2)
      raise "#{file}: no reason in: #{line}" unless reason
      [name, reason]
    end
  end

  def run
    @thresholds.each { |threshold| (@base ? [nil] : @rates).each { |rate| run_all(threshold, rate) } }
    puts
    @unsteady.each { |name| puts "failed once, and not again: #{name}" }
    @faults.each { |fault| puts "failed: #{fault}" }
    puts "#{@tests} tests of CRuby, #{@traces} traces checked, #{@faults.size} failures"
    puts "#{@tests - @faults.size} passed, #{@faults.size} failed, 0 skipped" # as scripts/run-tests.rb reads it
    @faults.empty?
  end

  private

  def run_all(threshold, rate)
    flags = ["--zjit", "--zjit-call-threshold=#{threshold}"]
    flags << tracing(rate) unless @base
    suites.each do |suite|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      result = judged(suite, flags)
      seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
      @tests += result.tests
      puts "%-34s %s  %5d tests, %3d failed, %4.0f s" % [suite, flags.drop(1).join(" "), result.tests, result.failed.size, seconds]
    end
  end

  # A trace that a flag of the JIT starts has not all streams.
  def tracing(rate)
    @streams ? "--vm-trace=#{@streams},exits:rate=#{rate}" : "--zjit-trace-exits-sample-rate=#{rate}"
  end

  def suites
    all = %w[btest test-basic] + File.readlines(File.join(HERE, "files"), chomp: true).grep_v(/\A#/)
    @only ? all.select { |suite| suite.include?(@only) } : all
  end

  def judged(suite, flags)
    what = "#{suite} with #{flags.drop(1).join(" ")}"
    result = once(suite, flags)
    return result if (bad = unlisted(suite, result)).empty?
    again = unlisted(suite, once(suite, flags))
    (bad - again).each { |name| @unsteady << "#{what}: #{name}" }
    (bad & again).each { |name| @faults << "#{what}: #{name}" }
    puts result.log.lines.last(400) if (bad & again).any?
    result
  end

  def unlisted(suite, result)
    return [result.broken] if result.broken
    result.failed.reject { |name| @known["#{suite} #{name}"] }
  end

  def once(suite, flags)
    Dir.mktmpdir("vm-trace-cruby-") do |dir|
      flags += ["--#{@streams ? "vm" : "zjit"}-trace-file=#{dir}/%p.fxt"] unless @base
      log, status = output_of(dir, command(suite, ["--disable-gems", *flags]))
      check_traces("#{suite} with #{flags.drop(1).join(" ")}", Dir["#{dir}/*.fxt*"])
      read(suite, log, status)
    end
  end

  def command(suite, flags)
    case suite
    when "btest" then ["make", "btest", "HAVE_GIT=no", "RUN_OPTS=#{flags.join(" ")}"]
    # Not through make, where RUN_OPTS can be only one word.
    when "test-basic" then [*runruby, *flags, "#{@src}/basictest/runner.rb", "--run-opt=#{flags.join(" ")}"]
    else
      [*runruby, *flags, "-r#{@src}/tool/lib/_tmpdir", "#{@src}/test/runner.rb", "--ruby=#{(runruby + flags).join(" ")}",
       "--excludes-dir=#{@src}/test/.excludes", "--name=!/memory_leak/", "-v", suite]
    end
  end

  # As CRuby's makefile runs the built Ruby.
  def runruby
    ["./miniruby", "-I#{@src}/lib", "-I.", "-I.ext/common", "#{@src}/tool/runruby.rb", "--extout=.ext", "--"]
  end

  # Output goes to `dir`: processes that outlive it would inherit a pipe.
  def output_of(dir, command)
    log = "#{dir}/log"
    pid = Process.spawn({ "RUBYOPT" => nil, "RUBYLIB" => nil, "TMPDIR" => dir, "MAKEFLAGS" => nil, "MFLAGS" => nil }, *command,
                        chdir: @obj, in: File::NULL, out: log, err: [:child, :out], pgroup: true)
    waiter = Process.detach(pid)
    finished = waiter.join(TIME_LIMIT)
    Process.kill(:KILL, -pid) unless finished
    [File.read(log, encoding: "UTF-8").scrub, finished && waiter.value]
  end

  def read(suite, log, status)
    return Result.new([], 0, "still running after #{TIME_LIMIT} s", log) unless status
    case suite
    when "btest"
      tests = log[/^PASS all (\d+) tests/, 1] || log[/^FAIL \d+\/(\d+) tests failed/, 1]
      failed = log.scan(/^#\d+ (test_\w+\.rb):(\d+)/).map { |at| at.join(":") }.uniq
    when "test-basic"
      tests = log.include?("test succeeded") || log.include?("test failed") ? 1 : nil
      failed = log.include?("test failed") ? ["basictest"] : []
    else
      tests = log[/^(\d+) tests, \d+ assertions, \d+ failures, \d+ errors, \d+ skips/, 1]
      failed = log.scan(/^\s*\d+\) (?:Failure|Error|Timeout):\n(\S+)/).flatten.map { |name| name.delete_suffix(":") }.uniq
    end
    return Result.new([], 0, "it did not come to its end (#{status.inspect.delete("#<>")})", log) unless tests
    return Result.new([], tests.to_i, "it says that it failed, and not what", log) if !status.success? && failed.empty?
    Result.new(failed, tests.to_i, nil, log)
  end

  def check_traces(what, files)
    @traces += files.size
    files.each_slice(AT_ONCE) do |some|
      out, status = Open3.capture2e(@tool, "check", *some)
      next if status.success?
      @faults << "#{what}: a trace is not valid: #{out.lines.grep_v(/: ok: /).first(5).join}"
      keep = File.join(Dir.tmpdir, "vm-trace-invalid")
      bad = some.select { |file| out.lines.any? { |line| line.start_with?("#{file}: ") && !line.include?(": ok: ") } }
      FileUtils.mkdir_p(keep)
      FileUtils.cp(bad.first(3), keep)
      puts "kept in #{keep}: #{bad.first(3).map { |file| File.basename(file) }.join(" ")}"
    end
  end
end

# A process that ignores SIGINT, such as a shell's background job, passes that on; then tests that
# send themselves SIGINT would fail.
trap(:INT) { exit 130 }
$stdout.sync = true
exit CheckCRuby.new(ARGV).run
