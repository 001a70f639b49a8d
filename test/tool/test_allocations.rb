# What `vm-trace report` and `check` make of the stream `allocations`. test/traces/allocations.fxt has the
# output in every format.
require "csv"
require_relative "tool_helper"

class TestAllocations < Minitest::Test
  include ToolHelper

  A = ["A#m (a.rb:4)", "<main> (a.rb:9)"].freeze
  B = ["Integer#times (<internal:numeric>:2)", "B#n (b.rb:7)"].freeze

  def trace(counts: {}, **options, &block)
    made = ThreadsTrace.new(settings: { allocations: [:uint64, 1000] }, **options) do |t|
      t.thread(:worker, 44)
      block[t]
    end
    made.build(**counts)
  end

  def json(bytes, *options)
    with_file(bytes) do |path|
      result = tool("report", "--top=1000", "--format=json", *options, path)
      assert_equal ["", 0], [result.err, result.status]
      return JSON.parse(result.out)
    end
  end

  def text(bytes, *options) = with_file(bytes) { |path| return tool("report", "--all", *options, path).out }

  def rows(data, table, *columns) = data.fetch(table)["rows"].map { |row| row.values_at(*columns) }

  # Of two classes, in two methods, on two threads.
  def two
    trace do |t|
      3.times { |i| t.allocates(:main, "String", 10 * i, sample: i, weight: 1000, frames: A) }
      t.allocates(:worker, "String", 12, sample: 3, weight: 2000, size: 80, frames: B)
      t.allocates(:worker, "Array", 22, sample: 4, weight: 5000, size: 160, frames: B)
      t.freed(:worker, 30, 0)
      t.freed(:worker, 31, 1, survived: 1)
      t.freed(:main, 32, 3, survived: 4)
      t.alive(:main, 90, 4, survived: 3)
      t.alive(:main, 91, 2, survived: 0)
    end
  end

  # --- tables ---

  def test_by_class_and_by_method
    data = json(two)
    assert_equal [["String", 5000, 0.5, 4, 100], ["Array", 5000, 0.5, 1, 31]].sort,
                 rows(data, "allocations_by_class", "class", "bytes", "share", "samples", "objects").sort
    assert_equal [["B#n (b.rb:7)", 7000, 2], ["A#m (a.rb:4)", 3000, 3]],
                 rows(data, "allocations_by_method", "method", "bytes", "samples")
    assert_equal [[10_000, 5, 4000, 3, 6000, 2]],
                 rows(data, "allocations", *%w[bytes samples freed_bytes freed_samples alive_bytes alive_samples])
  end

  def test_survivors
    columns = %w[samples bytes alive_samples alive_bytes survived_1_samples survived_1_bytes
                 survived_3_samples survived_3_bytes median_survived]
    data = json(two)
    assert_equal [["Array", 1, 5000, 1, 5000, 1, 5000, 1, 5000, 3], ["String", 3, 4000, 1, 1000, 2, 3000, 1, 2000, 1]],
                 rows(data, "survivors_by_class", "class", *columns)
    assert_equal [["B#n (b.rb:7)", 2, 7000, 3], ["A#m (a.rb:4)", 2, 2000, 0]],
                 rows(data, "survivors_by_method", "method", "samples", "bytes", "median_survived")
  end

  # A share p of n samples has the 95 % interval p +- 1.96 sqrt(p (1 - p) / n).
  def test_margin
    hundred = trace do |t|
      100.times { |i| t.allocates(:main, i < 20 ? "A" : "B", 1 + i * 0.1, sample: i, weight: 1000) }
    end
    data = json(hundred)
    assert_equal [["B", 0.8, 0.0784], ["A", 0.2, 0.0784]],
                 rows(data, "allocations_by_class", "class", "share", "margin")
    assert_match(/^  allocations +about 100\.0 kB, estimated from 100 samples; ± is the 95 % interval of a share$/,
                 text(hundred))
  end

  def test_counts_are_exact_where_each_object_was_recorded
    exact = trace do |t|
      3.times { |i| t.allocates(:main, "String", 1 + i, sample: i, weight: 40, frames: A); t.alive(:main, 50 + i, i) }
    end
    assert_equal [[120, nil, 3]], rows(json(exact), "allocations_by_class", "bytes", "margin", "objects")
    assert_match(/^  allocations +120 bytes in 3 objects, all recorded$/, text(exact))
    assert_match(/^Allocations by class: 120 bytes in 3 objects$/, text(exact))
    refute_includes text(exact), "±"
  end

  def test_what_became_of_an_object_may_be_earlier_in_the_file
    data = json(trace do |t|
      t.freed(:worker, 50, 7, survived: 2)
      t.new_chunk
      t.allocates(:main, "String", 10, sample: 7, weight: 1000)
    end)
    assert_equal [["String", 1, 2]], rows(data, "survivors_by_class", "class", "samples", "median_survived")
    assert_equal [["(no method)"]], rows(data, "allocations_by_method", "method")
  end

  def test_numbers_of_samples_belong_to_their_process
    Dir.mktmpdir do |dir|
      paths = [[100, "A"], [200, "B"]].map do |pid, name|
        made = trace(pid: pid) do |t|
          t.allocates(:main, name, 1, sample: 2**40 + 5, weight: 10)
          t.freed(:main, 2, 2**40 + 5, survived: pid / 100)
        end
        bytes = made.bytes
        File.join(dir, "#{pid}.fxt").tap { |path| File.binwrite(path, bytes) }
      end
      data = JSON.parse(tool("report", "--format=json", *paths).out)
      assert_equal [["A", 1, 1], ["B", 1, 2]],
                   rows(data, "survivors_by_class", "class", "samples", "median_survived").sort
    end
  end

  def test_unknown_fate_is_reported
    out = text(trace do |t|
      3.times { |i| t.allocates(:main, "String", 1 + i, sample: i, weight: 1000) }
      t.freed(:main, 9, 1)
    end)
    assert_match(/^ +what became of 2 of them is not in the trace$/, out)
    refute_match(/^Survivors/, out)
  end

  def test_addresses_of_anonymous_classes_do_not_tell_them_apart
    data = json(trace do |t|
      2.times { |i| t.allocates(:main, "#<Class:0x00007f00000#{i}>", 1 + i, sample: i, weight: 1000) }
    end)
    assert_equal [["#<Class:0x...>", 2]], rows(data, "allocations_by_class", "class", "samples")
  end

  def test_trace_without_this_stream_has_no_such_tables
    refute_match(/[Aa]llocation|Survivor/, text(OurTrace.new.build))
    assert_empty json(OurTrace.new.build).keys.grep(/alloc|surv/)
  end

  def test_rows_beyond_top_are_summed_up
    path = File.join(TRACES, "allocations.fxt")
    data = JSON.parse(tool("report", "--top=1", "--format=json", path).out)
    %w[allocations_by_class allocations_by_method].each do |table|
      assert_equal data["allocations"]["rows"][0]["bytes"],
                   data[table]["rows"].sum { |row| row["bytes"] } + data[table]["more"]["bytes"]
    end
    assert_equal 2, data["survivors_by_class"]["more_rows"]
    table = CSV.parse(tool("report", "--table=allocations_by_class", "--format=csv", path).out, headers: true)
    assert_equal %w[String Array Index::Entry (imemo)], table["class"]
  end

  # --- filters ---

  def test_time_thread_and_method
    assert_equal [["String", 4000, 3]],
                 rows(json(two, "--since=5ms", "--until=21ms"), "allocations_by_class", "class", "bytes", "samples")
    assert_equal [[5000, 4]], rows(json(two, "--until=21ms"), "allocations", "bytes", "samples")
    assert_equal [["Array", 5000], ["String", 2000]],
                 rows(json(two, "--thread=worker"), "allocations_by_class", "class", "bytes")
    assert_equal [["String", 3000]], rows(json(two, "--method=A#*"), "allocations_by_class", "class", "bytes")
    assert_match(/^  only +method A#\*: exits, fallbacks, calls and allocations$/, text(two, "--method=A#*"))
    refute_match(/Allocations/, text(two, "--reason=x"))
  end

  def test_fate_counts_whoever_collects_and_whenever
    data = json(two, "--thread=main", "--until=15ms")
    assert_equal [["String", 1, 1]], rows(data, "survivors_by_class", "class", "samples", "median_survived")
    assert_equal [[2, 2]], rows(data, "allocations", "samples", "freed_samples")
  end

  # --- check ---

  def faults(bytes) = check(bytes).err.lines.map { |line| line[/offset \d+: (.*)/, 1] }

  def test_check_accepts_them
    assert_fine two
    assert_fine trace(counts: { allocation_samples: 2, allocation_bytes: 3000 }) { |t|
      t.allocates(:main, "String", 1, sample: 1, weight: 1000, untracked: [:uint32, 1])
      t.allocates(:main, "String", 2, sample: 2, weight: 2000, frames: A)
    }
  end

  def test_check_of_arguments
    { [] =>
        ["allocation String lacks its argument sample", "allocation String lacks its argument size",
         "allocation String lacks its argument weight"],
      { sample: "x", size: 1.5, weight: [:uint32, 0] }.to_a =>
        ["allocation String has no unsigned number as its argument sample",
         "allocation String has no unsigned number as its argument size", "allocation String: weight is 0"],
      { sample: [:uint64, 1], size: [:uint32, 0], weight: [:uint32, 9], untracked: "no" }.to_a =>
        ["allocation String has no unsigned number as its argument untracked", "allocation String: size is 0"],
      { sample: [:uint64, 1], size: [:uint32, 4], weight: [:uint32, 9],
        "0": "A#m (a.rb:1)", "2": "B#m (a.rb:1)" }.to_a =>
        ["allocation String has a gap in its backtrace: frame 1 is missing"] }.each do |args, messages|
      assert_equal messages, faults(trace { |t| t.event(:instant, :main, "allocation", "String", 1, **args.to_h) })
    end
    assert_equal ["allocation freed lacks its argument sample", "allocation freed lacks its argument survived"],
                 faults(trace { |t| t.event(:instant, :main, "allocation", "freed", 1) })
    duration = trace do |t|
      %i[begin end].each.with_index(1) do |type, i|
        t.event(type, :main, "allocation", "String", i, sample: [:uint64, i], size: [:uint32, 4], weight: [:uint32, 9])
      end
    end
    assert_equal ["allocation String is not an instant"], faults(duration).uniq
  end

  def sampled(t, number = 1, **args) = t.allocates(:main, "String", 1, sample: number, weight: 1000, **args)

  def test_check_of_samples
    { ->(t) { sampled(t); sampled(t) } => /a second allocation of sample 1; the first is at offset \d+/,
      ->(t) { sampled(t); t.freed(:main, 2, 1); t.freed(:main, 3, 1) } =>
        /allocation freed of sample 1, which is freed at offset \d+/,
      ->(t) { sampled(t); t.freed(:main, 2, 1); t.alive(:main, 3, 1) } =>
        /allocation alive of sample 1, which is freed at offset \d+/,
      ->(t) { sampled(t, untracked: [:uint32, 1]); t.alive(:main, 3, 1) } =>
        /allocation alive of sample 1, which was untracked \(offset \d+\)/,
      ->(t) { sampled(t); t.freed(:main, 2, 2**33 + 1) } =>
        /allocation freed of sample 8589934593, which this trace does not allocate/ }.each do |events, message|
      found = faults(trace(&events))
      assert_equal 1, found.size, found.inspect
      assert_match(/\A#{message}\z/, found[0])
    end
  end

  def test_an_allocation_may_be_missing_where_older_events_are
    orphan = ->(t) { t.freed(:main, 2, 1) }
    assert_fine ThreadsTrace.new(settings: { keep: "newest" }, &orphan).build
    assert_fine ThreadsTrace.new(settings: { snapshot: "save" }, &orphan).build(snapshot: "save")
    loss = ->(t) { t.event(:instant, :main, "trace", "loss", 1, lost: [:uint64, 3], reason: "x") }
    assert_fine trace(counts: { lost: 3 }) { |t| loss[t]; orphan[t] }
    twice = ->(t) { 2.times { t.freed(:main, 2, 1) } }
    assert_equal 1, faults(ThreadsTrace.new(settings: { keep: "newest" }, &twice).build).size
  end

  def test_check_of_the_summary
    found = faults(trace(counts: { allocation_samples: 2, allocation_bytes: 999 }) { |t| sampled(t) })
    assert_equal ["trace summary says allocation_samples: 2, but the file holds: 1",
                  "trace summary says allocation_bytes: 999, but weights of the samples add up to: 1000"], found
  end
end
