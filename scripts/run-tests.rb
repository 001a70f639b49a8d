# Runs test suites one after the other, shows their output, and ends with "N passed, N failed, N
# skipped" over all of them. The text of each failure is repeated just before, so that the tail of a
# log shows it.
#   run-tests.rb SUITE...      (called by the Makefile, which sets the environment of the tests)
# Exit status 1 when something failed. What cannot run here (no CRuby source, no rustc) is named
# with the reason and counted as skipped.
#
# The Ruby files of a suite run side by side, $JOBS of them (as many as there are processors, if it
# is not set), and each is shown when it has ended. A file that says "# Alone: <why>" runs after the
# others, with nothing beside it. What fails of at most MOST_SECOND_RUNS tests runs once more, alone, as
# CRuby's own runner does it: a test that passes then is named as unstable, with the text of its failure.
# In CI, an integration test that says "# Once: <why>" runs for the first JIT of each base only, and is
# counted as skipped for the others.
require "etc"
require "open3"

class Runner
  UNAVAILABLE = 3 # scripts/common.sh
  NOT_APPLICABLE = 4 # test/integration/jit.rb
  MOST_SECOND_RUNS = 5

  def initialize
    @jobs = ENV["JOBS"].to_i.then { |jobs| jobs > 0 ? jobs : Etc.nprocessors }
    @waiting = []
    @result = Mutex.new
    @passed = @failed = @skipped = 0
    @failures = []
    @texts = []
    @skips = []
    @unstable = []
    @second_runs = 0
  end

  def run(suites)
    suites.each do |suite|
      send(suite)
      run_waiting
    end
    puts
    @skips.each { |reason| puts "skipped: #{reason}" }
    @texts.each { |text| puts "", text }
    @unstable.each { |name| puts "unstable: #{name} failed beside other tests and passed alone" }
    @failures.each { |name| puts "failed: #{name}" }
    puts "#{@passed} passed, #{@failed} failed, #{@skipped} skipped"
    @failed == 0
  end

  private

  # C unit tests of the module, each its own program.
  def unit
    Dir["test/unit/test_*.c"].sort.each { |source| cmocka("build/unit/#{File.basename(source, '.c')}") }
  end

  # TOOL_TESTS: only the Ruby files with these names, or tests of them, as "query export:/sqlite/".
  def tool
    Dir["test/tool/test_*.c"].sort.each { |source| cmocka("build/tool-test/#{File.basename(source, '.c')}") }
    chosen = ENV["TOOL_TESTS"].to_s.split.to_h do |name|
      file, pattern = name.split(":", 2)
      ["test/tool/test_#{file}.rb", pattern]
    end
    files = Dir["test/tool/test_*.rb"].sort
    abort "there is no #{(chosen.keys - files).join(", ")}" unless (chosen.keys - files).empty?
    (chosen.empty? ? files : chosen.keys).each { |file| minitest(file, options: chosen[file] ? ["-n", chosen[file]] : []) }
  end

  # The scripts of the build itself, on small repositories made for the purpose.
  def build
    Dir["test/build/test_*.rb"].sort.each { |file| minitest(file) }
  end

  # With LONG=1 it also builds a Ruby from the patch file, without the scripts of the build.
  def patch_files = minitest("test/build/test_patch_file.rb")

  # The comparison harness and its statistics, on made-up data and made-up rubies.
  def benchmarks
    Dir["test/benchmarks/test_*.rb"].sort.each { |file| minitest(file) }
  end

  def patches
    bases.each { |base| script(base, "scripts/check-patches.sh") }
  end

  # Static analysis; of what includes the headers of a Ruby for each base.
  def lint
    bases.each_with_index do |base, i|
      without_ruby(base)
      script(base, "scripts/lint.sh", *("alone" if i == 0), "ruby")
    end
  end

  # A script that prints "ok - ", "not ok - " or "skip - " for each check, with details on the lines
  # before.
  def script(base, command, *arguments)
    name = "#{command} #{base}"
    heading(name)
    count = Hash.new(0)
    said = []
    status = shown_output_of(environment(base), command, *arguments) do |line|
      next said << line.chomp unless line =~ /\A(ok|not ok|skip) - (.*)/
      count[$1] += 1
      @skips << "#{File.basename(command, ".sh")}: #$2" if $1 == "skip"
      @texts << ["#{name}: #{line.chomp}", *said].join("\n") if $1 == "not ok"
      said.clear
    end
    add(name, count["ok"], count["not ok"], count["skip"], status)
  end

  # The same tests run for each JIT that the patches of a base trace. A file decides itself for which
  # of them it is (test/integration/jit.rb).
  def integration
    bases.each do |base|
      reason = without_ruby(base)
      jits(base).each do |jit|
        files = Dir["test/integration/test_*.rb"].sort
        once, files = files.partition { |file| once?(file) } if jit != jits(base).first
        skip_files(once, "#{base} #{jit}", "CI runs it with #{jits(base).first} only") if once
        next skip_files(files, "#{base} #{jit}", reason) if reason
        files.each { |file| minitest(file, environment(base).merge("JIT" => jit), "#{base} #{jit}") }
      end
    end
  end

  # What takes minutes and hardly depends on the JIT.
  def once?(file) = !ENV["CI"].to_s.empty? && File.read(file).match?(/^# Once: /)

  # The documents' commands are for the first base, but for files that say "# Bases: ..."; each file
  # says what needs a patched Ruby.
  def docs
    Dir["test/docs/test_*.rb"].sort.each do |file|
      wanted = File.read(file)[/^# Bases: (.*)/, 1].to_s.split
      wanted = [DOCUMENTED] if wanted.empty?
      reason = wanted.filter_map { |base| without_ruby(base) }.first
      minitest(file, environment(wanted.first).merge("NO_RUBY" => reason))
    end
  end

  DOCUMENTED = "ruby-4.0"

  # The unit tests on an emulated arm64, if the root for that is in the cache. Its runner prints the sums.
  def arm64
    sources = Dir["test/unit/test_*.c"].sort
    reason, status = Open3.capture2e("scripts/arm64-root.sh", "find")
    return skip_files(sources, "arm64", reason.strip) unless status.success?
    heading("arm64")
    counts = []
    status = shown_output_of("scripts/check-arm64.sh", "unit") do |line|
      case line
      when /\Askipped: (.*)/ then @skips << "arm64: #$1"
      when /\A(\d+) passed, (\d+) failed, (\d+) skipped/ then counts = [$1, $2, $3].map(&:to_i)
      end
    end
    add("arm64", *(counts.empty? ? [0, 0, 0] : counts), status)
  end

  # The requested ones: all if none was chosen, the chosen or default one first.
  def bases = [ENV.fetch("BASE"), *ENV["BASES"]&.split].uniq
  def jits(base) = File.read("bases/#{base}")[/^jits="?([^"\n]*)/, 1].split

  # A given source is that of one base.
  def environment(base) = { "BASE" => base, **(base == ENV["BASE"] ? {} : { "RUBY_SOURCE" => nil }) }

  # Builds the patched Ruby. nil, or the reason why there is none.
  def without_ruby(base)
    (@without_ruby ||= {}).fetch(base) do
      heading("the patched Ruby of base #{base}")
      system(environment(base), "scripts/build-ruby.sh")
      status = $?.exitstatus
      @without_ruby[base] =
        if status == 0
          nil
        elsif status == UNAVAILABLE
          File.read("build/#{base}/unavailable").strip
        else
          add("building the patched Ruby of base #{base}", 0, 1, 0, nil)
          "the patched Ruby did not build"
        end
    end
  end

  def cmocka(program)
    heading(program)
    passed = failed = skipped = 0
    said = nil
    # UNIT_WRAPPER: a program that runs it, such as valgrind with its options.
    status = shown_output_of(*ENV["UNIT_WRAPPER"].to_s.split, program) do |line|
      case line
      when /\A\[  PASSED  \] (\d+) test/ then passed = $1.to_i
      when /\A\[  FAILED  \] (\d+) test/ then failed = $1.to_i
      when /\A\[  SKIPPED \] (\d+) test/ then skipped = $1.to_i
      when /\A\[  SKIPPED \] (\w+)\s*\z/ then @skips << "#{program}: #$1"
      when /\A\[ RUN      \] / then said = []
      when /\A\[  FAILED  \] (\w+)\s*\z/
        # The list at the end names it once more.
        @texts << ["#{program}: #$1", *said].join("\n") if said
        said = nil
      else said&.push(line.chomp)
      end
    end
    add(program, passed, failed, skipped, status)
  end

  # `second`: names of the tests that failed before, and run once more.
  Waiting = Struct.new(:file, :env, :variant, :options, :second)

  def minitest(file, env = {}, variant = nil, options: [])
    @waiting << Waiting.new(file, env, variant, options)
  end

  # Plans a second run of these tests. False: it is too many, or this was the second one.
  def again?(test, failed)
    return false if test.second || @second_runs + failed.size > MOST_SECOND_RUNS
    @second_runs += failed.size
    @again << Waiting.new(test.file, test.env, test.variant, ["-n", "/\\A#{Regexp.union(failed).source}\\z/"], failed)
    true
  end

  def run_waiting
    alone, together = @waiting.partition { |test| File.read(test.file).match?(/^# Alone: /) }
    @waiting = []
    @again = []
    run_side_by_side(together, @jobs)
    run_side_by_side(alone, 1)
    @again, again = [], @again
    again.each { |test| count(test, *run_file(test)) }
  end

  def run_side_by_side(tests, jobs)
    tests = tests.dup
    Array.new(jobs) do
      Thread.new do
        while (test = @result.synchronize { tests.shift })
          ended = run_file(test)
          @result.synchronize { count(test, *ended) }
        end
      end
    end.each(&:join)
  end

  # -v names every test, and the reason of each that skips itself.
  def run_file(test)
    lines = []
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    status = output_of(test.env, RbConfig.ruby, "-w", "-Itest", "-I#{File.dirname(test.file)}", test.file, "-v", *test.options) { |line| lines << line }
    [lines, status, Process.clock_gettime(Process::CLOCK_MONOTONIC) - start]
  end

  # Those that fail are listed at the end of a file's output, numbered, up to the sums.
  def count(test, lines, status, seconds)
    name = [test.file, *test.variant].join(" ")
    heading("#{name} (#{seconds.round} s)")
    runs = bad = skips = 0
    skipping = text = nil
    failed = []
    lines.each do |line|
      print line
      line = line.scrub
      case line
      when /\A\s*\d+\) (Failure|Error):/ then @texts << (text = +"#{name}: #$1:")
      when /\A\s*\d+\) Skipped:/, /\A\d+ runs, / then text = nil
      else
        failed.concat(line.scan(/\A(\w[\w:]*#.+?)(?: \[.*\])?:\s*\z/).flatten) if text&.end_with?(": Failure:", ": Error:")
        text << "\n" << line.chomp if text && !line.strip.empty?
      end
      case line
      when /\A(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips/
        runs, bad, skips = $1.to_i, $2.to_i + $3.to_i, $4.to_i
      when /\A\s*\d+\) Skipped:/ then skipping = true
      when /\A(\S+) \[.*\]:\s*\z/ then skipping &&= $1
      else
        @skips << "#{skipping}: #{line.strip}" if skipping.is_a?(String)
        skipping = nil
      end
    end
    return if status.exitstatus == NOT_APPLICABLE
    all_named = bad > 0 && failed.uniq.size == bad # else the file died
    if all_named && again?(test, failed) # then the second run counts them
      @passed += runs - bad - skips
      @skipped += skips
      return
    end
    @unstable.concat((test.second - failed).map { |passed| "#{name}: #{passed}" }) if test.second && (status.success? || all_named)
    add(name, runs - bad - skips, bad, skips, status)
  end

  def skip_files(files, variant, reason)
    files.each do |file|
      tests = File.read(file).scan(/^\s*(?:def test_|define_method\(?\s*:?"test_|isolated_test\(|cmocka_unit_test)/).size
      @skipped += tests
      @skips << "#{file} #{variant}: #{tests} tests: #{reason}"
    end
  end

  # A suite that dies, or that ran nothing, has not passed.
  def add(name, passed, failed, skipped, status)
    failed += 1 if failed == 0 && status && !status.success?
    failed += 1 if passed + failed + skipped == 0
    @passed += passed
    @failed += failed
    @skipped += skipped
    @failures << "#{name} (#{failed})" if failed > 0
  end

  LEFT_BEHIND_SECONDS = 5

  # Each line as it comes. Returns the status of the command. A process that the command has left behind may
  # hold the output open: nobody waits for its end.
  def output_of(*command, &)
    io = IO.popen(command, err: [:child, :out], in: File::NULL)
    reader = Thread.new { io.each_line(&) }
    _, status = Process.wait2(io.pid)
    unless reader.join(LEFT_BEHIND_SECONDS)
      reader.kill.join
      yield "left behind: a process that still has this output\n"
    end
    io.close
    status
  rescue SystemCallError => e
    yield "cannot run #{command.grep(String).first}: #{e.message}\n"
    system("false")
    $?
  end

  def shown_output_of(*command)
    output_of(*command) do |line|
      print line
      yield line.scrub
    end
  end

  def heading(name)
    puts "", "== #{name}"
  end
end

# A shell starts a job in the background with SIGINT and SIGQUIT ignored, nohup one with SIGHUP, and
# whatever is started from there inherits that: tests send them.
%i[INT QUIT HUP].each { |signal| trap(signal, :DEFAULT) }
$stdout.sync = true
# Of the tree that was named: check-sanitizers runs this in trees of links, each with a build folder
# of its own.
Dir.chdir(File.expand_path("../..", $PROGRAM_NAME))
exit Runner.new.run(ARGV)
