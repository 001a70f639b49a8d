# frozen_string_literal: true

require_relative "../vm_trace"

module VmTrace
  # Sidekiq's server middleware: a span for each job, with its class, queue and number, never its arguments. In a Rails application
  # with this gem it is there; elsewhere: require "vm_trace/sidekiq".
  class SidekiqJobs
    def self.install
      return unless VmTrace.available?
      ::Sidekiq.configure_server { |config| config.server_middleware { |chain| chain.add(self) } }
    end

    def call(_job, message, queue, &block)
      name = message["wrapped"]
      return yield if name && Notifications.subscribed?("perform.active_job") # which has a span for it
      name ||= message["class"]
      VmTrace.span("sidekiq #{name}", endpoint: name, queue: queue, job_id: message["jid"], &block)
    end
  end
end
VmTrace::SidekiqJobs.install if defined?(Sidekiq)
