# Runs entries side by side: builds of Rubies first, then the longest of those whose Ruby is there; at the
# end, one after the other, those that run alone. Of the suites that mostly start processes one entry runs
# at a time while others are left: two processors of a virtual machine start no more processes than one.
class Schedule
  UNAVAILABLE = 3 # scripts/common.sh
  STARTING_PROCESSES = %w[build patches benchmarks].freeze

  attr_reader :busy_seconds, :wall_seconds

  # estimate: how long an entry takes, in seconds
  def initialize(entries, jobs, &estimate)
    @entries, @jobs, @estimate = entries, jobs, estimate
    @mutex, @changed = Mutex.new, ConditionVariable.new
    @running = {} # entry => when it began
    @no_ruby = {} # base => nil if its Ruby is there, else why it is not
    @ended = 0
    @busy_seconds = 0.0
  end

  # Yields, one at a time: each entry with its Result, or with the reason why it was skipped, and a text that
  # says how far the queue is. Entries that the block returns are appended.
  def run(&block)
    began = now
    Array.new(@jobs) { Thread.new { work(&block) } }.each(&:join)
    @wall_seconds = now - began
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def work(&block)
    while (entry = take)
      reason = entry.needs.filter_map { |base| @no_ruby[base] }.first
      result = reason && entry.skipped_without_ruby? ? nil : entry.run(reason ? { "NO_RUBY" => reason } : {})
      @mutex.synchronize do
        @busy_seconds += result.seconds if result
        @no_ruby[entry.builds] = reason_of(entry, result) if entry.builds
        @running.delete(entry)
        @ended += 1
        @entries.concat(block.call(entry, result || reason, progress) || [])
        @changed.broadcast
      end
    end
  end

  def take
    @mutex.synchronize do
      loop do
        entry = choose
        if entry
          @entries.delete(entry)
          @running[entry] = now
          return entry
        end
        return if @entries.empty? && @running.empty?
        @changed.wait(@mutex)
      end
    end
  end

  def choose
    return if @running.each_key.any?(&:alone?)
    ready = @entries.select { |entry| entry.needs.all? { |base| @no_ruby.key?(base) } }
    together = ready.reject(&:alone?)
    return ready.first if together.empty? && @running.empty?
    starting = @running.each_key.any? { |entry| starts_processes?(entry) }
    together.find(&:builds) ||
      together.max_by { |entry| [starting && starts_processes?(entry) ? 0 : 1, @estimate.(entry)] }
  end

  def starts_processes?(entry) = STARTING_PROCESSES.include?(entry.suite)

  def reason_of(entry, result)
    return if result.status.success?
    return File.read("build/#{entry.builds}/unavailable").strip if result.status.exitstatus == UNAVAILABLE
    result.counts[1] = 1
    "the patched Ruby did not build"
  end

  def progress
    left = @entries.sum(&@estimate) + @running.sum { |entry, began| [@estimate.(entry) - (now - began), 0].max }
    total = @ended + @running.size + @entries.size
    format("[%*d/%d, %s left]", total.to_s.size, @ended, total, left > 90 * @jobs ? "#{(left / @jobs / 60).round} min" : "#{(left / @jobs).round} s")
  end
end
