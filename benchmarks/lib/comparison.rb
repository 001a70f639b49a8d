# Runs the workloads on all sides in turn and keeps the measurements. After Ctrl-C, or when the time
# is used up, those so far are kept.

require_relative "machine"
require_relative "side"
require_relative "statistics"

module Bench
  # A workload on the baseline and one candidate. `baseline` and `candidate` are lists of Measures; the
  # same index in both is a pair of runs of one round, unless the baseline was saved earlier.
  class Result
    attr_reader :workload, :side, :baseline, :candidate
    # not_run: why neither side could run it, which is no failure
    attr_accessor :failure, :not_run, :exits, :warm_ups

    # `side` is the candidate. All candidates of a workload share the list `baseline`. Of `orders` link
    # orders the run at index i is one of order i modulo `orders`.
    def initialize(workload, side, baseline, saved: false, named: false, orders: 1)
      @workload, @side, @baseline, @saved, @named, @orders = workload, side, baseline, saved, named, orders
      @candidate = []
    end

    # The workload's name, with the candidate's where there are several.
    def name
      @named ? "#{@workload.name} (#{@side.name})" : @workload.name
    end

    def saved?
      @saved
    end

    def fail(side, reason)
      @failure ||= "#{side}: #{reason}"
    end

    def ended?
      !!(@failure || @not_run)
    end

    # The same with the two runs of some rounds exchanged, at random.
    def swapped(random)
      pairs = @baseline.zip(@candidate).map { |pair| random.rand(2) == 0 ? pair : pair.reverse }
      dup.tap { |one| one.replace(*pairs.transpose) }
    end

    # Of `key`, :seconds or :cpu_seconds. nil if that was not measured on both sides.
    def interval(key, confidence, seed)
      return nil if @failure || @baseline.empty? || @candidate.empty?
      a, b = [@baseline, @candidate].map { |list| list.map(&key) }
      return nil unless [*a, *b].all? { |value| value&.positive? }
      a, b = over_orders(a, b) if @orders > 1
      Statistics.public_send(@saved ? :unpaired_interval : :paired_interval, a, b, confidence: confidence, seed: seed)
    end

    # Share of the baseline's time in which it had a processor; above 1 with several threads.
    def cpu_share
      Statistics.median(@baseline.map { |measure| measure.cpu_seconds / measure.seconds })
    end

    # Slowest link order / fastest, of the baseline and of the candidate: by processor time, which
    # scatters less, if it was measured.
    def order_spreads
      [@baseline, @candidate].map do |list|
        key = list.all?(&:cpu_seconds) ? :cpu_seconds : :seconds
        medians = by_order(list).map { |runs| Statistics.median(runs.map(&key)) }
        medians.max / medians.min
      end
    end

    # Runs that are far from the others of their workload. Those of another link order may be.
    def outliers
      return 0 if @orders > 1
      lists = @saved ? [@baseline, @candidate].map { |list| list.map { |measure| Math.log(measure.seconds) } }
                     : [@candidate.zip(@baseline).filter_map { |b, a| a && Math.log(b.seconds / a.seconds) }]
      lists.sum { |list| Statistics.outliers(list) }
    end

    def runs
      [@baseline, @candidate].reject(&:empty?).map(&:size).min || 0
    end

    def peak(list)
      peaks = list.filter_map(&:peak_kib)
      peaks.empty? ? nil : Statistics.median(peaks)
    end

    private

    # Runs of one order tell nothing of another: the orders are what varies, and each counts once.
    def over_orders(a, b)
      ratios = by_order(a.zip(b).filter_map { |one, other| other&.fdiv(one) }).map { |list| Statistics.median(list) }
      [[1.0] * ratios.size, ratios]
    end

    def by_order(list)
      list.each_with_index.group_by { |_, i| i % @orders }.values.map { |pairs| pairs.map(&:first) }
    end
    protected

    def replace(baseline, candidate)
      @baseline, @candidate = baseline, candidate
    end
  end

  class Comparison
    # disturbances: what else the machine did while it measured, a sentence each
    attr_reader :results, :interrupted, :disturbances

    # `baseline` may be nil (only the candidates are measured), `saved` maps names of workloads to
    # lists of Measures. With `orders`, each side runs so many binaries in turn. A block measures in
    # another way: it gets a side and a workload.
    def initialize(baseline, candidates, workloads, saved: nil, runs: 10, orders: 1, seconds: nil, timeout: nil,
                   progress: nil, &measure)
      @baseline, candidates = baseline, [*candidates]
      @groups = workloads.map do |workload|
        shared = saved ? saved.fetch(workload.name) : []
        candidates.map do |side|
          Result.new(workload, side, shared, saved: !saved.nil?, named: candidates.size > 1, orders: orders)
        end
      end
      @results = @groups.flatten
      @runs, @seconds, @timeout, @progress = runs, seconds, timeout, progress
      @measure = measure || ->(side, workload) { side.run(workload, timeout: @timeout) }
      @first_round = measure ? 1 : 1 - orders
      @disturbances = []
    end

    # First one run of each binary that does not count: it warms the page cache, and fails early.
    # Then rounds over all workloads, so that other work of the machine falls on all alike.
    def run
      deadline = @seconds && now + @seconds
      watch = Machine::Watch.new
      (@first_round..@runs).each do |round|
        alive = @groups.reject { |group| group.all?(&:ended?) }
        alive.each_with_index do |group, i|
          return if round > 0 && deadline && now > deadline
          @progress&.step(round, @runs, i, alive.size, group[0].workload.name)
          one_round(group, round)
        end
      end
    rescue Interrupt
      @interrupted = true
    ensure
      @disturbances = watch.warnings if watch
      @progress&.clear
    end

    # A sentence for each workload that was not run.
    def not_run
      @groups.map(&:first).select(&:not_run).map { |result| "#{result.workload.name} was not run: #{result.not_run}" }
    end

    private

    def one_round(group, round)
      measured = {}
      order(group, round).each do |side|
        measured[side] = @measure.(side, group[0].workload)
      rescue NotRun => e
        return group.each { |result| result.not_run = e.message }
      rescue Failed => e
        failed = side.equal?(@baseline) ? group : group.select { |result| result.side.equal?(side) }
        failed.each { |result| result.fail(side.name, e.message) }
        return if group.all?(&:ended?)
      end
      keep(group.reject(&:ended?), measured) if round > 0
    end

    # A B B A A B B A: drift, and what one run leaves behind for the next, falls on both alike. With
    # more candidates each of them is next to the baseline equally often.
    def order(group, round)
      sides = group.reject(&:ended?).map(&:side).rotate([round - 1, 0].max / 2)
      sides.unshift(@baseline) if @baseline
      round.odd? || round <= 0 ? sides : sides.reverse
    end

    # All of a round or nothing: an interrupted one leaves no half pair.
    def keep(group, measured)
      if measured.values.map { |measure| measure.iterations.nil? }.uniq.size > 1
        all, some = group.size == 1 ? ["both", "one side"] : ["all", "some sides"]
        return group.each { |result| result.fail(all, "it reports iterations on #{some} only") }
      end
      group[0].baseline << measured[@baseline] if @baseline
      group.each { |result| result.candidate << measured[result.side] }
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # One line that is overwritten, on a terminal only.
  class Progress
    def self.on(io)
      io.tty? ? new(io) : nil
    end

    def initialize(io)
      @io = io
      @start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def step(round, rounds, done, of, name)
      spent = Process.clock_gettime(Process::CLOCK_MONOTONIC) - @start
      share = (round + done.to_f / of) / (rounds + 1)
      left = share > 0.02 ? ", about #{duration(spent / share - spent)} left" : ""
      text = "#{round <= 0 ? 'warm-up' : "run #{round} of #{rounds}"}: #{name} (#{done + 1} of #{of})#{left}"
      @io.print("\r\e[K", text)
      @io.flush
    end

    def clear
      @io.print("\r\e[K")
      @io.flush
    end

    private

    def duration(seconds)
      seconds < 90 ? "#{seconds.round} s" : "#{(seconds / 60).round} min"
    end
  end
end
