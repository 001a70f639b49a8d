# The rows of `make bench`: what recording may cost, measured against the tracer of the unpatched
# base.

require "etc"
require "fileutils"
require "tmpdir"
require "shellwords"
require_relative "recording"
require_relative "comparison"
require_relative "judgement"
require_relative "workloads"
require_relative "call_rows"
require_relative "kernel_rows"
require_relative "off_rows"
require_relative "rails_rows"
require_relative "sampling_rows"

module Bench
  # ours, base: numbers with their unit in `unit`; ratio and its spread say base / ours unless the
  # row says otherwise; met: true, false, :unclear where the runs cannot tell, or nil where there is
  # no target
  Row = Struct.new(:name, :unit, :ours, :base, :ratio, :spread, :runs, :target, :met, :note, keyword_init: true)

  class Rows
    include CallRows
    include KernelRows
    include OffRows
    include RailsRows
    include SamplingRows

    # Exits of one iteration. A process runs seven of them, so its trace has 20 to 40 MB when every
    # exit is recorded: enough for the kernel's part and for the clock; more would measure this
    # machine's memory.
    EVERY = 40_000
    ITERATIONS = 7
    EVERY_BASE_DEEP = 15_000 # 20 us each
    SAMPLED = 400_000
    THROWS = 40_000
    THROWS_SAMPLED = 200_000
    COLD = 1_000
    MOST_RACTORS = 4
    DEPTHS = [8, 16, 30, 53, 100].freeze

    attr_reader :rows, :comparison, :depth_lines, :interrupted

    def initialize(sides, rounds:, cold_rounds:, compare_runs:, workloads:, folder:, only: nil, progress: nil, options: {})
      @recording = Recording.new(sides, folder: folder, progress: progress)
      @ours, @base = sides.values_at(:ours, :base)
      @rounds, @cold_rounds, @compare_runs, @workloads = rounds, cold_rounds, compare_runs, workloads
      @only, @progress, @options = only, progress, options
      @rows = []
      @depth_lines = []
      @exits = {}
    end

    GROUPS = %i[exits yjit throws ractors late size store memory cold tmpfs recorder samples switch hooks markers threads fibers
                gc allocations states counters calls kernel sampling saving pieces scale absent off compiling
                depths].freeze

    # Not without --only: they need gems, and take a quarter of an hour.
    ON_REQUEST = %i[rails].freeze

    def run
      (@only || GROUPS).each do |group|
        send(group)
      rescue Failed => e
        @rows << Row.new(name: group.to_s, note: "failed: #{e.message}", met: false)
      end
    rescue Interrupt
      @interrupted = true
    ensure
      @progress&.clear
    end

    private

    def variant(name, side, tracer = :none, rate = 1)
      Variant.new(name, side, tracer, rate)
    end

    # Seconds of one of `count` things, for each round.
    def each_of(runs, count)
      runs.map { |run| run.seconds / count }
    end

    def minus(a, b)
      a.zip(b).map { |x, y| x - y }
    end

    # --- one exit -------------------------------------------------------------------------

    # ours, base: one exit in `rate` recorded, and the same loop untraced
    def exit_jobs(depth, rate, ours: [@ours, :ours], base: [@base, :base])
      every = rate == 1 ? EVERY : SAMPLED
      every_base = rate == 1 && depth > 20 ? EVERY_BASE_DEEP : every
      {
        ours: [variant("ours", ours[0]), "exits", depth, SAMPLED],
        ours_traced: [variant("ours K=#{rate}", *ours, rate), "exits", depth, every],
        base: [variant("base", base[0]), "exits", depth, SAMPLED],
        base_traced: [variant("base K=#{rate}", *base, rate), "exits", depth, every_base]
      }
    end

    # Net costs in ns of each round: traced minus untraced, which ran one right after the other. `cpu`: of all threads
    # of the process, and bytes of the trace.
    def exit_costs(depth, rate, rounds, **sides)
      jobs = exit_jobs(depth, rate, **sides)
      runs = @recording.rounds(rounds, "one exit, K=#{rate}, #{depth} frames", jobs)
      times = runs.to_h { |key, list| [key, each_of(list, jobs[key].last).map { |s| s * 1e9 }] }
      cpu = runs.to_h { |key, list| [key, list.map { |run| run.cpu_seconds / jobs[key].last * 1e9 }] }
      { ours: minus(times[:ours_traced], times[:ours]), base: minus(times[:base_traced], times[:base]),
        untraced: times[:ours], untraced_base: times[:base],
        cpu: { ours: minus(cpu[:ours_traced], cpu[:ours]), base: minus(cpu[:base_traced], cpu[:base]) },
        bytes: %i[ours_traced base_traced].map { |key| runs[key].last.bytes.fdiv(jobs[key].last * ITERATIONS) } }
    end

    # The thread that makes chunks works, too: what the exit costs the whole process.
    def add_process_row(name, costs)
      ours, base = costs[:cpu].values_at(:ours, :base)
      a, b = Statistics.median(ours), Statistics.median(base)
      @rows << Row.new(name: "#{name}, processor time of the process", unit: "ns", ours: a, base: b, ratio: b / a,
                       spread: spread(base.zip(ours).map { |x, y| x / y }), runs: ours.size,
                       note: "%.0f .. %.0f ns; by the clock %.0f ns; bytes an exit: %.0f, base %.0f" %
                             [*ours.minmax, Statistics.median(costs[:ours]), *costs[:bytes]])
    end

    # Either is enough: the bases' own tracers differ by a factor of six.
    def add_every_exit_row(name, costs)
      add_exit_row(name, costs, "<= 60 ns or ratio >= 50") { |ours, ratio| ours <= 60 || ratio >= 50 }
    end

    def exits
      [8, 53].each do |depth|
        name = "one exit, K=1, #{depth} frames"
        costs = exit_costs(depth, 1, @rounds)
        if depth == 8
          add_every_exit_row(name, costs)
        else
          add_exit_row(name, costs, "ratio >= 100") { |_, ratio| ratio >= 100 }
        end
        add_process_row(name, costs)
        # A few ns in a loop of 50 and more: that needs more rounds, which are short.
        costs = exit_costs(depth, 97, @rounds * 3)
        if depth == 8
          add_exit_row("one exit, K=97, #{depth} frames", costs, "<= 3 ns") { |ours, _| ours <= 3 }
        else
          add_exit_row("one exit, K=97, #{depth} frames", costs, nil)
        end
      end
    end

    # The same with YJIT, beside its own tracer, which also counts each exit by its instruction.
    def yjit
      ours, base = [@ours, @base].map { |side| with_yjit(side) }
      sides = { ours: [ours, :ours_yjit], base: [base, :base_yjit] }
      add_every_exit_row("YJIT: one exit, K=1, 8 frames", exit_costs(8, 1, @rounds, **sides))
      add_exit_row("YJIT: one exit, K=97, 8 frames", exit_costs(8, 97, @rounds * 3, **sides), "<= 3 ns") { |cost, _| cost <= 3 }
      add_code_rows(compare(base, ours, 1), %w[inline_code_size outlined_code_size], "YJIT: ")
    end

    def add_exit_row(name, costs, target)
      a, b = Statistics.median(costs[:ours]), Statistics.median(costs[:base])
      ratio = a > 0 ? b / a : Float::INFINITY # our cost is not to be told from none
      middle = [0.25, 0.75].map { |q| Statistics.quantile(costs[:ours], q) }
      untraced = %i[untraced untraced_base].map { |key| Statistics.median(costs[key]) }
      @rows << Row.new(name: name, unit: "ns", ours: a, base: b, ratio: ratio, spread: spread(costs[:base].zip(costs[:ours]).map { |x, y| x / y }),
                       runs: costs[:ours].size, target: target, met: target ? yield(a, ratio) : nil,
                       note: "half of our runs: %.1f .. %.1f ns; the loop untraced: %.0f ns, base %.0f ns" % [*middle, *untraced])
    end

    def spread(values)
      # The measured cost of a sampled exit can be zero.
      values = values.map { |value| value.finite? && value > 0 ? value : Float::INFINITY }
      values.minmax
    end

    # --- throws ------------------------------------------------------------------------------

    def throws
      jobs = {
        ours: [variant("ours", @ours), "throws", THROWS_SAMPLED],
        ours_1: [variant("ours K=1", @ours, :ours, 1), "throws", THROWS],
        ours_97: [variant("ours K=97", @ours, :ours, 97), "throws", THROWS_SAMPLED],
        base: [variant("base", @base), "throws", THROWS_SAMPLED],
        base_1: [variant("base K=1", @base, :base, 1), "throws", THROWS],
        base_97: [variant("base K=97", @base, :base, 97), "throws", THROWS_SAMPLED]
      }
      runs = @recording.rounds(@rounds, "throws", jobs)
      times = runs.to_h { |key, list| [key, list.map { |run| run.cpu_seconds / jobs[key].last }] }
      { 1 => 2.2, 97 => 1.05 }.each do |rate, most|
        ours, base = [[:"ours_#{rate}", :ours], [:"base_#{rate}", :base]].map { |a, b| times[a].zip(times[b]).map { |x, y| x / y } }
        @rows << Row.new(name: "loop of throws, K=#{rate}, traced / untraced", unit: "times", ours: Statistics.median(ours), base: Statistics.median(base),
                         ratio: Statistics.median(base) / Statistics.median(ours), spread: spread(base.zip(ours).map { |x, y| x / y }),
                         runs: ours.size, target: "<= #{most} times", met: Statistics.median(ours) <= most)
      end
      @rows[-2].note = "untraced: %.0f ns a throw; we record two exits of it, the base one" % (Statistics.median(times[:ours]) * 1e9)
    end

    # --- ractors -----------------------------------------------------------------------------

    # One for each core: what they share (the file, the caches) should cost little.
    def ractors
      count = [Etc.nprocessors, MOST_RACTORS].min
      return if count < 2
      jobs = [1, count].each_with_object({}) do |ractors, all|
        all[[ractors, :none]] = [variant("", @ours), "ractors", ractors, EVERY]
        all[[ractors, :traced]] = [variant("", @ours, :ours, 1), "ractors", ractors, EVERY]
      end
      runs = @recording.rounds(@rounds, "ractors", jobs)
      costs = [1, count].map { |ractors| minus(*%i[traced none].map { |how| each_of(runs[[ractors, how]], EVERY).map { |s| s * 1e9 } }) }
      ratios = costs[1].zip(costs[0]).map { |many, one| many / one }
      @rows << Row.new(name: "one exit in #{count} ractors at once / in one", unit: "times", ours: Statistics.median(ratios), runs: ratios.size,
                       target: "<= 1.5 times", met: Statistics.median(ratios) <= 1.5,
                       note: "%.2f .. %.2f times; one: %.0f ns; the base's tracer aborts there" % [*ratios.minmax, Statistics.median(costs[0])])
    end

    # --- started at run time -------------------------------------------------------------------

    LATE_RACTORS = [1, 2, 4].freeze

    # The same exits in a program traced by a flag and in one that starts a trace when everything is
    # compiled.
    def late
      path = "#{@recording.folder}/vm-trace-bench-%p.fxt"
      { "guard" => ["add", EVERY], "throw" => ["throw", THROWS] }.to_a.product(LATE_RACTORS) do |(name, (kind, count)), ractors|
        jobs = { flag: [variant("", @ours, :ours, 1), "late", kind, ractors, count], start: [variant("", @ours, :late), "late", kind, ractors, count, path] }
        runs = @recording.rounds(@rounds, "started at run time, #{name}, #{ractors} ractors", jobs)
        times = runs.transform_values { |list| each_of(list, count).map { |s| s * 1e9 } }
        ratios = times[:start].zip(times[:flag]).map { |a, b| a / b }
        @rows << Row.new(name: "#{name}, K=1, #{ractors} ractors: by start / by flag", unit: "times", ours: Statistics.median(ratios), spread: ratios.minmax, runs: ratios.size,
                         target: "<= 1.25 times", met: Statistics.median(ratios) <= 1.25,
                         note: "with the loop: by start %.0f ns, by flag %.0f ns" % %i[start flag].map { |key| Statistics.median(times[key]) })
      end
      filtered(path)
    end

    # Exits in methods that --zjit-trace-methods leaves out, in a trace that starts when everything
    # is compiled.
    def filtered(path)
      { "" => [@ours, :filtered], "YJIT: " => [with_yjit(@ours), :filtered_yjit] }.each do |jit, (side, tracer)|
        jobs = { none: [variant("", side), "late", "add", 1, SAMPLED], filtered: [variant("", side, tracer), "late", "add", 1, SAMPLED, path] }
        runs = @recording.rounds(@rounds * 2, "#{jit}exits that are left out", jobs)
        net = minus(*%i[filtered none].map { |key| each_of(runs[key], SAMPLED).map { |s| s * 1e9 } })
        @rows << Row.new(name: "#{jit}one exit that the method filter leaves out, by start", unit: "ns", ours: Statistics.median(net), runs: net.size, target: "<= 5 ns",
                         met: Statistics.median(net) <= 5, note: "%.1f .. %.1f ns" % net.minmax)
      end
    end

    STORE_MIB = 500

    # Records of 104 bytes through the store alone, and the same bytes by write(2): processor time of all threads.
    def store
      { "" => @options[:folder], " in /dev/shm" => "/dev/shm" }.each do |where, folder|
        next unless File.directory?(folder) && File.writable?(folder)
        path = "#{folder}/vm-trace-bench-store-#{$$}.fxt"
        runs = Array.new(@rounds) do
          measured_by_recording("--store", STORE_MIB.to_s, path).lines.to_h do |line|
            what, ps, megabytes = line.split
            [what, [Float(ps) / 1e3, Float(megabytes)]]
          end
        end
        stored, written = %w[store write].map { |what| runs.map { |run| run[what] }.transpose }
        ours, base = Statistics.median(stored[0]), Statistics.median(written[0])
        @rows << Row.new(name: "100 bytes into a file#{where}", unit: "ns", ours: ours, base: base, ratio: base / ours,
                         spread: spread(written[0].zip(stored[0]).map { |x, y| x / y }), runs: @rounds,
                         target: "<= 40 ns", met: ours <= 40,
                         note: "all threads; %.0f MB/s; the base is write(2) of a MiB at a time, %.0f MB/s" %
                               [stored, written].map { |columns| Statistics.median(columns[1]) })
      end
    end

    # --- bytes and memory -----------------------------------------------------------------------

    # The difference of two lengths, so that what a trace has once cancels out.
    def size
      sizes = [EVERY / 2, EVERY].map do |exits|
        { ours: run_one(@ours, :ours, exits).bytes, base: run_one(@base, :base, exits).bytes }
      end
      ours, base = %i[ours base].map { |key| (sizes[1][key] - sizes[0][key]) / (EVERY / 2 * 7.0) }
      @rows << Row.new(name: "bytes an event, 8 frames", unit: "bytes", ours: ours, base: base, ratio: base / ours, runs: 1,
                       target: "<= 112 bytes", met: ours.round <= 112, note: "with lines, instruction and version; the base has none of these")
    end

    def run_one(side, tracer, exits)
      @recording.run(variant("", side, tracer, 1), "exits", 8, exits)
    end

    # Peak resident memory, traced minus untraced, at two lengths.
    def memory
      short, long = EVERY / 2, EVERY * 2
      jobs = {}
      { ours: @ours, base: @base }.each do |key, side|
        [short, long].each do |exits|
          jobs[[key, :none, exits]] = [variant("", side), "exits", 8, exits]
          jobs[[key, :traced, exits]] = [variant("", side, key, 1), "exits", 8, exits]
        end
      end
      runs = @recording.rounds([@rounds / 2, 3].max, "memory", jobs)
      added = lambda do |key, exits|
        minus(*[:traced, :none].map { |how| runs[[key, how, exits]].map { |run| run.peak_kib / 1024.0 } })
      end
      ours, base = %i[ours base].map { |key| Statistics.median(added.(key, long)) }
      @rows << Row.new(name: "peak memory added while tracing", unit: "MiB", ours: ours, base: base, runs: runs.values.first.size,
                       target: "<= 8 MiB", met: ours <= 8,
                       note: "ours %.1f MiB with a quarter of the exits" % Statistics.median(added.(:ours, short)))
    end

    # --- cold ---------------------------------------------------------------------------------------

    def cold
      jobs = {
        ours: [variant("ours", @ours), "cold", COLD], ours_1: [variant("ours K=1", @ours, :ours, 1), "cold", COLD],
        base: [variant("base", @base), "cold", COLD], base_1: [variant("base K=1", @base, :base, 1), "cold", COLD]
      }
      runs = @recording.rounds(@cold_rounds, "cold start", jobs)
      times = runs.transform_values { |list| each_of(list, COLD).map { |s| s * 1e6 } }
      ours, base = %i[ours base].map { |key| minus(times[:"#{key}_1"], times[key]) }
      a, b = Statistics.median(ours), Statistics.median(base)
      @rows << Row.new(name: "cold start, one new frame of #{COLD}", unit: "us", ours: a, base: b, ratio: b / a,
                       spread: spread(base.zip(ours).map { |x, y| x / y }), runs: ours.size, target: "<= 3 us", met: a <= 3,
                       note: "each with its exit; two frames are new each time, the caller and its line in the loop")
    end

    # --- where the file is ------------------------------------------------------------------------------

    # The same exits into a file in memory, without a disk's file system.
    def tmpfs
      return unless File.directory?("/dev/shm") && File.writable?("/dev/shm")
      [8, 53].each do |depth|
        jobs = { ours: [variant("", @ours), "exits", depth, SAMPLED], ours_1: [variant("", @ours, :ours, 1), "exits", depth, EVERY] }
        runs = @recording.rounds(@rounds, "tmpfs, #{depth} frames", jobs, folder: "/dev/shm")
        times = runs.to_h { |key, list| [key, each_of(list, jobs[key].last).map { |s| s * 1e9 }] }
        net = minus(times[:ours_1], times[:ours])
        @rows << Row.new(name: "one exit, K=1, #{depth} frames, in /dev/shm", unit: "ns", ours: Statistics.median(net), runs: net.size,
                         note: "%.0f .. %.0f ns" % net.minmax)
      end
    end

    # --- stack samples ----------------------------------------------------------------------------

    DEEP_FRAMES, DEEP_EXITS = 500, 5000
    DEEP_STACK = { "RUBY_THREAD_VM_STACK_SIZE" => "8000000" }.freeze

    # Exits as stack samples, too: what one more record costs, and how long they are at many depths.
    def samples
      ours = with_yjit(@ours)
      jobs = { none: [variant("", ours), "exits", 8, SAMPLED],
               file: [variant("", ours, :ours_yjit, 1), "exits", 8, EVERY],
               samples: [variant("", ours, :samples_yjit, 0), "exits", 8, EVERY] }
      runs = @recording.rounds(@rounds, "stack samples", jobs)
      times = runs.to_h { |key, list| [key, each_of(list, jobs[key].last).map { |s| s * 1e9 }] }
      with, without = %i[samples file].map { |key| minus(times[key], times[:none]) }
      @rows << Row.new(name: "YJIT: one exit, K=1, 8 frames, with a stack sample", unit: "ns",
                       ours: Statistics.median(with), runs: with.size,
                       note: "%.0f .. %.0f ns; without %.0f ns" % [*with.minmax, Statistics.median(without)])
      add_depths_row(ours)
    end

    # All frames are in the sample; the event has the innermost one, or ten if they are requested.
    def add_depths_row(ours)
      before = ENV.to_h.slice(*DEEP_STACK.keys)
      ENV.update(DEEP_STACK)
      sample, with_ten_frames, event = [[:samples_yjit, 0], [:samples_yjit, 10], [:ours_yjit, 1]].map do |tracer, rate|
        run = @recording.run(variant("", ours, tracer, rate), "depths_of_exits", DEEP_FRAMES, DEEP_EXITS)
        run.bytes / DEEP_EXITS.to_f
      end
      @rows << Row.new(name: "bytes of an exit, #{DEEP_EXITS} depths from #{DEEP_FRAMES} frames on",
                       unit: "bytes", ours: sample, runs: 1, target: "<= 120 bytes", met: sample <= 120,
                       note: "with ten frames as arguments, too: %.0f bytes; without samples: %.0f bytes" %
                             [with_ten_frames, event])
    ensure
      DEEP_STACK.each_key { |key| ENV[key] = before[key] }
    end

    # The flight recorder, whose memory is a ring, beside the file of the same Ruby.
    def recorder
      [8, 53].each do |depth|
        jobs = { none: [variant("", @ours), "exits", depth, SAMPLED], file: [variant("", @ours, :ours, 1), "exits", depth, EVERY],
                 memory: [variant("", @ours, :recorder, 1), "exits", depth, EVERY] }
        runs = @recording.rounds(@rounds, "flight recorder, #{depth} frames", jobs)
        times = runs.to_h { |key, list| [key, each_of(list, jobs[key].last).map { |s| s * 1e9 }] }
        file, memory = %i[file memory].map { |key| minus(times[key], times[:none]) }
        a, b = Statistics.median(memory), Statistics.median(file)
        @rows << Row.new(name: "one exit, K=1, #{depth} frames, into memory", unit: "ns", ours: a, runs: memory.size, target: "as into a file",
                         met: a <= b * 1.1, note: "%.0f .. %.0f ns; into a file %.0f ns" % [*memory.minmax, b])
      end
    end

    # --- start and stop in a running program --------------------------------------------------------------------

    METHODS = [100, 1000, 5000].freeze # each has some 30 jumps to exits
    MOST_PAUSE_US = 5000

    # Code is patched in pieces, between which other threads run: only a piece has a target.
    def switch
      program = "#{Recording::ROWS}/switch.rb"
      sides = { "" => [@ours, %w[--zjit-call-threshold=2 --zjit-num-profiles=1 --zjit-mem-size=1024]],
                "YJIT: " => [with_yjit(@ours), %w[--yjit-call-threshold=2 --yjit-mem-size=256]] }
      sides.to_a.product(METHODS) do |(jit, (side, flags)), methods|
        runs = Array.new([@rounds / 3, 1].max) do |i|
          @progress&.step(i, [@rounds / 3, 1].max, 0, 1, "#{jit}switching, #{methods} methods")
          side.run(Workload.new("switch", program, [methods.to_s, "9", @options.fetch(:folder, Dir.tmpdir)]), flags: flags).extra
        end
        add_switch_rows(jit, methods, runs)
      end
    end

    def with_yjit(side) = Side.new(side.name, "#{side.command[0].shellescape} --yjit")

    def add_switch_rows(jit, methods, runs)
      middle = ->(key) { Statistics.median(runs.map { |run| run.fetch(key) }) }
      code = "%.1f MB of code" % (middle.("code_bytes") / 1e6)
      { "start" => "start_us", "stop" => "stop_us", "full speed after stop" => "full_us" }.each do |name, key|
        cpu = runs.first["#{name}_cpu_us"] && "; %.0f us of the processor" % middle.("#{name}_cpu_us")
        @rows << Row.new(name: "#{jit}#{name}, #{methods} methods", unit: "us", ours: middle.(key), runs: runs.size, note: "#{code}#{cpu}")
      end
      @rows[-1].note = "until 1,000 calls take what they took before, %.0f us, or a twentieth more" % middle.("chunk_us")
      %w[start stop].each do |name|
        us = middle.("#{name}_pause_us")
        @rows << Row.new(name: "#{jit}#{name}, #{methods} methods: pause", unit: "us", ours: us, runs: runs.size,
                         target: "<= #{MOST_PAUSE_US} us", met: us <= MOST_PAUSE_US,
                         note: "the longest for which a thread that sleeps a little does not go on")
      end
      ratios = %w[during after].map(&middle)
      @rows << Row.new(name: "#{jit}started and stopped, #{methods} methods, after / before", unit: "times", ours: ratios[1], runs: runs.size,
                       target: "within 5 %", met: (ratios[1] - 1).abs <= 0.05, note: "while it was on, in code that does not exit: %.3f" % ratios[0])
    end

    # An exit that is reported only to an empty hook in C, beside one that is recorded.
    def hooks
      Dir.mktmpdir("vm-trace-bench") do |folder|
        hook = build_hook(folder)
        jobs = { none: [variant("", @ours), "exits", 8, SAMPLED], file: [variant("", @ours, :ours, 1), "exits", 8, EVERY],
                 hook: [variant("", @ours, :hook, hook), "exits", 8, EVERY] }
        runs = @recording.rounds(@rounds, "an empty hook", jobs)
        times = runs.to_h { |key, list| [key, each_of(list, jobs[key].last).map { |s| s * 1e9 }] }
        file, hooked = %i[file hook].map { |key| minus(times[key], times[:none]) }
        ratios = hooked.zip(file).map { |a, b| a / b }
        @rows << Row.new(name: "one exit, empty hook / recorded, 8 frames", unit: "times", ours: Statistics.median(ratios), runs: ratios.size,
                         target: "<= 2 times", met: Statistics.median(ratios) <= 2,
                         note: "%.2f .. %.2f times; the hook %.0f ns, the file %.0f ns" % [*ratios.minmax, Statistics.median(hooked), Statistics.median(file)])
      end
    end

    # Markers beside what a program would note by itself, in C and in Ruby.
    def markers
      Dir.mktmpdir("vm-trace-bench") do |folder|
        extension = build_extension("marks", folder)
        program = "#{Recording::ROWS}/markers.rb"
        run = @ours.run(Workload.new("markers", program, [extension, [@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)])).extra
        add_marker_rows(run)
      end
    end

    def add_marker_rows(run)
      ns = run.transform_values { |value| value.round(1) }
      loop_ns = run.fetch("on_empty")
      [["marker from C", "on_c", "on_c_peer", 0, 60], ["span from C", "on_c_span", nil, 0, 120],
       ["marker from Ruby", "on_ruby", "on_ruby_peer", loop_ns, nil], ["with two arguments", "on_ruby_arguments", "on_ruby_peer", loop_ns, nil],
       ["span from Ruby", "on_ruby_span", nil, loop_ns, nil]].each do |name, key, peer, less, most|
        ours, base = run.fetch(key) - less, peer && run.fetch(peer) - less
        @rows << Row.new(name: name, unit: "ns", ours: ours, base: base, ratio: base && base / ours, runs: @rounds,
                         target: most && "<= #{most} ns", met: most && ours <= most,
                         note: "not recorded: #{(run.fetch(key.sub("on_", "off_")) - (less > 0 ? run.fetch("off_empty") : 0)).round(1)} ns" \
                               "#{"; the peer notes a time and a name" if peer}#{"; #{ns["lost"].to_i} lost" if ns["lost"] > 0}")
      end
    end

    # What a thread takes to give up the GVL and get it back, beside an extension that writes CRuby's
    # public thread events as JSON.
    def threads
      run = Dir.mktmpdir("vm-trace-bench") do |folder|
        extension = build_extension("gvl_json", folder)
        arguments = [extension, [@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)]
        @ours.run(Workload.new("threads", "#{Recording::ROWS}/threads.rb", arguments)).extra
      end
      cost, peer = %w[on json].map { |side| run.fetch("#{side}_alone") - run.fetch("off_alone") }
      lost = "; #{run["lost"].to_i} lost" if run["lost"] > 0
      @rows << Row.new(name: "a thread gives up the GVL and gets it back", unit: "ns", ours: cost, base: peer,
                       ratio: peer / cost, runs: @rounds, target: "<= 110 ns, ratio >= 10", met: cost <= 110 && peer >= 10 * cost,
                       note: "the peer writes JSON; a call of write(2) untraced: #{run["off_alone"].round} ns#{lost}")
      @rows << Row.new(name: "bytes of that", unit: "B", ours: run.fetch("bytes"), target: "<= 140 B", met: run["bytes"] <= 140)
      @rows << Row.new(name: "two threads pass the GVL, times untraced", unit: "", ours: run.fetch("pass_ratio"), runs: @rounds,
                       target: "<= 1.01", met: run["pass_ratio"] <= 1.01, note: "one pass untraced: #{run["off_pass"].round} ns")
    end

    # A switch between two fibers, whose wait is too short to be recorded, or is recorded.
    def fibers
      run = @ours.run(Workload.new("fibers", "#{Recording::ROWS}/fibers.rb",
                                   [[@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)])).extra
      off, lost = run.fetch("off"), run.fetch("lost")
      { "short" => "not recorded, for the wait is short", "on" => "each wait recorded" }.each do |side, what|
        ours, base = run.fetch(side) - off, run.fetch("peer") - off
        @rows << Row.new(name: "a fiber switch, #{what}", unit: "ns", ours: ours, base: base, ratio: base / ours, runs: @rounds,
                         note: "untraced #{off.round} ns; the peer is a TracePoint#{"; #{lost.to_i} lost" if lost > 0}")
      end
    end

    DURATIONS_OF_A_PAUSE = 3 # with mark and sweep; the counters after them are in the price

    # What the GC calls, beside a clock read and a store for each of Ruby's internal events of the same
    # pause; and whole collections, whose time varies by more than that.
    def gc
      Dir.mktmpdir("vm-trace-bench") do |folder|
        extension = build_extension("collections", folder)
        program = "#{Recording::ROWS}/gc.rb"
        run = @ours.run(Workload.new("gc", program, [extension, [@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)])).extra
        add_gc_rows(run)
      end
    end

    def add_gc_rows(run)
      ours, base = %w[on_pauses peer_peer].map { |key| run.fetch(key) / DURATIONS_OF_A_PAUSE }
      lost = run.fetch("lost")
      @rows << Row.new(name: "one duration of a GC pause", unit: "ns", ours: ours, base: base, ratio: base / ours, runs: @rounds,
                       target: "<= 100 ns", met: ours <= 100 && lost.zero?,
                       note: "not recorded: %.1f ns; the peer notes the times of five internal events%s" %
                             [run.fetch("off_pauses") / DURATIONS_OF_A_PAUSE, lost.zero? ? "" : "; #{lost.to_i} lost"])
      off, on, peer = %w[off_collection on_collection peer_collection].map { |key| run.fetch(key) / 1e3 }
      @rows << Row.new(name: "minor collection, traced", unit: "us", ours: on, base: peer, ratio: peer / on, runs: @rounds,
                       note: "untraced %.1f us; the peer has hooks of internal events" % off)
    end

    # One change of state, and whole programs, traced and untraced in turns in one process.
    def states
      arguments = [[@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)]
      workload = Workload.new("states", "#{Recording::ROWS}/states.rb", arguments)
      run = @ours.run(workload).extra
      change, peer = run.values_at("change", "peer")
      @rows << Row.new(name: "one change of execution state", unit: "ns", ours: change, base: peer,
                       ratio: peer / change, runs: @rounds, target: "<= 2 clock reads + 5 ns",
                       met: run["lost"].zero? && change <= 2 * run["clock"] + 5,
                       note: "a clock read: %.0f ns; the peer is an event of TracePoint; a call into compiled code untraced: " \
                             "%.0f ns; %.0f million changes a second" %
                             [*run.values_at("clock", "off"), 2e3 / (run.fetch("off") + 2 * change)])
      { "" => @ours, "YJIT: " => with_yjit(@ours) }.each do |jit, side|
        %w[emulator requests].each { |program| add_state_row("#{jit}#{program}", program, side) }
      end
    end

    def add_state_row(name, program, side)
      folder = @options.fetch(:folder, Dir.tmpdir)
      workload = Workload.new(program, File.expand_path("../workloads/#{program}.rb", __dir__), [folder])
      @progress&.step(0, 1, 0, 1, "states: #{name}")
      run = side.run(workload, flags: ["-r", "#{Recording::ROWS}/states_in_turns.rb"]).extra
      off, on = %w[untraced traced].map { |kind| run.select { |key, _| key.start_with?("#{kind}_") }.values }
      ratios = off.zip(on).map { |untraced, traced| traced / untraced }
      ratio = Statistics.median(ratios)
      @rows << Row.new(name: "states: #{name}, traced / untraced", unit: "times", ours: ratio, spread: spread(ratios),
                       runs: ratios.size, target: "<= 1.05", met: ratio <= 1.05,
                       note: "processor time of the thread; untraced %.1f ms, traced %.1f ms" %
                             [off, on].map { |list| Statistics.median(list) * 1e3 })
    end

    # Whole programs: with the stream `counters`, and with ZJIT's own statistics, which count the same for the process.
    def counters
      %w[fib nbody].each do |name|
        flags = { off: [], ours: nil, base: %w[--zjit-stats-quiet] }
        runs = Array.new([@rounds, 5].max) do |round|
          @progress&.step(0, 1, round, @rounds, "counters: #{name}")
          flags.to_h do |kind, own|
            [kind, own ? run_counting(name, own) : with_trace("counters") { |all, _| run_counting(name, all) }]
          end
        end
        ours, base = %i[ours base].map { |kind| runs.map { |run| run[kind] / run[:off] } }
        ratios = base.zip(ours).map { |peer, own| peer / own }
        untraced = Statistics.median(runs.map { |run| run[:off] })
        @rows << Row.new(name: "counters: #{name}, traced / untraced", unit: "times", ours: Statistics.median(ours),
                         base: Statistics.median(base), ratio: Statistics.median(ratios), spread: spread(ratios),
                         runs: runs.size, target: "ratio >= 1", met: Statistics.median(ratios) >= 1,
                         note: "the peer is --zjit-stats-quiet; untraced %.1f ms" % (untraced * 1e3))
      end
    end

    def run_counting(name, flags)
      @ours.run(Workload.new(name, "#{Workloads::OURS}/#{name}.rb", []), flags: ["--zjit", *flags]).seconds
    end

    # A loop that only allocates: sampled beside untraced in the same process, and untraced beside the
    # unpatched base, which runs before and after.
    def allocations
      arguments = [[@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)]
      workload = Workload.new("allocations", "#{Recording::ROWS}/allocations.rb", arguments)
      before, run, after = [@base, @ours, @base].map { |side| side.run(workload).extra }
      base = %w[off strings_off].to_h { |key| [key, [before, after].sum { |of_base| of_base.fetch(key) } / 2] }
      add_allocation_rows(run, base.fetch("off"))
      add_buffer_rows(run, base.fetch("strings_off"))
    end

    # A string of 2 KiB has a buffer, which may be a sample of its own.
    def add_buffer_rows(run, base_ns)
      off, sampled, ratio = %w[strings_off strings_sampled strings_ratio].map { |key| run.fetch(key) }
      @rows << Row.new(name: "allocated string of 2 KiB, one sample per 512 KiB", unit: "ns", ours: sampled, base: off,
                       ratio: off / sampled, runs: @rounds, target: "<= 1.05 of untraced", met: ratio <= 1.05,
                       note: "%.3f of untraced" % ratio)
      @rows << Row.new(name: "allocated string of 2 KiB, not recorded", unit: "ns", ours: off, base: base_ns,
                       ratio: base_ns / off, runs: @rounds, note: "the base is the unpatched Ruby")
    end

    def add_allocation_rows(run, base_ns)
      off, sampled, each, peer, ratio = %w[off sampled each peer ratio].map { |key| run.fetch(key) }
      lost = run.fetch("lost")
      @rows << Row.new(name: "allocated object, one sample per 512 KiB", unit: "ns", ours: sampled, base: off,
                       ratio: off / sampled, runs: @rounds,
                       target: "<= 1.01 of untraced", met: ratio <= 1.01 && lost.zero?,
                       note: "%.3f of untraced; ObjectSpace.trace_object_allocations: %.1f ns%s" %
                             [ratio, peer, lost.zero? ? "" : "; #{lost.to_i} lost"])
      @rows << Row.new(name: "allocated object, each recorded", unit: "ns", ours: each, base: peer, ratio: peer / each,
                       runs: @rounds,
                       note: "the peer is ObjectSpace.trace_object_allocations, which keeps file and line alone")
      saved, peer_alive = run.values_at("saved", "peer_alive")
      @rows << Row.new(name: "live object, saved with its bytes by malloc", unit: "ns", ours: saved, base: peer_alive,
                       ratio: peer_alive / saved, runs: @rounds,
                       note: "the peer is each_object, allocation_sourcefile and memsize_of")
      @rows << Row.new(name: "allocated object, not recorded", unit: "ns", ours: off, base: base_ns,
                       ratio: base_ns / off, runs: @rounds,
                       note: "the base is the unpatched Ruby")
    end

    def build_hook(folder) = build_extension("empty_hook", folder)

    def build_extension(name, folder)
      FileUtils.cp(Dir["#{__dir__}/../#{name}/*"], folder)
      [[@ours.command[0], "extconf.rb"], %w[make]].each do |command|
        out = IO.popen([*command, chdir: folder, err: %i[child out]], &:read)
        raise Failed, "#{name} can't be built: #{out.lines.last}" unless $?.success?
      end
      "#{folder}/#{name}.so"
    end

    # How long a save of 16 MiB stops others, by the number of places that exit: the part before it
    # writes. Without a Ruby (recording.c).
    # A piece of a spool is a save that starts the counts anew.
    def saving
      [100, 1_000, 10_000, 50_000].each do |sites|
        save, piece = Array.new(@rounds) { %w[--pause --cut].map { |kind| pause(kind, sites) } }.transpose
        middle, of_piece = [save, piece].map { |pauses| Statistics.median(pauses) }
        @rows << Row.new(name: "pause of a save at 16 MiB, #{sites} places", unit: "us", ours: middle, runs: save.size,
                         target: "<= 100 us", met: middle <= 100,
                         note: "%.1f .. %.1f us, each the median of 25 saves" % save.minmax)
        @rows << Row.new(name: "the same for a piece of a spool, K=97", unit: "us", ours: of_piece, runs: piece.size,
                         note: "%.1f .. %.1f us; a save %.1f us" % [*piece.minmax, middle])
      end
    end

    # Writing a piece, which a thread of the tracer does, and compressing it.
    def pieces
      none, *compressed = %w[none zstd gzip].map do |how|
        runs = Array.new(@rounds) { piece(how) }
        runs.transpose.map { |column| Statistics.median(column) }
      end
      @rows << Row.new(name: "processor time of a piece of 16 MiB", unit: "ms", ours: none[0], runs: @rounds,
                       note: "%.1f MB; events of 1000 places, each recorded" % none[1])
      %w[zstd gzip].zip(compressed) do |how, (ms, megabytes)|
        @rows << Row.new(name: "the same compressed by #{how}", unit: "ms", ours: ms, base: none[0], ratio: none[0] / ms, runs: @rounds,
                         note: "%.2f MB; the base is the piece as it is" % megabytes)
      end
    end

    # Milliseconds, and MB.
    def piece(how)
      Dir.mktmpdir("vm-trace-bench-spool", @options[:folder]) do |folder|
        us, bytes = measured_by_recording("--piece", how, folder).split.map { |text| Integer(text) }
        [us / 1e3, bytes / 1e6]
      end
    end

    def pause(kind, sites)
      Integer(measured_by_recording(kind, sites.to_s, "#{@options[:folder]}/vm-trace-bench-save-#{$$}.fxt")) / 1e3
    end

    # What the recording path without Ruby prints (recording.c).
    def measured_by_recording(*arguments)
      program = @options[:recording]
      unless program && File.executable?(program)
        raise Failed, "--recording PROGRAM is needed: make build/bench/recording builds it"
      end
      out = IO.popen([program, *arguments, err: File::NULL], &:read)
      raise Failed, "recording #{arguments.first}: status #{$?.exitstatus}" unless $?.success?
      out
    end

    # --- many ractors -----------------------------------------------------------------------------------------

    EVALS = 50_000 # of an iteration: seven of them, 2 s in all
    RACTORS_OF_EVALS = 64
    RACTORS_OF_RESETS = 16

    def scale
      evals
      [1, 97].each { |rate| resets(rate) }
    end

    # Most ISEQs that are freed were never in a trace, and no ractor should wait for that.
    def evals
      jobs = { none: [variant("", @ours), "evals", RACTORS_OF_EVALS, EVALS], traced: [variant("", @ours, :recorder, 1), "evals", RACTORS_OF_EVALS, EVALS] }
      runs = @recording.rounds(@rounds, "evals, #{RACTORS_OF_EVALS} ractors alive", jobs)
      times = runs.to_h { |key, list| [key, each_of(list, EVALS).map { |s| s * 1e6 }] }
      ratios = times[:traced].zip(times[:none]).map { |a, b| a / b }
      middle = [0.25, 0.75].map { |q| Statistics.quantile(ratios, q) }
      @rows << Row.new(name: "evals, #{RACTORS_OF_EVALS} ractors alive, traced / untraced", unit: "times", ours: Statistics.median(ratios), runs: ratios.size,
                       target: "within noise", met: middle[0] <= 1, note: "half of the ratios: %.3f .. %.3f; one eval untraced: %.2f us" % [*middle, Statistics.median(times[:none])])
    end

    def resets(rate)
      flags = %W[--zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-exits-sample-rate=#{rate} --zjit-trace-memory=32]
      workload = Workload.new("resets", "#{Recording::ROWS}/resets.rb", [RACTORS_OF_RESETS.to_s, rate.to_s])
      runs = Array.new([@rounds / 2, 3].max) do |i|
        @progress&.step(i, [@rounds / 2, 3].max, 0, 1, "resets, K=#{rate}")
        @ours.run(workload, flags: flags).extra
      end
      ns = runs.map { |run| run.fetch("reset_ns") }
      exact, a_second = runs.count { |run| run["exact"] == 1 }, Statistics.median(runs.map { |run| run.fetch("a_second") })
      @rows << Row.new(name: "reset, K=#{rate}, by #{RACTORS_OF_RESETS} ractors at once", unit: "ns", ours: Statistics.median(ns), runs: ns.size,
                       target: "<= 1000 ns, counts exact", met: Statistics.median(ns) <= 1000 && exact == runs.size,
                       note: "%.0f .. %.0f ns of the processor; %.0f a second in each; counts exact in %d of %d runs" % [*ns.minmax, a_second, exact, runs.size])
    end

    # --- trace flags absent ---------------------------------------------------------------------------------

    def absent
      done = compare(@base, @ours, @compare_runs) { |comparison| @comparison = comparison }
      add_code_rows(done, %w[code_region_bytes side_exit_size compiled_iseq_count])
      add_exits_row(done.map(&:workload))
      add_time_row(done, failures(@comparison))
    end

    # Results of the workloads that succeeded.
    def compare(base, ours, runs)
      comparison = Comparison.new(base, ours, @workloads, runs: runs, progress: @progress)
      yield comparison if block_given?
      comparison.run
      raise Interrupt if comparison.interrupted
      done = comparison.results.reject { |result| result.failure || result.candidate.empty? }
      raise Failed, failures(comparison).first || "no workload ran" if done.empty?
      done
    end

    def failures(comparison)
      comparison.results.select(&:failure).map { |result| "#{result.workload.name}: #{result.failure}" }
    end

    # Exits as ZJIT counts them, with statistics: one run of each program.
    def add_exits_row(workloads)
      exits = workloads.to_h do |workload|
        [workload.name, [@ours, @base].map { |side| side.run(workload, flags: %w[--zjit-stats-quiet]).extra.fetch("side_exit_count").to_i }]
      end
      unlike = exits.reject { |_, (ours, base)| ours == base }
      sums = [0, 1].map { |i| exits.sum { |_, both| both[i] } }
      @rows << Row.new(name: "trace flags absent: exits", unit: "exits", ours: sums[0], base: sums[1], ratio: sums[1].fdiv(sums[0]), runs: exits.size, target: "equal",
                       met: unlike.empty?, note: unlike.empty? ? "equal in #{exits.size} of #{exits.size} programs" : "differs in: #{unlike.keys.join(' ')}")
    end

    def add_code_rows(done, keys, prefix = "")
      keys.each do |key|
        # Of all runs of both sides: a compilation may come earlier or later by chance, so each side
        # has a set.
        sets = done.to_h do |result|
          [result.workload.name, [result.candidate, result.baseline].map { |list| list.filter_map { |measure| measure.extra[key] }.uniq.sort }]
        end
        sets.reject! { |_, both| both.all?(&:empty?) }
        next if sets.empty? # this Ruby has no such statistics
        unlike = sets.reject { |_, (ours, base)| ours == base || !(ours & base).empty? }
        sums = [0, 1].map { |i| sets.sum { |_, both| both[i].first || 0 } }
        @rows << Row.new(name: "#{prefix}trace flags absent: #{key}", unit: key == "compiled_iseq_count" ? "versions" : "bytes", ours: sums[0], base: sums[1],
                         ratio: sums[1].fdiv(sums[0]), runs: done.size, target: "equal", met: !sets.empty? && unlike.empty?,
                         note: (unlike.empty? ? "equal in #{sets.size} of #{sets.size} programs" : "differs in: #{unlike.keys.join(' ')}"))
      end
    end

    def add_time_row(done, failed)
      judgement = Judgement.new(done, @options)
      slower, undecided, mean = judgement.named(:slower), judgement.undecided, judgement.geometric_mean
      note = slower.empty? ? "no program is seen to be slower" : "slower: #{slower.join(' ')}"
      note += "; too noisy to tell: #{undecided.join(' ')}" unless undecided.empty?
      note += "; failed: #{failed.join('; ')}" unless failed.empty?
      met = slower.empty? && failed.empty? && done.size >= 10
      @rows << Row.new(name: "trace flags absent: run time, ours / base", unit: "times", ours: mean.ratio, base: 1.0,
                       ratio: mean.ratio, spread: judgement.intervals.map { |_, interval| interval.ratio }.minmax,
                       runs: @compare_runs, target: "within noise", met: met && !undecided.empty? ? :unclear : met,
                       note: "#{done.size} programs, mean %.3f .. %.3f; #{note}" % [mean.low, mean.high])
    end

    # --- for the drawing ---------------------------------------------------------------------------------------

    def depths
      points = DEPTHS.map { |depth| [depth, exit_costs(depth, 1, [@rounds / 2, 3].max)] }
      @depth_lines = { "the base's tracer, 15 frames kept" => :base, "ours, all frames kept" => :ours }.map do |title, key|
        [title, points.map { |depth, costs| [depth, Statistics.median(costs[key]), *costs[key].minmax].map { |x| x.round(1) } }
                      .select { |point| point.all?(&:positive?) }]
      end
    end
  end
end
