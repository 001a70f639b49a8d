# What recording costs a benchmark of ruby-bench: one process of it, as ../ruby_bench/harness.rb runs it.

require "fileutils"
require "tmpdir"
require_relative "exits"
require_relative "ruby_bench"
require_relative "statistics"

module Bench
  class RubyBenchCosts
    HARNESS = File.expand_path("../ruby_bench", __dir__)
    TOOL = ENV["VM_TRACE"] || File.expand_path("../../build/tool/vm-trace", __dir__)
    # Column of the table => streams. The last one is for the time that exits lose.
    KINDS = { "K=1" => "exits:rate=1", "K=97" => "exits:rate=97", "default" => "default", "states" => "states" }.freeze
    LOST = "SELECT SUM(int_value) FROM args WHERE key = 'lost_ns'"

    def initialize(rounds:, timeout:)
      @rounds, @timeout = rounds, timeout
    end

    # A row for the table, with strings as keys.
    def of(side, benchmark)
      row = { "benchmark" => benchmark.name, "ruby" => side.description, "flags" => side.command.drop(1) }
      Dir.mktmpdir("vm-trace-bench") do |folder|
        trace = "#{folder}/trace"
        env = { "VM_TRACE_FILE" => trace, "VM_TRACE_KINDS" => KINDS.values.join(" "), "VM_TRACE_ROUNDS" => @rounds.to_s }
        values = side.run(benchmark, timeout: @timeout, env: env).extra
        raise Failed, "it ended well, but measured nothing" unless values.key?("cpu_0_0")
        lost = Exits.query(TOOL, "#{trace}.#{KINDS.size}", LOST).dig(0, 0).to_f / 1e9
        row.merge(measured(values), "lost_share" => lost / values.fetch("wall_#{@rounds - 1}_#{KINDS.size}"))
      end
    rescue NotRun => e
      row.merge("fault" => e.message.delete_prefix("#{side.name}: "))
    rescue Failed => e
      row.merge("fault" => e.message, "failed" => true)
    end

    # One row for each benchmark and Ruby, the last that there is, by benchmark.
    def self.table(rows)
      rows = rows.to_h { |row| [row.values_at("benchmark", "ruby"), row] }.values
                 .group_by { |row| row["benchmark"] }.values.flatten
      head = ["benchmark", "Ruby", "an iteration", "exits in it", "lost time", *KINDS.keys.first(3), "bytes, K=1",
              "bytes, `default`"]
      faults = rows.select { |row| row["fault"] }
      lines = [head, head.map { "---" }, *(rows - faults).map { |row| cells(row) }].map { |cells| "| #{cells.join(" | ")} |" }
      faults = faults.group_by { |row| row.values_at("benchmark", "fault") }
      [*lines, "", *faults.map { |(name, fault), list| "- `#{name}` (#{list.map { |row| ruby(row) }.join(", ")}): #{fault}" }]
    end

    def self.cells(row)
      ratios = KINDS.keys.first(3).map { |kind| "%.2f (%.2f to %.2f)" % row[kind]["ratio"] }
      lost = "%.1f %%" % (row["lost_share"] * 100)
      ["`#{row["benchmark"]}`", ruby(row), "%.0f ms" % (row["cpu_seconds"] * 1e3), Table.number(row["K=97"]["exits"].round), lost, *ratios,
       *%w[K=1 default].map { |kind| "#{Table.number((row[kind]["bytes"] / 1024.0).ceil)} KiB#{" (#{Table.number(row[kind]["lost"])} lost)" if row[kind]["lost"] > 0}" }]
    end

    def self.ruby(row) = "#{row["ruby"][/\d+\.\d+/]} #{row["ruby"][/[YZ]JIT/]}"
    private_class_method :cells, :ruby

    private

    # Medians over the rounds. A ratio is that of two turns of the same round: median, smallest, largest.
    def measured(values)
      of_kind = ->(name, kind) { Array.new(@rounds) { |round| values.fetch("#{name}_#{round}_#{kind}") } }
      untraced = of_kind.("cpu", 0)
      kinds = KINDS.keys.each_with_index.to_h do |name, i|
        ratios = of_kind.("cpu", i + 1).zip(untraced).map { |a, b| a / b }
        exits, bytes, lost = %w[exits bytes lost].map { |key| of_kind.(key, i + 1) }
        [name, { "ratio" => [Statistics.median(ratios), *ratios.minmax], "exits" => Statistics.median(exits),
                 "all_exits" => exits, "bytes" => Statistics.median(bytes), "lost" => lost.sum.to_i }]
      end
      { "rounds" => @rounds, "cpu_seconds" => Statistics.median(untraced), **kinds }
    end
  end
end
