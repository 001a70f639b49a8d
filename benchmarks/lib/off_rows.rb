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
    MOST_WITH_TEXTS = 1.10

    private

    # Instructions, which are the same in each run. Without a JIT but for exits.
    def off
      Callgrind.open(iterations: nil) do |counter|
        without = bare("--disable-jit")
        OPERATIONS.each { |operation| add_off_row(counter, operation, without) }
        { "ZJIT" => "--zjit", "YJIT" => "--yjit" }.each do |jit, flag|
          add_off_row(counter, "exit", bare("#{flag} #{flag}-call-threshold=20"), "#{jit}: ")
        end
      end
    end

    # Both sides without RubyGems, and with these flags.
    def bare(flags)
      { ours: @ours, base: @base }.transform_values { |side| with_flags(side, "--disable=gems #{flags}") }
    end

    def with_flags(side, flags) = Side.new(side.name, "#{side.command[0].shellescape} #{flags}")

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
      flags = "--yjit --yjit-call-threshold=30 --yjit-cold-threshold=1000000000"
      yjit = [@ours, @base].map { |side| with_flags(side, flags) }
      jits = { "ZJIT" => [@ours, @base, :base], "YJIT" => [*yjit, :base_yjit] }
      jits.to_a.product(COMPILED) do |(jit, sides), methods|
        add_compiling_row("#{jit}: compiling #{methods} methods", methods, *sides)
      end
      add_code_text_row(COMPILED.first)
    end

    # What texts of code add to a trace of compilations and exits. The base prints its HIR, of all code.
    def add_code_text_row(methods)
      ours, base = [[@ours, :hir, :compiles], [@base, :base_hir, :none]].map do |side, with, without|
        { with: variant("HIR", side, with), without: variant("", side, without) }
      end
      jobs = { hir: ours[:with], compiles: ours[:without], base_hir: base[:with], base: base[:without] }
             .transform_values { |variant| [variant, "compiling", methods] }
      title = "ZJIT: compiling #{methods} methods"
      seconds = @recording.rounds([@rounds, 5].max, title, jobs).transform_values { |list| list.map(&:seconds) }
      ratios = ->(*pair) { seconds.values_at(*pair).transpose.map { |x, y| x / y } }
      a, b = ratios[:hir, :compiles], ratios[:base_hir, :base]
      ours, base = Statistics.median(a), Statistics.median(b)
      @rows << Row.new(name: "#{title}, =hir / compilations and exits", unit: "times", ours: ours, base: base,
                       ratio: base / ours, runs: a.size, target: "<= #{MOST_WITH_TEXTS} times", met: ours <= MOST_WITH_TEXTS,
                       note: "%.3f .. %.3f; the base prints its HIR" % a.minmax)
    end

    def add_compiling_row(title, methods, ours, base, peer)
      variants = { none: variant("", ours), traced: variant("", ours, :default, 97),
                   base: variant("", base), base_traced: variant("", base, peer, 97) }
      jobs = variants.transform_values { |variant| [variant, "compiling", methods] }
      seconds = @recording.rounds([@rounds, 5].max, title, jobs).transform_values { |list| list.map(&:seconds) }
      ours_ratios, base_ratios = [%i[traced none], %i[base_traced base]].map do |traced, untraced|
        seconds[traced].zip(seconds[untraced]).map { |a, b| a / b }
      end
      a, b = Statistics.median(ours_ratios), Statistics.median(base_ratios)
      note = "%.3f .. %.3f; untraced %.2f s of the processor" % [*ours_ratios.minmax, Statistics.median(seconds[:none])]
      @rows << Row.new(name: "#{title}, --vm-trace=default / untraced", unit: "times", ours: a, base: b, ratio: b / a,
                       runs: ours_ratios.size, target: "<= #{MOST_COMPILING} times", met: a <= MOST_COMPILING,
                       note: note)
    end
  end
end
