# What a comparison of a Ruby with itself says of the machine: how small a difference it can see, and
# how often it takes two equal sides for different.
#
# In each round both sides ran the same, so which of the two runs was the baseline's is arbitrary.
# Swapping them at random gives tables of equal sides, with the noise of this machine, that are judged
# like any other.

require_relative "judgement"
require_relative "table"

module Bench
  class Calibration
    TABLES = 100

    # wall, cpu: the smallest difference that is seen in four cases of five, a fraction, the median over
    # the tables; cpu is nil where that was not measured. flagged: tables in which the equal sides differ.
    Row = Struct.new(:name, :wall, :cpu, :flagged, keyword_init: true)

    attr_reader :rows, :flagged_tables

    # options: those of Judgement
    def initialize(results, options)
      results = results.select { |result| result.interval(:seconds, 0.99, 1) }
      random = Random.new(options[:seed])
      tables = Array.new(results.empty? ? 0 : TABLES) do
        swapped = results.map { |result| result.swapped(random) }
        judgement = Judgement.new(swapped, options)
        swapped.map { |result| judgement.of(result) }
      end
      @flagged_tables = tables.count { |verdicts| verdicts.any? { |verdict| flagged?(verdict) } }
      @rows = results.zip(tables.transpose).map { |result, verdicts| row(result, verdicts) }
      @runs = results.map(&:runs).max
    end

    def table
      return ["", "nothing to calibrate with"] if @rows.empty?
      header = ["calibration", "smallest difference", "by CPU", "equal, but flagged"]
      ["", *Table.lines([header, *@rows.map { |row| cells(row) }]), "",
       "two equal sides differ in #{count(@rows.sum(&:flagged), TABLES * @rows.size)} of their comparisons, " \
       "and somewhere in a table in #{count(@flagged_tables, TABLES)}",
       "smallest difference: what #{@runs} runs show in four cases of five, in a table of these workloads"]
    end

    def to_h
      { "tables" => TABLES, "tables_flagged" => @flagged_tables,
        "workloads" => @rows.map do |row|
          { "name" => row.name, "smallest_difference" => finite(row.wall),
            "smallest_difference_by_cpu" => finite(row.cpu), "flagged" => row.flagged }
        end }
    end

    private

    def flagged?(verdict)
      %i[slower faster].include?(verdict.word)
    end

    def row(result, verdicts)
      wall, cpu = %i[wall cpu].map do |clock|
        seen = verdicts.filter_map { |verdict| verdict[clock]&.detectable }
        Statistics.median(seen) unless seen.empty?
      end
      Row.new(name: result.name, wall: wall, cpu: cpu, flagged: verdicts.count { |verdict| flagged?(verdict) })
    end

    def cells(row)
      [row.name, *[row.wall, row.cpu].map { |fraction| finite(fraction) ? Judgement.percent(fraction) : "" },
       "#{row.flagged} of #{TABLES}"]
    end

    def count(n, of)
      "#{n} of #{Table.number(of)}"
    end

    def finite(number)
      number&.finite? ? number : nil
    end
  end
end
