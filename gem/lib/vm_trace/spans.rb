# frozen_string_literal: true

module VmTrace
  # Spans that are open on this fiber. The trace needs them to end in the reverse order of their begins; events of
  # ActiveSupport may come in another one, or without an end.
  module Spans
    OPEN = :vm_trace_open # key, name and number of each
    private_constant :OPEN

    # Begins a span, which `key` names: an object.
    def self.open(key, name, **arguments)
      span = RubyVM::Trace.span_begin(name, **arguments) or return
      open = Thread.current[OPEN] ||= []
      open.clear if open.any? && open.last != span # of a trace that is over
      open.push(key, name, span)
    end

    # Ends it, and before it what began within it and has not ended. Does nothing if it did not begin in this trace.
    def self.close(key, **arguments)
      open = Thread.current[OPEN] or return
      at = open.size - 3
      at -= 3 until at < 0 || open[at].equal?(key)
      return if at < 0
      while open.size > at
        _, name, span = open.pop(3)
        open.size > at ? RubyVM::Trace.span_end(name, span) : RubyVM::Trace.span_end(name, span, **arguments)
      end
    end
  end
end
