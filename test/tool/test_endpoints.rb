# vm-trace report --endpoints: made-up traces whose sums are known, and a reference that walks all events of a trace.
require_relative "page_helper"
require_relative "fxt_builder"

class TestEndpoints < Minitest::Test
  include PageHelper

  MS = 1_000_000
  COSTS = %w[ran_ns gc_ns waited_ns blocked_ns exits lost_ns allocated_bytes].freeze

  def endpoints(bytes, *options)
    with_file(bytes) { |path| JSON.parse(tool("report", "--endpoints", "--format=json", *options, path).out) }
  end

  def rows(report, table) = report[table]["rows"].to_h { |row| [row["endpoint"], row] }
  def costs(row) = row.values_at(*COSTS)

  # A worker of two requests: one waits for the GVL, collects, and exits; one is blocked, fails, and runs a job.
  def trace
    StatesTrace.new(rate: 3, ends: 200) do |t|
      t.thread(:worker, 50)
      t.runs(:worker, 1)
      t.exits(:worker, "GuardType", "A#a (/a.rb:1)", 5, lost: 1) # before all
      t.during(:worker, "marker", "request", 10, 40, ends: { endpoint: "Notes#index", request_id: "a", status: 200 }) do
        t.exits(:worker, "GuardType", "A#a (/a.rb:1)", 11, lost: 2)
        t.during(:worker, "marker", "Note Load", 12, 13)
        t.during(:worker, "gc", "GC minor", 14, 17, ends: { reason: "newobj" }) { t.during(:worker, "gc", "mark", 15, 16) }
        t.allocates(:worker, "String", 18, sample: 1, weight: 1000)
        t.leaves(:worker, 20, ThreadsTrace::RUNNABLE)
        t.runs(:worker, 26)
      end
      t.blocks(:worker, "sleep", 45, 55)
      t.during(:worker, "marker", "request", 60, 160, ends: { endpoint: "Notes#show", request_id: "b", status: 500 }) do
        t.blocks(:worker, "IO#read", 70, 90)
        t.during(:worker, "marker", "Count", 100, 130, endpoint: "Count", job_id: "j", ends: { error: "IOError" }) do
          t.exits(:worker, "GuardType", "A#a (/a.rb:1)", 110, lost: 4)
        end
        t.exits(:worker, "GuardType", "A#a (/a.rb:1)", 150, lost: 8)
      end
      t.during(:worker, "marker", "request", 162, 172, ends: { endpoint: "Notes#index", request_id: "c", status: 200 })
      t.during(:worker, "marker", "cleanup", 180, 190)
      t.event(:begin, :worker, "marker", "request", 195)
    end.build.bytes
  end

  # Two requests at a time, each in a fiber of the worker. Its states and collections are on its own track, the
  # exits of a fiber on the fiber's.
  def of_fibers(fiber_name: "worker fiber", another: nil)
    StatesTrace.new(ends: 200) do |t|
      t.thread("worker", 50)
      t.builder.thread_name(42, 60, another) if another
      2.times { |i| t.thread(:"#{fiber_name} #{i + 1}", 3 * 2**29 + i) }
      one, two = [1, 2].map { |i| :"#{fiber_name} #{i}" }
      t.runs("worker", 1)
      t.event(:begin, one, "marker", "request", 10, endpoint: "Slow")
      t.event(:begin, two, "marker", "request", 20, endpoint: "Fast")
      t.exits(one, "GuardType", "A#a (/a.rb:1)", 21, lost: 1)
      t.during("worker", "gc", "GC minor", 24, 26, ends: { reason: "newobj" })
      t.leaves("worker", 30, ThreadsTrace::RUNNABLE)
      t.runs("worker", 38)
      t.event(:end, two, "marker", "request", 40)
      t.blocks("worker", "IO.select", 45, 55)
      t.event(:end, one, "marker", "request", 60)
    end.build.bytes
  end

  # Of wall time of requests: a job inside of one counts once, spans without an endpoint and fibers not at all.
  def test_the_first_screen_says_where_requests_spent_their_time
    text, of_part = ["", "--since=65ms"].map { |option| with_file(trace) { |path| tool("report", *option.split, path).out } }
    assert_equal "140 ms of 3 requests and jobs [--endpoints]", text[/^Where the time went: (.*)/, 1]
    assert_equal [%w[79.3 111.00 running], %w[14.3 20.00 blocked], ["4.3", "6.00", "waiting for the GVL"],
                  ["2.1", "3.00", "garbage collection"]], text.scan(/^ +([\d.]+) % +([\d.]+) ms +(.*)/)
    assert_match(/^What to change first; gains are of 169 ms of 1 thread, without blocked time$/, text)
    assert_operator text.lines.map { |line| line.chomp.size }.max, :<=, 80
    assert_match(/^Where the time went: 40.0 ms of 2 requests/, of_part, "that began in the window: a job, and a request")
    [of_fibers, CallsTrace.new { |t| t.call(:main, "A#a (/a.rb:1)", 1, 2) }.build.bytes].each do |bytes|
      refute_match(/request/, with_file(bytes) { |path| tool("report", path).out })
    end
    assert_match(/ of 1 thread, without/, tool("report", "-", stdin: trace).out, "a pipe is read once")
  end

  def test_tables_and_the_page_say_it_too
    spent = [["running", 111 * MS], ["blocked", 20 * MS], ["waiting for the GVL", 6 * MS], ["garbage collection", 3 * MS]]
    found = with_file(trace) { |path| JSON.parse(tool("report", "--format=json", path).out)["where_requests"]["rows"] }
    assert_equal spent, found.map { |row| row.values_at("state", "ns") }
    alone = with_file(trace) { |path| tool("report", "--format=csv", "--table=where_requests", path).out.lines.size }
    assert_equal 1 + spent.size, alone
    assert_equal({ "count" => 3, "whole_ns" => 140 * MS, "where" => spent }, data_of(page(trace))["first"]["requests"])
    browse(trace) do |browser|
      assert_match(/\A140 ms of 3 requests and jobs; gains are of 169 ms of 1 thread/, browser.text("#first-whose"))
    end
    assert_nil data_of(page(trace, "--reason=*"))["first"]["requests"], "reasons choose exits, not requests"
  end

  def test_requests_in_fibers_have_the_states_of_their_thread
    spent = rows(endpoints(of_fibers), "endpoint_costs")
    assert_equal [32 * MS, 2 * MS, 8 * MS, 10 * MS, 1, 1 * MS], costs(spent["Slow"]).first(6)
    assert_equal [12 * MS, 2 * MS, 8 * MS, 0, 0, 0], costs(spent["Fast"]).first(6)
    text = with_file(of_fibers) { |path| tool("report", "--endpoints", path).out }
    assert_match(/^What they did .*of fibers: ran, in GC, for GVL and blocked are their thread's/, text)
    refute_match(/^  unknown/, text)
  end

  def test_fibers_whose_thread_is_not_known
    [of_fibers(fiber_name: "gone fiber"), of_fibers(another: "worker")].each do |bytes|
      spent = rows(endpoints(bytes), "endpoint_costs")
      assert_equal [0, 0, 0, 0, 1], costs(spent["Slow"]).first(5)
      with_file(bytes) do |path|
        assert_match(/^  unknown +the states of the threads of 2 spans in fibers/, tool("report", "--endpoints", path).out)
      end
    end
  end

  # With --group=gem: whose code the exits, allocations and samples of each endpoint were.
  def test_gems_of_each_endpoint
    rack, app = "Rack#call (/u/gems/rack-3.1.8/lib/rack.rb:1)", "Note#show (/srv/shop/app/note.rb:2)"
    bytes = StatesTrace.new(ends: 200) do |t|
      t.during(:main, "marker", "request", 10, 40, endpoint: "A") do
        t.exits(:main, "GuardType", rack, 11, lost: 2)
        t.exits(:main, "GuardType", app, 12, lost: 1)
        t.allocates(:main, "String", 18, sample: 1, weight: 1000, frames: [rack, app])
      end
      t.during(:main, "marker", "request", 50, 60, endpoint: "B") { t.exits(:main, "GuardType", app, 55, lost: 4) }
      t.exits(:main, "GuardType", rack, 70, lost: 8)
      t.site("GuardType", rack, 2, lost: 10)
      t.site("GuardType", app, 2, lost: 5)
    end.build.bytes
    report = endpoints(bytes, "--group=gem")
    assert_equal [["B", "(application)", 4 * MS, 1, 0], ["A", "rack", 2 * MS, 1, 1000], ["A", "(application)", 1 * MS, 1, 0]],
                 report["endpoint_gems"]["rows"]
                   .map { |row| row.values_at("endpoint", "gem", "lost_ns", "exits", "allocated_bytes") }
    assert_equal [["rack", 2], ["(application)", 2]], report["gems"]["rows"].map { |row| row.values_at("gem", "exits") }
    refute endpoints(bytes).key?("endpoint_gems")
    app_only = endpoints(bytes, "--group=gem", "--app-only")["endpoint_gems"]["rows"]
    assert_equal [["B", "(application)", 1], ["A", "(application)", 2]],
                 app_only.map { |row| row.values_at("endpoint", "gem", "exits") }
  end

  def test_samples_of_each_endpoint
    require_relative "samples_trace"
    bytes = SamplesTrace.new do |t|
      t.event(:begin, :main, "marker", "request", 10, endpoint: "A")
      t.sample(:main, 12, 3, "compiled", "Note#show (/srv/shop/app/note.rb:2)")
      t.sample(:main, 16, 4, "blocked", "Note#show (/srv/shop/app/note.rb:2)")
      t.event(:end, :main, "marker", "request", 20)
      t.sample(:main, 30, 5, "compiled", "Note#show (/srv/shop/app/note.rb:2)")
    end.build.bytes
    report = endpoints(bytes, "--group=gem")
    assert_equal 3 * MS, rows(report, "endpoint_costs")["A"]["sampled_ns"]
    assert_equal [["(application)", 3 * MS]], report["endpoint_gems"]["rows"].map { |row| row.values_at("gem", "sampled_ns") }
  end

  def test_sums_of_each_endpoint
    report = endpoints(trace)
    times = rows(report, "endpoints")
    assert_equal %w[Notes#show Notes#index Count cleanup], times.keys
    assert_equal [[1, 1, 100 * MS], [2, nil, 40 * MS], [1, 1, 30 * MS], [1, nil, 10 * MS]],
                 times.values.map { |row| row.values_at("count", "failed", "total_ns") }
    assert_equal [30 * MS, 10 * MS],
                 times["Notes#index"].values_at("longest_ns", "median_ns").map { |ns| (ns / MS) * MS }
    text = with_file(trace) { |path| tool("report", "--endpoints", path).out }
    assert_match(/^Requests and jobs by endpoint: 5, which took 180 ms; 1 had not ended$/, text)
    spent = rows(report, "endpoint_costs")
    assert_equal [34 * MS, 3 * MS, 6 * MS, 0, 3, 6 * MS, 1000], costs(spent["Notes#index"])
    assert_equal [80 * MS, 0, 0, 20 * MS, 6, 36 * MS, 0], costs(spent["Notes#show"])
    assert_equal [30 * MS, 0, 0, 0, 3, 12 * MS, 0], costs(spent["Count"])
    slowest = rows(report, "endpoint_slowest")
    assert_equal [24 * MS, 3 * MS, 6 * MS, 0, 3, 6 * MS, 1000], costs(slowest["Notes#index"])
    assert_equal [["b", 60], ["a", 10], ["j", 100], [nil, 180]], slowest.values.map { |row| [row["id"], row["at_ns"] / MS] }
    assert_equal ["worker"], slowest.values.map { |row| row["thread"] }.uniq
  end

  # The command shows the request, and no other one.
  def test_the_command_opens_the_slowest_request
    with_file(trace) do |path|
      row = rows(JSON.parse(tool("report", "--endpoints", "--format=json", path).out), "endpoint_slowest")["Notes#show"]
      command = row["command"]
      assert_equal "vm-trace html -o slowest.html --since=60000us --until=160002us '#{path}'", command
      assert_includes tool("report", "--endpoints", path).out, "  slowest        #{command}\n"
    end
  end

  def test_filters
    report = endpoints(trace, "--since=50ms", "--until=165ms")
    assert_equal({ "Notes#show" => 1, "Count" => 1, "Notes#index" => 1 },
                 rows(report, "endpoints").transform_values { |row| row["count"] })
    assert_empty endpoints(trace, "--thread=main")["endpoints"]["rows"]
    with_file(trace) do |path|
      assert_equal [2, "vm-trace: report: --endpoints: --reason and --method choose exits, not requests\n"],
                   tool("report", "--endpoints", "--method=*", path).to_a.values_at(2, 1)
      assert_equal [2, "vm-trace: report: --endpoints: it reads traces twice: give a file, not standard input\n"],
                   tool("report", "--endpoints", "-").to_a.values_at(2, 1)
    end
  end

  def test_rows_that_are_not_shown_are_summed_up
    report = endpoints(trace, "--top=1")
    endpoints = report["endpoints"]
    assert_equal [3, 4, 1, 80 * MS], [endpoints["more_rows"], *endpoints["more"].values_at("count", "failed", "total_ns")]
    assert_equal [3, 74 * MS], [report["endpoint_costs"]["more_rows"], report["endpoint_costs"]["more"]["ran_ns"]]
  end

  def test_a_trace_without_spans
    out = with_file(ThreadsTrace.new { |t| t.runs(:main, 1) }.build.bytes) { |path| tool("report", "--endpoints", path).out }
    assert_includes out, "endpoints      none: there are no spans of markers here"
  end

  # Pieces and processes with the same thread numbers: each has its own time.
  def test_several_files
    two = ThreadsTrace.new do |t|
      t.thread(:worker, 50)
      t.runs(:worker, 1)
      t.during(:worker, "marker", "request", 10, 90, ends: { endpoint: "Notes#index" })
    end.build.bytes
    Dir.mktmpdir do |dir|
      paths = [trace, two].each_with_index.map { |bytes, i| "#{dir}/#{i}.fxt".tap { |path| File.binwrite(path, bytes) } }
      row = rows(JSON.parse(tool("report", "--endpoints", "--format=json", *paths).out), "endpoint_costs")["Notes#index"]
      assert_equal (34 + 80) * MS, row["ran_ns"]
    end
  end

  # Many spans in each other and one after the other, of many names, and events at any time: judged by a walk through all.
  def test_against_a_reference
    random = Random.new(5)
    seen = Hash.new { |hash, name| hash[name] = [0, 0, 0, 0] } # spans, exits, ms of waits, the slowest
    bytes = StatesTrace.new(ends: 100_000) do |t|
      t.runs(:main, 0)
      at, open = 1, []
      note = ->(name, began) { seen[name][0] += at - began; seen[name][3] = [seen[name][3], at - began].max }
      8000.times do
        at += random.rand(3)
        case random.rand(6)
        when 0, 1
          next if open.size > 8
          name = "E#{random.rand(20)}"
          named = open.empty? || random.rand(2) == 0
          t.event(:begin, :main, "marker", named ? "request" : "part", at, **(named ? { endpoint: name } : {}))
          open.push([named ? name : nil, named ? "request" : "part", at])
        when 2, 3
          next if open.empty?
          name, label, began = open.pop
          t.event(:end, :main, "marker", label, at)
          note.(name, began) if name
        when 4
          t.exits(:main, "GuardType", "A#a (/a.rb:1)", at, lost: 0)
          open.each { |name, _, began| seen[name][1] += 1 if name && began <= at }
          at += 1
        when 5
          t.leaves(:main, at, ThreadsTrace::RUNNABLE)
          t.runs(:main, at + 2)
          open.each { |name,| seen[name][2] += 2 if name }
          at += 2
        end
      end
      open.reverse_each do |name, label, began|
        t.event(:end, :main, "marker", label, at)
        note.(name, began) if name
      end
    end.build.bytes
    report = endpoints(bytes, "--top=100")
    costs, slowest = rows(report, "endpoint_costs"), rows(report, "endpoint_slowest")
    found = rows(report, "endpoints").to_h do |name, row|
      [name, [row["total_ns"] / MS, costs[name]["exits"], costs[name]["waited_ns"] / MS, slowest[name]["took_ns"] / MS]]
    end
    assert_equal seen.sort.to_h, found.sort.to_h
  end
end
