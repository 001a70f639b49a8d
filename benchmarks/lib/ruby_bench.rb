# The benchmarks of a clone of ruby-bench, by the names of their folders, with the harness in
# examples/ruby_bench.

require_relative "side"
require_relative "workloads"

module Bench
  module RubyBench
    HARNESS = File.expand_path("../../examples/ruby_bench/harness-vm-trace", __dir__)
    # To install the gems of a benchmark, with their extensions.
    MOST_SECONDS = 1800

    class Benchmark < Workload
      # `arguments`: the harness
      def command = ["-I", *arguments, path]

      # Runs it up to its first iteration, so that no run is timed which installs gems. What fails there
      # is no failure of the comparison.
      def set_up(side)
        (@set_up ||= {}).fetch(side.command) do |command|
          @set_up[command] = begin
            side.run_to_set_up(self, { "VM_TRACE_BENCH_SET_UP" => "1" }, timeout: MOST_SECONDS) && nil
          rescue NotRun => e
            e.message
          rescue Failed => e
            "it cannot be set up: #{e.message}"
          end
        end&.then { |fault| raise NotRun, "#{side.name}: #{fault}" }
      end

      # The environment in which it traces its iterations itself, after the warm-up.
      def tracing(file, streams) = { "VM_TRACE_FILE" => file, "VM_TRACE_STREAMS" => streams }
    end

    module_function

    # {name => file}
    def paths(folder)
      Dir["#{File.expand_path(folder)}/benchmarks/{*.rb,*/benchmark.rb}"].sort.to_h do |path|
        [path.end_with?("/benchmark.rb") ? File.basename(File.dirname(path)) : File.basename(path, ".rb"), path]
      end
    end

    # The workloads that a command line names: benchmarks of a folder, if there is one, else others.
    def choose(folder, names) = folder ? find(folder, names) : Workloads.find(names)

    # All of them, or those that are named.
    def find(folder, names, harness: HARNESS)
      known = paths(folder)
      raise BadArgument, "--ruby-bench #{folder}: no clone of ruby-bench: it has no benchmarks/*/benchmark.rb" if known.empty?
      raise BadArgument, "--ruby-bench #{folder}: it has no harness/loader.rb" unless File.file?("#{folder}/harness/loader.rb")
      names = known.keys if names.empty?
      names.uniq.map do |name|
        path = known[name] or raise BadArgument, "#{name}: no benchmark of #{folder}, which has: #{known.keys.join(' ')}"
        Benchmark.new(name, path, [harness])
      end
    end
  end
end
