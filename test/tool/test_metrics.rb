# vm-trace metrics: the format, judged by Prometheus's own tools where they are installed, and the numbers, judged by
# `vm-trace report`.
require_relative "tool_helper"
require "csv"

class TestMetrics < Minitest::Test
  include ToolHelper

  SAMPLE = /\A(?<name>vm_trace_\w+)(?:\{(?<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (?<value>\d+(?:\.\d{9})?)\n\z/

  # The value of each sample, by its name and labels. Checks what OpenMetrics asks of the text.
  def samples_of(text)
    assert text.end_with?("# EOF\n"), text
    types, family, found = {}, nil, {}
    text.lines[0..-2].each do |line|
      if line.start_with?("#")
        assert_match(/\A# (TYPE \w+ gauge|UNIT \w+_seconds seconds|HELP \w+ \S.*)\n\z/, line)
        family = line.split[2]
        types[family] = true if line.start_with?("# TYPE ")
        next
      end
      sample = SAMPLE.match(line) or flunk "no sample: #{line}"
      assert_equal family, sample[:name], "a sample of another family"
      assert types[family], family
      key = [sample[:name].delete_prefix("vm_trace_"), *sample[:labels].to_s.scan(/"((?:[^"\\]|\\.)*)"/).flatten]
      assert_nil found[key], "twice: #{line}"
      found[key] = sample[:value].to_f
    end
    found
  end

  def metrics(*arguments)
    result = tool("metrics", *arguments)
    samples_of(result.out)
  end

  # Rows of a table of the report, with the names of its columns.
  def report(table, *files)
    text = tool("report", "--format=csv", "--table=#{table}", "--top=100000", *files).out
    CSV.parse(text, headers: true).map(&:to_h)
  end

  def sums(rows, value, *keys)
    groups = rows.group_by { |row| keys.map { |key| yield(key, row[key]) } }
    groups.transform_values { |same| same.sum { |row| row[value].to_i } }
  end

  def test_the_numbers_are_those_of_the_report
    %w[exits gvl states sampled lost processes recompiled kernel].each do |name|
      file = "#{TRACES}/#{name}.fxt"
      found = metrics(file)
      family = proc { |_, reason| reason.sub(/\(.*/, "") }
      assert_equal sums(report("exits_by_reason", file), "count", "reason", &family), of(found, "exits"), name
      threads = report("thread_states", file)
      %w[running gc waiting blocked].each do |state|
        next if threads.empty?
        ns = threads.sum { |row| row["#{state}_ns"].to_i }
        assert_in_delta ns / 1e9, found[["thread_seconds", state]], 1e-8, "#{name}: #{state}"
      end
      assert_equal report("losses", file).sum { |row| row["events"].to_i }, of(found, "lost_events").values.sum, name
      pauses = report("gc", file)
      assert_equal pauses.sum { |row| row["pauses"].to_i }, of(found, "gc_pauses").values.sum, name
      ns = pauses.sum { |row| row["total_ns"].to_i }
      assert_in_delta ns / 1e9, of(found, "gc_pause_seconds").values.sum, 1e-8, name
    end
  end

  # Of one metric, by its labels.
  def of(samples, name)
    found = samples.select { |key, _| key.first == name }
    found.to_h { |key, value| [key.drop(1), value.to_i == value ? value.to_i : value] }
  end

  # What cannot be read is counted, and the rest is there.
  def test_a_folder_with_files_that_are_no_traces
    Dir.mktmpdir do |dir|
      assert_equal [0, 0, 0], metrics(dir).values_at(["files", "read"], ["files", "skipped"], ["processes"])
      FileUtils.cp("#{TRACES}/exits.fxt", dir)
      File.write("#{dir}/other.fxt", "no trace")
      result = tool("metrics", dir)
      assert_equal 4, result.status
      assert_match(/other\.fxt: offset 0: not a Fuchsia trace/, result.err)
      found = samples_of(result.out)
      assert_equal [1, 1], found.values_at(["files", "read"], ["files", "skipped"])
      assert_equal of(metrics("#{TRACES}/exits.fxt"), "exits"), of(found, "exits")
    end
  end

  # Pieces of a spool, or saves of a flight recorder; other traces of one pid are of different processes.
  def test_pieces_of_one_process_are_one_process
    Dir.mktmpdir do |dir|
      write = lambda do |name, pid, **settings|
        args = { "pid" => [:uint32, pid], **settings }
        trace = FxtBuilder.simple { |b| b.event(:instant, "trace", "settings", ts: 1, pid: pid, tid: pid, args: args) }
        File.binwrite("#{dir}/#{name}.fxt", trace.bytes)
      end
      3.times { |i| write.call("a#{i}", 7, "snapshot" => "time") }
      write.call("b", 8, "snapshot" => "exit")
      2.times { |i| write.call("c#{i}", 9) }
      assert_equal 4, metrics(dir)[["processes"]]
    end
  end

  def test_labels
    text = tool("metrics", "--labels", 'service="a \"shop\"",version="4\\\\2"', "#{TRACES}/exits.fxt").out
    assert_includes text, %q(vm_trace_processes{service="a \"shop\"",version="4\\\\2"} 1)
    samples_of(text)
    ["x", "x=1", 'x="1', '1x="2"', 'x="1",', "x=\"\n\""].each do |wrong|
      result = tool("metrics", "--labels", wrong, "#{TRACES}/exits.fxt")
      assert_equal [2, ""], [result.status, result.out], wrong
      assert_match(/--labels takes NAME="VALUE"/, result.err)
    end
  end

  # A reason that a file of someone else's has.
  def test_hostile_reasons
    trace = OurTrace.new
    trace.exits << trace.exit_event("side_exit", "Gua\"rd\\\n\xff{}".b, 6000, "Foo#bar (/app/foo.rb:3)", "send")
    with_file(trace.build) do |path|
      assert_includes samples_of(tool("metrics", path).out).keys, ["exits", 'Gua\\"rd\\\\\n?{}'.sub("\n", '\\n')]
    end
  end

  # A file is replaced as a whole, and only when there is something to write.
  def test_output_file
    Dir.mktmpdir do |dir|
      out = "#{dir}/vm.prom"
      assert_equal 0, tool("metrics", "-o", out, "#{TRACES}/exits.fxt").status
      before = File.read(out)
      result = tool("metrics", "-o", out, "99999999")
      assert_equal [3, "vm-trace: no process 99999999\n"], [result.status, result.err]
      assert_equal before, File.read(out)
      assert_equal ["vm.prom"], Dir.children(dir)
    end
  end

  # What people would collect it with.
  def test_prometheus_accepts_it
    skip "promtool is not installed (Debian: prometheus)" unless system("which", "promtool", out: File::NULL)
    %w[exits gvl states processes].each do |name|
      text = tool("metrics", "#{TRACES}/#{name}.fxt").out
      out, status = Open3.capture2e("promtool", "check", "metrics", stdin_data: text)
      assert_equal ["", 0], [out, status.exitstatus], name
    end
  end
end
