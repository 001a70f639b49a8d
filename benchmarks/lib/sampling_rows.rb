# The group `sampling` of `make bench`: what samples of time cost, beside stackprof and perf record.

require "tmpdir"
require_relative "recording"

module Bench
  module SamplingRows
    MOST_PERCENT = 1.0
    MOST_US = 5.0

    private

    def sampling
      sides = { "ZJIT" => @ours, "YJIT" => with_yjit(@ours) }
      runs = sides.transform_values { |side| run_sampling(side) }
      stackprof, why = run_stackprof
      bare = Statistics.median(Array.new(5) { Float(measured_by_recording("--signal")) / 1e3 })
      runs.each do |jit, run|
        perf = run.fetch("perf")
        note = perf.nan? ? "perf can't record here" : "perf record: %.2f %%" % percent(perf)
        add_sampling_row("#{jit}: 53 frames, a sample each ms", "%", percent(run.fetch("slower")),
                         stackprof && percent(stackprof.fetch("slower")), "<= #{MOST_PERCENT} %",
                         percent(run.fetch("slower")) <= MOST_PERCENT, note, why)
        us = run.fetch("process_us")
        note = "a thread that wakes and sends a bare signal: %.1f us; the sampled thread alone: %.1f us" %
               [bare, run.fetch("thread_us")]
        add_sampling_row("#{jit}: one sample, 53 frames", "us", us, stackprof&.fetch("process_us"),
                         "<= a bare signal + #{MOST_US} us", us <= bare + MOST_US, note, why)
      end
    end

    def percent(ratio) = (ratio - 1) * 100

    def rounds_of_sampling = [@rounds, 9].max

    def run_sampling(side, *peer)
      arguments = [rounds_of_sampling.to_s, @options.fetch(:folder, Dir.tmpdir), *peer]
      side.run(Workload.new("sampling", "#{Recording::ROWS}/sampling.rb", arguments)).extra
    end

    # It samples a Ruby of its own: the one that runs this, where a distribution puts its package.
    def run_stackprof
      [run_sampling(Side.new("stackprof", RbConfig.ruby.shellescape), "stackprof"), nil]
    rescue Failed => e
      [nil, "no stackprof for Ruby #{RUBY_VERSION}: #{e.message}"]
    end

    def add_sampling_row(name, unit, ours, base, target, met, note, why)
      peer = why || "the peer is stackprof, on Ruby #{RUBY_VERSION}"
      @rows << Row.new(name: name, unit: unit, ours: ours, base: base, ratio: base && ours > 0 ? base / ours : nil,
                       runs: rounds_of_sampling, target: target, met: met, note: "#{note}; #{peer}")
    end
  end
end
