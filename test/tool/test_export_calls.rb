# `vm-trace export --kind=calls`: stacks weighted by own time.
require "zlib"
require_relative "tool_helper"
require_relative "calls_reference"

class TestExportCalls < Minitest::Test
  include ToolHelper

  def export(bytes, *options)
    with_file(bytes) { |path| return tool("export", "--kind=calls", *options, path) }
  end

  def trace_of(calls)
    CallsTrace.new(ends: calls.map(&:last).max + 10) do |t|
      (calls.map(&:first).uniq - [:main]).each_with_index { |thread, i| t.thread(thread, 100 + i) }
      calls.each { |call| t.call(*call) }
    end.build
  end

  # Stack => milliseconds.
  def folded(bytes, *options)
    stacks = export(bytes, "--format=folded", *options).out.lines.to_h do |line|
      line.chomp.match(/\A(.*) (\d+)\z/) { |m| [m[1], m[2].to_i / 1000] }
    end
    stacks.reject { |_, ms| ms.zero? }
  end

  def test_stacks_have_the_own_time_of_all_calls
    10.times do |seed|
      calls = CallsReference.random(seed, threads: %i[main web])
      assert_equal CallsReference.new(calls).stacks, folded(trace_of(calls))
    end
  end

  def test_a_loop_of_very_many_calls
    names = %w[A#a A#b A#c]
    calls = Array.new(120_000) { |i| [:main, names[i % 3], 10 + i, 10.5 + i] }
    calls.insert(50_000, [:main, "Inner#x", calls[49_990][2] - 0.2, calls[49_999][3] + 0.1])
    calls << [:main, "<main>", 1, 200_000]
    expected = CallsReference.new(calls).stacks.transform_values(&:floor)
    assert_equal expected, folded(trace_of(calls))
  end

  def test_threads_and_counts
    calls = [[:web, "B#b (/b.rb:1)", 4, 5], [:main, "A#a (/a.rb:1)", 3, 8], [:main, "A#a (/a.rb:1)", 9, 10]]
    assert_equal({ "main;A#a (/a.rb:1)" => 6, "web;B#b (/b.rb:1)" => 1 }, folded(trace_of(calls), "--threads"))
    counts = export(trace_of(calls), "--format=folded", "--weight=events").out
    assert_equal ["A#a (/a.rb:1) 2", "B#b (/b.rb:1) 1"], counts.lines.map(&:chomp).sort
  end

  def test_speedscope_and_pprof_have_nanoseconds
    calls = CallsReference.random(4)
    sum = CallsReference.new(calls).stacks.values.sum * 1_000_000
    data = JSON.parse(export(trace_of(calls), "--format=speedscope").out)["profiles"][0]
    assert_equal ["nanoseconds", sum, sum], [data["unit"], data["endValue"], data["weights"].sum]
    pprof = Zlib.gunzip(export(trace_of(calls), "--format=pprof").out.b)
    assert_includes pprof, "own time"
    assert_includes pprof, "M#m1"
  end

  def test_a_file_that_keeps_its_newest_events
    calls = CallsReference.random(5)
    trace = CallsTrace.new(settings: { keep: "newest" }, ends: 10_000) do |t|
      calls.rotate(120).each_slice(60) { |part| t.new_chunk; part.each { |call| t.call(*call) } }
    end
    assert_equal CallsReference.new(calls).stacks, folded(trace.build)
  end

  def test_several_files_are_read_one_after_the_other
    with_file(trace_of([[:main, "A#a", 1, 3]])) do |one|
      with_file(trace_of([[:main, "A#a", 2, 4], [:main, "B#b", 1, 8]])) do |two|
        out = tool("export", "--kind=calls", "--format=folded", one, two).out
        assert_equal ["A#a 2000", "B#b 5000", "B#b;A#a 2000"], out.lines.map(&:chomp).sort
      end
    end
  end

  def test_a_trace_without_calls
    result = export(CallsTrace.new.build, "--format=folded")
    assert_match(/has no calls \(--vm-trace=calls records them\), so the output is empty$/, result.err)
  end

  # The stacks of the samples in each thread, with their sums in ns.
  def firefox_stacks(data)
    shared = data["shared"]
    names = ->(stack) do
      list = []
      while stack
        func = shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]]
        list.unshift(shared["stringArray"][shared["funcTable"]["name"][func]])
        stack = shared["stackTable"]["prefix"][stack]
      end
      list.join(";")
    end
    data["threads"].to_h do |thread|
      samples = thread["samples"]
      assert_equal samples["time"].sort, samples["time"]
      assert_equal "tracing-ms", samples["weightType"]
      sums = Hash.new(0)
      samples["stack"].zip(samples["weight"]) { |stack, ms| sums[names[stack]] += (ms * 1e6).round }
      [thread["name"], sums]
    end
  end

  def test_firefox_has_the_own_time_of_each_thread
    3.times do |seed|
      calls = CallsReference.random(seed, threads: %i[main web])
      data = JSON.parse(export(trace_of(calls), "--format=firefox").out)
      stacks = firefox_stacks(data)
      assert_equal %w[main web], stacks.keys
      stacks.each do |thread, sums|
        reference = CallsReference.new(calls.select { |call| call[0].to_s == thread }).stacks
        assert_equal reference.to_h { |stack, ms| [stack.gsub(" (/m.rb:1)", ""), ms * 1_000_000] }, sums
      end
      assert_equal [0, 0], data["threads"].map { |thread| thread["markers"]["length"] }
    end
  end
end
