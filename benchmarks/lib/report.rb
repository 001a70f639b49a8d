# The table and the JSON of a comparison.

require "json"
require_relative "judgement"
require_relative "machine"
require_relative "table"

module Bench
  class Report
    attr_reader :judgement

    # sides: the baseline (which may be nil, or a Hash of a saved one) and the candidates
    # calibration: a Calibration, or nil
    def initialize(comparison, sides, options, calibration = nil)
      @comparison, @sides, @options, @calibration = comparison, sides, options, calibration
      @judgement = Judgement.new(results, options)
    end

    def table
      rows = results.map { |result| row(result) }
      header = ["workload", *("side" if several?), *%w[baseline candidate ratio], interval_title,
                *%w[CPU memory runs verdict]]
      lines = Table.lines([header, *rows.map(&:first)])
      out = lines.each_with_index.flat_map { |line, i| i == 0 ? [line] : [line, *rows[i - 1].last] }
      out << "" << summary
      out.compact.join("\n")
    end

    # The medians of several processes, from their first iteration on.
    def warm_up_table
      # Several candidates share the rows of their baseline.
      rows = results.select(&:warm_ups).flat_map do |result|
        result.warm_ups.map { |side, warm_up| [result.workload.name, side, *warm_up_cells(warm_up)] }
      end.uniq
      header = ["warm-up", "side", "first", "iteration #{@options[:warm_up]}", "steady", "from iteration", ""]
      ["", *Table.lines([header, *rows])].join("\n")
    end

    def json
      JSON.pretty_generate(
        "baseline" => side(0), "candidate" => (side(1) unless several?),
        "candidates" => candidates.map { |one| candidate_entry(one) },
        "interrupted" => !!@comparison.interrupted,
        "confidence" => @options[:confidence], "threshold_percent" => @options[:threshold], "seed" => @options[:seed],
        "machine" => Machine.describe, "notes" => warnings,
        "geometric_mean" => (mean_entry(results) unless several?),
        "workloads" => results.map { |result| entry(result) }, **calibration_entry
      )
    end

    # Names of the workloads that are slower by more than the threshold, with confidence.
    def slower
      @judgement.slower
    end

    def failed
      results.select(&:failure)
    end

    def undecided
      @judgement.undecided
    end

    private

    def candidates
      @sides.drop(1)
    end

    def several?
      candidates.size > 1
    end

    def of_side(side)
      results.select { |result| result.side.equal?(side) }
    end

    def warm_up_cells(warm_up)
      return ["", "", "", "", warm_up] if warm_up.is_a?(String)
      [*[warm_up.first, warm_up.last, warm_up.steady].map { |seconds| duration(seconds) },
       warm_up.steady_from&.to_s || "not steady", warm_up.curve]
    end

    def results
      @comparison.results
    end

    def interval_title
      "#{format('%g', @options[:confidence])} % interval"
    end

    def row(result)
      names = [result.workload.name, *(result.side.name if several?)]
      return [[*names, *[""] * 7, "failed"], ["    #{result.failure}"]] if result.failure
      return [[*names, *[""] * 7, "not run"], []] if result.not_run
      times = [result.baseline, result.candidate].map { |list| time(list) }
      judged = @judgement.of(result)
      return [[*names, *times, "", "", "", "", result.runs.to_s, "not compared"], []] unless judged
      i = judged.wall
      memory = [result.baseline, result.candidate].map { |list| result.peak(list) }
      [[*names, *times, Statistics.text(i.ratio), i.range, judged.cpu ? Statistics.text(judged.cpu.ratio) : "",
        memory.all? ? "%+.1f MiB" % ((memory[1] - memory[0]) / 1024.0) : "", result.runs.to_s, @judgement.words(judged)], []]
    end

    def time(list)
      return "" if list.empty?
      text = duration(Statistics.median(list.map(&:seconds)))
      list.first.iterations ? text : "#{text} *"
    end

    def duration(seconds)
      seconds < 0.001 ? "%.1f us" % (seconds * 1e6) : seconds < 10 ? "%.2f ms" % (seconds * 1e3) : "%.2f s" % seconds
    end

    def summary
      out = [*candidates.filter_map { |side| ratio_line(side) }, *limits]
      if results.any? { |result| (result.baseline + result.candidate).any? { |measure| measure.iterations.nil? } }
        out << "* whole processes; the others time iterations inside them"
      end
      out.concat(layouts) if @options[:layouts]
      out << "slower by more than %g %%: %s" % [@options[:threshold], slower.join(", ")] unless slower.empty?
      out << "cannot be judged: #{undecided.join(', ')}" unless undecided.empty?
      out << "failed: #{failed.map(&:name).join(', ')}" unless failed.empty?
      out << "interrupted: these are the runs until then" if @comparison.interrupted
      out.concat(warnings.map { |text| "note: #{text}" })
      out.compact.join("\n")
    end

    def ratio_line(side)
      mean = @judgement.geometric_mean(of_side(side)) or return
      counts = of_side(side).filter_map { |result| @judgement.of(result)&.word }.tally
      "ratio: %s / baseline, geometric mean %s%s over %s: %s" %
        [side.name, Statistics.text(mean.ratio), mean.pairs < 3 ? "" : " (#{mean.range})", count(counts.values.sum),
         Judgement::WORDS.filter_map { |key, word| "#{counts[key]} #{word}" if counts[key] }.join(", ")]
    end

    def count(n)
      n == 1 ? "1 workload" : "#{n} workloads"
    end

    # What these runs can and cannot tell.
    def limits
      out = []
      if @judgement.comparisons > 1
        out << "the intervals of all #{@judgement.comparisons} comparisons hold together (Holm); " \
               "CPU is the ratio of processor time"
      end
      least, most = @judgement.smallest_slowdown_found
      return out unless least
      places = [least, most].uniq.map { |fraction, name| "#{Judgement.percent(fraction)} (#{name})" }
      out << "exit status 1 finds a slowdown of #{places.join(' to ')} or more, in four cases of five"
    end

    # What the order alone is worth.
    def layouts
      spreads = results.reject { |result| result.ended? || result.candidate.empty? }.map do |result|
        "#{result.name} %s and %s" % result.order_spreads.map { |spread| Statistics.text(spread) }
      end
      ["over #{@options[:layouts]} link orders of each side; slowest / fastest order, of baseline and candidate: " \
       "#{spreads.join(', ')}"]
    end

    def warnings
      many = results.reject(&:ended?).to_h { |result| [result.name, result.outliers] }.select { |_, n| n > 0 }
      outliers = "far from the other runs: #{many.map { |name, n| "#{n} of #{name}" }.join(', ')}" unless many.empty?
      governors = Machine.slow_governors
      slow = "the CPU governor is #{governors.join(' and ')}: the clock rate may change between runs" unless governors.empty?
      [*@comparison.not_run, *@comparison.disturbances, outliers, slow].compact
    end

    def side(i)
      side = @sides[i]
      side.is_a?(Hash) ? side : side && { "command" => side.to_s, "ruby" => side.description }
    end

    def candidate_entry(side)
      { "name" => side.name, "command" => side.to_s, "ruby" => side.description,
        "geometric_mean" => mean_entry(of_side(side)) }
    end

    def warm_up_entry(warm_up)
      return warm_up if warm_up.is_a?(String)
      { "seconds" => warm_up.times, "steady_from" => warm_up.steady_from }
    end

    def calibration_entry
      @calibration ? { "calibration" => @calibration.to_h } : {}
    end

    def mean_entry(results)
      mean = @judgement.geometric_mean(results)
      mean && { "ratio" => mean.ratio, "low" => mean.low, "high" => mean.high }
    end

    def entry(result)
      judged = @judgement.of(result)
      i, cpu = judged&.wall, judged&.cpu
      finite = ->(x) { x&.finite? ? x : nil }
      {
        "name" => result.workload.name, "side" => result.side.name, "path" => result.workload.path,
        "failure" => result.failure, "not_run" => result.not_run,
        "in_process" => (result.baseline + result.candidate).all?(&:iterations),
        "ratio" => i&.ratio, "low" => finite.(i&.low), "high" => finite.(i&.high), "smallest_difference_seen" => finite.(i&.detectable),
        "cpu_ratio" => cpu&.ratio, "cpu_low" => finite.(cpu&.low), "cpu_high" => finite.(cpu&.high),
        "verdict" => judged && Judgement::WORDS[judged.word],
        "verdict_by" => judged && (judged.by.equal?(cpu) ? "CPU" : "wall clock"),
        "runs_needed" => judged && @judgement.runs_needed(judged), "outliers" => i && result.outliers,
        **(@options[:layouts] && i ? { "order_spreads" => result.order_spreads } : {}),
        "baseline_seconds" => result.baseline.map(&:seconds), "candidate_seconds" => result.candidate.map(&:seconds),
        "baseline_cpu_seconds" => result.baseline.map(&:cpu_seconds),
        "candidate_cpu_seconds" => result.candidate.map(&:cpu_seconds),
        "baseline_first_seconds" => result.baseline.map(&:first_seconds),
        "candidate_first_seconds" => result.candidate.map(&:first_seconds),
        "baseline_peak_kib" => result.peak(result.baseline), "candidate_peak_kib" => result.peak(result.candidate),
        "baseline_counts" => result.baseline.last&.extra, "candidate_counts" => result.candidate.last&.extra,
        "warm_up" => result.warm_ups&.to_h { |name, warm_up| [name, warm_up_entry(warm_up)] },
        "exits" => result.exits
      }
    end
  end
end
