# Measures what recording costs: the same loop in several processes in turn, untraced and traced,
# ours and the base's.

require "tempfile"
require_relative "side"
require_relative "statistics"

module Bench
  # One way to run the loop. `tracer` :none, :ours, :recorder (ours into memory) or :base, with YJIT
  # :ours_yjit or :base_yjit; `rate` K (one exit in K is recorded). :late: the program itself begins
  # to trace, into the file that it is given; :filtered and :filtered_yjit: likewise, but methods
  # that it does not have were requested. :default: the preset, with either JIT. :samples_yjit: every
  # exit, with stack samples, and the `rate` innermost frames as arguments; 0: those that there are
  # without a request. :compiles: compilations; :hir: and the HIR of code; :base_hir: the base prints that.
  Variant = Struct.new(:name, :side, :tracer, :rate)

  class Recording
    ROWS = File.expand_path("../rows", __dir__)

    # What the base's own tracer writes: that of 4.1, and that of 4.0, into the current folder.
    BASE_TRACES = ["/tmp/perfetto-%d.fxt", "zjit_exits_%d.dump"].freeze

    # The result of one variant in a round: seconds of an iteration, bytes of the trace, peak
    # memory, and the processor time of the process in an iteration.
    Run = Struct.new(:seconds, :bytes, :peak_kib, :cpu_seconds)

    attr_reader :sides, :folder

    # `sides`: {ours: Side, base: Side or nil}; `folder`: for our traces (the base's always go to
    # /tmp). All are deleted at once.
    def initialize(sides, folder:, timeout: 300, progress: nil)
      @sides, @folder, @timeout, @progress = sides, folder, timeout, progress
    end

    # One process. Raises Failed also when a trace is missing, because then nothing was measured.
    def run(variant, program, *arguments, folder: @folder)
      workload = Workload.new(program, "#{ROWS}/#{program}.rb", arguments.map(&:to_s))
      pid = nil
      warm_page_cache(folder) unless variant.tracer == :none
      measure = variant.side.run(workload, timeout: @timeout, flags: flags(variant, folder)) { |started| pid = started }
      trace = trace_of(variant, pid, folder)
      bytes = trace && (File.file?(trace) ? File.size(trace) : raise(Failed, "no trace was written to #{trace}"))
      Run.new(measure.seconds, bytes, measure.peak_kib, measure.cpu_seconds)
    ensure
      trace = trace_of(variant, pid, folder) if pid
      File.unlink(trace) if trace && File.file?(trace) && File.owned?(trace)
    end

    # `rounds` times every job in turn, forwards and backwards. jobs: {key => [variant, program,
    # arguments...]}. Returns {key => [Run, ...]}; the same index is the same round. Stops early
    # when the block returns true.
    def rounds(rounds, title, jobs, **options)
      runs = jobs.transform_values { [] }
      rounds.times do |round|
        @progress&.step(round, rounds, 0, 1, title)
        keys = round.even? ? jobs.keys : jobs.keys.reverse
        one = keys.to_h { |key| [key, run(*jobs[key], **options)] }
        one.each { |key, measured| runs[key] << measured }
      end
      runs
    end

    private

    # Larger than any trace here.
    WARM_BYTES = 96 << 20

    # A virtual machine returns unused memory to its host, and the first touch of such a page waits
    # for the host: ten times the cost of the page cache itself. So the memory that a trace needs is
    # used once before.
    #
    # The folder may be /tmp, where others could put a link under a name that they can guess: so the
    # name is random, and the file new.
    def warm_page_cache(folder, bytes: WARM_BYTES)
      megabyte = "\0" * (1 << 20)
      Tempfile.create("vm-trace-bench-warm-", folder) { |file| (bytes >> 20).times { file.syswrite(megabyte) } }
    end

    def flags(variant, folder)
      case variant.tracer
      when :none then []
      when :ours
        ["--zjit-trace-exits", "--zjit-trace-exits-sample-rate=#{variant.rate}", "--zjit-trace-file=#{folder}/vm-trace-bench-%p.fxt"]
      when :hook # its extension subscribes
        ["-r#{variant.rate}"]
      when :recorder # writes no file
        ["--zjit-trace-exits", "--zjit-trace-exits-sample-rate=#{variant.rate}", "--zjit-trace-memory=16"]
      when :base # its N records one in N+1; without the option, every one
        ["--zjit-trace-exits", *("--zjit-trace-exits-sample-rate=#{variant.rate - 1}" if variant.rate > 1)]
      when :ours_yjit
        ["--yjit-trace-side-exits-sample-rate=#{variant.rate}", "--yjit-trace-file=#{folder}/vm-trace-bench-%p.fxt"]
      when :samples_yjit
        ["--vm-trace=exits:samples", *("--vm-trace-stack=#{variant.rate}" if variant.rate > 0),
         "--vm-trace-file=#{folder}/vm-trace-bench-%p.fxt"]
      when :default
        ["--vm-trace=default", "--vm-trace-file=#{folder}/vm-trace-bench-%p.fxt"]
      when :compiles
        ["--zjit-trace-compiles", "--zjit-trace-exits", "--zjit-trace-file=#{folder}/vm-trace-bench-%p.fxt"]
      when :hir then ["--zjit-trace-compiles=hir", "--zjit-trace-file=#{folder}/vm-trace-bench-%p.fxt"]
      when :base_hir then ["--zjit-dump-hir"]
      when :late then []
      when :filtered then ["--zjit-trace-later", "--zjit-trace-methods=NoSuchClass#*"]
      when :filtered_yjit then ["--yjit-trace-later", "--yjit-trace-methods=NoSuchClass#*"]
      when :base_yjit # likewise
        ["--yjit-trace-exits", *("--yjit-trace-exits-sample-rate=#{variant.rate - 1}" if variant.rate > 1)]
      end
    end

    def trace_of(variant, pid, folder)
      case variant.tracer
      when :ours, :ours_yjit, :samples_yjit, :default, :compiles, :hir, :late, :filtered, :filtered_yjit
        "#{folder}/vm-trace-bench-#{pid}.fxt"
      when :base then BASE_TRACES.map { |file| file % pid }.find { |file| File.file?(file) } || BASE_TRACES.first % pid
      when :base_yjit then "yjit_exit_locations.dump"
      end
    end
  end
end
