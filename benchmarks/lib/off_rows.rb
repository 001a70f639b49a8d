# The groups `off` and `compiling` of `make bench`: what the patches cost where nothing is traced, operation by
# operation, and what tracing costs while a program compiles.

require "tmpdir"
require_relative "callgrind"
require_relative "recording"

module Bench
  module OffRows
    MOST_MORE = 0.005
    FEW, MANY = 1_000, 5_000
    OPERATIONS = ["call", "block", "method in C", "allocation", "fiber switch", "giving up the GVL", "raise, rescue",
                  "ISEQ that dies"].freeze
    COMPILED = [1_500, 5_000, 20_000].freeze
    MOST_COMPILING = 1.05

    private

    # Instructions, which are the same in each run. Without a JIT but for exits.
    def off
      Callgrind.open(iterations: nil) do |counter|
        without = %i[ours base].to_h { |key| [key, bare(instance_variable_get("@#{key}"), "--disable-jit")] }
        OPERATIONS.each { |operation| add_off_row(counter, operation, without) }
        { "ZJIT" => "--zjit", "YJIT" => "--yjit" }.each do |jit, flag|
          sides = { ours: @ours, base: @base }.transform_values do |side|
            bare(side, "#{flag} #{flag}-call-threshold=20")
          end
          add_off_row(counter, "exit", sides, "#{jit}: ")
        end
      end
    end

    def bare(side, flags) = Side.new(side.name, "#{side.command[0].shellescape} --disable=gems #{flags}")

    def add_off_row(counter, operation, sides, prefix = "")
      @progress&.step(0, 1, 0, 1, "instructions of #{operation}")
      ours, base = %i[ours base].map { |key| instructions(counter, sides[key], operation) }
      more = ours / base - 1
      @rows << Row.new(name: "#{prefix}nothing traced: #{operation}", unit: "instructions", ours: ours, base: base,
                       ratio: base / ours, runs: 1, target: "<= 0.5 % more", met: more <= MOST_MORE,
                       note: "%+.2f %%, the loop around it included" % (more * 100))
    end

    def instructions(counter, side, operation)
      few, many = [FEW, MANY].map do |count|
        counter.count(side, Workload.new("off", "#{Recording::ROWS}/off.rb", [operation, count.to_s])).instructions
      end
      (many - few).fdiv(MANY - FEW)
    end

    # Exits at the rate of the preset `default`; the base with its own tracer at the same rate. Of many methods YJIT
    # compiles only what is called often, and one after the other, unless its thresholds are given.
    def compiling
      thresholds = "--yjit-call-threshold=30 --yjit-cold-threshold=1000000000"
      yjit = [@ours, @base].map { |side| Side.new(side.name, "#{side.command[0].shellescape} --yjit #{thresholds}") }
      { "ZJIT" => [@ours, @base, :default, :base], "YJIT" => [*yjit, :default, :base_yjit] }
        .to_a.product(COMPILED) do |(jit, (ours, base, tracer, peer)), methods|
        jobs = { none: [variant("", ours), "compiling", methods], traced: [variant("", ours, tracer, 97), "compiling", methods],
                 base: [variant("", base), "compiling", methods], base_traced: [variant("", base, peer, 97), "compiling", methods] }
        runs = @recording.rounds([@rounds, 5].max, "#{jit}: compiling #{methods} methods", jobs)
        seconds = runs.transform_values { |list| list.map(&:seconds) }
        ours_ratios, base_ratios = [%i[traced none], %i[base_traced base]].map { |a, b| seconds[a].zip(seconds[b]).map { |x, y| x / y } }
        a, b = Statistics.median(ours_ratios), Statistics.median(base_ratios)
        @rows << Row.new(name: "#{jit}: compiling #{methods} methods, --vm-trace=default / untraced", unit: "times", ours: a,
                         base: b, ratio: b / a, runs: ours_ratios.size, target: "<= #{MOST_COMPILING} times", met: a <= MOST_COMPILING,
                         note: "%.3f .. %.3f; untraced %.2f s of the processor" % [*ours_ratios.minmax, Statistics.median(seconds[:none])])
      end
    end
  end
end
