# Whose code a frame is: `vm-trace report --group=gem` and `--app-only`, and `export --app-only`.
require_relative "tool_helper"
require_relative "samples_trace"

class TestGems < Minitest::Test
  include ToolHelper

  APP = "Note#title (/srv/shop/app/models/note.rb:4)"
  RACK = "Rack::Builder#call (/usr/local/bundle/ruby/4.0.0/gems/rack-3.1.8/lib/rack/builder.rb:9)"
  INTERNAL = "Integer#times (<internal:numeric>:262)"
  OUTSIDE = "(outside of the application)"

  def report(bytes, *options)
    with_file(bytes) do |path|
      result = tool("report", "--format=json", *options, path)
      assert_equal ["", 0], [result.err, result.status]
      return JSON.parse(result.out)
    end
  end

  def rows(data, table, *columns) = data.fetch(table)["rows"].map { |row| row.values_at(*columns) }
  def gems(bytes, *columns) = rows(report(bytes, "--group=gem"), "gems", "gem", *columns)

  def exits(*stacks)
    FxtBuilder.simple do |b|
      stacks.each_with_index do |(frames, rest), i|
        args = frames.each_with_index.to_h { |frame, number| [number.to_s.to_sym, frame] }
        args[:"10+"] = rest if rest
        first = args.delete(:"0")
        b.exit("Throw", first, ts: 10 * i, insn: "send", **args)
      end
    end
  end

  def test_paths_of_gems_the_library_and_ruby
    {
      "/usr/local/bundle/ruby/4.0.0/gems/rack-test-2.1.0/lib/a.rb" => "rack-test",
      "/u/gems/nokogiri-1.18.3-x86_64-linux-gnu/lib/a.rb" => "nokogiri",
      "/u/gems/ffi-1.17.1-arm64-darwin/lib/a.rb" => "ffi",
      "/u/bundler/gems/rails-0a1b2c3d4e5f/activerecord/lib/a.rb" => "rails",
      "/srv/shop/vendor/bundle/ruby/4.0.0/gems/puma-6.6.0/lib/a.rb" => "puma",
      "/u/lib/ruby/gems/4.0.0/gems/minitest-5.27.0/lib/a.rb" => "minitest",
      "/u/gems/solid_queue-1.2.1.beta2/lib/a.rb" => "solid_queue",
      "/u/gems/a-1.0/lib/gems/plain/b.rb" => "a",
      "/u/lib/ruby/4.0.0/json/common.rb" => "json (stdlib)",
      "/u/lib/ruby/4.0.0/set.rb" => "set (stdlib)",
      "/u/lib/ruby/4.0.0/x86_64-linux/socket.rb" => "socket (stdlib)",
      "/u/lib/ruby/site_ruby/4.0.0/rubygems/version.rb" => "rubygems (stdlib)",
      "/usr/local/bin/bundle" => "rubygems (stdlib)",
      "/usr/local/bundle/ruby/4.0.0/bin/puma" => "rubygems (stdlib)",
      "/srv/shop/bin/rails" => "(application)",
      "<internal:kernel>" => "ruby",
      "<cfunc>" => "ruby",
      "(eval at /u/gems/erb-5.0.2/lib/erb.rb:9)" => "erb",
      "/srv/shop/gems/local/lib/a.rb" => "(application)",
      "/srv/shop/lib/ruby/helper.rb" => "(application)",
      "app/models/note.rb" => "(application)",
      "-e" => "(application)",
    }.each do |path, owner|
      assert_equal [[owner, 1]], gems(exits([["A#m (#{path}#{":7" unless path == "<cfunc>"})"]]), "exits"), path
    end
  end

  def test_exits_and_lost_time_by_gem
    trace = StatesTrace.new do |t|
      t.exits(:main, "Throw", RACK, 5, lost: 2)
      t.exits(:main, "Throw", RACK.sub(":9", ":12"), 6, lost: 1)
      t.exits(:main, "Throw", APP, 7, lost: 6)
      t.site("Throw", RACK, 1, lost: 2)
      t.site("Throw", RACK.sub(":9", ":12"), 1, lost: 1)
      t.site("Throw", APP, 1, lost: 6)
      t.states(:main, compiled: 91, exited: 9)
    end.build
    assert_equal [["(application)", 6_000_000, 1], ["rack", 3_000_000, 2]], gems(trace, "lost_ns", "exits")
  end

  def calls
    CallsTrace.new do |t|
      t.call(:main, APP, 1, 90) do
        t.call(:main, RACK, 10, 70) do
          t.call(:main, "Array#each", 20, 60) { t.call(:main, "Note#body (/srv/shop/app/models/note.rb:8)", 30, 40) }
        end
      end
      t.call(:main, RACK, 92, 96)
    end.build
  end

  def test_calls_by_gem
    assert_equal [["(application)", 39_000_000, 2], ["ruby", 30_000_000, 1], ["rack", 24_000_000, 2]],
                 gems(calls, "own_ns", "calls")
  end

  # What a gem did itself is own time of the application's call around it.
  def test_calls_of_the_application_only
    data = report(calls, "--calls", "--app-only")
    assert_equal [[APP, 79_000_000, 89_000_000, 1], ["Note#body (/srv/shop/app/models/note.rb:8)", 10_000_000, 10_000_000, 1],
                  [OUTSIDE, 4_000_000, 0, 0]],
                 rows(data, "calls", "method", "own_ns", "total_ns", "calls")
                   .reject { |method, *| method.start_with?("(outside rec") }
    assert_equal [[APP], ["Note#body (/srv/shop/app/models/note.rb:8)"]], rows(data, "slowest_calls", "method")
  end

  def samples
    SamplesTrace.new do |t|
      t.sample(:main, 10, 3, "compiled", APP, RACK, INTERNAL)
      t.sample(:main, 20, 2, "interpreted", APP)
      t.sample(:main, 30, 4, "compiled", RACK)
      t.sample(:main, 40, 1, "blocked", APP, RACK)
    end.build
  end

  def test_samples_by_gem
    assert_equal [["rack", 4_000_000, 1_000_000], ["ruby", 3_000_000, 0], ["(application)", 2_000_000, 0]],
                 gems(samples, "ran_ns", "waited_ns")
  end

  def test_samples_of_the_application_only
    data = report(samples, "--samples", "--app-only")
    assert_equal [["Note#title (/srv/shop/app/models/note.rb)", 5_000_000], [OUTSIDE, 4_000_000]],
                 rows(data, "samples_by_method", "method", "own_ns")
  end

  def test_allocations_by_gem_and_of_the_application_only
    trace = ThreadsTrace.new(settings: { allocations: [:uint64, 1000] }) do |t|
      t.allocates(:main, "String", 1, sample: 0, weight: 3000, frames: [INTERNAL, RACK, APP])
      t.allocates(:main, "String", 2, sample: 1, weight: 1000, frames: [RACK])
    end.build
    assert_equal [["rack", 4000]], gems(trace, "bytes")
    assert_equal [[APP, 3000], [OUTSIDE, 1000]],
                 rows(report(trace, "--app-only"), "allocations_by_method", "method", "bytes")
  end

  # The innermost frame of the application's own: among the named frames, in "10+", or nowhere.
  def test_exits_of_the_application_only
    deep = Array.new(10) { |i| RACK.sub(":9", ":#{i + 1}") }
    trace = exits([[RACK, INTERNAL, APP]], [[APP, RACK]], [deep, "#{RACK} x3 < #{APP} < Other#main (/srv/shop/run.rb:1)"],
                  [[RACK, INTERNAL]], [deep, "#{RACK} < 4 more frames"], [deep, "7 more frames"])
    assert_equal [[APP, 3], ["(more frames)", 2], [OUTSIDE, 1]],
                 rows(report(trace, "--app-only"), "exits_by_line", "method", "count")
    found = rows(report(trace), "exits_by_line", "method", "count")
    assert_equal [[APP, 1], [RACK, 2]], found.select { |method, _| [APP, RACK].include?(method) }.sort
  end

  # Sites have no callers, so the events count.
  def test_exact_hits_are_not_attributed
    trace = OurTrace.new(rate: 10).build
    assert_equal 35, report(trace)["totals"]["rows"][0]["exits"]
    assert_equal 30, report(trace, "--app-only")["totals"]["rows"][0]["exits"]
  end

  def folded(bytes, *options)
    with_file(bytes) do |path|
      result = tool("export", "--format=folded", "--app-only", *options, path)
      assert_equal ["", 0], [result.err, result.status]
      return result.out.lines.map(&:chomp)
    end
  end

  def test_exports_leave_out_other_frames
    other = "Other#main (/srv/shop/run.rb:1)"
    trace = exits([[RACK, APP, INTERNAL, other]], [[RACK]])
    assert_equal ["#{other};#{APP};Throw 1", "#{OUTSIDE};Throw 1"], folded(trace)
    assert_equal ["#{APP} 79000", "#{APP};Note#body (/srv/shop/app/models/note.rb:8) 10000", "#{OUTSIDE} 4000"].sort,
                 folded(calls, "--kind=calls").sort
    assert_equal ["#{APP};blocked 1000", "#{APP};compiled 3000", "#{APP};interpreted 2000", "#{OUTSIDE};compiled 4000"].sort,
                 folded(samples, "--kind=samples").sort
  end

  def test_firefox_leaves_out_other_frames
    with_file(samples) do |path|
      result = tool("export", "--format=firefox", "--kind=samples", "--app-only", path)
      assert_equal 0, result.status, result.err
      strings = JSON.parse(result.out).dig("shared", "stringArray")
      assert_includes strings, "Note#title"
      assert_includes strings, OUTSIDE
      refute_includes strings, "Rack::Builder#call"
    end
  end

  def test_options_that_say_nothing
    with_file(samples) do |path|
      assert_equal 2, tool("report", "--group=method", path).status
      assert_includes tool("export", "--format=chrome", "--app-only", path).err, "--app-only has no effect with --format=chrome"
    end
  end
end
