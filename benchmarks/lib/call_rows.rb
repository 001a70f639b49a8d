# The group `calls` of `make bench`: what recording each call costs, beside two reads of the clock, a
# TracePoint and ruby-prof.

require "rbconfig"
require "tmpdir"
require_relative "recording"

module Bench
  module CallRows
    CLOCK_READS = 2 # of a call: when it begins, and when it ends
    # What a call may take besides these, and how many times more a TracePoint is to take.
    MOST_NS = { "ZJIT" => 4, "YJIT" => 4, "interpreter" => 8 }.freeze
    LEAST_RATIO = { "ZJIT" => 10, "YJIT" => 10 }.freeze
    MOST_SLOWDOWN = { 5 => 1.12, 20 => 1.45 }.freeze # by millions of calls a second
    MOST_FRAMELESS = 1.25 # times an ordinary call
    FRAMES_OF_EMULATOR = 5 # of 60: the trace of all calls has 60 MB

    private

    def calls
      runs = sides_of_calls.to_h { |jit, side| [jit, run_calls(side, jit, *("programs" if jit != "interpreter"))] }
      runs.each { |jit, run| add_call_row(jit, run) }
      add_ruby_prof_row(runs.fetch("ZJIT").fetch("call"))
      sides_of_calls.slice("ZJIT", "YJIT").each { |jit, side| add_frameless_row(jit, side) }
      add_call_bytes_row(runs.values)
      add_min_row
      MOST_SLOWDOWN.each { |millions, most| add_slowdown_row(millions, most, runs.slice("ZJIT", "YJIT")) }
    end

    def sides_of_calls
      ruby = @ours.command[0].shellescape
      { "ZJIT" => @ours, "YJIT" => with_yjit(@ours), "interpreter" => Side.new(@ours.name, "#{ruby} --disable-jit") }
    end

    def rounds_of_calls = [@rounds, 5].max

    # With the clock read right before and after.
    def run_calls(side, jit, *programs)
      @progress&.step(MOST_NS.keys.index(jit), MOST_NS.size, 0, 1, "calls: #{jit}")
      arguments = [rounds_of_calls.to_s, @options.fetch(:folder, Dir.tmpdir), *programs]
      before = clock_read
      run = side.run(Workload.new("calls", "#{Recording::ROWS}/calls.rb", arguments)).extra
      run.merge("clocks" => CLOCK_READS * (before + clock_read) / 2)
    end

    # Nanoseconds.
    def clock_read
      Float(measured_by_recording("--clock")) / 1e3
    end

    def add_call_row(jit, run)
      ours, peer, clocks = run.values_at("call", "peer", "clocks")
      most, least_ratio = clocks + MOST_NS[jit], LEAST_RATIO[jit]
      repeated = "; repeated because of losses: #{run["repeated"].to_i}" if run["repeated"] > 0
      @rows << Row.new(name: "#{jit}: one call and its return", unit: "ns", ours: ours, base: peer, ratio: peer / ours,
                       runs: rounds_of_calls,
                       target: "<= 2 clock reads + #{MOST_NS[jit]} ns#{", ratio >= #{least_ratio}" if least_ratio}",
                       met: ours <= most && peer >= ours * (least_ratio || 0),
                       note: "2 clock reads: %.1f ns; into memory: %.1f ns; untraced: %.1f ns; " \
                             "the peer is a TracePoint that counts%s" %
                             [clocks, *run.values_at("memory", "off"), repeated])
    end

    # It measures a Ruby of its own: the one that runs this, where a distribution puts its package.
    def add_ruby_prof_row(ours)
      row = Row.new(name: "ZJIT: one call, beside ruby-prof", unit: "ns", ours: ours, target: "ratio >= 50")
      @rows << row
      workload = Workload.new("ruby_prof", "#{Recording::ROWS}/ruby_prof.rb", ["9"])
      run = Side.new("ruby-prof", RbConfig.ruby.shellescape).run(workload)
      peer = run.extra.fetch("call")
      row.base, row.ratio, row.runs, row.met = peer, peer / ours, 9, peer >= 50 * ours
      row.note = "the peer is ruby-prof, on Ruby #{RUBY_VERSION}"
    rescue Failed => e
      row.note = "no ruby-prof for Ruby #{RUBY_VERSION}: #{e.message}"
    end

    # Calls that need no frame, in a program that begins traced. Each round is a process with the trace and
    # one without.
    def add_frameless_row(jit, side)
      rounds = Array.new(rounds_of_calls) { [frames(side), frames(side, traced: true)] }
      untraced = rounds.map(&:first)
      added = %w[constant leaf call].to_h do |name|
        [name, Statistics.median(rounds.map { |without, with| with.fetch(name) - without.fetch(name) })]
      end
      ours, call = added.values_at("constant", "leaf").max, added["call"]
      @rows << Row.new(name: "#{jit}: a call that needs no frame, from the beginning", unit: "ns", ours: ours, base: call,
                       ratio: ours / call, runs: rounds.size, target: "ratio <= #{MOST_FRAMELESS}",
                       met: ours <= call * MOST_FRAMELESS,
                       note: "a method that returns a constant: %.1f ns; a leaf in C: %.1f ns; untraced: %.1f and %.1f ns; " \
                             "the peer is an ordinary call in the same processes" %
                             [*added.values_at("constant", "leaf"),
                              *%w[constant leaf].map { |name| Statistics.median(untraced.map { |run| run[name] }) }])
    end

    def frames(side, traced: false)
      workload = Workload.new("frames", "#{Recording::ROWS}/frames.rb", [])
      return side.run(workload).extra unless traced
      with_trace("calls") { |flags, _| side.run(workload, flags: flags).extra }
    end

    def with_trace(streams)
      path = "#{@options.fetch(:folder, Dir.tmpdir)}/vm-trace-bench-calls-#{$$}.fxt"
      yield ["--vm-trace=#{streams}", "--vm-trace-quiet", "--vm-trace-file=#{path}"], path
    ensure
      File.unlink(path) if path && File.file?(path)
    end

    def add_call_bytes_row(runs)
      bytes = runs.map { |run| run.fetch("bytes") }.max
      @rows << Row.new(name: "bytes a call", unit: "bytes", ours: bytes, runs: 1, target: "24, plus names",
                       met: bytes.round <= 24, note: "%.2f with the strings and heads of chunks" % bytes)
    end

    # How much of a trace is left without calls of less than a microsecond.
    def add_min_row
      all, longer = ["calls", "calls:min=1us"].map { |streams| bytes_of_emulator(streams) }
      ratio = longer.fdiv(all)
      @rows << Row.new(name: "calls:min=1us / calls, bytes, emulator", unit: "times", ours: ratio, runs: 1,
                       target: "<= 0.1 times", met: ratio <= 0.1, note: "#{longer >> 10} of #{all >> 10} KiB")
    end

    def bytes_of_emulator(streams)
      workload = Workload.new("emulator", "#{Workloads::OURS}/emulator.rb", [FRAMES_OF_EMULATOR.to_s])
      with_trace(streams) do |flags, path|
        @ours.run(workload, flags: flags)
        File.size(path)
      end
    end

    def add_slowdown_row(millions, most, runs)
      slowest = runs.values.map { |run| run.fetch("slowdown_#{millions}") }.max
      each = runs.map do |jit, run|
        "%s %.3f at %.1f million" % [jit, *run.values_at("slowdown_#{millions}", "rate_#{millions}")]
      end
      @rows << Row.new(name: "#{millions} million calls a second, traced / untraced", unit: "times", ours: slowest,
                       runs: rounds_of_calls, target: "<= #{most} times", met: slowest <= most, note: each.join(", "))
    end
  end
end
