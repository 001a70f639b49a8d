# All outputs of the tool agree on each trace, with each other and with an independent reader: consistency.rb.
require_relative "tool_helper"
require_relative "consistency"
require_relative "samples_trace"
require_relative "../traces/make"

class TestConsistency < Minitest::Test
  include ToolHelper

  MAIN, WORK, BLOCK = "<main> (/app/run.rb:1)", "Shop#page (/app/shop.rb:3)", "block in Shop#page (/app/shop.rb:7)"
  SETTINGS = { flags: "exits threads gc calls allocations samples",
               samples_ns: [:uint64, 1_000_000], samples_clock: "wall",
                allocations: [:uint64, 65_536], exit_rate: [:uint64, 1] }.freeze

  def setup = @dir = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@dir)

  def path(name, trace) = File.join(@dir, name).tap { |path| File.binwrite(path, trace.bytes) }

  def assert_consistent(*paths, of: nil)
    assert_equal "", Consistency.disagreements(TOOL, *paths).join("\n"), of || paths
  end

  # All streams for 100 ms from `at` on, in a process with several threads, one of them without a native thread of its
  # own, and a ractor. The child of a fork has other times, and threads of the same numbers. A later piece of a spool
  # begins with what its threads do, and goes on with a collection.
  def process(pid: 42, at: 0, child: false, later: false)
    gc = later ? 1 : 0
    SamplesTrace.new(pid: pid, ends: at + 100, settings: nil) do |t|
      t.event(:instant, :main, "trace", "settings", at, pid: [:uint32, pid], **SETTINGS)
      t.thread(:worker, child ? pid + 2 : 44)
      t.thread(:green, 2**30 + 1)
      t.thread(:"ractor 2", 2**30 + 2, cpu: 1)
      call = lambda do |thread, name, from, to, **args, &inside|
        inside&.call
        t.event(:complete, thread, "call", name, at + from, extra: [t.ns(at + to)], **args)
      end
      if later
        [:main, :"ractor 2"].each { |thread| t.runs(thread, at) }
        t.leaves(:green, at, ThreadsTrace::BLOCKED)
        t.event(:begin, :green, "blocked", "Thread::Queue#pop", at)
        t.event(:end, :green, "blocked", "Thread::Queue#pop", at + 10)
      end
      t.during(:main, "gc", "GC minor", at + 3.5, at + 4.2, count: [:uint64, 90 + gc], reason: "malloc")
      t.leaves(:main, at + 5, ThreadsTrace::BLOCKED) # else it ran before
      t.event(:begin, :main, "blocked", "sleep", at + 5)
      t.wakes(:worker, at + 3, at + 5.5, by: :main)
      reason = later ? {} : { reason: "newobj" }
      t.during(:worker, "gc", later ? "GC major" : "GC minor", at + 6, at + (child ? 7 : 9),
               count: [:uint64, gc + 1], **reason) do
        t.during(:worker, "gc", "mark", at + 6.1, at + 6.9)
      end
      t.event(:instant, :worker, "preempted", "Shop#page", at + 20, "0": WORK)
      t.leaves(:worker, at + 20, ThreadsTrace::RUNNABLE)
      t.wakes(:green, at + 10, at + 20, by: :worker)
      t.leaves(:"ractor 2", at + 25, ThreadsTrace::RUNNABLE)
      t.runs(:"ractor 2", at + 26)
      t.during(:green, "gc", "GC major", at + 22, at + 30,
               count: [:uint64, gc + 2], reason: "malloc", major_by: "oldmalloc")
      t.during(:green, "gc", "GC major", at + 33, at + 34, count: [:uint64, gc + 2])
      # Of the ractor's own heap.
      t.during(:"ractor 2", "gc", "GC major", at + 36, at + 37, count: [:uint64, gc + 2], major_by: "force")
      t.blocks(:green, "IO#read", at + 40, at + 61, at + 62, by: :worker, "0": "IO#read (/app/shop.rb:9)") do
        t.runs(:worker, at + 40)
        t.leaves(:worker, at + 62, ThreadsTrace::DEAD)
      end
      t.event(:end, :main, "blocked", "sleep", at + 70.3) # blocked until it is woken
      t.wakes(:main, at + 70, at + 95)
      t.leaves(:green, at + 94, ThreadsTrace::BLOCKED)
      t.event(:begin, :green, "blocked", "Thread::Queue#pop", at + 94)
      call.(:main, MAIN, 1, 99, began: "before the trace", ended: "after the trace") do
        call.(:main, WORK, 2, child ? 60 : 50, left_out: [:uint64, 3], left_out_ns: [:uint64, 900]) do
          3.times { |i| call.(:main, BLOCK, 4 + 10 * i, 9 + 10 * i) }
        end
        call.(:main, WORK, 61, 90) { call.(:main, WORK, 62, 80) { call.(:main, "Array#each", 63, 70) } }
      end
      call.(:worker, BLOCK, 5.6, 61.5) { call.(:worker, "Integer#times", 9.5, 44) }
      8.times do |i|
        t.allocates(:worker, i.odd? ? "String" : "Shop::Item", at + 45 + i,
                    sample: i + 1, weight: 65_556, frames: [WORK, MAIN])
      end
      t.freed(:green, at + 80, 1)
      t.alive(:main, at + 99, 2, survived: 1)
      place = { insn: "opt_plus", version: [:uint32, 1] }
      5.times do |i|
        t.event(:instant, :main, "side_exit", "GuardType(Fixnum)", at + 10 + 15 * i, "0": WORK, "1": MAIN, **place)
      end
      2.times do |i|
        t.event(:instant, :worker, "fallback", "SendPolymorphic", at + 42 + i, "0": BLOCK, "1": WORK, **place)
      end
      sites = [["GuardType(Fixnum)", "side_exit", WORK, 5], ["SendPolymorphic", "fallback", BLOCK, 2]]
      sites.each do |reason, kind, frame, hits|
        t.event(:instant, :main, "trace", "site", at + 99.5,
                reason: reason, kind: kind, location: frame, hits: [:uint64, hits], **place)
      end
      SamplesTrace::STATES.each_with_index do |state, i|
        t.sample(:main, at + 3 + 8 * i, child ? 2 : 8, state, MAIN, *[WORK, BLOCK].first(i % 3))
      end
      t.new_chunk
      t.sample(:green, at + 30, 3.5, "gc", MAIN, WORK)
      t.sample(:green, at + 50, 20, "blocked", MAIN, "IO#read (/app/shop.rb:9)", fiber: "green fiber 1")
    end.build(exits: 5, fallbacks: 2, sampled: 5, sites: 2)
  end

  def traces = @traces ||= Dir[File.join(TRACES, "*.fxt")].sort

  def test_kept_traces
    refute_empty traces
    traces.each { |path| assert_consistent(path) }
  end

  # Globs of methods and reasons that some of the traces have; where nothing matches, all refuse them.
  def assert_picked(path, **picks)
    assert_equal "", Consistency.disagreements_of_picked(TOOL, path, **picks).join("\n"), [path, picks]
  end

  def test_what_a_method_or_a_reason_chooses
    files = [path("all.fxt", process), *traces]
    chosen = files.flat_map do |path|
      labels = ["Shop#page", "*[ae]#*", "*(/app/*"].map { |method| { method: method } }
      all = [*labels, { reason: "Guard*" }, { reason: "*", method: "*o*" }]
      all.select { |picks| tool("report", *picks.map { |name, glob| "--#{name}=#{glob}" }, path).err.empty? }
         .each { |picks| assert_picked(path, **picks) }
    end
    assert_equal 5, chosen.uniq.size, "each chooses something of a trace"
  end

  # Those that a recorder could write: no two nested calls begin together, and switches are of the kind that it writes.
  def test_conformance_cases
    files = Dir[File.join(Conformance::OURS, "streams/*.fxt")].reject { |path| path =~ /same_start|of_outgoing/ }
    refute_empty files
    files.each { |path| assert_consistent(path) }
  end

  def test_all_streams = assert_consistent(path("all.fxt", process))

  def test_a_fork_in_two_files
    assert_consistent(path("parent.fxt", process), path("child.fxt", process(pid: 43, at: 10, child: true)))
  end

  def test_a_fork_in_one_file
    files = [path("parent.fxt", process), path("child.fxt", process(pid: 43, at: 10, child: true))]
    merged = File.join(@dir, "merged.fxt")
    assert_equal 0, tool("merge", "-o", merged, *files).status
    assert_consistent(merged)
  end

  # What a thread did when the trace began is written when that changes, behind a compilation. A snapshot is in order; a
  # limited file may have its oldest chunks behind the newest.
  def test_files_that_keep_the_newest_events
    [{ snapshot: "time" }, { snapshot: "memory" }, {}].each do |settings|
      trace = ThreadsTrace.new(settings: { keep: "newest", **settings }) do |t|
        t.during(:main, "compile", "m", 5, 6)
        t.new_chunk if settings[:snapshot] == "time"
        t.runs(:main, 0)
        t.blocks(:main, "sleep", 20, 40)
        t.during(:main, "compile", "m", 50, 51)
        t.blocks(:main, "sleep", 60)
      end
      assert_consistent(path("newest.fxt", trace.build), of: settings)
    end
  end

  # Ractors write chunks side by side, so the second of the newest chunks begins before the first; the oldest three are
  # behind them. One ractor is in these only, and one thread goes on from there, blocked.
  def test_ractors_in_files_that_keep_the_newest_events
    trace = ThreadsTrace.new(settings: { keep: "newest" }) do |t|
      t.thread(:ractor, 44, cpu: 1)
      t.thread(:gone, 45, cpu: 2)
      t.event(:end, :main, "blocked", "IO#read", 78)
      t.wakes(:main, 78, 80)
      t.blocks(:main, "sleep", 84, 90)
      t.new_chunk
      t.runs(:ractor, 62)
      t.blocks(:ractor, "sleep", 66, 85)
      t.event(:instant, :ractor, "marker", "end", 100)
      t.new_chunk
      t.runs(:gone, 5)
      t.blocks(:gone, "Queue#pop", 15)
      t.new_chunk
      t.runs(:ractor, 10)
      t.blocks(:ractor, "sleep", 30, 40)
      t.leaves(:ractor, 50, ThreadsTrace::RUNNABLE)
      t.new_chunk
      t.runs(:main, 12)
      t.blocks(:main, "IO#read", 45)
    end
    whole = path("ractors.fxt", trace.build)
    assert_consistent(whole)
    states = JSON.parse(tool("report", "--format=json", whole).out)["thread_states"]["rows"].to_h do |row|
      [row["thread"], row.values_at("waiting_ns", "blocked_ns", "running_ns").map { |ns| ns / 1e6 }]
    end
    assert_equal({ "main" => [2, 39, 47], "ractor" => [12, 29, 49], "gone" => [0, 85, 10] }, states)
    part = File.join(File.dirname(whole), "part.fxt")
    assert_equal 0, tool("cut", "--since=55ms", "--until=64ms", "-o", part, whole).status
    assert_consistent(part)
    blocked = JSON.parse(tool("report", "--format=json", part).out)["blocked"]["rows"]
    assert_equal [["IO#read", 1], ["Queue#pop", 1]], blocked.map { |row| row.values_at("name", "count") }.sort
  end

  # All names come first. Threads that share native ones have the same numbers in all processes.
  def test_a_first_wake_up_is_of_the_process_that_its_provider_names
    trace = FxtBuilder.new
    [42, 43].each_with_index do |pid, i|
      trace.provider(i + 1, "test")
      trace.init
      trace.thread(1, pid, 2**30)
      trace.thread_name(pid, 2**30, "green")
    end
    [[1, 1000], [2, 1500]].each do |provider, at|
      trace.section(provider)
      trace.wakeup(at, 2**30)
      trace.switch(at + 300, 0, 1)
      trace.switch(at + 2000, 1, 0, state: 3)
    end
    assert_consistent(path("names.fxt", trace))
  end

  # A kernel's provider, say, has no names.
  def test_a_wake_up_by_another_provider_is_of_the_thread_that_was_switched_last
    trace = FxtBuilder.new
    [42, 43].each_with_index do |pid, i|
      trace.provider(i + 1, "test")
      trace.init
      trace.thread(1, pid, 2**30)
      trace.thread_name(pid, 2**30, "green")
    end
    [[2, 1000], [1, 1500]].each do |provider, at|
      trace.section(provider)
      trace.switch(at, 0, 1)
      trace.switch(at + 200, 1, 0, state: 3)
    end
    trace.provider(3, "other")
    trace.init
    trace.wakeup(5000, 2**30)
    assert_consistent(path("other.fxt", trace))
  end

  # As in containers: all the same numbers.
  def test_small_pids_and_tids
    trace = FxtBuilder.new
    numbers = 1..8
    numbers.each do |pid|
      trace.provider(pid, "test")
      trace.init
      numbers.each do |tid|
        trace.thread(tid, pid, tid)
        trace.thread_name(pid, tid, "thread")
      end
    end
    numbers.to_a.product(numbers.to_a).each_with_index do |(tid, pid), i|
      trace.section(pid)
      trace.wakeup(i * 1000, tid)
      trace.switch(i * 1000 + 10 * tid, 0, tid)
      trace.switch(i * 1000 + 100 + 50 * pid + 20 * tid, tid, 0, state: 3)
    end
    assert_consistent(path("small.fxt", trace))
  end

  # A pid was used again, or two containers have it.
  def test_two_processes_of_one_pid
    assert_consistent(path("one.fxt", process), path("other.fxt", process(at: 10, child: true)))
  end

  def pieces
    [0, 100].map { |at| path("a-42-20261126T221504-#{at + 1}-time.fxt", process(at: at, later: at > 0)) }
  end

  def test_pieces_of_a_spool = assert_consistent(*pieces)

  # What threads do at both borders, or at one, goes on: they run, wait, block, collect garbage, and are in calls.
  def test_cuts
    ranges = [[8, 25], [21, 96], [33.5, 65], [50, 97], [0, 28], [94.5, 100]]
    [process, Traces.gvl, Traces.kernel, Traces.calls].each_with_index do |trace, i|
      whole, out = path("whole-#{i}.fxt", trace), File.join(@dir, "cut-#{i}.fxt")
      # Half of them in `make check`: each trace with other ones.
      ranges.each_with_index do |(since, till), j|
        next if ENV["LONG"].to_s.empty? && (i + j).odd?
        assert_equal 0, tool("cut", "--since=#{since}ms", "--until=#{till}ms", "-o", out, whole).status
        assert_consistent(out, of: "#{i}: #{since} to #{till} ms")
      end
    end
  end
end
