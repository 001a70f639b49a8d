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

    Interval = Struct.new(:ratio, :low, :high, :detectable, :pairs, keyword_init: true) do
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

      private

      def rounded(ratio)
        ratio.finite? ? ratio.round(DIGITS) : ratio
      end
    end

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
      error = deviation(Array.new(RESAMPLES) { yield })
      t = student_t(1 - (1 - confidence) / 2, freedom)
      Interval.new(ratio: Math.exp(estimate), low: Math.exp(estimate - t * error), high: Math.exp(estimate + t * error),
                   detectable: Math.exp((t + POWER_Z) * error) - 1, pairs: n)
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
