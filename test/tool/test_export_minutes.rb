# `vm-trace export --format=pprof --by=minute`: traces of many processes as profiles of a minute, whose values are those
# of single exports; also read by pprof, if that or Go is installed.
require_relative "tool_helper"
require_relative "pprof_reader"

class TestExportMinutes < Minitest::Test
  include ToolHelper
  include PprofReader

  NOON = 1_795_694_400_000_000_000 # 2026-11-26 12:00:00 UTC
  VALUES = [%w[exits count], %w[lost nanoseconds], %w[allocated bytes], %w[blocked nanoseconds],
            ["own time", "nanoseconds"]].freeze

  def setup = @dir = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@dir)

  def export(*arguments) = tool("export", "--format=pprof", "--by=minute", "--output=#{@dir}/out", *arguments)
  def files = Dir["**/*.pb.gz", base: "#{@dir}/out"].sort
  def write(name, trace) = "#{@dir}/#{name}".tap { |path| File.binwrite(path, trace.bytes) }

  # The values of a profile by stack, innermost frame first.
  def values(name)
    types, samples, @fields = read_pprof(File.binread("#{@dir}/out/#{name}"))
    assert_equal VALUES, types
    samples.group_by { |stack, _| stack.map(&:first) }.transform_values { |same| same.map(&:last).transpose.map(&:sum) }
  end

  # Exits 2000, 3000 and 4000 ns after `boot`.
  def exits(pid, boot: NOON, service: "shop", version: "42", lost: 10)
    OurTrace.new(pid: pid).tap do |trace|
      trace.exits.each { |exit| exit[:args]["lost_ns"] = [:uint64, lost] }
      args = { "host" => "web1", "unix_ns" => [:uint64, boot + 1001], "service" => service, "version" => version }
      trace.spans.unshift({ type: :instant, cat: "trace", name: "host", ts: 1001, args: args.compact })
    end.build
  end

  def test_processes_of_a_version_are_one_profile
    result = export(write("1.fxt", exits(1)), write("2.fxt", exits(2)), write("3.fxt", exits(3, version: "43")))
    assert_equal ["", 0, "2 profiles of 3 traces written to #{@dir}/out\n"], [result.err, result.status, result.out]
    assert_equal %w[shop/42/2026-11-26T1200Z.pb.gz shop/43/2026-11-26T1200Z.pb.gz], files
    assert_equal({ ["GuardType(Fixnum)", "Foo#bar", "<main>"] => [4, 40, 0, 0, 0],
                   ["NoProfileSend", "Foo#baz", "<main>"] => [2, 20, 0, 0, 0] }, values(files.first))
    assert_equal [NOON], @fields[9], "time"
    assert_equal [60_000_000_000], @fields[10], "duration"
  end

  def test_each_minute_has_its_events
    export(write("1.fxt", exits(1, boot: NOON - 3500)))
    assert_equal %w[shop/42/2026-11-26T1159Z.pb.gz shop/42/2026-11-26T1200Z.pb.gz], files
    assert_equal [[2, 20, 0, 0, 0]], values(files.first).values
    assert_equal [["NoProfileSend", "Foo#baz", "<main>"]], values(files.last).keys
  end

  # 10 s in one minute, and 50 in the next.
  # The minutes of what blocked are made first, and share the names of calls.
  def test_calls_in_a_trace_that_blocks
    trace = CallsTrace.new do |t|
      t.blocks(:main, "sleep", 20, 40)
      t.call(:main, "<main> (/a.rb:1)", 1, 90) { t.call(:main, "Foo#bar (/a.rb:3)", 2, 5) }
    end.build
    result = export(write("1.fxt", trace))
    assert_equal ["", 0], [result.err, result.status]
    times = values(files.first).transform_values(&:last)
    assert_equal 3_000_000, times[["Foo#bar", "<main>"]]
    assert_equal 86_000_000, times[["<main>"]]
  end

  def test_what_blocks_counts_in_both_minutes
    trace = ThreadsTrace.new(ends: 70_000) do |t|
      t.event(:instant, :main, "trace", "host", 0, host: "web1", unix_ns: [:uint64, NOON + 45_000_000_000])
      t.runs(:main, 1)
      t.blocks(:main, "IO#read", 5000, 65_000, "0": "IO#read (a.rb:1)")
    end.build
    export(write("1.fxt", trace))
    assert_equal ["unknown/unknown/2026-11-26T1200Z.pb.gz", "unknown/unknown/2026-11-26T1201Z.pb.gz"], files
    assert_equal [10, 50], files.map { |name| values(name).values.map { |all| all[3] }.sum / 1_000_000_000 }
  end

  def whole(file, *options)
    _, samples = read_pprof(tool("export", "--format=pprof", *options, file).out.b)
    samples.sum { |_, (_, sum)| sum }
  end

  def assert_sums_of_the_whole(file)
    FileUtils.rm_rf("#{@dir}/out")
    File.utime(NOON / 1_000_000_000 + 59, NOON / 1_000_000_000 + 59, file)
    export(file)
    found = files.flat_map { |name| values(name).values }.transpose.map(&:sum)
    found = [0] * 5 if found.empty?
    kinds = { 0 => "exits", 2 => "allocations", 3 => "blocked", 4 => "calls" }
    kinds.each { |value, kind| assert_equal whole(file, "--kind=#{kind}"), found[value], "#{file}: #{kind}" }
  end

  # In one minute all is there.
  def test_sums_are_those_of_the_whole_trace
    Dir["#{TRACES}/*.fxt"].sort.each do |fixture|
      FileUtils.cp(fixture, file = "#{@dir}/#{File.basename(fixture)}")
      assert_sums_of_the_whole(file)
      assert_operator files.size, :<=, 1, file
    end
  end

  # Makes the ticks of a trace's clock so many times longer.
  def slowed(bytes, times)
    at = 0
    while at < bytes.bytesize
      header = bytes[at, 8].unpack1("Q<")
      bytes[at + 8, 8] = [bytes[at + 8, 8].unpack1("Q<") / times].pack("Q<") if header & 15 == 1
      at += 8 * (header >> 4 & 0xfff)
    end
    bytes
  end

  # Calls and blocked times that go on from minute to minute.
  def test_minutes_add_up_to_the_whole_trace
    { "calls" => 1000, "gvl" => 100_000, "kernel" => 100_000, "loops" => 1000, "recompiled" => 100_000, "states" => 1000 }.each do |name, times|
      File.binwrite(file = "#{@dir}/#{name}.fxt", slowed(File.binread("#{TRACES}/#{name}.fxt"), times))
      assert_sums_of_the_whole(file)
      assert_operator files.size, :>, 8, name
    end
  end

  def test_a_trace_that_cannot_be_read_is_skipped
    File.write("#{@dir}/bad.fxt", "no trace")
    result = export("#{@dir}/bad.fxt", write("1.fxt", exits(1)), "#{@dir}/none.fxt")
    assert_equal 4, result.status
    assert_equal "1 profile of 1 trace written to #{@dir}/out, 2 skipped\n", result.out
    assert_equal 1, result.err.scan("not a Fuchsia trace").size
  end

  # Its clock is hardly that of its host.
  def test_a_trace_of_days_is_refused
    days = OurTrace.new.tap { |trace| trace.summary[:ts] = 200_000_000_000_000 }
    result = export(write("1.fxt", days.build))
    assert_equal 1, result.status
    assert_match(/is longer than a day, or has no time of day: cut it first/, result.err)
  end

  def test_wrong_usage
    file = "#{TRACES}/exits.fxt"
    [%w[--format=folded -o x], %w[--format=pprof]].each do |options|
      result = tool("export", "--by=minute", *options, file)
      assert_equal [2, "vm-trace: export --by=minute takes --format=pprof and --output=FOLDER\n"],
                   [result.status, result.err]
    end
    assert_match(/--by takes minute, not hour/, tool("export", "--by=hour", file).err)
  end

  def test_pprof_reads_it
    installed = ->(name) { system("which", name, out: File::NULL) }
    pprof = ENV["PPROF"] || (installed["pprof"] ? "pprof" : nil)
    pprof ||= "go tool pprof" if installed["go"]
    skip "neither pprof nor Go is installed" unless pprof
    export(write("1.fxt", exits(1)), write("2.fxt", exits(2)))
    arguments = ["-sample_index=lost", "-top", "-nodefraction=0", "#{@dir}/out/#{files.first}"]
    out, err, status = Open3.capture3(*pprof.split, *arguments)
    assert_predicate status, :success?, err
    assert_match(/^Type: lost$/, out)
    assert_match(/^ +40ns 66\.67% .* GuardType\(Fixnum\)/, out)
  end
end
