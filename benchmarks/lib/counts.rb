# The table and the JSON of `compare --instructions`.

require "json"
require_relative "machine"
require_relative "statistics"
require_relative "table"

module Bench
  class Counts
    # What Ruby takes before it runs a program: a row of its own, for nothing is subtracted.
    START = Workload.new("(empty program)", "-e", [""]).freeze

    # Two runs of one program say little of how far a third may be from them.
    MARGIN = 3
    # Smaller differences are not shown, so they are none.
    SMALLEST = 0.00005

    WORDS = { more: "more", fewer: "fewer", same: "no difference", uneven: "counts differ too much to tell" }.freeze

    # ratio: candidate / baseline of the medians; apart: largest count of one side / its smallest - 1
    Verdict = Struct.new(:word, :ratio, :apart, keyword_init: true)

    # sides: the baseline and the candidates; notes: what makes counts of one program differ here
    def initialize(comparison, sides, options, notes)
      @comparison, @sides, @options, @notes = comparison, sides, options, notes
      counted = comparison.results.reject { |result| result.ended? || result.candidate.empty? }
      @verdicts = counted.to_h { |result| [result, judge(result)] }
    end

    def table
      several = @sides.size > 2
      header = ["instructions", *("side" if several), *%w[baseline candidate ratio change runs apart verdict]]
      rows = results.flat_map { |result| rows(result, [result.workload.name, *(result.side.name if several)]) }
      [*Table.lines([header, *rows.grep(Array)]).then { |lines| beside(rows, lines) }, "", *summary].join("\n")
    end

    def json
      JSON.pretty_generate(
        "baseline" => side(@sides[0]),
        "candidates" => @sides.drop(1).map { |one| { "name" => one.name, **side(one), "geometric_mean" => mean(one) } },
        "counts" => "instructions", "iterations" => @options[:instructions],
        "threshold_percent" => @options[:threshold], "interrupted" => !!@comparison.interrupted,
        "machine" => Machine.describe, "notes" => warnings,
        "workloads" => results.map { |result| entry(result) }
      )
    end

    # Names of what takes more instructions than the threshold permits, whichever counts are taken.
    def slower
      names { |one| one.word == :more && one.ratio / (1 + margin(one)) > 1 + threshold }
    end

    def failed
      results.select(&:failure)
    end

    def undecided
      names { |one| one.word == :uneven }
    end

    private

    def results
      @comparison.results
    end

    def names
      @verdicts.select { |_, one| yield one }.map { |result, _| result.name }
    end

    def threshold
      @options[:threshold] / 100.0
    end

    def judge(result)
      lists = [result.baseline, result.candidate].map { |list| list.map(&:instructions) }
      medians = lists.map { |list| Statistics.median(list) }
      one = Verdict.new(ratio: medians[1].fdiv(medians[0]), apart: lists.map { |list| list.max.fdiv(list.min) - 1 }.max)
      one.tap { one.word = word(one) }
    end

    def word(verdict)
      difference = [verdict.ratio, 1 / verdict.ratio].max - 1
      return verdict.ratio > 1 ? :more : :fewer if difference > [margin(verdict), SMALLEST].max
      margin(verdict) > [threshold, SMALLEST].max ? :uneven : :same
    end

    def margin(verdict)
      MARGIN * verdict.apart
    end

    # A row of cells, then perhaps a line of text.
    def rows(result, names)
      empty = [""] * 6
      return [[*names, *empty, "failed"], "    #{result.failure}"] if result.failure
      return [[*names, *empty, "not run"]] if result.not_run
      one = @verdicts[result] or return [[*names, *empty, "not counted"]]
      counts = [result.baseline, result.candidate].map do |list|
        Table.number(Statistics.median(list.map(&:instructions)).round)
      end
      [[*names, *counts, "%.4f" % one.ratio, "%+.2f %%" % ((one.ratio - 1) * 100), result.runs.to_s,
        result.runs > 1 ? "%.4f %%" % (one.apart * 100) : "", WORDS[one.word]]]
    end

    # The header, and each line of cells with the lines of text after it.
    def beside(rows, lines)
      [lines.shift, *rows.map { |row| row.is_a?(Array) ? lines.shift : row }]
    end

    def summary
      out = @sides.drop(1).filter_map do |one|
        "ratio: #{one.name} / baseline, geometric mean %.4f" % mean(one) if mean(one)
      end
      out << "whole processes in user mode: Ruby's start, compilation, and #{@options[:instructions]} iterations " \
             "of each workload that has them"
      out << "apart: how far the counts of one side are from each other" if results.any? { |result| result.runs > 1 }
      out << "more by more than %g %%: %s" % [@options[:threshold], slower.join(", ")] unless slower.empty?
      out << "cannot be judged: #{undecided.join(', ')}" unless undecided.empty?
      out << "failed: #{failed.map(&:name).join(', ')}" unless failed.empty?
      out << "interrupted: these are the counts until then" if @comparison.interrupted
      out.concat(warnings.map { |text| "note: #{text}" })
    end

    def warnings
      [*@comparison.not_run, *@notes]
    end

    # Of the workloads, not of the empty program.
    def mean(side)
      logs = @verdicts.filter_map do |result, one|
        Math.log(one.ratio) if result.side.equal?(side) && !result.workload.equal?(START)
      end
      logs.empty? ? nil : Math.exp(logs.sum / logs.size)
    end

    def side(side)
      { "command" => side.to_s, "ruby" => side.description }
    end

    def entry(result)
      one = @verdicts[result]
      { "name" => result.workload.name, "side" => result.side.name, "path" => result.workload.path,
        "failure" => result.failure, "not_run" => result.not_run, "ratio" => one&.ratio, "apart" => one&.apart,
        "verdict" => one && WORDS[one.word],
        "baseline_instructions" => result.baseline.map(&:instructions),
        "candidate_instructions" => result.candidate.map(&:instructions), "exits" => result.exits }
    end
  end
end
