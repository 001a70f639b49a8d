# The group `kernel` of `make bench`: what recording system calls and the scheduler costs, beside perf record of
# the same tracepoints.

require "tmpdir"
require_relative "recording"

module Bench
  module KernelRows
    private

    def kernel
      arguments = [[@rounds, 5].max.to_s, @options.fetch(:folder, Dir.tmpdir)]
      run = @ours.run(Workload.new("kernel", "#{Recording::ROWS}/kernel.rb", arguments)).extra
      strace = added(run, "strace", "call")
      add_kernel_row("one system call", run, "call", strace && "; strace adds %.0f ns" % strace)
      add_kernel_row("a thread sleeps and gets a CPU again", run, "rest", nil)
    end

    # nil: that peer is not installed, or may not record.
    def added(run, side, what)
      ns = run.fetch("#{side}_#{what}") - run.fetch("off_#{what}")
      ns unless ns.nan?
    end

    def add_kernel_row(name, run, what, more)
      ours, peer = added(run, "on", what), added(run, "perf", what)
      lost = "; #{run["lost"].to_i} lost" if run["lost"] > 0
      @rows << Row.new(name: name, unit: "ns", ours: ours, base: peer, ratio: peer && peer / ours, runs: [@rounds, 5].max,
                       target: "nothing lost", met: run["lost"].zero?,
                       note: "untraced %.0f ns; %s%s%s" %
                             [run.fetch("off_#{what}"), peer ? "the peer is perf record" : "perf can't record here", more, lost])
    end
  end
end
