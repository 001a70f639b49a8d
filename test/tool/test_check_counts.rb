# `vm-trace check`: what the settings, the sites and the summary say of the exits in the file, and what --strict and
# --ractors add. Each rule has a case that breaks it.
require_relative "tool_helper"

class TestCheckCounts < Minitest::Test
  include ToolHelper

  EXIT = "side_exit GuardType(Fixnum)"

  # The file has only this fault, at the event that the block returns.
  def broken(message, *options, rate: 1, fallback_rate: nil)
    trace = OurTrace.new(rate: rate, fallback_rate: fallback_rate)
    culprit = yield trace
    builder = trace.build
    result = check(builder, *options)
    assert_equal "vm-trace: F: offset #{trace.offsets.fetch(culprit)}: #{message}\n", result.err
    assert_equal 1, result.status
    assert_empty result.out
  end

  def fine(*options, rate: 1, fallback_rate: nil)
    trace = OurTrace.new(rate: rate, fallback_rate: fallback_rate)
    yield trace if block_given?
    result = check(trace.build, *options)
    assert_equal ["", 0], [result.err, result.status]
  end

  # --- settings ---

  def test_a_second_settings
    trace = OurTrace.new
    trace.extra << { type: :instant, cat: "trace", name: "settings", ts: 8500, args: trace.settings }
    builder = trace.build
    assert_fault(trace.offsets.fetch(trace.extra[0]), "a second trace settings; the first is at offset #{trace.offsets.fetch(:settings)}", builder)
  end

  def test_settings_of_another_process
    broken("trace settings: pid is 41, but its process is 42") { |t| t.settings["pid"] = [:uint32, 41]; :settings }
    broken("trace settings lacks its argument pid") { |t| t.settings.delete("pid"); :settings }
  end

  def test_exits_that_were_not_requested
    broken("#{EXIT}: the settings have no exit_rate") { |t| t.settings.delete("exit_rate"); t.exits[0] }
    broken("fallback SendPolymorphic: the settings have no fallback_rate") { |t| t.settings.delete("fallback_rate"); t.exits[3] }
    fine { |t| t.settings.delete("fallback_rate"); t.exits.pop; t.sites.pop }
  end

  # --- events and hits of sites ---

  # Changes the hits of two sites, so that their sum stays the same.
  def swap_hits(trace)
    trace.sites[0][:args]["hits"], trace.sites[1][:args]["hits"] = trace.sites[1][:args]["hits"], trace.sites[0][:args]["hits"]
  end

  def group_fault(name, events, hits) = "#{name}, version 1: the file holds #{events}, but the hits of its sites are #{hits}"

  def test_each_kind_of_site_has_as_many_events_as_hits
    trace = OurTrace.new
    swap_hits(trace)
    builder = trace.build
    result = check(builder, "--ractors=1")
    expected = [[trace.exits[0], group_fault("#{EXIT} at opt_plus", 2, 1)],
                [trace.exits[2], group_fault("recompile_exit NoProfileSend at send", 1, 2)]]
    assert_equal expected.map { |event, fault| "vm-trace: F: offset #{trace.offsets.fetch(event)}: #{fault}\n" }.join, result.err
    assert_equal 1, result.status
    fine(rate: 97) { |t| swap_hits(t) }
  end

  def test_a_fallback_more_than_its_site_counted
    broken(group_fault("fallback SendPolymorphic at send", 2, 1)) do |t|
      t.exits << t.exits[3].merge(ts: 5500)
      t.exits[3]
    end
  end

  # Events and sites are told apart by category, reason, instruction and version.
  def test_a_site_of_another_kind_has_other_hits
    { "reason" => "GuardType(Float)", "insn" => "opt_minus", "version" => [:uint32, 2], "kind" => "recompile_exit" }.each do |key, value|
      trace = OurTrace.new
      trace.sites[0][:args][key] = value
      faults = check(trace.build, "--ractors=1").err.lines
      assert_equal 2, faults.size, key
      assert_match(/: the file holds 2, but the hits of its sites are 0$/, faults[0])
      assert_match(/: the file holds 0, but the hits of its sites are 2$/, faults[1])
    end
  end

  # A method that was compiled again has several sites with equal names, and so has a place in two methods.
  def test_sites_with_equal_names_are_added_up
    fine do |t|
      t.sites[0][:args]["hits"] = [:uint64, 1]
      t.sites << t.site("side_exit", "GuardType(Fixnum)", "Foo#other (/app/foo.rb:30)", "opt_plus", 1)
    end
  end

  def test_counts_are_not_compared_where_events_were_lost
    fine do |t|
      swap_hits(t)
      t.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000, args: { "lost" => [:uint64, 1], "reason" => "disk full" } }
    end
  end

  # --- sampling rates ---

  def hits_of_first_site(hits) = ->(t) { t.sites[0][:args]["hits"] = [:uint64, hits]; :summary }

  # Three exits are recorded, of which the second site has one.
  def test_recorded_exits_stand_for_no_more_than_all
    fine(rate: 97, &hits_of_first_site(2 * 97))
    broken("trace summary says exits: 290, but the file holds: 3, one in 97", rate: 97, &hits_of_first_site(2 * 97 - 1))
    broken("trace summary says fallbacks: 4, but the file holds: 1, one in 5", fallback_rate: 5) do |t|
      t.sites[2][:args]["hits"] = [:uint64, 4]
      :summary
    end
    broken("trace summary says exits: 3, but the file holds: 3, one in 18446744073709551615", rate: 2**64 - 1) do |t|
      t.sites.first(2).zip([2, 1]) { |site, hits| site[:args]["hits"] = [:uint64, hits] }
      t.exits.first(3).each { |exit| exit[:args]["weight"] = [:uint64, 2**64 - 1] }
      :summary
    end
  end

  # Each ractor counts down by itself, and 96 further exits of it are not recorded at most.
  def test_each_ractor_has_counted_to_less_than_the_rate
    fine(rate: 97, &hits_of_first_site(10_000))
    [1, 2, 5].each do |ractors|
      fine("--ractors=#{ractors}", rate: 97, &hits_of_first_site(2 * 97 + 96 * ractors))
      broken("trace summary says exits: #{3 * 97 + 96 * ractors + 1}, but the file holds: 3, one in 97", "--ractors=#{ractors}",
             rate: 97, &hits_of_first_site(2 * 97 + 96 * ractors + 1))
    end
  end

  # Another ractor may stop the trace while this one recompiles.
  def test_a_recompile_exit_is_written_after_its_hit
    one_more = ->(t) { t.sites[1][:args]["hits"] = [:uint64, 2]; t.exits[2] }
    fine(&one_more)
    fine("--ractors=2", &one_more)
    broken(group_fault("recompile_exit NoProfileSend at send", 1, 2), "--ractors=1", &one_more)
  end

  # --- snapshots: other ractors go on while the events are copied ---

  def snapshot_of(why, hits)
    lambda do |t|
      t.settings["snapshot"] = why
      t.sites[0][:args]["hits"] = [:uint64, hits]
      t.summary[:args] = t.summary_args.merge("snapshot" => why)
      t.exits[0]
    end
  end

  def test_hits_of_a_snapshot_may_be_newer_than_its_events
    fine(&snapshot_of("save", 9))
    fine("--ractors=2", &snapshot_of("save", 9))
    fine("--ractors=1", &snapshot_of("signal", 9))
    broken(group_fault("#{EXIT} at opt_plus", 2, 9), "--ractors=1", &snapshot_of("save", 9))
    broken(group_fault("#{EXIT} at opt_plus", 2, 1), "--ractors=2", &snapshot_of("save", 1))
    broken(group_fault("#{EXIT} at opt_plus", 2, 1), "--ractors=1", &snapshot_of("signal", 1))
  end

  # A ractor had counted to less than K when the flight recorder was reset. The second site has 97 hits,
  # and three exits are recorded.
  def test_a_sampled_snapshot_may_have_one_exit_of_each_ractor_early
    fault = ->(hits) { "trace summary says exits: #{hits + 97}, but the file holds: 3, one in 97" }
    { 2 => "--ractors=2", 98 => "--ractors=1" }.each do |hits, ractors|
      fine(rate: 97, &snapshot_of("save", hits))
      fine(ractors, rate: 97, &snapshot_of("save", hits))
      broken(fault[hits - 1], ractors, rate: 97) { |t| snapshot_of("save", hits - 1)[t]; :summary }
      broken(fault[hits], rate: 97, &hits_of_first_site(hits))
    end
  end

  def test_exits_of_a_sampled_snapshot_may_be_newer_than_its_events
    fine("--ractors=2", rate: 97, &snapshot_of("save", 10_000))
    fine("--ractors=1", rate: 97, &snapshot_of("signal", 10_000))
    broken("trace summary says exits: 10097, but the file holds: 3, one in 97", "--ractors=1", rate: 97) do |t|
      snapshot_of("save", 10_000)[t]
      :summary
    end
  end

  # --- the summary is last ---

  def test_nothing_follows_the_summary_in_its_chunk
    builder = OurTrace.new.build
    at = builder.event(:instant, "marker", "m", ts: 8999)
    result = check(builder)
    summary = builder.bytes.bytesize
    assert_match(/\Avm-trace: F: offset #{at}: marker m follows the trace summary, at offset \d+, which is the last event\n/, result.err)
    assert_operator at, :<, summary
    assert_equal 1, result.status
  end

  # An event in a chunk behind that of the summary, of an earlier time.
  def with_event_behind(**settings)
    trace = OurTrace.new
    trace.settings.update(settings.transform_keys(&:to_s))
    trace.summary[:args] = trace.summary_args.tap { |args| args["events"][1] += 1 }
    builder = trace.build
    builder.provider(1, "test")
    builder.init
    builder.thread(1, 42, 43)
    at = builder.event(:instant, "marker", "m", ts: 8999)
    [builder, "marker m follows the trace summary, at offset #{trace.offsets.fetch(:summary)}, which is the last event", at]
  end

  def test_one_ractor_writes_the_summary_last
    builder, message, at = with_event_behind
    assert_fine(builder)
    assert_equal "", check(builder, "--ractors=2").err
    assert_equal "vm-trace: F: offset #{at}: #{message}\n", check(builder, "--ractors=1").err
  end

  # The tracer's thread writes what the kernel says, and a limited file uses chunks again.
  def test_other_chunks_may_follow_that_of_the_summary
    [{ flags: "exits syscalls" }, { flags: "exits sched:min=5000ns" }, { keep: "newest" }].each do |settings|
      builder, = with_event_behind(**settings)
      assert_equal "", check(builder, "--ractors=1").err, settings
    end
    builder, = with_event_behind(flags: "exits", keep: "oldest")
    refute_equal "", check(builder, "--ractors=1").err
  end

  # --- durations ---

  def test_ends_of_compilations_and_invalidations_have_names
    broken("compile has no name") { |t| t.spans[2][:name] = ""; t.spans[2] }
    broken("invalidation has no name") do |t|
      t.spans.unshift({ type: :begin, cat: "invalidation", name: "x", ts: 4000, args: {} }, { type: :end, cat: "invalidation", name: "", ts: 4001 })
      t.spans[1]
    end
  end

  # --- --strict ---

  def test_a_good_trace_is_complete
    result = check(OurTrace.new.build, "--strict")
    assert_equal ["", 0], [result.err, result.status]
    assert_match(/\AF: ok: /, result.out)
  end

  NO_SUMMARY = "process 42 has no trace summary: it was killed, still runs, or this is a part of its trace (--unended accepts that)"

  def test_a_trace_without_its_summary_is_not_complete
    fine { |t| t.summary = nil }
    fine("--strict", "--unended") { |t| t.summary = nil }
    broken(NO_SUMMARY, "--strict") { |t| t.summary = nil; t.sites.first }
    broken(NO_SUMMARY, "--strict") do |t|
      t.summary = nil
      t.extra << { type: :instant, cat: "trace", name: "cut", ts: 8500, args: %w[since_ns until_ns left_out].to_h { |key| [key, [:uint64, 1]] } }
      t.extra[0]
    end
  end

  def test_unended_leaves_all_other_rules
    broken("duration compile_iseq never ends, though the trace has its summary", "--strict", "--unended") { |t| t.spans.pop; t.spans[0] }
  end

  def test_a_process_without_settings
    other = FxtBuilder.simple(pid: 200) { |b| @at = b.event(:instant, "unheard of", "n", ts: 1) }
    [[], %w[--unended]].each do |options|
      assert_equal "vm-trace: F: offset #{@at}: process 200 has no trace settings\n", check(other, "--strict", *options).err
      both = OurTrace.new(pid: 100).build.bytes
      assert_equal "vm-trace: F: offset #{both.bytesize + @at}: process 200 has no trace settings\n",
                   check(both + other.bytes, "--strict", *options).err
    end
  end

  def test_a_trace_without_events
    empty = FxtBuilder.simple
    assert_fine(empty)
    assert_equal "vm-trace: F: offset 0: the trace has no event\n", check(empty, "--strict", "--unended").err
  end

  def test_unended_without_strict_is_wrong_usage
    result = check(OurTrace.new.build, "--unended")
    assert_equal ["vm-trace: --unended is for --strict\n", 2], [result.err, result.status]
    assert_equal 2, check(OurTrace.new.build, "--ractors=0").status
  end
end
