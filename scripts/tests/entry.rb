# An entry of the queue of tests: a command, what it needs, and what its output means.
require "rbconfig"

# counts: [passed, failed, skipped]; skips, texts: lines for the end of the log; failed_tests: names of the
# tests that failed, or nil if the program died; not_applicable: the file has no test for this base and JIT.
Result = Struct.new(:counts, :skips, :texts, :failed_tests, :not_applicable, :output, :status, :seconds, keyword_init: true) do
  def ok? = counts[1] == 0
end

class Entry
  NOT_APPLICABLE = 4 # test/integration/jit.rb
  # Lines that a process left behind may still print are not waited for.
  LEFT_BEHIND_SECONDS = 5
  # An entry that takes longer hangs.
  MOST_SECONDS = ENV.fetch("ENTRY_SECONDS", ENV["LONG"].to_s.empty? ? 1800 : 6 * 3600).to_f
  # Two builds beside tests have taken more than half an hour.
  BUILD_SECONDS = [MOST_SECONDS, 4 * 3600].max

  attr_reader :suite, :name, :file, :env, :needs, :second, :builds

  # needs: bases whose patched Ruby the entry uses. without_ruby: :skip if one of them cannot be built, or
  # :tell, which runs the entry with the reason as NO_RUBY. builds: the base that the entry builds.
  # second: names of the tests that failed before and run once more.
  def initialize(suite:, name:, command:, reads:, file: nil, env: {}, needs: [], without_ruby: :skip, builds: nil, alone: false, second: nil)
    @suite, @name, @command, @reads, @file, @env, @needs = suite, name, command, reads, file, env, needs
    @without_ruby, @builds, @alone, @second = without_ruby, builds, alone, second
  end

  def alone? = @alone
  def skipped_without_ruby? = @without_ruby == :skip

  # The same file, but only these of its tests, with nothing beside it.
  def again(tests)
    Entry.new(suite: suite, name: name, file: file, env: env, needs: needs, without_ruby: @without_ruby, alone: true, reads: @reads,
              second: tests, command: [*@command, "-n", "/\\A#{Regexp.union(tests).source}\\z/"])
  end

  # Runs the command and returns its Result. more_env: for this run; each line of output is yielded as it comes.
  def run(more_env = {}, &block)
    lines = []
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    status = output_of(env.merge(more_env), *@command) { |line| lines << line; block&.call(line) }
    seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    result = send("read_#{@reads}", lines.map(&:scrub))
    result.output, result.status, result.seconds = lines.join, status, seconds
    result.not_applicable = status.exitstatus == NOT_APPLICABLE && result.counts.sum == 0
    # A program that dies, or that ran nothing, has not passed.
    result.counts[1] += 1 if result.counts[1] == 0 && !result.not_applicable && (!status.success? || result.counts.sum == 0) && @reads != :build
    result
  end

  private

  # A process that the command has left behind may hold the output open: nobody waits for its end.
  def output_of(*command)
    io = IO.popen(command, err: [:child, :out], in: File::NULL)
    reader = Thread.new { io.each_line { |line| yield line } }
    waiter = Process.detach(io.pid)
    most = builds ? BUILD_SECONDS : MOST_SECONDS
    unless waiter.join(most)
      kill_with_children(io.pid)
      yield "killed: it was still running after #{most.round} s\n"
    end
    status = waiter.value
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

  # A make that is left behind would go on and take the processors from the other entries.
  def kill_with_children(pid)
    children = IO.popen(%w[ps -e -o pid= -o ppid=], &:readlines).map { |line| line.split.map(&:to_i) }.group_by(&:last)
    pids = [pid]
    pids.each { |parent| pids.concat(children.fetch(parent, []).map(&:first)) }
    pids.each do |id|
      Process.kill(:KILL, id)
    rescue Errno::ESRCH # it has ended meanwhile
    end
  end

  def result(counts, skips = [], texts = [], failed_tests = nil) = Result.new(counts: counts, skips: skips, texts: texts, failed_tests: failed_tests)

  # Tests that fail are listed at the end of a file's output, numbered, up to the sums. -v names each test
  # that skips itself, with its reason.
  def read_minitest(lines)
    runs = bad = skipped = 0
    skipping = text = nil
    failed, skips, texts = [], [], []
    lines.each do |line|
      case line
      when /\A\s*\d+\) (Failure|Error):/ then texts << (text = +"#{name}: #$1:")
      when /\A\s*\d+\) Skipped:/, /\A\d+ runs, / then text = nil
      else
        failed.concat(line.scan(/\A(\w[\w:]*#.+?)(?: \[.*\])?:\s*\z/).flatten) if text&.end_with?(": Failure:", ": Error:")
        text << "\n" << line.chomp if text && !line.strip.empty?
      end
      case line
      when /\A(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips/
        runs, bad, skipped = $1.to_i, $2.to_i + $3.to_i, $4.to_i
      when /\A\s*\d+\) Skipped:/ then skipping = true
      when /\A(\S+) \[.*\]:\s*\z/ then skipping &&= $1
      else
        skips << "#{skipping}: #{line.strip}" if skipping.is_a?(String)
        skipping = nil
      end
    end
    result([runs - bad - skipped, bad, skipped], skips, texts, failed.uniq.size == bad ? failed : nil)
  end

  def read_cmocka(lines)
    counts, skips, texts = [0, 0, 0], [], []
    said = nil
    lines.each do |line|
      case line
      when /\A\[  (PASSED |FAILED |SKIPPED)  ?\] (\d+) test/ then counts[%w[PASSED FAILED SKIPPED].index($1.strip)] = $2.to_i
      when /\A\[  SKIPPED \] (\w+)\s*\z/ then skips << "#{name}: #$1"
      when /\A\[ RUN      \] / then said = []
      when /\A\[  FAILED  \] (\w+)\s*\z/
        # The list at the end names it once more.
        texts << ["#{name}: #$1", *said].join("\n") if said
        said = nil
      else said&.push(line.chomp)
      end
    end
    result(counts, skips, texts)
  end

  # "ok - ", "not ok - " or "skip - " for each check, with details on the lines before.
  def read_checks(lines)
    counts, skips, texts, said = [0, 0, 0], [], [], []
    lines.each do |line|
      word, what = line.match(/\A(ok|not ok|skip) - (.*)/)&.captures
      next said << line.chomp unless word
      counts[["ok", "not ok", "skip"].index(word)] += 1
      skips << "#{suite}: #{what}" if word == "skip"
      texts << ["#{name}: #{line.chomp}", *said].join("\n") if word == "not ok"
      said.clear
    end
    result(counts, skips, texts)
  end

  # Another runner's last lines.
  def read_sums(lines)
    counts = lines.reverse_each.find { |line| break $~.captures.map(&:to_i) if line =~ /\A(\d+) passed, (\d+) failed, (\d+) skipped/ }
    skips = lines.filter_map { |line| "#{name}: #$1" if line =~ /\Askipped: (.*)/ }
    texts = lines.grep(/\Afailed: /).map { |line| "#{name}: #{line.chomp}" }
    result(counts || [0, 0, 0], skips, texts)
  end

  def read_build(_lines) = result([0, 0, 0])
end
