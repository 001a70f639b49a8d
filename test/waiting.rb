# Waiting for what another process or thread does. A test waits for the event itself, and never for a time in which it
# probably happens.
module Waiting
  # The limit is for an event that never comes: the slowest and busiest machine needs less.
  PATIENCE_SECONDS = ENV["EMULATED"].to_s.empty? ? 300 : 1800

  # Returns what the block returns, once that is true.
  def wait_until(what, limit: PATIENCE_SECONDS, every: 0.01)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + limit
    until (found = yield)
      flunk "not within #{limit} s: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > stop
      sleep every
    end
    found
  end

  def wait_for(path) = wait_until("#{path} exists") { File.exist?(path) }
end
