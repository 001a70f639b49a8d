# The command line of benchmarks/compare.

require "optparse"
require_relative "side"

module Bench
  module Options
    USAGE = <<~TEXT
      Usage: compare BASELINE CANDIDATE [OPTION]... [-- WORKLOAD...]
             compare CANDIDATE --against NAME [OPTION]... [-- WORKLOAD...]
             compare CANDIDATE --save NAME [OPTION]... [-- WORKLOAD...]

      Says whether CANDIDATE is slower than BASELINE. Each is a ruby executable, or one with flags in one
      argument: compare "ruby" "ruby --zjit". A WORKLOAD is one of ours, a script, or a folder of scripts.
      Both sides run in turn, A B B A, after one run each that does not count.
    TEXT

    STATUS = <<~TEXT

      Exit status: 0 nothing is slower; 1 something is slower by more than the threshold, with confidence;
      2 wrong usage; 3 a workload failed on one side (the others were compared) and nothing is slower;
      130 interrupted (what there was is printed).
    TEXT

    DEFAULTS = { runs: 10, confidence: 99.0, threshold: 2.0, seed: 1, timeout: 600.0 }.freeze

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
        o.on("-n", "--runs N", Integer, "counted runs of each side (default 10)") { |n| options[:runs] = n }
        o.on("--time SECONDS", Float, "begin no run after that time") { |s| options[:seconds] = s }
        o.on("--timeout SECONDS", Float, "a run that takes longer has failed (default 600)") { |s| options[:timeout] = s }
        o.on("--threshold PERCENT", Float, "slower by more than this makes the exit status 1 (default 2)") { |p| options[:threshold] = p }
        o.on("--confidence PERCENT", Float, "of the interval of a ratio (default 99)") { |p| options[:confidence] = p }
        o.on("--seed N", Integer, "of the bootstrap (default 1)") { |n| options[:seed] = n }
        o.on("--trace", "also record the exits of both sides, and set them side by side") { options[:trace] = true }
        o.on("--json FILE", "write all that was measured there; - for standard output") { |file| options[:json] = file }
        o.on("--plot FILE", "draw the ratios into an SVG file (needs gnuplot)") { |file| options[:plot] = file }
        o.on("--save NAME", "keep the candidate's runs: build/saved/NAME.json, or a path with a /") { |name| options[:save] = name }
        o.on("--against NAME", "compare with runs kept so") { |name| options[:against] = name }
        o.on("-l", "--list", "list our workloads") { puts list.call; exit }
        o.on("-h", "--help", "this text") { puts o, STATUS; exit }
      end
    end

    def check(options, sides)
      wanted = options[:against] ? 1..1 : options[:save] ? 1..2 : 2..2
      unless wanted.include?(sides.size)
        raise BadArgument, options[:against] ? "--against NAME takes one executable, the candidate; #{sides.size} are given"
                                             : "two executables are to be given, BASELINE and CANDIDATE; #{sides.size} are given"
      end
      raise BadArgument, "--runs: at least 1" if options[:runs] < 1
      raise BadArgument, "--time: more than 0" if options[:seconds] && options[:seconds] <= 0
      raise BadArgument, "--timeout: more than 0" if options[:timeout] <= 0
      raise BadArgument, "--threshold: at least 0" if options[:threshold] < 0
      raise BadArgument, "--confidence: between 50 and 99.99" unless (50..99.99).cover?(options[:confidence])
    end
  end
end
