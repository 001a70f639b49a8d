# Other profilers of Ruby beside vm_trace: what each answers to questions whose answers are known, and what it costs.

require "tmpdir"
require_relative "gem_environment"
require_relative "side"
require_relative "statistics"

module Bench
  class Peers
    ROW = File.expand_path("../rows/peers.rb", __dir__)
    GEMFILE = File.expand_path("../../test/applications/peers/Gemfile", __dir__)
    TIMEOUT = 120.0
    PROFILERS = %w[none vm_trace stackprof vernier ruby-prof gvl-tracing gvltools].freeze
    # name => [the question, its unit]
    SITUATIONS = {
      "methods" => ["time of a method and what it calls", "ms"],
      "cpu" => ["CPU time of a method that sleeps between", "ms"],
      "native" => ["time of a method that compresses without the GVL", "ms"],
      "deep" => ["of 300 methods that call each other, those with their time", "methods"],
      "define_method" => ["time of one of two methods of one `define_method`", "ms"],
      "child" => ["time of a method in a forked child", "ms"],
      "calls" => ["calls of a short method", "calls"],
      "gvl" => ["waits for the GVL, four threads that compute", "ms"],
      "gc" => ["time of the collections", "ms"],
      "malloc" => ["bytes that a method allocates with malloc", "bytes"],
      "exits" => ["exits of compiled code", "exits"],
      "poll" => ["of 1,000 polls of 1 ms that hold the GVL, those interrupted by the profiler", "polls"]
    }.freeze

    def initialize(ruby, gems:, folder: Dir.tmpdir)
      @ruby, @gems, @folder = ruby, gems, folder
      @failures = []
    end

    # Lines of Markdown. Each round runs a situation under all profilers that had an answer in the first one, forwards
    # and backwards in turn.
    def run(names, rounds)
      runs = names.to_h do |name|
        profilers = PROFILERS
        all = Array.new(rounds) do |round|
          yield "#{name}, round #{round + 1} of #{rounds}" if block_given?
          found = (round.even? ? profilers : profilers.reverse).to_h { |profiler| [profiler, measure(name, profiler)] }
          found.select! { |profiler, run| run && (profiler == "none" || run.key?("found")) }
          profilers &= found.keys if round.zero?
          found
        end
        [name, all]
      end
      [*table(runs, "right") { |*run| answer(*run) }, "", *table(runs, "untraced, ms") { |*run| cost(*run) },
       *@failures.map { |failure| "\n#{failure}" }]
    end

    def ours_failed? = @failures.any? { |failure| failure.start_with?("vm_trace, ", "none, ") }

    private

    def measure(name, profiler)
      flags = %w[none vm_trace].include?(profiler) ? [] : ["-rbundler/setup"]
      @ruby.run(Workload.new(name, ROW, [name, profiler, @folder]), flags: flags, timeout: TIMEOUT,
                env: GemEnvironment.of(@ruby.command[0], GEMFILE, @gems)).extra
    rescue Failed => e
      @failures << "#{profiler}, #{name}: #{e.message}"
      nil
    end

    # The median answer, and how much of the right one of its own run it is.
    def answer(runs, profiler)
      return number(Statistics.median(runs.map { |run| run.fetch("none")["right"] })) if profiler == "none"
      found, right = %w[found right].map { |key| Statistics.median(runs.map { |run| run[profiler][key] }) }
      right.zero? ? number(found) : "#{number(found)} (#{(100 * found / right).round} %)"
    end

    # The median of the rounds' ratios.
    def cost(runs, profiler)
      return number(Statistics.median(runs.map { |run| run.fetch("none")["cpu"] }) * 1000) if profiler == "none"
      "%.2f" % Statistics.median(runs.map { |run| run[profiler]["cpu"] / run.fetch("none")["cpu"] })
    end

    def table(runs, first)
      head = ["", first, *PROFILERS.drop(1)]
      rows = runs.map do |name, all|
        [SITUATIONS.fetch(name).join(", "), *PROFILERS.map do |profiler|
          rounds = all.select { |found| found[profiler] && found["none"] }
          rounds.empty? ? "" : yield(rounds, profiler)
        end]
      end
      [head, head.map { "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |" }
    end

    def number(value) = value.abs >= 1000 ? value.round.to_s.reverse.scan(/\d{1,3}/).join(",").reverse : "%.3g" % value
  end
end
