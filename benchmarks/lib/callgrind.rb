# Counts the instructions of a process with valgrind, so that two counts of the same program agree:
# addresses are not randomised, and what the kernel gives as random bytes is the same each time.

require "tmpdir"
require_relative "side"

module Bench
  class Callgrind
    INSTALL = "valgrind is not installed (Debian: apt-get install valgrind)"
    FIXED_RANDOM = File.expand_path("fixed_random.c", __dir__)

    # `iterations` is nil for a workload that times none.
    Count = Struct.new(:instructions, :iterations)

    # What stands before a program and its arguments. Code that a JIT writes changes while it runs.
    def self.command(out)
      %W[valgrind -q --tool=callgrind --smc-check=all-non-file --callgrind-out-file=#{out}]
    end

    # From the file that callgrind wrote. nil if there is none.
    def self.total(out)
      File.foreach(out).filter_map { |line| line[/\Atotals: (\d+)/, 1]&.to_i }.last if File.file?(out)
    end

    # Yields one, with a folder for its files.
    def self.open(**options)
      Dir.mktmpdir("vm-trace-bench") { |folder| yield new(folder, **options) }
    end

    # what makes two counts differ on this machine, a sentence each
    attr_reader :notes

    def initialize(folder, iterations:, timeout: nil)
      raise BadArgument, "--instructions: #{INSTALL}" unless works?("valgrind", "--version")
      @folder, @iterations, @timeout, @notes = folder, iterations, timeout, []
      @program = [*same_addresses, *Callgrind.command("#{folder}/%p")]
      @env = { "VM_TRACE_BENCH_ITERATIONS" => iterations.to_s, **same_random }
    end

    def count(side, workload)
      pid = nil
      measure = side.run_under(@program, workload, timeout: @timeout, env: @env) { |started| pid = started }
      instructions = Callgrind.total("#{@folder}/#{pid}") or
        raise Failed, "valgrind counted nothing: #{side.command[0]} may be a script that starts Ruby; " \
                      "give the executable"
      Count.new(instructions, measure.iterations)
    ensure
      Dir["#{@folder}/#{pid}*"].each { |file| File.unlink(file) } if pid
    end

    private

    def works?(*command)
      system(*command, out: File::NULL, err: File::NULL)
    end

    def same_addresses
      setarch = %w[setarch -R]
      return setarch if works?(*setarch, "true")
      @notes << "addresses are randomised (setarch -R does not work here), so counts of one program differ"
      []
    end

    # Ruby makes the seed of its hashes from random bytes and takes it from nowhere else.
    def same_random
      library = "#{@folder}/fixed_random.so"
      if works?(ENV.fetch("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", library, FIXED_RANDOM)
        return { "LD_PRELOAD" => [library, ENV["LD_PRELOAD"]].compact.join(":") }
      end
      @notes << "the hash seed differs in each process (no C compiler to fix it), so counts of one program differ"
      {}
    end
  end
end
