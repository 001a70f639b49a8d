# What a comparison says of each workload: slower, faster, no difference, or that these runs cannot
# tell. Wall-clock time and processor time are both judged, and all verdicts hold together.

require_relative "statistics"

module Bench
  class Judgement
    # A difference that no ratio of three digits shows needs no runs.
    SMALLEST_PERCENT = 0.1

    # Above this share of the time on a processor, processor time can stand for a wall clock that is
    # too noisy. Below it, the program mostly waits, and its waits may have grown.
    MOSTLY_CPU = 0.5

    WORDS = { slower: "slower", faster: "faster", same: "no difference seen", noisy: "too noisy", unknown: "too few runs" }.freeze

    # wall, cpu: Intervals, widened by Holm's method; cpu may be nil. by: the interval that decided.
    Verdict = Struct.new(:word, :by, :wall, :cpu, keyword_init: true)

    attr_reader :comparisons

    # options: :confidence and :threshold in percent, :seed; :layouts, if the runs are link orders
    def initialize(results, options)
      @unit = options[:layouts] ? "link orders" : "runs"
      @threshold, @confidence, seed = options[:threshold], options[:confidence] / 100.0, options[:seed]
      raw = results.to_h do |result|
        [result, %i[seconds cpu_seconds].map { |key| result.interval(key, @confidence, seed) }]
      end
      raw = raw.select { |_, (wall, _)| wall }
      @comparisons = raw.values.flatten.compact.size
      judged = Statistics.holm(raw.values.flatten.compact, @confidence)
      @verdicts = raw.to_h { |result, both| [result, verdict(result, *both.map { |one| one && judged.shift })] }
      @raw = raw.transform_values(&:first)
    end

    # nil where nothing was compared.
    def of(result)
      @verdicts[result]
    end

    def intervals
      @verdicts.map { |result, verdict| [result.name, verdict.wall] }
    end

    # Names of the workloads with one of these verdicts.
    def named(*words)
      names { |verdict| words.include?(verdict.word) }
    end

    # Names of the workloads that are slower by more than the threshold, by either clock.
    def slower
      names { |verdict| [verdict.wall, verdict.cpu].compact.any? { |interval| interval.slower_by?(@threshold) } }
    end

    # Those that may well be slower by the threshold, only these runs would not show it.
    def undecided
      named(:noisy, :unknown)
    end

    # Of the wall-clock time, over these results.
    def geometric_mean(results = @raw.keys)
      Statistics.geometric_mean(@raw.values_at(*results).compact, @confidence)
    end

    def words(verdict)
      i = verdict.by
      case verdict.word
      when :same then "#{WORDS[:same]}#{by(verdict)} (of #{Judgement.percent(i.detectable)} or more)"
      when :noisy then "#{WORDS[:noisy]}: to see #{'%g' % limit} % takes about #{runs_needed(verdict)} #{@unit}"
      when :unknown then WORDS[:unknown]
      else "#{WORDS[verdict.word]}#{by(verdict)}#{", but #{WORDS[verdict.cpu.verdict]} by CPU" if split?(verdict)}"
      end
    end

    # To see the threshold. nil unless the workload is too noisy.
    def runs_needed(verdict)
      verdict.by.pairs_to_see(limit) if verdict.word == :noisy
    end

    # What gives exit status 1 in four cases of five: [fraction, name] of the least and the most
    # sensitive workload.
    def smallest_slowdown_found
      all = @verdicts.filter_map do |result, verdict|
        best = [verdict.wall, verdict.cpu].compact.select { |interval| interval.pairs >= 3 }.map(&:detectable).min
        [(1 + @threshold / 100.0) * (1 + best) - 1, result.name] if best
      end
      all.minmax
    end

    def self.percent(fraction)
      fraction < SMALLEST_PERCENT / 100 ? "#{SMALLEST_PERCENT} %" : "%.1f %%" % (fraction * 100)
    end

    # The intervals that can tell whether it is no slower.
    def telling(result, wall, cpu = nil) = [wall, (cpu if cpu && result.cpu_share >= MOSTLY_CPU)].compact

    private

    def names
      @verdicts.select { |_, verdict| yield verdict }.map { |result, _| result.name }
    end

    def limit
      [@threshold, SMALLEST_PERCENT].max
    end

    def by(verdict)
      verdict.by.equal?(verdict.cpu) ? " by CPU" : ""
    end

    def split?(verdict)
      verdict.by.equal?(verdict.wall) && verdict.cpu && %i[slower faster].include?(verdict.cpu.verdict) &&
        verdict.cpu.verdict != verdict.word
    end

    def verdict(result, wall, cpu)
      decided = [wall, cpu].compact.find { |interval| %i[slower faster].include?(interval.verdict) }
      return Verdict.new(word: decided.verdict, by: decided, wall: wall, cpu: cpu) if decided
      best = telling(result, wall, cpu).min_by(&:detectable)
      word = best.verdict == :same && !best.sees?(limit) ? :noisy : best.verdict
      Verdict.new(word: word, by: best, wall: wall, cpu: cpu)
    end
  end
end
