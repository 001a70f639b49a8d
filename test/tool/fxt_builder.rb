# Makes Fuchsia trace files, good and bad ones, for the tests of the tool. It shares nothing with
# the tracer's encoder: it follows the format's specification
# (https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format).
class FxtBuilder
  MAGIC = [0x0016547846040010].pack("Q<")
  EVENT_TYPES = %i[instant counter begin end complete async_begin async_instant async_end flow_begin flow_step flow_end].freeze
  ARG_TYPES = %i[null int32 uint32 int64 uint64 double string pointer koid bool].freeze

  Inline = Struct.new(:text)

  attr_reader :bytes

  def initialize(magic: true)
    @bytes = magic ? MAGIC.b : "".b
    @strings = {}
    @next_string = 1
  end

  # The offset of the next record, as messages print it.
  def offset = @bytes.bytesize

  def words(*words)
    start = offset
    @bytes << words.pack("Q<*")
    start
  end

  def raw(bytes)
    start = offset
    @bytes << bytes
    start
  end

  # A record of any type; `size` lies about its length when given.
  def record(type, fields, body = "", size: nil)
    body = body.b
    body << "\0" * (-body.bytesize % 8)
    start = offset
    size ||= 1 + body.bytesize / 8
    @bytes << [type | size << 4 | fields].pack("Q<") << body
    start
  end

  def provider(id, name = "")
    @strings = {}
    @next_string = 1
    record(0, 1 << 16 | id << 20 | name.bytesize << 52, name)
  end

  def section(id) = record(0, 2 << 16 | id << 20)

  def init(ticks_per_second = 1_000_000_000) = record(1, 0, [ticks_per_second].pack("Q<"))

  def string(index, text, **opts) = record(2, index << 16 | text.bytesize << 32, text, **opts)

  # Padding, as the tracer writes it: a string record that defines index 0.
  def padding(words) = record(2, 0, "\0" * (8 * (words - 1)))

  def thread(index, pid, tid) = record(3, index << 16, [pid, tid].pack("Q<Q<"))

  # Defines the text if necessary and returns its reference. Integers are references already.
  def ref(text)
    case text
    when Integer then text
    when Inline then text.text.empty? ? 0 : 0x8000 | text.text.bytesize
    when "" then 0
    else
      @strings[text] ||= begin
        index = @next_string
        @next_string += 1
        string(index, text)
        index
      end
    end
  end

  def inline(text) = text.is_a?(Inline) ? text.text.b + "\0" * (-text.text.bytesize % 8) : "".b

  # value: a String, Inline, Integer, Float, true, false, nil, or [type, value]
  def arg(name, value, size: nil)
    type, value =
      case value
      when Array then value
      when String, Inline then [:string, value]
      when Integer then [value.between?(-2**31, 2**31 - 1) ? :int32 : :int64, value]
      when Float then [:double, value]
      when nil then [:null, nil]
      else [:bool, value]
      end
    low = 0
    body = inline(name)
    case type
    when :int32, :uint32 then low = value & 0xffffffff
    when :bool then low = value ? 1 : 0
    when :string
      low = ref(value)
      body << inline(value)
    when :int64, :uint64, :koid, :pointer then body << [value & (2**64 - 1)].pack("Q<")
    when :double then body << [value].pack("E")
    end
    type = ARG_TYPES.index(type) unless type.is_a?(Integer)
    size ||= 1 + body.bytesize / 8
    [type | size << 4 | ref(name) << 16 | low << 32].pack("Q<") + body
  end

  # Returns the offset of the event record (strings that it needs are defined before it). args: a
  # Hash, or encoded arguments.
  def event(type, cat, name, ts:, thread: 1, args: {}, extra: [], size: nil, arg_count: nil, pid: nil, tid: nil)
    encoded = args.is_a?(Hash) ? args.map { |key, value| arg(key, value) } : args
    cat_ref, name_ref = ref(cat), ref(name)
    thread = 0 if pid
    body = [ts].pack("Q<")
    body << [pid, tid].pack("Q<Q<") if pid
    body << inline(cat) << inline(name) << encoded.join << Array(extra).pack("Q<*")
    type = EVENT_TYPES.index(type) unless type.is_a?(Integer)
    fields = type << 16 | (arg_count || encoded.size) << 20 | thread << 24 | cat_ref << 32 | name_ref << 48
    record(4, fields, body, size: size)
  end

  # An exit or a fallback, with its innermost frame.
  def exit(reason, frame, ts:, kind: "side_exit", **args)
    event(:instant, kind, reason, ts: ts, args: { "0" => frame, **args.transform_keys(&:to_s) })
  end

  def process_name(pid, name) = kernel_object(1, pid, name)
  def thread_name(pid, tid, name) = kernel_object(2, tid, name, "process" => [:koid, pid])

  # A context switch as the tracer writes it: threads are numbers of thread records, 0 is none.
  def switch(ts, out, into, state: 0, cpu: 0)
    idle = [0, 0].pack("Q<Q<")
    record(8, cpu << 16 | state << 24 | out << 28 | into << 36, [ts].pack("Q<") + (out == 0 ? idle : "") + (into == 0 ? idle : ""))
  end

  def wakeup(ts, tid, waker: nil, cpu: 0)
    args = waker ? arg("waker", [:koid, waker]) : ""
    record(8, (waker ? 1 : 0) << 16 | cpu << 20 | 2 << 60, [ts, tid].pack("Q<Q<") + args)
  end

  def kernel_object(type, id, name, args = {})
    encoded = args.map { |key, value| arg(key, value) }
    name_ref = ref(name)
    record(7, type << 16 | name_ref << 24 | encoded.size << 40, [id].pack("Q<") + inline(name) + encoded.join)
  end

  # One provider, one thread (index 1) of a process: most tests begin with it.
  def self.simple(pid: 42)
    builder = new
    builder.provider(1, "test")
    builder.init
    builder.thread(1, pid, pid + 1)
    builder.process_name(pid, "ruby")
    builder.thread_name(pid, pid + 1, "main")
    yield builder if block_given?
    builder
  end
end

# A trace as the tracer writes it, by the event schema. The events are data, so that a test can
# break one thing:
#   OurTrace.new(rate: 97).tap { |t| t.exits[0][:args].delete("insn") }.build
class OurTrace
  attr_accessor :settings, :exits, :sites, :losses, :summary, :spans, :extra
  attr_reader :offsets

  def initialize(rate: 1, fallback_rate: nil, pid: 42)
    @pid = pid
    weight = rate > 1 ? { "weight" => [:uint32, rate] } : {}
    @settings = {
      "ruby" => "ruby 4.1.0dev (2026-08-22) +ZJIT [x86_64-linux]", "base" => "81cefb5c9d", "jit" => "ZJIT",
      "command" => "ruby --zjit-trace-exits app.rb", "pid" => [:uint32, pid], "exit_rate" => [:uint64, rate],
      "fallback_rate" => [:uint64, fallback_rate || 1],
    }
    @exits = [
      exit_event("side_exit", "GuardType(Fixnum)", 2000, "Foo#bar (/app/foo.rb:3)", "opt_plus", weight),
      exit_event("side_exit", "GuardType(Fixnum)", 3000, "Foo#bar (/app/foo.rb:3)", "opt_plus", weight),
      exit_event("recompile_exit", "NoProfileSend", 4000, "Foo#baz (/app/foo.rb:9)", "send",
                 weight.merge("outcome" => "profiling")),
      exit_event("fallback", "SendPolymorphic", 5000, "Foo#bar (/app/foo.rb:4)", "send",
                 fallback_rate && fallback_rate > 1 ? { "weight" => [:uint32, fallback_rate] } : {}),
    ]
    @spans = [
      { type: :begin, cat: "compile", name: "compile_iseq", ts: 4100, args: {} },
      { type: :begin, cat: "compile", name: "build_hir", ts: 4200, args: {} },
      { type: :end, cat: "compile", name: "build_hir", ts: 4300, args: {} },
      { type: :end, cat: "compile", name: "compile_iseq", ts: 4500,
        args: { "iseq" => "Foo#bar (/app/foo.rb:2)", "version" => [:uint32, 2], "code_bytes" => [:uint64, 640] } },
    ]
    @losses = []
    @extra = []
    @sites = [
      site("side_exit", "GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", "opt_plus", 2 * rate + (rate > 1 ? 5 : 0)),
      site("recompile_exit", "NoProfileSend", "Foo#baz (/app/foo.rb:9)", "send", rate),
      site("fallback", "SendPolymorphic", "Foo#bar (/app/foo.rb:4)", "send", fallback_rate || 1),
    ]
    @summary = { ts: 9000, args: nil }
    @offsets = {}
  end

  def exit_event(cat, reason, ts, frame, insn, more = {})
    args = { "0" => frame, "1" => "<main> (/app/run.rb:1)", "insn" => insn, "version" => [:uint32, 1] }
    { type: :instant, cat: cat, name: reason, ts: ts, args: args.merge(more) }
  end

  def site(kind, reason, location, insn, hits)
    { type: :instant, cat: "trace", name: "site", ts: 8000,
      args: { "reason" => reason, "kind" => kind, "insn" => insn, "version" => [:uint32, 1], "location" => location,
              "hits" => [:uint64, hits] } }
  end

  # The correct summary of the events.
  def summary_args
    hits = ->(kinds) { @sites.select { |s| kinds.include?(s[:args]["kind"]) }.sum { |s| s[:args]["hits"][1] } }
    count = 1 + @exits.size + @spans.size + @losses.size + @sites.size + @extra.size
    { "exits" => [:uint64, hits[%w[side_exit recompile_exit]]], "fallbacks" => [:uint64, hits[%w[fallback]]],
      "events" => [:uint64, count], "lost" => [:uint64, @losses.sum { |l| l[:args]["lost"][1] }],
      "sampled" => [:uint64, @exits.count { |e| e[:cat] != "fallback" }], "sites" => [:uint64, @sites.size] }
  end

  # Afterwards offsets has the place of each event, by the given objects.
  def build
    FxtBuilder.simple(pid: @pid) do |b|
      b.thread(2, @pid, @pid + 2)
      all = [{ type: :instant, cat: "trace", name: "settings", ts: 1000, args: @settings }]
      all.concat((@exits + @spans).sort_by.with_index { |e, i| [e[:ts], i] }, @losses, @sites, @extra)
      if @summary
        all << { type: :instant, cat: "trace", name: "summary", ts: @summary[:ts], args: @summary[:args] || summary_args }
      end
      all.each do |e|
        if e[:new_chunk]
          b.provider(1, "test")
          b.init
          b.thread(1, @pid, @pid + 1)
          b.thread(2, @pid, @pid + 2)
        end
        @offsets[e.equal?(all.last) && @summary ? :summary : e] =
          b.event(e[:type], e[:cat], e[:name], ts: e[:ts], args: e[:args] || {}, extra: e[:extra] || e[:id] || [], thread: e[:thread] || 1)
      end
      @offsets[:settings] = @offsets[all.first]
    end
  end
end

# A trace of the streams `threads` and `gc`, as the tracer writes it: a thread writes its own records,
# a wake-up when it runs again. Times are milliseconds.
#   ThreadsTrace.new { |t| t.thread(:web, 1); t.runs(:web, 1) }.build
class ThreadsTrace
  RUNNABLE, BLOCKED, DEAD = 1, 3, 4

  attr_reader :builder, :offsets

  def initialize(pid: 42, settings: {}, ends: 100, provider: "test")
    @pid, @ends, @provider = pid, ends, provider
    @threads = {}
    @events = 0
    @builder = FxtBuilder.new
    @builder.provider(1, provider)
    @builder.init
    @builder.process_name(pid, "ruby")
    thread(:main, pid + 1)
    event(:instant, :main, "trace", "settings", 0, "command" => "ruby --vm-trace=threads,gc app.rb", "pid" => [:uint32, pid], **settings) unless settings.nil?
    yield self if block_given?
  end

  def thread(name, tid, cpu: 0)
    @threads[name] = { ref: @threads.size + 1, tid: tid, cpu: cpu }
    @builder.thread(@threads[name][:ref], @pid, tid)
    @builder.thread_name(@pid, tid, name.to_s)
  end

  def new_chunk
    @builder.provider(1, @provider)
    @builder.init
    @threads.each_value { |thread| @builder.thread(thread[:ref], @pid, thread[:tid]) }
  end

  def event(type, thread, cat, name, at, extra: [], **args)
    @events += 1
    @builder.event(type, cat, name, ts: ns(at), thread: @threads[thread][:ref], args: args.transform_keys(&:to_s), extra: extra)
  end

  def runs(thread, at) = @builder.switch(ns(at), 0, @threads[thread][:ref], cpu: @threads[thread][:cpu])
  def leaves(thread, at, state) = @builder.switch(ns(at), @threads[thread][:ref], 0, state: state, cpu: @threads[thread][:cpu])

  # It was woken by a thread (nil: by none), and runs later.
  def wakes(thread, woken, at, by: nil)
    @builder.wakeup(ns(woken), @threads[thread][:tid], waker: by && @threads[by][:tid], cpu: @threads[thread][:cpu])
    runs(thread, at)
  end

  # It gives up the GVL at `at` and blocks. Without `woken` it does so to the end.
  def blocks(thread, name, at, woken = nil, runs_at = woken, by: nil, **args)
    leaves(thread, at, BLOCKED)
    yield if block_given?
    event(:begin, thread, "blocked", name, at, **args)
    return unless woken
    event(:end, thread, "blocked", name, woken)
    wakes(thread, woken, runs_at, by: by)
  end

  def during(thread, cat, name, from, to, ends: {}, **args)
    event(:begin, thread, cat, name, from, **args)
    yield if block_given?
    event(:end, thread, cat, name, to, **ends)
  end

  # A sampled object; `frames`: its backtrace, innermost first. Arguments are as the recorder writes them.
  def allocates(thread, name, at, sample:, weight:, size: 40, frames: [], **args)
    backtrace = frames.each_with_index.to_h { |frame, i| [i.to_s.to_sym, frame] }
    event(:instant, thread, "allocation", name, at, sample: [:uint64, sample], size: [:uint32, size],
          weight: [:uint32, weight], **args, **backtrace)
  end

  # A garbage collection did not mark it, or the trace ends.
  def freed(thread, at, sample, **args) = fate("freed", thread, at, sample, **args)
  def alive(thread, at, sample, **args) = fate("alive", thread, at, sample, **args)

  def fate(name, thread, at, sample, survived: 0, malloc: nil, **args)
    held = malloc ? { malloc_bytes: [:uint64, malloc] } : {}
    event(:instant, thread, "allocation", name, at, sample: [:uint64, sample], survived: [:uint32, survived], **held,
          **args)
  end

  # As a flight recorder saves what is alive: with what the event of the sample said.
  def saved_alive(thread, at, sample, name, weight:, size: 40, age_ns: 0, frames: [], **args)
    backtrace = frames.each_with_index.to_h { |frame, i| [i.to_s.to_sym, frame] }
    alive(thread, at, sample, **args, class: name, size: [:uint32, size], weight: [:uint32, weight],
          age_ns: [:uint64, age_ns], **backtrace)
  end

  # `counts`: of the summary, beside those of all traces.
  def build(**counts)
    counts = { "exits" => 0, "fallbacks" => 0, "events" => @events, "lost" => 0, "sampled" => 0, "sites" => 0, **counts.transform_keys(&:to_s) }
    args = counts.transform_values { |n| n.is_a?(String) ? n : [:uint64, n] }
    event(:instant, :main, "trace", "summary", @ends, **args.transform_keys(&:to_sym))
    @builder
  end

  def ns(ms) = (ms * 1_000_000).round
end

# A trace of the stream `states`, with exits, compilations and their lost time. Times are milliseconds.
#   StatesTrace.new do |t|
#     t.site("GuardType", "Foo#bar (/a.rb:3)", 7, lost: 12)
#     t.states(:main, compiled: 88, exited: 12)
#   end.build
class StatesTrace < ThreadsTrace
  attr_reader :sites

  def initialize(rate: 1, settings: {}, **options, &block)
    @rate, @sites, @exits, @tracks = rate, [], 0, {}
    settings &&= { jit: "ZJIT", flags: "exits compiles threads gc states", exit_rate: [:uint64, rate], **settings }
    super(settings: settings, **options, &block)
  end

  # A recorded exit. lost: nil where the trace has no states.
  def exits(thread, reason, frame, at, lost: 0, insn: "send", version: 1, kind: "side_exit", **args)
    @exits += 1
    args[:weight] = [:uint32, @rate] if @rate > 1
    args[:lost_ns] = [:uint64, ns(lost)] if lost
    args[:outcome] = "profiling" if kind == "recompile_exit"
    event(:instant, thread, kind, reason, at, "0": frame, "1": "<main> (/app/run.rb:1)", insn: insn,
          version: [:uint32, version], **args)
  end

  # What a site counted, and the lost time of all its exits and of the longest one.
  def site(reason, frame, hits, lost: nil, max: lost, insn: "send", version: 1, kind: "side_exit", **args)
    times = lost ? { lost_ns: [:uint64, ns(lost)], lost_max_ns: [:uint64, ns(max)] } : {}
    @sites << { reason: reason, kind: kind, insn: insn, version: [:uint32, version], location: frame,
                hits: [:uint64, hits], **times, **args }
  end

  def compiles(thread, iseq, from, to, version: 1, **ends)
    result = { iseq: iseq, version: [:uint32, version], code_bytes: [:uint64, 512], **ends }
    during(thread, "compile", iseq[/\((.*)\)$/, 1], from, to, ends: result)
  end

  # The sums of a thread; 0 is left out.
  def states(thread, at = @ends, **times)
    sums = times.reject { |_, ms| ms.zero? }.transform_values { |ms| [:uint64, ns(ms)] }
    event(:instant, thread, "trace", "states", at, **sums, changes: [:uint64, 12])
  end

  # ran: of all calls, with what they called; older traces lack it.
  def interpreted(iseq, why, calls, ms, first:, last:, ran: nil)
    times = { interpreted_ns: ms, ran_ns: ran, first_ns: first, last_ns: last }.compact
    event(:instant, :main, "trace", "interpreted", @ends, iseq: iseq, why: why, calls: [:uint64, calls],
          **times.transform_values { |time| [:uint64, ns(time)] })
  end

  # Calls that began in compiled code, and stayed there (compiled) or not (exited).
  def calls(iseq, state, calls, ran, **args)
    event(:instant, :main, "trace", "calls", @ends, iseq: iseq, state: state, calls: [:uint64, calls],
          ran_ns: [:uint64, ns(ran)], interpreted_ns: [:uint64, 0],
          first_ns: [:uint64, ns(1)], last_ns: [:uint64, ns(2)], **args)
  end

  # An execution slice, on the track beside that of its thread.
  def slice(thread, name, from, to, **args)
    track = :"#{thread} execution"
    thread(track, 2**31 + @threads[thread][:tid]) unless @threads.key?(track)
    event(:complete, track, "execution", name, from, extra: [ns(to)], **args)
  end

  def build(**counts)
    @sites.each { |site| event(:instant, :main, "trace", "site", @ends, **site) }
    fallbacks, exits = @sites.partition { |site| site[:kind] == "fallback" }
                             .map { |sites| sites.sum { |site| site[:hits][1] } }
    super(exits: exits, fallbacks: fallbacks, sampled: @exits, sites: @sites.size, **counts)
  end
end

# A trace of the stream `calls`: a call is written when it returns, so those inside come first. Times are
# milliseconds.
#   CallsTrace.new { |t| t.call(:main, "<main> (/a.rb:1)", 1, 90) { t.call(:main, "Foo#bar (/a.rb:3)", 2, 5) } }.build
class CallsTrace < ThreadsTrace
  attr_reader :calls, :left_out

  def initialize(settings: {}, **options, &block)
    @calls = @left_out = 0
    settings &&= { flags: "calls", **settings }
    super(settings: settings, **options, &block)
  end

  # began, ended: it was open when the trace began, when it ended. Returns the offset of its record.
  def call(thread, name, from, to, left_out: nil, left_out_ms: nil, began: false, ended: false, **args)
    yield if block_given?
    @calls += 1
    @left_out += left_out.to_i
    args[:left_out] = [:uint64, left_out] if left_out
    args[:left_out_ns] = [:uint64, ns(left_out_ms)] if left_out_ms
    args[:began] = began == true ? "before the trace" : began if began
    args[:ended] = ended == true ? "after the trace" : ended if ended
    event(:complete, thread, "call", name, from, extra: [ns(to)], **args)
  end

  def build(**counts) = super(calls: @calls, calls_left_out: @left_out, **counts)
end

# A trace of the streams `syscalls` and `sched`, with calls and states of threads beside them. Slices of one
# thread are written at their ends. Times are milliseconds.
#   KernelTrace.new { |t| t.syscall(:main, "read", 1, 2, fd: 3, result: 7); t.cpu(:main, 0, 0, 5) }.build
class KernelTrace < CallsTrace
  CPU_TRACKS = 0x78000000

  def initialize(settings: {}, **options, &block)
    @syscalls = @slices = 0
    settings &&= { flags: "calls syscalls sched", **settings }
    super(settings: settings, **options, &block)
  end

  # result: nil if it has another end. Returns the offset of its record.
  def syscall(thread, name, from, to, errno: nil, ended: nil, result: errno || ended ? nil : 0, **args)
    @syscalls += 1
    args = { **args, result: result, errno: errno, ended: ended }.compact
    event(:complete, thread, "syscall", name, from, extra: [ns(to)], **args)
  end

  # A slice on the track beside that of its thread. Returns the offset of its record.
  def sched(thread, name, from, to, **args)
    track = :"#{thread} CPU"
    thread(track, CPU_TRACKS + @threads[thread][:tid]) unless @threads.key?(track)
    @slices += 1
    event(:complete, track, "sched", name, from, extra: [ns(to)], **args)
  end

  def cpu(thread, number, from, to) = sched(thread, "CPU #{number}", from, to, cpu: [:uint32, number])

  def runnable(thread, from, to, why: "woken", cpu: 0, **tasks)
    sched(thread, "runnable", from, to, cpu: [:uint32, cpu], why: why, **tasks)
  end

  def build(**counts)
    super(syscalls: @syscalls, syscalls_left_out: 0, sched_slices: @slices, sched_left_out: 0, **counts)
  end
end
