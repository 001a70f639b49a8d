# Traces of the stream `samples`, written by the protocol buffers' specification and Perfetto's stack_sample.proto,
# apart from the tracer's encoder. Times are milliseconds.
#   SamplesTrace.new { |t| t.sample(:main, 3, 1, "compiled", "<main> (/a.rb:1)", "Foo#bar (/a.rb:3)") }.build
require_relative "fxt_builder"

class SamplesTrace < ThreadsTrace
  STATES = %w[compiled interpreted compiling gc blocked waiting no_cpu without_gvl].freeze
  STATE_CLEARED, NEEDS_STATE = 1, 2

  def self.varint(number)
    bytes = []
    while number > 0x7f
      bytes << (number & 0x7f | 0x80)
      number >>= 7
    end
    [*bytes, number].pack("C*")
  end

  # { field => an Integer, bytes or an Array of them }
  def self.message(**fields)
    fields.sum("".b) do |number, values|
      Array(values).sum("".b) do |value|
        tag = number.to_s.to_i << 3
        value.is_a?(Integer) ? varint(tag) + varint(value) : varint(tag | 2) + varint(value.bytesize) + value.b
      end
    end
  end

  def initialize(settings: {}, clock: "wall", **options, &block)
    @records = 0
    @sequence = 102
    @clock = clock
    settings &&= { flags: "samples", samples_ns: [:uint64, 1_000_000], samples_clock: clock, **settings }
    super(settings: settings, **options, &block)
  end

  # Returns the offset of its record. `fields`: of the message, in addition or instead; `packet`: of the packet.
  def sample(thread, at, length, state, *frames, fiber: nil, state_length: length, fields: {}, packet: {})
    begin_generation unless @known
    @records += 1
    ids = frames.map { |frame| frame_number(frame) }
    stack = number(:stacks, ids) { |n| interned(7, 1 => n, 2 => ids) }
    task = task_number(thread, fiber)
    body = { 2 => task, 6 => stack, 11 => ns(length) }
    body.update(13 => [STATES.index(state) + 1].pack("C"), 14 => SamplesTrace.varint(ns(state_length))) if state
    put(8 => ns(at), 13 => NEEDS_STATE, 135 => to_message(**body, **fields), **packet)
  end

  def new_chunk
    super
    @known = nil
  end

  def build(**counts) = super(samples: @records, sample_records: @records, samples_late: 0, **counts)

  private

  def to_message(**fields) = SamplesTrace.message(**fields.transform_keys { |key| key.to_s.to_sym })

  def put(**packet)
    bytes = to_message(10 => @sequence, **packet)
    whole = to_message(1 => bytes)
    @builder.record(5, whole.bytesize << 32 | 3 << 48, whole)
  end

  def begin_generation
    @known = Hash.new { |tables, table| tables[table] = {} }
    time = { 2 => @clock == "cpu" ? "CPU time" : "wall time", 3 => 1 }
    put(13 => STATE_CLEARED, 59 => to_message(100 => to_message(1 => "ruby.samples", 2 => to_message(**time))),
        12 => to_message(50 => STATES.each_with_index.map { |state, i| to_message(1 => i + 1, 2 => state, 3 => 1) }))
  end

  def interned(table, **entry)
    put(13 => NEEDS_STATE, 12 => to_message(table => to_message(**entry)))
  end

  def number(table, key)
    known = @known[table]
    return known[key] if known[key]
    known[key] = known.size + 1
    yield known[key], key
    known[key]
  end

  def text_number(table, text) = number(table, text) { |n, key| interned(table, 1 => n, 2 => key) }

  def frame_number(label)
    name, path, line = label.match(/\A(.*?)(?: \((.*?)(?::(\d+))?\))?\z/).captures
    number(:frames, label) do |n|
      path &&= text_number(18, path)
      interned(6, **{ 1 => n, 2 => text_number(5, name), 4 => n, 5 => path, 6 => line&.to_i, 7 => 3 }.compact)
    end
  end

  def task_number(thread, fiber)
    tid = @threads.fetch(thread)[:tid]
    number(:tasks, [tid, fiber]) do |n|
      interned(51, 1 => 900, 2 => fiber, 3 => "fiber") if fiber
      interned(48, **{ 1 => n, 2 => @pid, 3 => tid, 4 => fiber && 900 }.compact)
    end
  end
end
