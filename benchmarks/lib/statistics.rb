# Statistics of two sets of runs. Nothing here measures or prints; all randomness is seeded.

module Bench
  module Statistics
    module_function

    # Resamples of the bootstrap: enough for an error of a few percent of the interval's width.
    RESAMPLES = 1000

    # Probability of seeing a difference as large as `detectable`.
    POWER_Z = 0.8416 # 80 %

    # Digits of a ratio after the point, as reports print it. A smaller difference is no difference:
    # nobody can act on it, and with almost no spread the interval is so narrow that it excludes 1
    # by accident.
    DIGITS = 3

    # `error` is the standard error of the ratio's logarithm, `freedom` the degrees of freedom of
    # Student's t that goes with it.
    Interval = Struct.new(:ratio, :low, :high, :detectable, :pairs, :error, :freedom, keyword_init: true) do
      # :faster, :slower or :same, of the candidate; :unknown with too few runs to say anything
      def verdict
        return :unknown if pairs < 3
        return :slower if rounded(low) > 1
        return :faster if rounded(high) < 1
        :same
      end

      def slower_by?(percent)
        verdict == :slower && low > 1 + percent / 100.0
      end

      # Whether it is known to be slower by no more.
      def within?(percent)
        pairs >= 3 && high <= 1 + percent / 100.0
      end

      # Of the other side's time to this one's.
      def inverse
        dup.tap { |one| one.ratio, one.low, one.high = 1 / ratio, 1 / high, 1 / low }
      end

      # "0.990 .. 1.010", empty with too few runs to say anything
      def range = pairs < 3 ? "" : "#{Statistics.text(low)} .. #{Statistics.text(high)}"

      # Whether a difference of so many percent would have been seen in four cases of five.
      def sees?(percent)
        pairs >= 3 && detectable <= percent / 100.0
      end

      # About how many pairs of runs it takes to see such a difference with the same confidence, in
      # two digits, if runs go on to scatter as these do. nil where that cannot be said.
      def pairs_to_see(percent)
        return nil unless detectable.finite? && percent > 0
        confidence = 2 * Statistics.student_cdf(Math.log(high / ratio) / error, freedom) - 1
        scatter = error * Math.sqrt(pairs)
        wanted = pairs
        # More runs also make Student's t smaller, so the number is on both sides of the equation.
        5.times do
          t = Statistics.student_t((1 + confidence) / 2, [wanted - 1, 2].max)
          wanted = ((t + POWER_Z) * scatter / Math.log(1 + percent / 100.0))**2
        end
        wanted.ceil.then { |n| n.ceil(2 - n.digits.size) }
      end

      # The same estimate with another confidence.
      def at(confidence)
        freedom ? Statistics.around(Math.log(ratio), error, freedom, confidence, pairs) : self
      end

      # How often equal sides would differ by as much as this by chance.
      def p_value
        return 1.0 if freedom.nil? || ratio == 1
        error.zero? ? 0.0 : 2 * (1 - Statistics.student_cdf(Math.log(ratio).abs / error, freedom))
      end

      private

      def rounded(ratio)
        ratio.finite? ? ratio.round(DIGITS) : ratio
      end
    end

    # A ratio, as reports print it.
    def text(ratio) = "%.*f" % [DIGITS, ratio]

    def median(values)
      quantile(values, 0.5)
    end

    # Linear between the nearest two.
    def quantile(values, q)
      sorted = values.sort
      at = q * (sorted.size - 1)
      below = sorted[at.floor]
      below + (sorted[at.ceil] - below) * (at - at.floor)
    end

    # Runs at the same index ran one right after the other, so what the machine did at that time is
    # in both and cancels out in their ratio. The result is the median of those ratios.
    #
    # The interval is the bootstrap's standard error times Student's t, on logarithms. The plain
    # percentile bootstrap would be too narrow for so few runs: with 10 equal pairs it calls 2 to 3
    # in 100 different instead of 1 in 100.
    def paired_interval(baseline, candidate, confidence: 0.99, seed: 1)
      n = [baseline.size, candidate.size].min
      logs = Array.new(n) { |i| Math.log(candidate[i].to_f / baseline[i]) }
      random = Random.new(seed)
      interval(median(logs), n, n - 1, confidence) do
        median(Array.new(n) { logs[random.rand(n)] })
      end
    end

    # For runs of different times: the ratio of the medians, each side resampled by itself.
    def unpaired_interval(baseline, candidate, confidence: 0.99, seed: 1)
      a, b = [baseline, candidate].map { |values| values.map { |value| Math.log(value) } }
      random = Random.new(seed)
      n = [a.size, b.size].min
      interval(median(b) - median(a), n, n - 1, confidence) do
        median(Array.new(b.size) { b[random.rand(b.size)] }) - median(Array.new(a.size) { a[random.rand(a.size)] })
      end
    end

    def interval(estimate, n, freedom, confidence)
      if n < 2
        return Interval.new(ratio: Math.exp(estimate), low: 0.0, high: Float::INFINITY, detectable: Float::INFINITY, pairs: n)
      end
      around(estimate, deviation(Array.new(RESAMPLES) { yield }), freedom, confidence, n)
    end

    # The interval of an estimate (a logarithm) with a known standard error.
    def around(estimate, error, freedom, confidence, pairs)
      t = student_t(1 - (1 - confidence) / 2, freedom)
      Interval.new(ratio: Math.exp(estimate), low: Math.exp(estimate - t * error), high: Math.exp(estimate + t * error),
                   detectable: Math.exp((t + POWER_Z) * error) - 1, pairs: pairs, error: error, freedom: freedom)
    end

    # The intervals widened so that all their verdicts hold together with this confidence, by Holm's
    # method: of m comparisons the clearest is judged with 1/m of the permitted error, the next with
    # 1/(m-1), and so on up to the first one that is no difference. Same order as given.
    def holm(intervals, confidence)
      level = nil
      judged = {}.compare_by_identity
      intervals.sort_by(&:p_value).each_with_index do |interval, i|
        next judged[interval] = interval.at(1 - level) if level
        share = (1 - confidence) / (intervals.size - i)
        judged[interval] = interval.at(1 - share)
        level = share unless %i[slower faster].include?(judged[interval].verdict)
      end
      intervals.map { |interval| judged.fetch(interval) }
    end

    # The geometric mean of independent ratios. Its degrees of freedom are Welch and Satterthwaite's.
    def geometric_mean(intervals, confidence)
      known = intervals.select(&:freedom)
      return nil if known.empty?
      variances = known.map { |interval| (interval.error / known.size)**2 }
      below = known.zip(variances).sum { |interval, variance| variance**2 / interval.freedom }
      freedom = below.zero? ? known.sum(&:freedom) : variances.sum**2 / below
      around(known.sum { |interval| Math.log(interval.ratio) } / known.size, Math.sqrt(variances.sum), freedom, confidence,
             known.map(&:pairs).min)
    end

    # How many values lie more than three interquartile ranges, and one percent, outside the middle
    # half. `values` are logarithms.
    def outliers(values)
      return 0 if values.size < 4
      low, high = quantile(values, 0.25), quantile(values, 0.75)
      margin = [3 * (high - low), 0.01].max
      values.count { |value| value < low - margin || value > high + margin }
    end

    def deviation(values)
      mean = values.sum / values.size
      Math.sqrt(values.sum { |value| (value - mean)**2 } / (values.size - 1))
    end

    # The quantile of Student's t with `freedom` degrees: bisection on the integral of its density,
    # which is smooth enough for Simpson's rule.
    def student_t(probability, freedom)
      low = 0.0
      high = 1.0
      high *= 2 while student_cdf(high, freedom) < probability && high < 1e4
      50.times do
        middle = (low + high) / 2
        student_cdf(middle, freedom) < probability ? low = middle : high = middle
      end
      (low + high) / 2
    end

    def student_cdf(t, freedom)
      # With t = sqrt(freedom) tan(angle) the density is a power of the cosine, and the range is
      # finite.
      scale = Math.exp(Math.lgamma((freedom + 1) / 2.0).first - Math.lgamma(freedom / 2.0).first) / Math.sqrt(Math::PI)
      angle = Math.atan(t / Math.sqrt(freedom))
      steps = 200
      width = angle / steps
      sum = 1 + Math.cos(angle)**(freedom - 1)
      (1...steps).each { |i| sum += (i.odd? ? 4 : 2) * Math.cos(i * width)**(freedom - 1) }
      0.5 + scale * sum * width / 3
    end
  end
end
