# frozen_string_literal: true

# What a Ruby with vm_trace's patches records, told apart by what the application was doing: spans for requests, queries, views,
# caches and jobs, and a trace of each slow request. On another Ruby this says so once and does nothing. README.md has the use.
module VmTrace
  autoload :Notifications, File.expand_path("vm_trace/notifications", __dir__)
  autoload :GraphQLTrace, File.expand_path("vm_trace/graphql", __dir__)
  @told = {}

  class << self
    # Where messages go: a Logger; nil: that of Rails, or stderr.
    attr_accessor :logger

    # Whether this Ruby can record markers; the first time that it cannot, a line says so.
    def available?
      return true if patched?
      tell("this Ruby has no RubyVM::Trace.span_begin, so nothing is traced: use one with vm_trace's patches")
      false
    end

    def patched? = defined?(RubyVM::Trace.span_begin) ? true : false

    # Begins a trace with options of RubyVM::Trace.start, unless one is on. What cannot be recorded is told, and the
    # application goes on. Returns whether a trace is on.
    def start(**options)
      return false unless available?
      RubyVM::Trace.start(**options) unless RubyVM::Trace.status[:on]
      true
    rescue StandardError, NotImplementedError => e
      tell("nothing is traced: #{e.message}")
      false
    end

    # Records how long the block runs, with the error that ended it, if any.
    def span(name, **arguments)
      return yield unless patched? && RubyVM::Trace.markers?
      key = Object.new
      guard { Spans.open(key, name, **arguments, **telemetry) }
      begin
        yield
      rescue Exception => e
        error = { error: e.class.name }
        raise
      ensure
        guard { Spans.close(key, **error) }
      end
    end

    # Arguments that name the current span of OpenTelemetry, if the program has that.
    def telemetry
      return {} unless defined?(::OpenTelemetry::Trace.current_span)
      context = ::OpenTelemetry::Trace.current_span.context
      context.valid? ? { trace_id: context.hex_trace_id, span_id: context.hex_span_id } : {}
    end

    # What goes wrong here does not reach the application. A message may have what nobody should read in a log.
    def guard
      yield
    rescue StandardError => e
      tell("a marker is missing: #{e.class} at #{e.backtrace&.first}")
    end

    # Each message once in a process.
    def tell(message)
      return if @told[message]
      @told[message] = true if @told.size < 100
      to = logger || (::Rails.logger if defined?(::Rails.logger))
      to ? to.warn("vm_trace: #{message}") : warn("vm_trace: #{message}")
      nil
    end
  end
end

require_relative "vm_trace/version"
require_relative "vm_trace/spans"
require_relative "vm_trace/requests"
require_relative "vm_trace/slow_requests"
require_relative "vm_trace/railtie" if defined?(Rails::Railtie)
