# Asks vm-trace and Perfetto's own trace processor the questions of the conformance files: the
# answers must be the same, for whole and for damaged traces. In the traces that the caller gives,
# Perfetto must find no error and no loss of data. Not part of `make check`, because few people have
# that program (https://get.perfetto.dev/trace_processor).
#   against_perfetto.rb TRACE_PROCESSOR SECONDS [TRACE...]      (make check-perfetto)
# It damages the traces of the tests for so many seconds; FUZZ_SEED=N makes the same ones again.
# Traces with different answers are kept in build/perfetto. Exit status: 0 all the same, 1
# differences or errors, 2 wrong usage.
require "fileutils"
require "open3"
require_relative "conformance"
require_relative "mutants"
require_relative "questions"

class AgainstPerfetto
  ROOT = File.expand_path("../..", __dir__)
  TOOL = File.expand_path(ENV["VM_TRACE"] || "build/tool/vm-trace", ROOT)
  KEPT = File.join(ROOT, "build/perfetto")
  PENDING = Conformance.pending.keys.map { |name| File.basename(name).split(".") }
                       .filter_map { |name, question| name if QUESTIONS.key?(question) }
  OURS = %w[test/traces test/tool/corpus].flat_map { |folder| Dir[File.join(ROOT, folder, "*.fxt")].sort } +
         Conformance.files("{,streams/,queries/}*.fxt").reject { |path| PENDING.include?(File.basename(path, ".fxt")) }
  MOST_BYTES = 6000 # of a damaged one
  REFUSED = /Perfetto refuses|of the blob is not a packet/ # it refuses some of the latter
  SQL = "#{QUESTIONS.values.join("; ")} order by name;" # the last, of faults, has no order
  # The traces of the tests have faults on purpose. Every importer of Perfetto counts in this table.
  ERRORS = "select name, severity, value from stats where value > 0 and severity in ('error', 'data_loss') " \
           "order by name;"

  def initialize(trace_processor, seconds, traces)
    @trace_processor = trace_processor
    @seconds = seconds
    @given = traces
    @different = 0
    @faulty = 0
  end

  def run
    abort "#{@trace_processor}: #{ask(@trace_processor, OURS.first)[1]}" if ask(@trace_processor, OURS.first)[0].empty?
    FileUtils.mkdir_p(KEPT)
    (OURS + @given).each { |path| compare(path) }
    @given.each { |path| find_errors(path) }
    puts "#{OURS.size + @given.size} traces, #{damaged} damaged ones: #{@different} with different answers, " \
         "#{@faulty} of #{@given.size} given ones with errors"
    @different + @faulty == 0
  end

  private

  def damaged
    random = Random.new(Integer(ENV["FUZZ_SEED"] || Random.new_seed % 2**32))
    puts "FUZZ_SEED=#{random.seed}"
    seeds = OURS.map { |path| File.binread(path, MOST_BYTES) }
    path = File.join(KEPT, "damaged.fxt")
    stop = now + @seconds
    count = 0
    while now < stop
      bytes = Mutants.mutate(seeds.sample(random: random), random)
      next if bytes.empty? # which we don't take for a trace
      count += 1
      File.binwrite(path, bytes)
      compare(path) { File.join(KEPT, "different-#{count}.fxt").tap { |kept| FileUtils.cp(path, kept) } }
    end
    count
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def ask(program, path, sql = SQL)
    out, err, = Open3.capture3(program, "query", path, sql, binmode: true)
    [out.gsub(/,(?:"partial"|"[^"\n]*(?:only a part|nothing of it) was read[^"\n]*"|)$/n, ""), err] # what Perfetto has not
  end

  def find_errors(path)
    out, err = ask(@trace_processor, path, ERRORS)
    errors = out.lines(chomp: true).drop(1)
    errors = [err] if out.empty?
    return if errors.empty?
    @faulty += 1
    puts "#{path}:", errors.map { |line| "  Perfetto counts #{line}" }
  end

  # The block keeps the trace, and returns its path.
  def compare(path)
    theirs, = ask(@trace_processor, path)
    ours, faults = ask(TOOL, path)
    return if faults.include?("not a Fuchsia trace") # Perfetto may take it for another format
    return if theirs.empty? && faults.match?(REFUSED)
    theirs, ours = [theirs, ours].map { |text| alike(text) }
    return if theirs == ours
    @different += 1
    path = yield if block_given?
    puts "#{path}:", difference(theirs - ours, "Perfetto"), difference(ours - theirs, "vm-trace")
  end

  def difference(lines, whose)
    lines.empty? ? "  #{whose}: nothing else, or in another order or number" : lines.first(3).map { |line| "  #{whose} only: #{line}" }
  end

  # vm-trace escapes control characters; Perfetto ends a text at a NUL, doubles no quotes and prints
  # an empty line between answers. The number of digits depends on the version of SQLite.
  def alike(text)
    text = text.gsub(/\\(?:x(\h\h)|([nrt]))/n) { $1 ? $1.hex.chr : { "n" => "\n", "r" => "\r", "t" => "\t" }[$2] }
    text = text.gsub(/\0[^"]*/n, "").delete('"').gsub(/-?\d\.\d{9,}(e[-+]\d+)?/n) { |number| "%.9g" % number.to_f }
    text.lines(chomp: true).reject(&:empty?)
  end
end

program, seconds, *traces = ARGV
abort "Usage: against_perfetto.rb TRACE_PROCESSOR SECONDS [TRACE...]" unless seconds&.match?(/\A\d+\z/)
exit AgainstPerfetto.new(program, seconds.to_i, traces).run
