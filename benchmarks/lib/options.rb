# The command line of benchmarks/compare.

require "optparse"
require_relative "side"

module Bench
  module Options
    USAGE = <<~TEXT
      Usage: compare BASELINE CANDIDATE... [OPTION]... [-- WORKLOAD...]
             compare CANDIDATE... --against NAME [OPTION]... [-- WORKLOAD...]
             compare CANDIDATE --save NAME [OPTION]... [-- WORKLOAD...]
             compare RUBY --calibrate [OPTION]... [-- WORKLOAD...]

      Says whether each CANDIDATE is slower than BASELINE. Each is a ruby executable, or one with flags in one
      argument: compare "ruby" "ruby --zjit". A WORKLOAD is one of ours, a script, or a folder of scripts.
      All sides run in turn, A B B A, after one run each that does not count.
    TEXT

    STATUS = <<~TEXT

      Exit status: 0 nothing is slower; 1 something is slower by more than the threshold, with confidence;
      2 wrong usage; 3 a workload failed on one side (the others were compared) and nothing is slower;
      4 nothing is slower, but some workload is too noisy, or has too few runs, to tell, or none was run;
      130 interrupted (what there was is printed).
    TEXT

    DEFAULTS = { confidence: 99.0, threshold: 2.0, seed: 1, timeout: 600.0 }.freeze

    # Counted runs of each side. Counts of instructions hardly differ: the second shows that.
    RUNS = { instructions: 2, layouts: 3 }.freeze
    MOST_RUNS = 10

    # What an option cannot go with, and why.
    APART = {
      calibrate: [%i[instructions save against trace warm_up], "compares a Ruby with itself"],
      layouts: [%i[instructions calibrate save against], "compares over link orders of each side"],
      instructions: [%i[warm_up plot save against seconds], "counts instructions and times nothing"]
    }.freeze
    NAMES = { seconds: "--time" }.freeze

    module_function

    # [options, sides, workloads]
    def parse(argv, list:)
      at = argv.index("--")
      workloads = at ? argv.drop(at + 1) : []
      options = DEFAULTS.dup
      sides = parser(options, list).permute(at ? argv.take(at) : argv)
      check(options, sides)
      [options, sides, workloads]
    rescue OptionParser::ParseError => e
      raise BadArgument, e.message
    end

    def parser(options, list)
      OptionParser.new(USAGE, 24) do |o|
        o.separator("\nOptions:")
        measuring(o, options, "counted runs of each side (default 10; 2 with --instructions;", "3 of each order with --layouts)")
        o.on("--trace", "also record the exits of both sides, and set them side by side") { options[:trace] = true }
        o.on("--warm-up[=N]", Integer, "also show how both get to their speed: N iterations (default 100)") do |n|
          options[:warm_up] = n || 100
        end
        o.on("--layouts N", Integer, "link each side N times, in other orders of its object files, and",
             "compare over all") { |n| options[:layouts] = n }
        o.on("--calibrate", "compare a Ruby with itself, to learn what this machine can see") do
          options[:calibrate] = true
        end
        o.on("--instructions[=N]", Integer, "count instructions under valgrind instead of timing, with N",
             "iterations (default 5)") do |n|
          options[:instructions] = n || 5
        end
        output(o, options)
        o.on("--save NAME", "keep the candidate's runs: build/saved/NAME.json, or a path with a /") { |name| options[:save] = name }
        o.on("--against NAME", "compare with runs kept so") { |name| options[:against] = name }
        o.on("-l", "--list", "list our workloads") { puts list.call; exit }
        o.on("-h", "--help", "this text") { puts o, STATUS; exit }
      end
    end

    # How to measure, of all commands that compare.
    def measuring(o, options, *runs)
      o.on("-n", "--runs N", Integer, *runs) { |n| options[:runs] = n }
      o.on("--time SECONDS", Float, "begin no run after that time") { |s| options[:seconds] = s }
      o.on("--timeout SECONDS", Float, "a run that takes longer has failed (default 600)") { |s| options[:timeout] = s }
      o.on("--threshold PERCENT", Float, "slower by more than this makes the exit status 1 (default 2)") do |percent|
        options[:threshold] = percent
      end
      o.on("--confidence PERCENT", Float, "of all verdicts together (default 99)") { |p| options[:confidence] = p }
      o.on("--seed N", Integer, "of the bootstrap (default 1)") { |n| options[:seed] = n }
      o.on("--ruby-bench DIR", "the WORKLOADs are benchmarks of this clone of ruby-bench (default: all)") do |folder|
        options[:ruby_bench] = folder
      end
    end

    def output(o, options)
      o.on("--json FILE", "write all that was measured there; - for standard output") { |file| options[:json] = file }
      o.on("--plot FILE", "draw the ratios into an SVG file (needs gnuplot)") { |file| options[:plot] = file }
    end

    def check(options, sides)
      if options[:calibrate] && sides.size != 1
        raise BadArgument, "--calibrate takes one executable, which is compared with itself; #{sides.size} are given"
      end
      least = options[:calibrate] || options[:against] || options[:save] ? 1 : 2
      if sides.size < least
        raise BadArgument, options[:against] ? "--against NAME takes an executable, the candidate; none is given"
                                             : "two executables are to be given, BASELINE and CANDIDATE; #{sides.size} are given"
      end
      if options[:save] && sides.size > (options[:against] ? 1 : 2)
        raise BadArgument, "--save NAME keeps the runs of one candidate; #{sides.size} executables are given"
      end
      check_apart(options)
      options[:runs] ||= RUNS.find { |key, _| options[key] }&.last || MOST_RUNS
      check_measuring(options)
      raise BadArgument, "--warm-up: at least 10" if options[:warm_up]&.<(10)
      raise BadArgument, "--layouts: at least 3" if options[:layouts]&.<(3)
      raise BadArgument, "--instructions: at least 1" if options[:instructions]&.<(1)
    end

    # Also whether its files can be written: a bad name is said before an hour of runs.
    def check_measuring(options)
      raise BadArgument, "--runs: at least 1" if options[:runs] < 1
      raise BadArgument, "--time: more than 0" if options[:seconds] && options[:seconds] <= 0
      raise BadArgument, "--timeout: more than 0" if options[:timeout] <= 0
      raise BadArgument, "--threshold: at least 0" if options[:threshold] < 0
      raise BadArgument, "--confidence: between 50 and 99.99" unless (50..99.99).cover?(options[:confidence])
      options.values_at(:json, :plot).compact.reject { |file| file == "-" }.each do |file|
        folder = File.dirname(File.expand_path(file))
        writable = File.directory?(folder) && File.writable?(folder)
        raise BadArgument, "#{file}: #{folder} is no folder that can be written to" unless writable
        raise BadArgument, "#{file}: a folder" if File.directory?(file)
      end
    end

    # Where the tables go: not to the output that has the JSON.
    def text_out(options) = options[:json] == "-" ? $stderr : $stdout

    def write_json(options, report)
      case options[:json]
      when nil then nil
      when "-" then puts report.json
      else File.write(options[:json], report.json + "\n")
      end
    end

    # The block draws into the file, and returns why not if there is no drawing.
    def draw(options)
      return unless options[:plot]
      why = yield(options[:plot])
      text_out(options).puts(why ? "no plot: #{why}" : "plot: #{options[:plot]}")
    end

    def check_apart(options)
      APART.each do |key, (others, why)|
        other = others.find { |one| options[one] } if options[key]
        raise BadArgument, "#{name(key)} #{why}; #{name(other)} does not go with it" if other
      end
    end

    def name(key)
      NAMES.fetch(key, "--#{key.to_s.tr('_', '-')}")
    end
  end
end
