# frozen_string_literal: true

module VmTrace
  # Rack middleware: a span `request` for each request. Parameters are never recorded, nor is the path, which may have some in
  # it, unless `path: true` asks for it.
  class Requests
    NAME = "request"
    TRACE_ID = "vm_trace.trace_id" # in a request's environment: OpenTelemetry's, for the name of a recording

    # On a Ruby that cannot record, the application itself: nothing stands before it.
    def self.new(app, ...) = VmTrace.available? ? super : app

    def initialize(app, path: false)
      @app, @path = app, path
    end

    def call(env)
      return @app.call(env) unless RubyVM::Trace.markers?
      begin
        VmTrace.guard { Spans.open(env, NAME, **known_at_begin(env)) }
        response = @app.call(env)
      ensure
        VmTrace.guard { Spans.close(env, **known_at_end(env, response)) }
      end
    end

    private

    def known_at_begin(env)
      arguments = { method: env["REQUEST_METHOD"], **VmTrace.telemetry }
      env[TRACE_ID] = arguments[:trace_id] if arguments[:trace_id]
      arguments[:path] = env["PATH_INFO"] if @path
      arguments
    end

    def known_at_end(env, response)
      arguments = {}
      endpoint, id = endpoint_of(env), id_of(env)
      arguments[:endpoint] = endpoint if endpoint
      arguments[:request_id] = id if id
      arguments[:status] = response[0].to_i if response
      arguments
    end

    # What the report groups by: which code answered, not which path was asked for.
    def endpoint_of(env)
      controller = env["action_controller.instance"]
      env["vm_trace.endpoint"] || (controller ? "#{controller.class.name}##{controller.action_name}" : env["sinatra.route"])
    end

    def id_of(env) = env["action_dispatch.request_id"] || env["HTTP_X_REQUEST_ID"]
  end
end
