# frozen_string_literal: true

module VmTrace
  # config.vm_trace of a Rails application:
  #   enabled        false: this gem does nothing
  #   spans          which kinds there are (Notifications::KINDS); default: all
  #   start          options of RubyVM::Trace.start: a trace begins when the application has booted
  #   slow_requests  options of SlowRequests: a trace of each slow request
  #   path           true: the span of a request has its path
  class Railtie < Rails::Railtie
    config.vm_trace = ActiveSupport::OrderedOptions.new.update(enabled: true, spans: Notifications::KINDS.keys, path: false)

    # The stack is built when all settings are known. Others, such as OpenTelemetry's, put themselves before it later on.
    module Middleware
      def self.new(app)
        options = Rails.application.config.vm_trace
        return app unless options.enabled && VmTrace.patched?
        return SlowRequests.new(app, path: options.path, **options.slow_requests) if options.slow_requests
        options.spans.include?(:requests) ? Requests.new(app, path: options.path) : app
      end

      def self.name = "VmTrace"
    end
    config.app_middleware.insert_before(0, Middleware)

    config.after_initialize do |app|
      options = app.config.vm_trace
      next unless options.enabled && VmTrace.available?
      Notifications.subscribe(options.spans)
      require_relative "sidekiq" if defined?(::Sidekiq) && options.spans.include?(:jobs)
      VmTrace.start(**options.start) if options.start
    end
  end
end
