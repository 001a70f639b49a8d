# frozen_string_literal: true

module VmTrace
  # A span for each execution of GraphQL, with the names of its operations, without its text and variables:
  #   class MySchema < GraphQL::Schema
  #     trace_with VmTrace::GraphQLTrace
  module GraphQLTrace
    def execute_multiplex(multiplex:)
      return super unless VmTrace.patched? && RubyVM::Trace.markers?
      begin
        VmTrace.guard { Spans.open(multiplex, "graphql", **VmTrace.telemetry) }
        super
      ensure
        VmTrace.guard do # the queries are parsed by now
          names = multiplex.queries.filter_map(&:selected_operation_name)
          Spans.close(multiplex, **(names.empty? ? {} : { endpoint: "graphql #{names.join(", ")}" }))
        end
      end
    end
  end
end
