# The tables and the JSON of `history`: for each workload a row for each commit.

require "json"
require_relative "comparison"
require_relative "judgement"
require_relative "table"

module Bench
  class HistoryReport
    HEADER = ["commit", "date", "ratio", nil, "CPU", "to the one before", "memory", "code", "exits", "compiling", ""].freeze
    # What inside.rb reports of each JIT.
    CODE = %w[code_region_bytes inline_code_size outlined_code_size].freeze
    EXITS = "side_exit_count"
    COMPILING = "compile_time_ns"

    # entries: [[Commit, Side or why there is none, index of the entry with the same Ruby or nil], ...], the oldest
    # first. counts: {[Side, Workload] => what the JIT counted in a run that is not timed}
    def initialize(entries, comparison, options, counts)
      @entries, @comparison, @options, @counts = entries, comparison, options, counts
      @results = comparison.results.to_h { |result| [[result.side, result.workload], result] }
      @judgement = Judgement.new(comparison.results, options)
      @steps = steps
      @step_judgement = Judgement.new(@steps.values, options)
    end

    def tables
      out = workloads.flat_map { |workload| ["#{workload.name}:", *table(workload), ""] }
      out.concat(notes).join("\n")
    end

    def json
      JSON.pretty_generate(
        "confidence" => @options[:confidence], "interrupted" => !!@comparison.interrupted,
        "machine" => Machine.describe, "notes" => notes,
        "commits" => @entries.map { |commit, side, same| entry(commit, side, same) }
      )
    end

    # [[title, [[index of the commit, ratio, low, high], ...]], ...]
    def lines
      workloads.map do |workload|
        points = @entries.each_with_index.filter_map do |(_, side), at|
          next [at, 1, 1, 1] if side.equal?(first)
          wall = side.is_a?(Side) && judged(side, workload)&.wall
          [at, wall.ratio, wall.low, wall.high] if wall && wall.high.finite?
        end
        [workload.name, points]
      end
    end

    # Names of the commits.
    def labels = @entries.map { |commit,| commit.short }

    # Names of what is slower than on the first commit by more than the threshold.
    def slower = @judgement.slower

    private

    def first = @entries[0][1]
    def workloads = @comparison.results.map(&:workload).uniq
    def judged(side, workload) = @results[[side, workload]]&.then { |result| @judgement.of(result) }

    # Each measured commit against the one before it that was measured, too: their runs are of the same rounds.
    def steps
      sides = @entries.filter_map { |_, side, same| side if side.is_a?(Side) && !same }
      sides.each_cons(2).to_a.product(workloads).filter_map do |(before, after), workload|
        later = @results[[after, workload]]
        runs = before.equal?(first) ? later&.baseline : @results[[before, workload]]&.candidate
        next unless runs && later
        [[after, workload], Result.new(workload, after, runs).tap { |one| one.candidate.concat(later.candidate) }]
      end.to_h
    end

    def table(workload)
      header = HEADER.map { |title| title || "#{'%g' % @options[:confidence]} % interval" }
      rows = @entries.map { |commit, side, same| [commit.short, commit.date, *cells(side, same, workload), commit.title] }
      Table.lines([header, *rows])
    end

    def cells(side, same, workload)
      empty = [""] * (HEADER.size - 4)
      return ["no Ruby", *empty] unless side.is_a?(Side)
      return ["=", *empty] if same
      return ["1", "", "", "", *numbers(side, workload)] if side.equal?(first)
      result = @results[[side, workload]]
      return ["failed", *empty] if result.failure
      return ["not run", *empty] if result.not_run
      one = judged(side, workload) or return ["", *empty]
      [Statistics.text(one.wall.ratio), one.wall.range, one.cpu ? Statistics.text(one.cpu.ratio) : "",
       step(side, workload), *numbers(side, workload)]
    end

    # Empty where these runs see no difference.
    def step(side, workload)
      one = @steps[[side, workload]]&.then { |result| @step_judgement.of(result) }
      return "" unless one && %i[slower faster].include?(one.word)
      "#{Judgement::WORDS[one.word]} #{Statistics.text(one.by.ratio)}#{' by CPU' if one.by.equal?(one.cpu)}"
    end


    def numbers(side, workload)
      memory, code, exits, compiling = measured(side, workload).values_at("peak_kib", "code_bytes", "exits", "compile_ns")
      [memory && "%.1f MiB" % (memory / 1024.0), code && "%.1f KiB" % (code / 1024.0), exits&.round&.to_s,
       compiling && "%.1f ms" % (compiling / 1e6)].map(&:to_s)
    end

    def measured(side, workload)
      result = @results[[side, workload]] || @results.each_value.find { |one| one.workload.equal?(workload) }
      runs = side.equal?(first) ? result.baseline : result.candidate
      code = median(runs) { |extra| extra.values_at(*CODE).compact.then { |found| found.sum unless found.empty? } }
      { "peak_kib" => result.peak(runs), "code_bytes" => code, "exits" => @counts.dig([side, workload], EXITS),
        "compile_ns" => median(runs) { |extra| extra[COMPILING] },
        "seconds" => runs.map(&:seconds), "cpu_seconds" => runs.map(&:cpu_seconds) }
    end

    # Over runs, of what the process reported; nil if it did not.
    def median(runs)
      values = runs.filter_map { |measure| yield measure.extra }
      Statistics.median(values) unless values.empty?
    end

    def entry(commit, side, same)
      base = { "commit" => commit.id, "date" => commit.date, "title" => commit.title }
      return base.merge("failure" => side) unless side.is_a?(Side)
      return base.merge("same_as" => @entries[same][0].id) if same
      base.merge("ruby" => side.description,
                 "workloads" => workloads.to_h { |workload| [workload.name, numbers_of(side, workload)] })
    end

    def numbers_of(side, workload)
      result = @results[[side, workload]]
      one = result && judged(side, workload)
      interval = ->(i) { i && { "ratio" => i.ratio, "low" => i.low, "high" => i.high.finite? ? i.high : nil } }
      { "failure" => result&.failure, "wall" => interval.(one&.wall), "cpu" => interval.(one&.cpu),
        "verdict" => one && Judgement::WORDS[one.word], **measured(side, workload) }.compact
    end

    def notes
      same = @entries.count { |_, _, one| one }
      out = ["ratio: to the first commit; the intervals of all rows hold together (Holm), and so do the steps"]
      out << "=: the Ruby of an earlier commit, which differs in nothing that a build reads" if same > 0
      out.concat(@entries.filter_map { |commit, side,| "#{commit.short}: #{side}" unless side.is_a?(Side) })
      out.concat(@comparison.results.filter_map { |result| "#{result.name}: #{result.failure}" if result.failure })
      out << "interrupted: these are the runs until then" if @comparison.interrupted
      [*out, *@comparison.not_run, *@comparison.disturbances]
    end
  end
end
