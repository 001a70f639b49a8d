# `vm-trace export --kind`: what releases the GVL, where time slices end, what is allocated. Each
# profile adds up to what `vm-trace report` says.
require_relative "tool_helper"
require "zlib"

class TestExportStreams < Minitest::Test
  include ToolHelper

  MS = 1_000_000

  def folded(bytes, *options)
    with_file(bytes) do |path|
      result = tool("export", "--format=folded", *options, path)
      assert_equal ["", 0], [result.err, result.status]
      return result.out.lines(chomp: true)
    end
  end

  def report(bytes, table)
    with_file(bytes) do |path|
      return JSON.parse(tool("report", "--top=1000", "--format=json", path).out).fetch(table)["rows"]
    end
  end

  def weights(lines) = lines.map { |line| Integer(line[/\d+\z/]) }

  CALLERS = { "1": "Shop#page (shop.rb:7)", "2": "<main> (shop.rb:20)" }.freeze

  # A long wait with its callers, two short ones without, one that is open at the end; wakers and waits
  # for the GVL between them, which do not count.
  def blocked
    ThreadsTrace.new do |t|
      t.thread(:worker, 44)
      t.runs(:main, 0)
      long = lambda do |thread, from, woken, runs, **callers|
        t.leaves(thread, from, ThreadsTrace::BLOCKED)
        t.event(:begin, thread, "blocked", "IO#read", from, "0": "IO#read (shop.rb:3)")
        t.event(:end, thread, "blocked", "IO#read", woken, **callers)
        t.wakes(thread, woken, runs)
      end
      long[:main, 1, 5.0007, 8, **CALLERS]
      2.times { |i| long[:main, 10 + i, 10.0004 + i, 10.01 + i] }
      t.leaves(:main, 20, ThreadsTrace::BLOCKED)
      t.runs(:worker, 20)
      long[:worker, 30, 32, 32, **CALLERS]
      t.leaves(:worker, 40, ThreadsTrace::BLOCKED)
      t.event(:begin, :worker, "blocked", "Queue#pop", 40)
    end.build
  end

  def test_blocked_stacks_count_microseconds_and_those_without_callers_are_kept
    assert_equal ["<main> (shop.rb:20);Shop#page (shop.rb:7);IO#read (shop.rb:3) 6001",
                  "(no stack);IO#read (shop.rb:3) 1", "(no stack);Queue#pop 60000"], folded(blocked, "--kind=blocked")
  end

  def test_threads_are_the_root
    found = folded(blocked, "--kind=blocked", "--threads")
    found = found.sort_by { |line| [line[/\w+/], line[/\d+\z/].to_i == 60000 ? 1 : 0] }
    assert_equal ["main;<main> (shop.rb:20);Shop#page (shop.rb:7);IO#read (shop.rb:3) 4001",
                  "main;(no stack);IO#read (shop.rb:3) 1",
                  "worker;<main> (shop.rb:20);Shop#page (shop.rb:7);IO#read (shop.rb:3) 2000",
                  "worker;(no stack);Queue#pop 60000"], found
    assert_equal ["main;<main> (/app/run.rb:1);Foo#bar (/app/foo.rb:3);GuardType(Fixnum) 2",
                  "main;<main> (/app/run.rb:1);Foo#baz (/app/foo.rb:9);NoProfileSend 1"],
                 folded(OurTrace.new.build, "--threads")
    unnamed = FxtBuilder.new.tap do |b|
      b.provider(1, "test")
      b.init
      b.thread(1, 42, 43)
      b.event(:instant, "side_exit", "R", ts: 1, args: { "0" => "A#m (a.rb:2)" })
    end
    assert_equal ["thread 43;A#m (a.rb:2);R 1"], folded(unnamed, "--threads")
  end

  def test_frames_beyond_ten_have_the_thread_as_root_too
    frames = (0..9).to_h { |i| [i.to_s.to_sym, "M#f#{i} (m.rb:#{i})"] }
    trace = ThreadsTrace.new do |t|
      t.thread(:worker, 44)
      %i[main worker].each do |thread|
        t.event(:instant, thread, "preempted", "M#f0", 1, **frames, "10+": "A#a (m.rb:20) x2")
      end
    end.build
    named = frames.values.reverse.join(";")
    assert_equal %w[main worker].map { |thread| "#{thread};A#a (m.rb:20);A#a (m.rb:20);#{named} 1" },
                 folded(trace, "-k", "preempted", "--threads")
    assert_equal ["A#a (m.rb:20);A#a (m.rb:20);#{named} 2"], folded(trace, "-k", "preempted")
  end

  def test_blocked_stacks_add_up_to_the_report
    [blocked, File.binread(File.join(TRACES, "gvl.fxt"))].each do |trace|
      rows = report(trace, "blocked")
      total_us = (rows.sum { |row| row["total_ns"] } / 1000.0).round
      assert_operator total_us, :>, 0
      [[], %w[--threads]].each do |options|
        assert_equal total_us, weights(folded(trace, "--kind=blocked", *options)).sum
        assert_equal rows.sum { |row| row["count"] },
                     weights(folded(trace, "--kind=blocked", "--weight=events", *options)).sum
      end
    end
  end

  def test_lines_add_up_though_each_is_rounded
    trace = ThreadsTrace.new do |t|
      t.runs(:main, 0)
      9.times do |i|
        t.blocks(:main, "m#{i}", 1 + i, 1 + i + 0.0004)
      end
    end.build
    assert_equal [0, 1, 0, 1, 0, 0, 1, 0, 1], weights(folded(trace, "-k", "blocked"))
  end

  def preempted
    ThreadsTrace.new do |t|
      t.thread(:worker, 44)
      t.runs(:worker, 0)
      3.times do |i|
        t.event(:instant, :worker, "preempted", "Integer#/", 1 + i, "0": "Integer#/ (a.rb:4)", "1": "A#m (a.rb:4)")
      end
    end.build
  end

  def test_ends_of_time_slices
    assert_equal ["A#m (a.rb:4);Integer#/ (a.rb:4) 3"], folded(preempted, "--kind=preempted")
    assert_equal report(preempted, "preempted").sum { |row| row["count"] },
                 weights(folded(preempted, "--kind=preempted")).sum
  end

  def allocations
    ThreadsTrace.new(settings: { allocations: [:uint64, 1000] }) do |t|
      [["String", 40, 1000], ["String", 40, 1500], ["Array", 80, 700]].each_with_index do |(name, size, weight), i|
        t.event(:instant, :main, "allocation", name, 1 + i, sample: [:uint64, i], size: [:uint64, size],
                weight: [:uint64, weight], "0": "A#m (a.rb:4)", "1": "<main> (a.rb:9)")
      end
      t.event(:instant, :main, "allocation", "freed", 10, sample: [:uint64, 0], survived: [:uint64, 2])
      t.event(:instant, :main, "allocation", "alive", 11, sample: [:uint64, 1], survived: [:uint64, 3])
    end.build
  end

  def test_allocated_bytes_by_stack_and_class
    assert_equal ["<main> (a.rb:9);A#m (a.rb:4);String 2500", "<main> (a.rb:9);A#m (a.rb:4);Array 700"],
                 folded(allocations, "--kind=allocations")
    assert_equal ["<main> (a.rb:9);A#m (a.rb:4) 3200"], folded(allocations, "--kind=allocations", "--no-reason")
    assert_equal [2, 1], weights(folded(allocations, "--kind=allocations", "--weight=events"))
    kept = File.binread(File.join(TRACES, "allocations.fxt"))
    assert_equal report(kept, "allocations_by_class").sum { |row| row["bytes"] },
                 weights(folded(kept, "--kind=allocations")).sum
  end

  UNITS = { "blocked" => %w[blocked nanoseconds nanoseconds], "preempted" => %w[preempted count none],
            "allocations" => %w[allocated bytes bytes] }.freeze

  def test_units_of_the_other_formats
    { "blocked" => blocked, "preempted" => preempted, "allocations" => allocations }.each do |kind, trace|
      type, unit, shown = UNITS.fetch(kind)
      with_file(trace) do |path|
        profile = JSON.parse(tool("export", "-f", "speedscope", "-k", kind, path).out)["profiles"][0]
        assert_equal [shown, profile["weights"].sum], profile.values_at("unit", "endValue"), kind
        profile = JSON.parse(tool("export", "-f", "speedscope", "-k", kind, "-w", "events", path).out)["profiles"][0]
        assert_equal "none", profile["unit"]
        pprof = Zlib.gunzip(tool("export", "-f", "pprof", "-k", kind, path).out.b)
        assert_includes pprof, type
        assert_includes pprof, unit
      end
    end
    with_file(blocked) do |path|
      profile = JSON.parse(tool("export", "-f", "speedscope", "-k", "blocked", path).out)["profiles"][0]
      assert_equal 66_001_500, profile["endValue"]
    end
  end

  def test_a_trace_without_them_is_said_to_have_none
    { "blocked" => "blocked durations", "preempted" => "ends of time slices",
      "allocations" => "allocations" }.each do |kind, things|
      with_file(OurTrace.new.build) do |path|
        result = tool("export", "-f", "folded", "-k", kind, path)
        assert_equal ["vm-trace: #{path}: has no #{things}, so the output is empty\n", "", 0],
                     [result.err, result.out, result.status]
      end
    end
  end

  def test_wrong_options
    { "--kind=all" => /takes exits, fallbacks, blocked, preempted, allocations, alive, calls or samples, not all/,
      "--weight=x" => /takes sum, events or lost, not x/ }.each do |option, message|
      result = tool("export", option, "a")
      assert_match message, result.err
      assert_equal 2, result.status
    end
  end
end
