# How a program gets to its speed: times of the iterations of a process from the very first on.

require_relative "statistics"

module Bench
  class WarmUp
    PROCESSES = 5
    WINDOW = 5
    BARS = %w[▁ ▂ ▃ ▄ ▅ ▆ ▇ █].freeze
    COLUMNS = 24

    # Seconds of each iteration, the median over several processes.
    attr_reader :times

    def initialize(times)
      @times = times
    end

    # Raises Failed if the workload fails, or has no iterations of its own.
    def self.of(side, workload, iterations, timeout: nil)
      runs = Array.new(PROCESSES) { side.iterations(workload, iterations, timeout: timeout) }
      raise Failed, "it times no iterations, so it has no warm-up to show" if runs.any?(&:empty?)
      new(Array.new(runs.map(&:size).min) { |i| Statistics.median(runs.map { |run| run[i] }) })
    end

    def first = times.first
    def last = times.last

    # What the last quarter takes.
    def steady = Statistics.median(last_quarter)

    # The first iteration, counted from 1, from which on the program is as fast as in the last quarter:
    # the median of each five that follow lies within two percent of the steady time, or where nine of
    # ten iterations of the last quarter lie. nil if that takes more than half of the iterations.
    def steady_from
      low, high = Statistics.quantile(last_quarter, 0.05), Statistics.quantile(last_quarter, 0.95)
      range = [low, steady * 0.98].min..[high, steady * 1.02].max
      windows = times.each_cons([WINDOW, times.size].min).map { |window| range.cover?(Statistics.median(window)) }
      unsteady = windows.rindex(false)
      # The last window that is out of the range begins with iterations that are.
      at = unsteady ? unsteady + 1 : 0
      at += 1 until at >= times.size || range.cover?(times[at]) || at > times.size / 2
      at > times.size / 2 ? nil : at + 1
    end

    # The curve as a line of bars, by the logarithm of the time.
    def curve
      columns = times.each_slice((times.size / COLUMNS.to_f).ceil).map { |slice| Math.log(Statistics.median(slice)) }
      low, high = columns.minmax
      columns.map { |x| BARS[high - low < 0.02 ? 0 : ((x - low) / (high - low) * (BARS.size - 1)).round] }.join
    end

    private

    def last_quarter = times.last([times.size / 4, 3].max)
  end
end
