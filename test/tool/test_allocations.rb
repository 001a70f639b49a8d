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

  # A share p of n samples of size s and weight w has the 95 % interval p +- 1.96 sqrt(p (1 - p) (1 - s / w) / n).
  def test_margin
    hundred = trace do |t|
      100.times { |i| t.allocates(:main, i < 20 ? "A" : "B", 1 + i * 0.1, sample: i, weight: 1000) }
    end
    data = json(hundred)
    assert_equal [["B", 0.8, 0.076816], ["A", 0.2, 0.076816]],
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

  # A program that runs out of memory is killed: what holds it is what no collection has freed.
  def test_what_is_not_freed_in_a_trace_without_an_end_is_alive
    made = lambda do |*events|
      ThreadsTrace.new(settings: { allocations: [:uint64, 1000] }) do |t|
        t.thread(:worker, 44)
        3.times { |i| t.allocates(:main, "String", 10 * i, sample: i, weight: 1000, frames: A) }
        t.allocates(:main, "Array", 40, sample: 3, weight: 1000, untracked: [:uint32, 1], frames: A)
        t.allocates(:main, "(buffer)", 50, sample: 4, weight: 4096, size: 4096, frames: B)
        t.freed(:main, 60, 1)
        events.each { |name, args| t.event(:instant, :main, "trace", name, 70, **args) }
      end
    end
    export = ->(path) { tool("export", "--kind=alive", "--format=folded", "-o", "-", path).out.lines(chomp: true) }
    folded = ->(bytes) { with_file(bytes, &export) }
    unended = made.call.builder
    data = json(unended)
    assert_equal [["(buffer)", 4096, 1], ["String", 2000, 2]], rows(data, "live_by_class", "class", "bytes", "samples")
    assert_equal [["(buffer)", 1], ["String", 2]], rows(data, "survivors_by_class", "class", "alive_samples")
    assert_includes text(unended), "3 of them count as alive: no collection has freed them, and the trace has no end"
    assert_includes text(unended), "what became of 1 of them is not in the trace"
    assert_equal ["#{A.reverse.join(";")};String 2000", "#{B.reverse.join(";")};(buffer) 4096"], folded[unended].sort
    ended = [made.call.build, made.call(["cut", { since_ns: [:uint64, 0] }]).builder,
             made.call(["loss", { lost: [:uint64, 1], reason: "x" }]).builder]
    ended.each do |bytes|
      assert_empty rows(json(bytes), "live_by_class", "class")
      assert_empty folded[bytes]
    end
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

  # --- what is alive, and what it holds by malloc ---

  LIVE = %w[bytes margin malloc_bytes malloc_unread objects samples].freeze

  # Within 1 %.
  def assert_ages(expected, data)
    ages = rows(data, "live_by_class", "age_ns").flatten
    assert_equal expected.size, ages.size
    expected.zip(ages) { |wanted, age| assert_in_epsilon wanted, age, 0.01 }
  end

  # An object that stands for n, with s bytes in its slot and m by malloc, is n (s + m) bytes, and adds
  # n (n - 1) (s + m)**2 to the variance.
  def test_alive
    data = json(trace do |t|
      t.allocates(:main, "String", 10, sample: 1, weight: 400, frames: A)
      t.allocates(:main, "String", 20, sample: 2, weight: 400, frames: A)
      t.allocates(:main, "Array", 30, sample: 3, weight: 40, frames: B)
      t.allocates(:main, "Array", 40, sample: 4, weight: 40, frames: B)
      t.freed(:main, 50, 2, malloc: 7)
      t.alive(:main, 60, 1, malloc: 60, survived: 2)
      t.alive(:main, 60.001, 3, malloc: 5)
      t.alive(:main, 60.002, 4)
    end)
    margin = (1.96 * Math.sqrt(10 * 9 * 100**2)).round
    assert_equal [["String", 1000, margin, 600, 0, 10, 1], ["Array", 85, 0, 5, 1, 2, 2]],
                 rows(data, "live_by_class", "class", *LIVE)
    assert_ages [50_000_000, 20_002_000], data
    assert_equal [["A#m (a.rb:4)", 1000], ["B#n (b.rb:7)", 85]], rows(data, "live_by_method", "method", "bytes")
    assert_equal [[675, 1085, margin, 605, 3]],
                 rows(data, "allocations", *%w[malloc_bytes live_bytes live_margin live_malloc_bytes live_samples])
    assert_equal [["String", 670], ["Array", 5]], rows(data, "allocations_by_class", "class", "malloc_bytes")
  end

  # A flight recorder's memory no longer has the events of old objects; of others it may have both.
  def saved
    ThreadsTrace.new(settings: { snapshot: "save" }) do |t|
      t.allocates(:main, "String", 10, sample: 7, weight: 400, frames: A)
      t.saved_alive(:main, 60, 7, "String", weight: 400, frames: A, age_ns: 50_000_000, malloc: 10)
      t.saved_alive(:main, 60.001, 3, "#<Class:0x00007f0000000001>", weight: 80, frames: B, age_ns: 9_000_000_000,
                                                                      malloc: 100, survived: 5)
      t.alive(:main, 60.002, 2, malloc: 9)
    end
  end

  def test_saved_objects_whose_allocation_is_gone
    bytes = saved.build(snapshot: "save")
    assert_fine bytes
    data = json(bytes)
    assert_equal [["String", 500, 100, 10], ["#<Class:0x...>", 280, 200, 2]],
                 rows(data, "live_by_class", "class", "bytes", "malloc_bytes", "objects")
    assert_ages [50_000_000, 9_000_000_000], data
    assert_equal [["A#m (a.rb:4)", 500], ["B#n (b.rb:7)", 280]], rows(data, "live_by_method", "method", "bytes")
    assert_equal [["String", 400]], rows(data, "allocations_by_class", "class", "bytes")
    assert_equal [["B#n (b.rb:7)", 280]],
                 rows(json(bytes, "--method=B#*"), "live_by_method", "method", "bytes")
  end

  # A class may have got its name since. Chunks are in any order.
  def test_what_is_alive_is_where_the_event_of_its_allocation_has_it
    events = [->(t) { t.allocates(:main, "#<Class:0x00007f0000000001>", 10, sample: 7, weight: 400, frames: A) },
              ->(t) { t.saved_alive(:main, 60, 7, "Named", weight: 400, frames: A, age_ns: 50_000_000) }]
    [events, events.reverse].each do |order|
      data = json(trace(settings: { snapshot: "save" }) { |t| order.each { |event| event.(t) } })
      assert_equal [["#<Class:0x...>", 10]], rows(data, "live_by_class", "class", "objects")
      assert_equal [["#<Class:0x...>", 400]], rows(data, "allocations_by_class", "class", "bytes")
    end
  end

  # --- buffers, which are samples of their own ---

  # One per 1000 bytes: a sample of 500 bytes represents 1271.
  def buffers
    trace do |t|
      t.allocates(:main, "String", 1, sample: 1, weight: 1000, frames: A)
      4.times { |i| t.allocates(:main, "(buffer)", 10 + i, sample: 2 + i, weight: 1271, size: 500, frames: A) }
      t.allocates(:main, "(buffer)", 20, sample: 6, weight: 5000, size: 5000, frames: B)
      t.alive(:main, 50, 1, malloc: 0)
      t.alive(:main, 51, 2, holder: "String")
      t.freed(:main, 52, 3, holder: "String", survived: 1)
      t.freed(:main, 53, 4) # nobody had it
      t.alive(:main, 54, 6, holder: "Hash")
    end
  end

  # The fifth sample has no end: the trace does not say whose it was, nor what became of it.
  def test_buffers_count_for_the_class_of_their_object
    data = json(buffers)
    assert_fine buffers
    assert_equal [["Hash", 5000, 1, 0], ["String", 3542, 3, 25], ["(buffer)", 2542, 2, 0]],
                 rows(data, "allocations_by_class", "class", "bytes", "samples", "objects")
    assert_equal [["A#m (a.rb:4)", 6084, 5], ["B#n (b.rb:7)", 5000, 1]],
                 rows(data, "allocations_by_method", "method", "bytes", "samples")
    margin = (1.96 * Math.sqrt(25 * 24 * 40**2 + 1271 / 500.0 * (1271 / 500.0 - 1) * 500**2)).round
    assert_equal [["Hash", 5000, 0, 5000, 0, 0, 1], ["String", 2271, margin, 1271, 0, 25, 2]],
                 rows(data, "live_by_class", "class", *LIVE)
    assert_equal [["Hash", 5000], ["String", 3542]], rows(data, "survivors_by_class", "class", "bytes")
    assert_equal [[10_084, 5, 1271, 1]],
                 rows(data, "allocations", *%w[buffer_bytes buffer_samples not_followed_bytes not_followed_samples])
  end

  def test_buffers_that_are_not_followed_are_named
    out = text(buffers)
    assert_match(/^ +not followed: 1271 bytes of it, in buffers that had grown by then or that C code holds$/, out)
    assert_match(/^ +what became of 1 of them is not in the trace$/, out)
  end

  # What a flight recorder saves says of a buffer what it was, and whose it is.
  def test_buffers_in_what_is_saved
    made = ThreadsTrace.new(settings: { snapshot: "save" }) do |t|
      t.saved_alive(:main, 60, 7, "(buffer)", weight: 4000, size: 4000, frames: A, holder: "Array")
    end
    bytes = made.build(snapshot: "save")
    assert_fine bytes
    assert_equal [["Array", 4000, 4000, 0]], rows(json(bytes), "live_by_class", "class", "bytes", "malloc_bytes", "objects")
    with_file(bytes) do |path|
      assert_equal "<main> (a.rb:9);A#m (a.rb:4);Array 4000\n", tool("export", "--kind=alive", "--format=folded", path).out
    end
  end

  def test_titles_of_what_is_alive
    out = text(saved.build(snapshot: "save"))
    assert_match(/^Alive at the end, by class: about 780 bytes ± \d+ bytes, of it by malloc 300 bytes, in 2 samples$/, out)
    exact = trace { |t| t.allocates(:main, "String", 1, sample: 1, weight: 40); t.alive(:main, 50, 1, malloc: 2) }
    assert_match(/^Alive at the end, by class: 42 bytes, of it by malloc 2 bytes, in 1 object$/, text(exact))
    assert_match(/^Alive at the end, by class: about .*, without what they hold by malloc, in 2 samples$/, text(two))
  end

  def test_flame_graph_of_what_is_alive
    with_file(saved.build(snapshot: "save")) do |path|
      folded = tool("export", "--kind=alive", "--format=folded", path)
      assert_equal ["<main> (a.rb:9);A#m (a.rb:4);String 500",
                    "B#n (b.rb:7);Integer#times (<internal:numeric>:2);#<Class:0x...> 280"], folded.out.lines.map(&:chomp)
      %w[--since=1ms --until=1s --thread=main].each do |option|
        refused = tool("export", "--kind=alive", "--format=folded", option, path)
        assert_match(/#{option[/\A--\w+/]} has no effect with --kind=alive/, refused.err)
      end
    end
  end

  # Which place grew between two saves.
  def test_diff_of_two_saves
    grown = ThreadsTrace.new(settings: { snapshot: "save", flags: "allocations" }) do |t|
      t.saved_alive(:main, 60, 7, "String", weight: 40, frames: A, malloc: 10)
      10.times { |i| t.saved_alive(:main, 60.1 + i / 10.0, 10 + i, "Array", weight: 40, frames: B, malloc: 960) }
    end
    less = ThreadsTrace.new(settings: { snapshot: "save", flags: "allocations" }) do |t|
      t.saved_alive(:main, 60, 7, "String", weight: 40, frames: A, malloc: 10)
      t.saved_alive(:main, 60.1, 10, "Array", weight: 40, frames: B, malloc: 960)
    end
    Dir.mktmpdir do |dir|
      paths = { less: less, grown: grown }.map do |name, made|
        File.join(dir, "#{name}.fxt").tap { |path| File.binwrite(path, made.build(snapshot: "save").bytes) }
      end
      result = tool("diff", "--format=json", *paths)
      data = JSON.parse(result.out)
      assert_equal [["B#n (b.rb:7)", "Array", 1000, 10_000]], rows(data, "alive", *%w[method class a b])
    end
  end

  def test_queries_see_what_is_held
    with_file(saved.build(snapshot: "save")) do |path|
      out = tool("query", "--format=csv", path,
                 "SELECT class, malloc_bytes, size FROM vm_allocation WHERE class = 'String'").out
      assert_equal [%w[class malloc_bytes size], %w[String 10 40]], CSV.parse(out)
    end
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
