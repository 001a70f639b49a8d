# What the first screen of a report says that a change gains, compared with what the change does gain: over pairs of
# programs, before and after it (fixes.rb).

require "json"
require "tmpdir"
require_relative "comparison"
require_relative "fixes"
require_relative "table"

module Bench
  class Predictions
    CONFIDENCE = 0.95
    SEED = 1
    # Shares of a program's time. A gain that is worth a line of the first screen; below the other, a promise is none.
    WORTH, NOTHING = 0.05, 0.01
    WAITING = %w[gvl blocked].freeze
    Version = Struct.new(:name)
    BEFORE, AFTER = Version.new("before"), Version.new("after")
    # A row of `findings`, in shares of the traced program's time. `ours`: it names what the fix changes.
    Finding = Struct.new(:subject, :place, :cause, :least, :estimate, :most, :ours)

    # A pair with one Ruby. `start`: runs of an empty program; the time that Ruby takes to start is in no trace.
    class Row
      attr_reader :fix, :jit, :result
      attr_accessor :findings

      def initialize(fix, jit, result, start)
        @fix, @jit, @result = fix, jit, result
        @findings = []
        @measured = result.interval(clock, CONFIDENCE, SEED)
        before, started = [result.baseline, start].map { |runs| Statistics.median(runs.map(&clock)) }
        @scale = before / [before - started, 0.001].max
      end

      # CPU time scatters less on a busy machine. Of a program that waits, the clock's time counts.
      def clock = WAITING.include?(fix.subject) ? :seconds : :cpu_seconds
      def gain = @scale * (1 - @measured.ratio)
      def least = @scale * (1 - @measured.high)
      def most = @scale * (1 - @measured.low)

      # The finding that is judged. Where nothing can be gained, every one is a promise, and the largest counts.
      def finding
        candidates = fix.places.empty? ? findings : findings.select(&:ours)
        candidates.max_by { |one| [one.subject == fix.subject ? 1 : 0, one.estimate || 0, one.most] }
      end

      def estimate = finding&.estimate
      # :yes; :perhaps, if only the measurement's own interval reaches into it; :no. A change that costs time gains 0.
      def inside
        return unless finding
        return :yes if [gain, 0].max.between?(finding.least, finding.most)
        least <= finding.most && most >= finding.least ? :perhaps : :no
      end

      def false? = !!estimate && estimate > NOTHING && most < estimate / 3
      def missing? = !finding && least > WORTH
      def error = ((estimate - gain).abs / gain if estimate && gain > WORTH)
    end

    attr_reader :rows, :notes

    # gems: a folder of them, as scripts/gems.sh makes it; keep: a folder for the traces
    def initialize(fixes, tool:, rounds:, timeout: 60.0, gems: nil, streams: nil, keep: nil, progress: nil)
      @fixes, @tool, @rounds, @timeout, @progress = fixes, tool, rounds, timeout, progress
      @gems, @streams, @keep = gems, streams, keep
      @rows, @notes = [], []
    end

    # Measures first: nothing is recorded meanwhile.
    def run(side)
      fixes = @fixes.select { |fix| fix.with?(side.jit) && has?(fix, side) && same?(fix, side) }
      start = Array.new(5) { side.run(Workload.new("", "-e", [""])) }
      comparison = Comparison.new(BEFORE, [AFTER], fixes, runs: @rounds, progress: @progress) do |version, fix|
        side.run(Workload.new(fix.name, fix.path(version.name), []), timeout: @timeout, flags: load_path(fix))
      end
      comparison.run
      @notes.concat(comparison.disturbances)
      comparison.results.each do |result|
        next @notes << "#{result.name}: #{result.failure}" if result.failure
        next if result.runs.zero?
        row = Row.new(result.workload, side.jit, result, start)
        row.findings = record(row.fix, side)
        @rows << row
      rescue Failed => e
        @notes << "#{row.fix.name}: #{e.message}"
      end
      !comparison.interrupted
    end

    def lines
      measured = "measured (#{(CONFIDENCE * 100).round} % interval)"
      head = ["pair", "JIT", "predicted (interval)", measured, "by", "inside", ""]
      [*Table.lines([head, *@rows.map { |row| cells(row) }]), "", *sums, *@notes.map { |note| "note: #{note}" }]
    end

    def json
      JSON.pretty_generate(@rows.map do |row|
        { name: row.fix.name, jit: row.jit, subject: row.fix.subject, places: row.fix.places,
          before_seconds: row.result.baseline.map(&:seconds), after_seconds: row.result.candidate.map(&:seconds),
          gain: row.gain, gain_least: finite(row.least), gain_most: row.most, clock: row.clock,
          inside: row.inside, findings: row.findings.map(&:to_h) }
      end)
    end

    private

    def has?(fix, side)
      return true if !fix.needs || side.takes?(*load_path(fix), "-r#{fix.needs}")
      @notes << "#{fix.name} was not run: #{fix.needs} is not installed"
      false
    end

    # Only for what a pair needs: the folder may have newer versions of what comes with Ruby.
    def load_path(fix)
      return [] unless @gems && fix.needs
      Dir["#{@gems}/ruby/*/gems/#{fix.needs[/\w+/]}-[0-9]*/lib"].max(1).flat_map { |folder| ["-I", folder] }
    end

    # Also brings both into the page cache.
    def same?(fix, side)
      values = [BEFORE, AFTER].map do |version|
        IO.popen([*side.command, *load_path(fix), fix.path(version.name)], in: File::NULL, err: %i[child out], &:read)
      end
      return true if $?.success? && values.uniq.size == 1
      printed = values.map { |text| text.lines.last.to_s.strip }
      @notes << "#{fix.name} was not run: before and after print #{printed.join(" and ")}"
      false
    end

    def record(fix, side)
      Dir.mktmpdir("vm-trace-predictions") do |temporary|
        folder = @keep ? "#{@keep}/#{fix.name}-#{side.jit || "no-jit"}" : "#{temporary}/trace"
        out, status = tool("record", "--quiet", *(["--vm-trace=#{@streams}"] if @streams), "-o", folder, "--",
                           *side.command, *load_path(fix), fix.path("before"))
        raise Failed, "it could not be recorded: #{out.lines.last}" unless status.success?
        read(fix, folder)
      end
    end

    def read(fix, folder)
      # pid,first_ns,span_ns,...: without the library csv, which not every Ruby has
      span = File.readlines("#{folder}/index.csv").drop(1).map { |line| line.split(",")[2].to_f }.max
      out, status = tool("report", "--format=json", "--table=findings", folder)
      return [] if out.match?(/no table findings/)
      raise Failed, "its trace cannot be read: #{out.lines.last}" unless status.success?
      rows = JSON.parse(out).fetch("findings").then { |table| table.is_a?(Hash) ? table.fetch("rows") : table }
      rows.filter_map do |row|
        # Gains in CPU time are parts of the time in which the threads could have had a CPU, and had it.
        whole = WAITING.include?(row["subject"]) ? span : (row["whole_ns"] || span).to_f
        least, gain, most = row.values_at("least_ns", "gain_ns", "most_ns").map { |ns| ns && ns / whole }
        next unless most # counts have no times
        place, cause = row.values_at("place", "cause").map(&:to_s)
        Finding.new(row["subject"], place, cause, least, gain, most, fix.in?(place, cause))
      end
    end

    def tool(*words)
      out = IO.popen([@tool, *words, in: File::NULL, err: %i[child out]], &:read)
      [out, $?]
    rescue SystemCallError => e
      raise BadArgument, "#{@tool}: #{e.message} (make tool builds it)"
    end

    def cells(row)
      found = row.finding
      [row.fix.name, (row.jit || "none").to_s, found ? range(found.estimate, found.least, found.most) : "",
       range(row.gain, row.least, row.most), row.clock == :seconds ? "wall" : "CPU", row.inside.to_s, verdict(row)]
    end

    def verdict(row)
      found = row.finding
      [("missing" if row.missing?), ("gains less than a third" if row.false?),
       ("as #{found.subject}" if found && found.subject != row.fix.subject),
       (found.place if found && row.fix.places.empty?)].compact.join("; ")
    end

    def range(middle, low, high) = "#{percent(middle)} (#{percent(low)} .. #{percent(high)})"
    def finite(number) = (number if number.finite?)
    def percent(share) = share&.finite? ? "%.1f %%" % (share * 100) : "?"

    def sums
      found = @rows.select(&:finding)
      sure, perhaps = %i[yes perhaps].map { |word| found.count { |row| row.inside == word } }
      errors = found.filter_map(&:error)
      ["inside the predicted interval: #{of(sure, found.size)}, and #{perhaps} perhaps; target 90 %",
       "median error of the estimate, where more than #{percent(WORTH)} are gained: " \
       "#{errors.empty? ? "none" : percent(Statistics.median(errors))} of #{errors.size}; target 20 %",
       "recommended, but gained less than a third: #{list(@rows.select(&:false?))}; target none",
       "gained more than #{percent(WORTH)}, but missing: #{list(@rows.select(&:missing?))}; target none"]
    end

    def of(some, all) = all.zero? ? "none of 0" : "#{some} of #{all} (#{(100.0 * some / all).round} %)"

    def list(rows)
      names = rows.map { |row| [row.fix.name, row.jit].compact.join(" ") }
      names.empty? ? "none" : "#{names.size} (#{names.join(", ")})"
    end
  end
end
