# `vm-trace check` on traces of the tracer: each rule of the event schema has a case that breaks it.
require_relative "tool_helper"

class TestCheckSchema < Minitest::Test
  include ToolHelper

  # Breaks one thing of a good trace: the block returns the event that the fault names.
  def broken(message, *options, rate: 1, fallback_rate: nil)
    trace = OurTrace.new(rate: rate, fallback_rate: fallback_rate)
    culprit = yield trace
    builder = trace.build
    offset = trace.offsets.fetch(culprit)
    result = check(builder, *options)
    assert_equal "vm-trace: F: offset #{offset}: #{message}\n", result.err
    assert_equal 1, result.status
    assert_empty result.out
  end

  def frame(number) = "Foo#m#{number} (/app/m.rb:#{number})"

  # --- no faults ---

  def loss(count)
    { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, count], "reason" => "No space left on device" } }
  end

  def test_halves_of_durations_are_fine_where_events_were_lost_or_gave_way
    { "a killed program" => ->(trace) { trace.settings["keep"] = "newest"; trace.summary = nil },
      "a limit" => ->(trace) { trace.settings["keep"] = "newest" },
      "a full disk" => ->(trace) { trace.losses << loss(7) } }.each do |why, prepare|
      [[0], [-1], [1, 2]].each do |gone|
        trace = OurTrace.new
        prepare[trace]
        gone.map { |i| trace.spans[i] }.each { |span| trace.spans.delete(span) }
        result = check(trace.build)
        assert_equal ["", 0], [result.err, result.status], why
      end
    end
  end

  def test_half_of_a_duration_is_a_fault_where_the_oldest_are_kept_and_none_was_lost
    trace = OurTrace.new
    trace.settings["keep"] = "oldest"
    trace.spans.shift
    refute_equal 0, check(trace.build).status
  end

  def test_good_traces_are_fine_at_several_rates
    assert_fine(OurTrace.new.build)
    assert_fine(OurTrace.new(rate: 97).build)
    assert_fine(OurTrace.new(rate: 2, fallback_rate: 5).build)
  end

  def test_trace_whose_program_was_killed_is_fine
    trace = OurTrace.new
    trace.summary = nil
    trace.sites = []
    assert_fine(trace.build)
  end

  def test_duration_left_open_by_a_killed_program_is_only_a_warning
    trace = OurTrace.new
    trace.summary = nil
    trace.spans.pop
    result = check(trace.build)
    assert_match(/warning: duration compile_iseq never ends/, result.err)
    assert_equal 0, result.status
  end

  def test_additions_are_let_pass
    trace = OurTrace.new
    trace.settings["something_new"] = 5
    trace.exits[0][:args]["shape"] = 77
    trace.extra << { type: :instant, cat: "trace", name: "something_new", ts: 8500, args: {} }
    assert_fine(trace.build)
    assert_equal ["trace settings has an argument something_new", "side_exit GuardType(Fixnum) has an argument shape",
                  "unknown event trace something_new"],
                 check(trace.build, "--strict").err.lines.map { |line| line[/offset \d+: (.*)/, 1] }
  end

  def test_trace_of_others_is_not_held_to_the_contract
    assert_fine(FxtBuilder.simple { |b| b.event(:instant, "side_exit", "x", ts: 1) })
  end

  def test_eleven_frames_are_fine
    trace = OurTrace.new
    (2..9).each { |i| trace.exits[0][:args][i.to_s] = frame(i) }
    trace.exits[0][:args]["10+"] = "#{frame(10)} < #{frame(11)}"
    assert_fine(trace.build)
  end

  def test_recompile_exit_may_stand_after_the_spans_of_what_it_led_to
    trace = OurTrace.new
    builder = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: trace.settings)
      b.event(:begin, "invalidation", "x", ts: 2010)
      b.event(:end, "invalidation", "x", ts: 2020)
      exit = trace.exits[2]
      b.event(:instant, exit[:cat], exit[:name], ts: 2000, args: exit[:args])
    end
    assert_fine(builder)
  end

  def test_losses_that_are_told_are_fine
    trace = OurTrace.new
    trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 3], "reason" => "disk full" } }
    trace.exits.pop
    assert_fine(trace.build)
  end

  # --- settings and summary ---

  def test_settings_that_are_not_first
    trace = OurTrace.new
    builder = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "other", ts: 500)
      @at = b.event(:instant, "trace", "settings", ts: 1000, args: trace.settings)
    end
    result = check(builder)
    assert_match(/\Avm-trace: F: offset #{@at}: trace settings is not the first event of its process\n/, result.err)
  end

  def test_host_without_its_time
    trace = OurTrace.new
    builder = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: trace.settings)
      @at = b.event(:instant, "trace", "host", ts: 1001, args: { "host" => "web7" })
    end
    assert_fault(@at, "trace host lacks its argument unix_ns", builder)
  end

  def test_summary_without_settings
    builder = FxtBuilder.simple do |b|
      @at = b.event(:instant, "trace", "summary", ts: 1, args: %w[exits fallbacks sampled sites events lost].to_h { |key| [key, 0] })
    end
    assert_fault(@at, "its process has no trace settings before this summary", builder)
  end

  def snapshot(settings:, summary:)
    trace = OurTrace.new
    trace.settings["snapshot"] = "save" if settings
    trace.summary[:args] = trace.summary_args.merge("snapshot" => "save") if summary
    trace
  end

  def test_a_snapshot_that_settings_and_summary_do_not_both_call_one
    assert_fine(snapshot(settings: true, summary: true).build)
    { [true, false] => "does not say that it is of a snapshot, and the settings say so",
      [false, true] => "says that it is of a snapshot, and the settings do not" }.each do |(settings, summary), message|
      trace = snapshot(settings: settings, summary: summary)
      result = check(trace.build)
      assert_equal "vm-trace: F: offset #{trace.offsets.fetch(:summary)}: trace summary #{message}\n", result.err
    end
  end

  def test_event_earlier_than_settings
    broken("event is earlier than trace settings") { |t| t.exits[0].merge!(ts: 999, thread: 2); t.exits[0] }
  end

  def test_event_later_than_the_summary
    broken("event is later than trace summary") { |t| t.exits[0].merge!(ts: 9001, thread: 2); t.exits[0] }
  end

  def test_second_summary
    trace = OurTrace.new
    trace.extra << { type: :instant, cat: "trace", name: "summary", ts: 8500, args: { "exits" => 0, "events" => 0, "lost" => 0 } }
    result = check(trace.build)
    assert_match(/offset #{trace.offsets.fetch(:summary)}: a second trace summary; the first is at offset #{trace.offsets.fetch(trace.extra[0])}\n/,
                 result.err)
    assert_equal 1, result.status
  end

  def summary_says(**wrong)
    lambda do |t|
      t.summary[:args] = t.summary_args.merge(wrong.to_h { |key, value| [key.to_s, [:uint64, value]] })
      :summary
    end
  end

  def test_summary_with_a_wrong_count_of_events
    broken("trace summary says events: 77, but the file holds: 12", &summary_says(events: 77))
  end

  def test_summary_with_a_wrong_count_of_exits
    broken("trace summary says exits: 77, but hits of the sites add up to: 3", &summary_says(exits: 77))
  end

  def test_summary_with_a_wrong_count_of_fallbacks
    broken("trace summary says fallbacks: 77, but hits of the sites add up to: 1", &summary_says(fallbacks: 77))
  end

  def test_summary_with_a_wrong_count_of_sampled_exits
    broken("trace summary says sampled: 77, but exits in the file: 3", &summary_says(sampled: 77))
  end

  def test_summary_with_a_wrong_count_of_sites
    broken("trace summary says sites: 77, but the file holds: 3", &summary_says(sites: 77))
  end

  def test_summary_with_losses_that_no_event_tells
    broken("trace summary says lost: 2, but loss events add up to: 0", &summary_says(lost: 2))
  end

  def test_summary_without_its_counts
    %w[exits fallbacks sampled sites events lost].each do |key|
      broken("trace summary lacks its argument #{key}") { |t| t.summary[:args] = t.summary_args.reject { |k, _| k == key }; :summary }
    end
  end

  def test_duration_left_open_though_there_is_a_summary
    broken("duration compile_iseq never ends, though the trace has its summary") { |t| t.spans.pop; t.spans[0] }
  end

  # --- exits ---

  def test_exit_without_an_innermost_frame
    broken("side_exit GuardType(Fixnum) lacks its argument 0, the innermost frame") do |t|
      %w[0 1].each { |key| t.exits[0][:args].delete(key) }
      t.exits[0]
    end
  end

  def test_backtrace_with_a_gap
    broken("side_exit GuardType(Fixnum) has a gap in its backtrace: frame 2 is missing") do |t|
      t.exits[0][:args]["3"] = frame(3)
      t.exits[0]
    end
  end

  def test_rest_of_a_backtrace_without_its_tenth_frame
    broken("side_exit GuardType(Fixnum) has a gap in its backtrace: frame 2 is missing") do |t|
      t.exits[0][:args]["10+"] = frame(10)
      t.exits[0]
    end
  end

  # In a trace that keeps two frames.
  def test_rest_of_a_backtrace_that_only_says_how_many_frames_there_are_more
    ["31 more frames", "1 more frame"].each do |rest|
      trace = OurTrace.new
      trace.settings["stack"] = [:uint32, 2]
      trace.exits[0][:args]["10+"] = rest
      assert_fine(trace.build)
    end
    { 2 => "A#a (m.rb:20) < 31 more frames", nil => "31 more frames", 3 => "31 more frames" }.each do |stack, rest|
      broken("side_exit GuardType(Fixnum) has a gap in its backtrace: frame 2 is missing") do |t|
        t.settings["stack"] = [:uint32, stack] if stack
        t.exits[0][:args]["10+"] = rest
        t.exits[0]
      end
    end
    broken("side_exit GuardType(Fixnum) has a gap in its backtrace: frame 2 is missing") do |t|
      t.settings["stack"] = [:uint32, 3]
      t.exits[0][:args].update("3" => frame(3), "10+" => "31 more frames")
      t.exits[0]
    end
  end

  # Then an event has room for fewer than ten frames.
  def test_rest_of_a_backtrace_beside_so_many_arguments_that_fewer_frames_are_named
    trace = OurTrace.new
    (2..8).each { |i| trace.exits[0][:args][i.to_s] = frame(i) }
    trace.exits[0][:args].update("10+" => frame(9), "seen" => "Array", "index" => -1, "length" => [:uint32, 0])
    assert_equal 15, trace.exits[0][:args].size
    assert_fine(trace.build)
    trace.exits[0][:args].delete("index")
    assert_fault(trace.tap(&:build).offsets.fetch(trace.exits[0]),
                 "side_exit GuardType(Fixnum) has a gap in its backtrace: frame 9 is missing", trace.build)
  end

  def test_rest_of_a_backtrace_has_4_kib_at_most
    with_rest = lambda do |t, bytes|
      (2..9).each { |i| t.exits[0][:args][i.to_s] = frame(i) }
      t.exits[0][:args]["10+"] = frame(10).rjust(bytes, "F")
      t.exits[0]
    end
    assert_fine(OurTrace.new.tap { |t| with_rest[t, 4096] }.build)
    broken("side_exit GuardType(Fixnum): 10+ has 4097 bytes; the most are 4096") { |t| with_rest[t, 4097] }
    broken("side_exit GuardType(Fixnum): frame 10+ is not a string") do |t|
      with_rest[t, 0].tap { |exit| exit[:args]["10+"] = [:uint32, 5] }
    end
  end

  # An exit that is a stack sample, too: the sample has all further frames, and "10+" their number.
  def sampled(named, rest, stack: nil)
    lambda do |t|
      t.settings["flags"] = "exits:samples compiles"
      t.settings["stack"] = [:uint32, stack] if stack
      (1..9).each { |i| t.exits[0][:args].delete(i.to_s) }
      (1...named).each { |i| t.exits[0][:args][i.to_s] = frame(i) }
      t.exits[0][:args]["10+"] = rest if rest
      t.exits[0]
    end
  end

  def test_frames_of_an_exit_that_is_a_stack_sample
    [[1, [:uint32, 10]], [1, [:uint32, 90], 1], [3, [:uint32, 5], 3], [10, [:uint32, 5], 20], [10, nil], [3, nil]].each do |named, rest, stack|
      assert_fine(OurTrace.new.tap { |t| sampled(named, rest, stack: stack)[t] }.build)
    end
    exit = "side_exit GuardType(Fixnum)"
    broken("#{exit}: 10+ is not a number, though the exit is a stack sample", &sampled(1, frame(1)))
    broken("#{exit} names 2 frames, and has 10+; its stack sample has all but 1", &sampled(2, [:uint32, 9]))
    broken("#{exit} names 2 frames, and has 10+; its stack sample has all but 3", &sampled(2, [:uint32, 9], stack: 3))
    broken("#{exit} names 9 frames, and has 10+; its stack sample has all but 10", &sampled(9, [:uint32, 9], stack: 20))
    broken("#{exit} leaves 9 frames to its stack sample: so few are named", &sampled(1, [:uint32, 9]))
  end

  # Other backtraces of such a trace are whole.
  def test_frames_of_a_fallback_beside_exits_that_are_stack_samples
    trace = OurTrace.new
    trace.settings["flags"] = "exits:samples fallbacks"
    (2..9).each { |i| trace.exits[3][:args][i.to_s] = frame(i) }
    trace.exits[3][:args]["10+"] = frame(10)
    assert_fine(trace.build)
  end

  def test_frames_end_with_their_places
    ["Foo#bar (/app/a b.rb:-3)", "puts (<cfunc>)", "block (2 levels) in Foo#bar ((eval at x.rb:1):2)", "<top (required)> (:1)",
     "Foo#bar ...[32000 bytes cut]", "line\nbreak (a\n.rb:7)"].each do |label|
      assert_fine(OurTrace.new.tap { |t| t.exits[0][:args]["1"] = label }.build)
    end
    ["Foo#bar", "", "Foo#bar (a.rb)", "Foo#bar (a.rb:)", "Foo#bar a.rb:3)", "Foo#bar (a.rb:3", "Foo#bar ...[ bytes cut]", "...[1 bytes",
     "2 bytes cut]", "<cfunc>", "(<cfunc>)"].each do |label|
      broken("side_exit GuardType(Fixnum): frame 1 has no path and line: #{label}") { |t| t.exits[0][:args]["1"] = label; t.exits[0] }
    end
    broken("invalidation x: frame 0 has no path and line: Foo#bar") do |t|
      t.spans.unshift({ type: :begin, cat: "invalidation", name: "x", ts: 4000, args: { "0" => "Foo#bar" } },
                      { type: :end, cat: "invalidation", name: "x", ts: 4001 })
      t.spans[0]
    end
  end

  def test_frame_that_is_no_string
    broken("side_exit GuardType(Fixnum): frame 1 is not a string") { |t| t.exits[0][:args]["1"] = 5; t.exits[0] }
  end

  def test_exit_without_insn_or_version
    broken("side_exit GuardType(Fixnum) lacks its argument insn", rate: 97) { |t| t.exits[0][:args].delete("insn"); t.exits[0] }
    broken("fallback SendPolymorphic has no string as its argument callee") { |t| t.exits[3][:args]["callee"] = [:uint32, 1]; t.exits[3] }
    broken("fallback SendPolymorphic lacks its argument version", fallback_rate: 5) { |t| t.exits[3][:args].delete("version"); t.exits[3] }
    broken("side_exit GuardType(Fixnum) has no string as its argument insn", rate: 97) { |t| t.exits[0][:args]["insn"] = 5; t.exits[0] }
    broken("side_exit GuardType(Fixnum) has no unsigned number as its argument version", rate: 97) do |t|
      t.exits[0][:args]["version"] = -1
      t.exits[0]
    end
  end

  def test_weight_where_all_are_recorded
    broken("side_exit GuardType(Fixnum) has an argument weight, though all are recorded") do |t|
      t.exits[0][:args]["weight"] = 1
      t.exits[0]
    end
  end

  def test_no_weight_where_exits_are_sampled
    broken("side_exit GuardType(Fixnum) lacks its argument weight, though one in 97 is recorded", rate: 97) do |t|
      t.exits[0][:args].delete("weight")
      t.exits[0]
    end
  end

  def test_weight_that_is_not_the_rate
    broken("recompile_exit NoProfileSend: weight is 5, though one in 97 is recorded", rate: 97) do |t|
      t.exits[2][:args]["weight"] = 5
      t.exits[2]
    end
    broken("fallback SendPolymorphic: weight is 2, though one in 3 is recorded", rate: 2, fallback_rate: 3) do |t|
      t.exits[3][:args]["weight"] = 2
      t.exits[3]
    end
  end

  def test_the_thread_of_an_exit_is_a_name
    broken("side_exit GuardType(Fixnum) has no string as its argument thread") { |t| t.exits[0][:args]["thread"] = [:uint32, 3]; t.exits[0] }
    assert_fine(OurTrace.new.tap { |t| t.exits[2][:args]["thread"] = "worker" }.build)
  end

  def test_outcomes
    broken("recompile_exit NoProfileSend has the unknown outcome recompiled") { |t| t.exits[2][:args]["outcome"] = "recompiled"; t.exits[2] }
    broken("recompile_exit NoProfileSend lacks its argument outcome") { |t| t.exits[2][:args].delete("outcome"); t.exits[2] }
    broken("side_exit GuardType(Fixnum) has an argument outcome", "--strict") do |t|
      t.exits[0].tap { |event| event[:args]["outcome"] = "profiling" }
    end
    %w[profiling invalidated already_invalidated version_limit].each do |outcome|
      assert_fine(OurTrace.new.tap { |t| t.exits[2][:args]["outcome"] = outcome }.build)
    end
  end

  def test_argument_given_twice
    broken("side_exit GuardType(Fixnum) has two arguments insn", rate: 97) do |t|
      t.exits[0][:args][FxtBuilder::Inline.new("insn")] = "send"
      t.exits[0]
    end
  end

  # --- categories and kinds ---

  def test_unknown_category
    broken("unknown category side_exits") { |t| t.extra << { type: :instant, cat: "side_exits", name: "x", ts: 8500, args: {} }; t.extra[0] }
  end

  # The program's own events are of these kinds; it may be in one of them when the trace ends.
  def markers
    [{ type: :instant, cat: "marker", name: "m", ts: 8100, args: { "id" => [:uint32, 1] } },
     { type: :counter, cat: "marker", name: "m", ts: 8101, id: 0, args: { "value" => [:uint64, 1] } },
     { type: :begin, cat: "marker", name: "m", ts: 8102, args: {} }, { type: :end, cat: "marker", name: "m", ts: 8103 },
     { type: :begin, cat: "marker", name: "open", ts: 8104, args: {} }]
  end

  def test_markers
    trace = OurTrace.new
    trace.extra = markers
    assert_fine(trace.build)
    broken("marker m is not an instant, a duration or a counter") { |t| t.extra << { type: :async_begin, cat: "marker", name: "m", ts: 8100, id: 1 }; t.extra[0] }
  end

  def test_collections
    trace = OurTrace.new
    trace.extra = [{ type: :begin, cat: "gc", name: "GC minor", ts: 8100, args: { "count" => [:uint64, 1] } }, { type: :end, cat: "gc", name: "GC minor", ts: 8101 },
                   { type: :counter, cat: "gc", name: "GC heap", ts: 8102, id: 0, args: { "live_slots" => [:uint64, 1] } }]
    assert_fine(trace.build)
    broken("gc GC minor is not a duration") do |t|
      t.extra << { type: :instant, cat: "gc", name: "GC minor", ts: 8100, args: {} }
      t.extra[0]
    end
  end

  # An exit that invalidates a version, and the next compilation: the flow between them.
  def recompilation
    args = { "iseq" => "Foo#bar (a.rb:1)", "version" => [:uint32, 1] }
    [{ type: :begin, cat: "invalidation", name: "r", ts: 8100, args: args },
     { type: :flow_step, cat: "reprofile", name: "recompilation", ts: 8100, id: 7 },
     { type: :async_begin, cat: "reprofile", name: "Foo#bar (a.rb:1)", ts: 8100, id: 7, args: { "version" => [:uint32, 1], "reason" => "r" } },
     { type: :end, cat: "invalidation", name: "r", ts: 8110 },
     { type: :counter, cat: "counter", name: "versions", ts: 8111, id: 0,
       args: { "compiled" => [:uint64, 1], "invalidated" => [:uint64, 1] } },
     { type: :instant, cat: "trace", name: "counts", ts: 8090 },
     { type: :flow_begin, cat: "reprofile", name: "recompilation", ts: 8090, id: 7 },
     { type: :async_end, cat: "reprofile", name: "Foo#bar (a.rb:1)", ts: 8200, id: 7 },
     { type: :begin, cat: "compile", name: "bar", ts: 8200 },
     { type: :flow_end, cat: "reprofile", name: "recompilation", ts: 8200, id: 7 },
     { type: :end, cat: "compile", name: "bar", ts: 8300, args: args.merge("code_bytes" => [:uint64, 9], "error" => "x") }]
  end

  def test_recompilation_is_fine
    trace = OurTrace.new
    trace.extra = recompilation
    assert_fine(trace.build)
  end

  # One ractor invalidates and another compiles: the order of their chunks has no meaning.
  def test_recompilation_by_two_ractors_is_fine_in_any_order
    trace = OurTrace.new
    trace.extra = recompilation.drop(7).map { |event| event.merge(thread: 2) } + recompilation.first(7)
    assert_fine(trace.build)
  end

  # The end of its duration, and of its flow, without their begins.
  def test_recompilation_whose_beginning_gave_way_is_fine
    trace = OurTrace.new
    trace.settings["keep"] = "newest"
    trace.extra = recompilation.drop(7)
    assert_fine(trace.build)
  end

  # [broken event, message], after a change of the list.
  {
    "a second begin" => [->(list) { list.push(list[5].merge(ts: 8400), list[6].merge(ts: 8400)) }, -1,
                         "reprofile recompilation begins a second time with the number 7"],
    "a second end" => [->(list) { list.push(list[5].merge(ts: 8400), list[9].merge(ts: 8400)) }, -1,
                       "reprofile recompilation: the number 7 has ended already"],
    "a span without its begin" => [->(list) { list.delete_at(2) }, 6, "end of async event 7, which did not begin"],
    "a flow without its begin" => [->(list) { list.delete_at(6) }, 1, "a flow that goes on here did not begin in this trace"],
    "a flow of another time" => [->(list) { list[9][:ts] = 8201 }, 9, "reprofile recompilation does not directly follow an event of its thread and time"],
    "a flow behind an end" => [->(list) { list[1], list[3] = list[3].merge(ts: 8100), list[1] }, 3,
                               "reprofile recompilation does not directly follow an event of its thread and time"],
    "no version" => [->(list) { list[2][:args].delete("version") }, 2, "reprofile Foo#bar (a.rb:1) lacks its argument version"],
    "no reason" => [->(list) { list[2][:args].delete("reason") }, 2, "reprofile Foo#bar (a.rb:1) lacks its argument reason"],
    "an invalidation of no version" => [->(list) { list[0][:args] = { "iseq" => "x" } }, 0, "invalidation r lacks its argument version"],
    "a compilation without its bytes" => [->(list) { list[10][:args].delete("code_bytes") }, 10, "compile bar lacks its argument code_bytes"],
    "an error that is none" => [->(list) { list[10][:args]["error"] = [:uint32, 1] }, 10, "compile bar has no string as its argument error"],
    "a counter that is none" => [->(list) { list[4] = { type: :instant, cat: "counter", name: "versions", ts: 8050 } }, 4, "counter versions is not a counter"],
    "a flow that is none" => [->(list) { list << { type: :instant, cat: "reprofile", name: "recompilation", ts: 8400 } }, -1,
                              "reprofile recompilation is not a flow"],
  }.each do |what, (change, culprit, message)|
    define_method("test_recompilation_with_#{what.tr(" ", "_")}") do
      broken(message) do |trace|
        trace.extra = recompilation
        change[trace.extra]
        trace.extra[culprit]
      end
    end
  end

  def test_argument_of_another_event
    broken("side_exit GuardType(Fixnum) has an argument kind", "--strict") do |t|
      t.exits[0][:args]["kind"] = "side_exit"
      t.exits[0]
    end
  end

  def test_kind_of_event_that_its_category_does_not_have
    broken("trace counts is not an instant") do |t|
      t.extra << { type: :complete, cat: "trace", name: "counts", ts: 8500, extra: 8501, args: {} }
      t.extra[0]
    end
    { "compile" => { type: :instant, args: {} }, "invalidation" => { type: :complete, extra: 8501, args: {} } }.each do |category, event|
      broken("#{category} x is not the begin or the end of a duration") do |t|
        t.extra << event.merge(cat: category, name: "x", ts: 8500)
        t.extra[0]
      end
    end
    broken("reprofile x is not an async event") { |t| t.extra << { type: :instant, cat: "reprofile", name: "x", ts: 8500, args: {} }; t.extra[0] }
  end

  # --- time ---

  def test_time_that_runs_back_on_a_thread
    trace = OurTrace.new
    late = trace.exit_event("side_exit", "Late", 7000, frame(1), "b")
    early = trace.exit_event("side_exit", "Early", 6000, frame(1), "b")
    trace.exits = []
    trace.sites = []
    trace.losses = [late, early] # where no sorting puts them right
    trace.summary = nil
    result = check(trace.build)
    assert_equal "vm-trace: F: offset #{trace.offsets.fetch(early)}: side_exit Early: time goes backwards on thread 43, from 7000 to 6000 ns\n",
                 result.err
  end

  # A recompilation collects garbage, and its exit is written after that; the freed objects themselves are in order.
  def test_a_recompile_exit_may_be_earlier_than_objects_that_were_freed_meanwhile
    trace = OurTrace.new
    freed = ->(ts) { { type: :instant, cat: "allocation", name: "freed", ts: ts, args: { "sample" => [:uint32, ts] } } }
    recompiled = trace.exit_event("recompile_exit", "Reason", 5000, frame(1), "b", "outcome" => "invalidated")
    backwards = ->(result) { result.err.lines.grep(/time goes backwards/) }
    trace.exits = []
    trace.sites = []
    trace.summary = nil
    trace.losses = [freed[6000], freed[7000], recompiled]
    assert_empty backwards[check(trace.build)]
    trace.losses = [freed[7000], recompiled, freed[6000]]
    assert_match(/freed: .*from 7000 to 6000 ns/, backwards[check(trace.build)].join)
  end

  def test_time_may_run_back_from_chunk_to_chunk
    trace = OurTrace.new
    late = trace.exit_event("side_exit", "Late", 7000, frame(1), "b")
    early = trace.exit_event("side_exit", "Early", 6000, frame(1), "b").merge(new_chunk: true)
    trace.exits = []
    trace.sites = []
    trace.losses = [late, early]
    trace.summary = nil
    assert_fine(trace.build)
  end

  # The marker or the collection that needs a new chunk is older than the sample of exits there.
  { "marker" => "queue", "gc" => "GC heap" }.each do |category, name|
    define_method("test_a_#{category}_counter_may_be_earlier_than_the_sample_of_exits_before_it") do
      counter = lambda do |cat, name, ts|
        argument = cat == "gc" ? "live_slots" : "value"
        { type: :counter, cat: cat, name: name, ts: ts, extra: 0, args: { argument => [:uint64, 1] } }
      end
      sample = counter.("counter", "exits", 7000).merge(args: { "per_second" => [:uint64, 1] })
      counters = [sample, counter.(category, name, 6000), counter.(category, name, 5000)]
      trace = OurTrace.new
      trace.exits = []
      trace.sites = []
      trace.summary = nil
      trace.losses = counters.take(2)
      assert_fine(trace.build)
      trace.losses = counters
      assert_fault(trace.tap(&:build).offsets.fetch(counters[2]),
                   "#{category} #{name}: time goes backwards on thread 43, from 6000 to 5000 ns", trace.build)
    end
  end

  # --- sites ---

  def test_sites_lacking_what_they_must_say
    %w[reason kind insn location version hits].each do |key|
      trace = OurTrace.new
      trace.sites[0][:args].delete(key)
      trace.summary = nil
      result = check(trace.build)
      assert_equal "vm-trace: F: offset #{trace.offsets.fetch(trace.sites[0])}: trace site lacks its argument #{key}\n", result.err
      assert_equal 1, result.status
    end
  end

  def test_site_of_unknown_kind
    trace = OurTrace.new
    trace.sites[0][:args]["kind"] = "exit"
    trace.summary = nil
    assert_fault(trace.tap(&:build).offsets.fetch(trace.sites[0]), "trace site has the unknown kind exit", trace.build)
  end

  def test_site_sampled_more_often_than_hit
    broken("trace site: 9 sampled of 2 hits") { |t| t.sites[0][:args]["sampled"] = 9; t.sites[0] }
  end

  def test_cut_without_what_was_cut
    args = %w[since_ns until_ns left_out].to_h { |key| [key, [:uint64, 1]] }
    args.each_key do |key|
      trace = OurTrace.new
      trace.summary = nil
      trace.extra << { type: :instant, cat: "trace", name: "cut", ts: 8500, args: args.reject { |k, _| k == key } }
      assert_fault(trace.tap(&:build).offsets.fetch(trace.extra[0]), "trace cut lacks its argument #{key}", trace.build)
    end
  end

  def test_loss_without_its_count_or_reason
    loss = { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 3], "reason" => "disk full" } }
    %w[lost reason].each do |key|
      trace = OurTrace.new
      trace.losses << loss.merge(args: loss[:args].reject { |k, _| k == key })
      trace.summary = nil
      assert_fault(trace.tap(&:build).offsets.fetch(trace.losses[0]), "trace loss lacks its argument #{key}", trace.build)
    end
  end

  # --- several processes in one file ---

  def test_each_process_has_its_own_settings_and_summary
    assert_fine OurTrace.new(pid: 100).build.bytes + OurTrace.new(pid: 200, rate: 97).build.bytes
  end

  def test_counts_of_each_process_are_compared_with_its_own_summary
    second = OurTrace.new(pid: 200)
    second.summary[:args] = second.summary_args.merge("exits" => [:uint64, 99])
    first = OurTrace.new(pid: 100).build.bytes
    bytes = first + second.build.bytes
    assert_fault first.size + second.offsets[:summary], "trace summary says exits: 99, but hits of the sites add up to: 3", bytes
  end

  def test_a_process_without_settings_is_not_held_to_those_of_another
    other = FxtBuilder.simple(pid: 200) { |b| b.event(:instant, "unheard of", "n", ts: 1) }
    assert_fine OurTrace.new(pid: 100).build.bytes + other.bytes
  end
end
