# Traces of the stream `fibers`, as doc/internals/events.md has them. Times are milliseconds.
#   FibersTrace.new { |t| t.fiber(1); t.wait(1, "Kernel#sleep", 0, 5, ["Kernel#sleep (/app/a.rb:1)"], ran: 2) }.build
require_relative "fxt_builder"

class FibersTrace < StatesTrace
  FIBER = 3 << 29

  def initialize(**options, &block)
    @waits = 0
    super(**{ settings: { flags: "fibers", fibers_min_ns: [:uint64, 100_000] }, **options }, &block)
  end

  def fiber(number) = thread(:"main fiber #{number}", FIBER + number)

  # `track`: a fiber's number, or the name of a thread. `waker`: a fiber's number.
  def wait(track, name, from, to, frames = [], ran: nil, ready: nil, waker: nil, **args)
    @waits += 1
    args[:waker] = [:uint32, FIBER + waker] if waker
    args[:ran_ns] = [:uint64, ns(ran)] if ran
    args[:ready_ns] = [:uint64, ns(ready)] if ready
    frames.each_with_index { |frame, i| args[i.to_s] = frame }
    track = :"main fiber #{track}" if track.is_a?(Integer)
    event(:complete, track, "fiber", name, from, extra: [ns(to)], **args)
  end

  def build(**counts) = super(fiber_waits: @waits, fiber_waits_left_out: 7, **counts)
end
