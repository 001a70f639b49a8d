# The machine that measures: what it is, and what disturbed it meanwhile.

require "etc"

module Bench
  module Machine
    module_function

    def describe
      cpu = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)/, 1] rescue nil
      load = File.read("/proc/loadavg").split.first(3).join(" ") rescue nil
      system = Etc.uname.values_at(:sysname, :release, :machine).join(" ")
      { "cpu" => cpu, "cores" => Etc.nprocessors, "system" => system, "load" => load }
    end

    # What must be the same for times to be comparable.
    def fingerprint(description)
      description.values_at("cpu", "cores", "system")
    end

    # Governors of the processors that do not ask for full speed; empty where there are none, as in
    # most virtual machines.
    def slow_governors(pattern = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
      Dir[pattern].filter_map { |file| File.read(file).strip rescue nil }.uniq - %w[performance]
    end

    # What else the processors did between `new` and `warnings`.
    class Watch
      # Processors taken by others from which on it is worth a line: a tenth of one.
      OTHERS = 0.1
      STEAL = 0.01

      def initialize(stat: "/proc/stat")
        @stat = stat
        @before = read
      end

      def warnings
        after = read
        return [] unless @before && after
        spent = after.zip(@before).map { |b, a| b - a }
        all, idle, steal, own = spent
        return [] unless all.positive?
        others = (all - idle - steal - own) / all * Etc.nprocessors
        out = []
        if others > OTHERS
          out << format("other processes took %.1f of %d processors meanwhile", others, Etc.nprocessors)
        end
        out << format("the host took %.0f %% of the processors' time (steal)", steal / all * 100) if steal > STEAL * all
        out
      end

      private

      # Seconds since the boot: of all processors, idle, stolen by the host, and of this process with
      # its ended children. nil where the system does not tell.
      def read
        ticks = File.open(@stat, &:gets).split.drop(1).first(8).map { |n| n.to_f / Etc.sysconf(Etc::SC_CLK_TCK) }
        times = Process.times
        [ticks.sum, ticks[3] + ticks[4], ticks[7], times.utime + times.stime + times.cutime + times.cstime]
      rescue SystemCallError, NoMethodError
        nil
      end
    end
  end
end
