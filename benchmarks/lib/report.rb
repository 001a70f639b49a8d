# The table and the JSON of a comparison.

require "json"
require_relative "statistics"

module Bench
  class Report
    WORDS = { slower: "slower", faster: "faster", same: "no difference seen", unknown: "too few runs" }.freeze

    def initialize(comparison, sides, options)
      @comparison, @sides, @options = comparison, sides, options
    end

    def table
      rows = results.map { |result| row(result) }
      header = ["workload", "baseline", "candidate", "ratio", interval_title, "memory", "runs", "verdict"]
      lines = align([header, *rows.map(&:first)])
      out = lines.each_with_index.flat_map { |line, i| i == 0 ? [line] : [line, *rows[i - 1].last] }
      out << "" << summary
      out.compact.join("\n")
    end

    def json
      JSON.pretty_generate(
        "baseline" => side(0), "candidate" => side(1), "interrupted" => !!@comparison.interrupted,
        "confidence" => @options[:confidence], "threshold_percent" => @options[:threshold], "seed" => @options[:seed],
        "machine" => Machine.describe,
        "workloads" => results.map { |result| entry(result) }
      )
    end

    # Slower by more than the threshold, with confidence.
    def slower
      results.select { |result| interval(result)&.slower_by?(@options[:threshold]) }
    end

    def failed
      results.select(&:failure)
    end

    private

    def results
      @comparison.results
    end

    def interval(result)
      result.interval(@options[:confidence] / 100.0, @options[:seed])
    end

    def interval_title
      "#{format('%g', @options[:confidence])} % interval"
    end

    def row(result)
      name = result.workload.name
      return [[name, "", "", "", "", "", "", "failed"], ["    #{result.failure}"]] if result.failure
      i = interval(result)
      return [[name, *[result.baseline, result.candidate].map { |list| time(list) }, "", "", "", result.runs.to_s, "not compared"], []] unless i
      memory = [result.baseline, result.candidate].map { |list| result.peak(list) }
      [[name, time(result.baseline), time(result.candidate), ratio(i.ratio), range(i),
        memory.all? ? "%+.1f MiB" % ((memory[1] - memory[0]) / 1024.0) : "", result.runs.to_s, verdict(i)], []]
    end

    def range(i)
      i.high.infinite? ? "" : "#{ratio(i.low)} .. #{ratio(i.high)}"
    end

    def ratio(number)
      "%.*f" % [Statistics::DIGITS, number]
    end

    def verdict(i)
      word = WORDS[i.verdict]
      return word unless i.verdict == :same
      "#{word} (of #{percent(i.detectable)} or more)"
    end

    def percent(fraction)
      fraction < 0.001 ? "0.1 %" : "%.1f %%" % (fraction * 100)
    end

    def time(list)
      return "" if list.empty?
      seconds = Statistics.median(list.map(&:seconds))
      text = seconds < 0.001 ? "%.1f us" % (seconds * 1e6) : seconds < 10 ? "%.2f ms" % (seconds * 1e3) : "%.2f s" % seconds
      list.first.iterations ? text : "#{text} *"
    end

    def summary
      intervals = results.filter_map { |result| interval(result) }
      out = []
      unless intervals.empty?
        mean = Math.exp(intervals.sum { |i| Math.log(i.ratio) } / intervals.size)
        counts = intervals.map(&:verdict).tally
        out << "ratio: candidate / baseline, geometric mean %.3f over %d workloads: %s" %
               [mean, intervals.size, WORDS.filter_map { |key, word| "#{counts[key]} #{word}" if counts[key] }.join(", ")]
      end
      if results.any? { |result| (result.baseline + result.candidate).any? { |measure| measure.iterations.nil? } }
        out << "* whole processes; the others time iterations inside them"
      end
      out << "slower by more than %g %%: %s" % [@options[:threshold], slower.map { |result| result.workload.name }.join(", ")] unless slower.empty?
      out << "failed: #{failed.map { |result| result.workload.name }.join(', ')}" unless failed.empty?
      out << "interrupted: these are the runs until then" if @comparison.interrupted
      out.join("\n")
    end

    def align(rows)
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.map do |row|
        row.each_with_index.map do |cell, i|
          i == 0 || i == row.size - 1 ? cell.ljust(widths[i]) : cell.rjust(widths[i])
        end.join("  ").rstrip
      end
    end

    def side(i)
      side = @sides[i]
      side.is_a?(Hash) ? side : side && { "command" => side.to_s, "ruby" => side.description }
    end

    def entry(result)
      i = interval(result)
      finite = ->(x) { x&.finite? ? x : nil }
      {
        "name" => result.workload.name, "path" => result.workload.path, "failure" => result.failure,
        "in_process" => (result.baseline + result.candidate).all?(&:iterations),
        "ratio" => i&.ratio, "low" => finite.(i&.low), "high" => finite.(i&.high), "smallest_difference_seen" => finite.(i&.detectable),
        "verdict" => i && WORDS[i.verdict],
        "baseline_seconds" => result.baseline.map(&:seconds), "candidate_seconds" => result.candidate.map(&:seconds),
        "baseline_peak_kib" => result.peak(result.baseline), "candidate_peak_kib" => result.peak(result.candidate),
        "baseline_counts" => result.baseline.last&.extra, "candidate_counts" => result.candidate.last&.extra,
        "exits" => result.exits
      }
    end
  end

  module Machine
    def self.describe
      cpu = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)/, 1] rescue nil
      load = File.read("/proc/loadavg").split.first(3).join(" ") rescue nil
      require "etc"
      { "cpu" => cpu, "cores" => Etc.nprocessors, "system" => Etc.uname.values_at(:sysname, :release, :machine).join(" "), "load" => load }
    end

    # What must be the same for times to be comparable.
    def self.fingerprint(description)
      description.values_at("cpu", "cores", "system")
    end
  end
end
