# `vm-trace merge`: one file of several equals the files beside each other, whoever wrote them.
require_relative "tool_helper"

class TestMerge < Minitest::Test
  include ToolHelper

  # Merges files and yields the path of the result and the messages.
  def merge(*files)
    Dir.mktmpdir do |dir|
      out = File.join(dir, "merged.fxt")
      yield out, tool("merge", "-o", out, *files)
    end
  end

  # Events without their place in the file.
  def events(*files)
    files.flat_map { |file| tool("dump", file).out.lines.map { |line| JSON.parse(line).except("offset", "provider") } }
  end

  QUERIES = [
    "select s.ts, s.dur, s.depth, s.category, s.name, t.tid, p.pid from slice s left join thread_track tt on s.track_id=tt.id " \
    "left join thread t using(utid) left join process p using(upid) order by s.ts, s.depth, s.name, t.tid",
    "select s.ts, s.name, a.key, a.value_type, a.display_value from slice s join args a using(arg_set_id) order by s.ts, s.name, a.key, a.display_value",
    "select p.pid, p.name, t.tid, t.name from thread t left join process p using(upid) where t.tid != 0 order by p.pid, t.tid",
    "select c.ts, c.value, t.name from counter c join track t on c.track_id=t.id order by c.ts, t.name",
    "select a.ts, a.name, b.ts, b.name from flow f join slice a on a.id=f.slice_out join slice b on b.id=f.slice_in order by 1",
    "select s.ts, s.dur, s.cpu, t.tid, s.end_state from sched s join thread t using(utid) order by s.ts",
    "select ts.ts, ts.dur, ts.state, t.tid from thread_state ts join thread t using(utid) order by ts.ts, t.tid",
  ].freeze

  def answers(*files) = QUERIES.map { |sql| tool("query", *files, sql).out.gsub(PARTIAL_COLUMN, "") }

  def test_a_merged_file_alone_is_what_it_was
    conformance_files.each do |file|
      merge(file) do |out, result|
        assert_equal file.end_with?("truncated_tail.fxt") ? 1 : 0, result.status, result.err
        assert_equal events(file), events(out), file
        assert_equal answers(file), answers(out), file
      end
    end
  end

  # The conformance files all have one process id: in one file that is one process, in several it is not.
  def test_merged_files_of_other_origin_answer_as_they_do_beside_each_other
    traces = conformance_files.each_with_index.map { |file, i| Struct.new(:bytes).new(with_process_id(file, 5000 + i)) }
    with_files(*traces) do |*files|
      merge(*files) do |out,|
        assert_equal events(*files), events(out)
        assert_equal answers(*files), answers(out)
      end
    end
  end

  # Of a process of CRuby whose pid and threads' ids another one has, too, as in another container.
  def recording(host, times, ms)
    StatesTrace.new(pid: 7, settings: { pid: [:uint32, 7], ruby: host }, provider: "ruby vm_trace") do |t|
      t.event(:instant, :main, "trace", "host", 0, host: host, unix_ns: [:uint64, 1])
      times.times do |i|
        from = i * 3 * ms
        t.runs(:main, from)
        t.during(:main, "gc", "GC minor", from, from + 0.001, reason: "newobj")
        t.during(:main, "marker", "request", from + 0.002, from + ms)
        t.compiles(:main, "foo (/app/foo.rb:3)", from + 0.01, from + 0.02, version: i + 1)
        t.exits(:main, "GuardType", "foo (/app/foo.rb:3)", from + 0.5, lost: 0.01, version: i + 1)
        t.blocks(:main, "Queue#pop", from + ms, from + 2 * ms, from + 3 * ms)
        t.event(:async_begin, :main, "reprofile", "foo (/app/foo.rb:3)", from + 0.6, extra: [i], reason: "GuardType")
        t.event(:async_end, :main, "reprofile", "foo (/app/foo.rb:3)", from + 0.7, extra: [i])
      end
      t.site("GuardType", "foo (/app/foo.rb:3)", times, lost: 0.01 * times)
      t.states(:main, compiled: times * ms)
    end.build
  end

  def test_equal_process_ids_of_two_recordings_stay_two_processes
    with_files(recording("web1", 4, 5), recording("web2", 3, 7)) do |*files|
      merge(*files) do |out, result|
        assert_includes result.err, "process 7 is also in an earlier file: Perfetto shows the two as one process"
        report = lambda do |*read|
          JSON.parse(tool("report", "--format=json", "--top=1000", *read).out.gsub(Regexp.union(read), "F"))
        end
        beside, merged = report[*files], report[out]
        assert_equal [7, 7], merged.fetch("processes").fetch("rows").map { |row| row["pid"] }
        of_files = %w[traces files]
        assert_equal beside.except(*of_files), merged.except(*of_files)
        history = ->(*read) { tool("history", "*foo*", *read).out }
        assert_equal history[*files], history[out]
        assert_equal answers(*files), answers(out)
      end
    end
  end

  def with_process_id(file, pid)
    words = File.binread(file).unpack("Q<*a*")
    words.map { |word| word == 4242 ? pid : word }.pack("Q<#{words.size - 1}a*")
  end

  def test_strings_and_threads_of_one_index_stay_apart
    first = FxtBuilder.simple { |b| b.event(:instant, "cat", "first", ts: 1, args: { "a" => "x" }) }
    second = FxtBuilder.new.tap do |b|
      b.provider(1, "other")
      b.init
      b.thread(1, 50, 51)
      b.event(:instant, "another", "second", ts: 2, args: { "b" => "y" })
    end
    with_files(first, second) do |*files|
      merge(*files) do |out, result|
        assert_equal "", result.err
        assert_equal events(*files), events(out)
        assert_equal [1, 2], tool("dump", out).out.lines.map { |line| JSON.parse(line)["provider"] }
      end
    end
  end

  def test_clocks_of_different_rates_stay_right
    traces = [1_000_000_000, 1000].map do |rate|
      FxtBuilder.new.tap { |b| b.provider(1); b.init(rate); b.event(:instant, "c", "n", ts: 5, pid: rate, tid: 1) }
    end
    with_files(*traces) do |*files|
      merge(*files) { |out,| assert_equal [5, 5_000_000], events(out).map { |e| e["ts"] } }
    end
  end

  def test_switches_between_providers_and_a_second_introduction_stay_right
    trace = FxtBuilder.new
    [7, 9].each { |id| trace.provider(id, "p#{id}"); trace.init; trace.string(1, "of #{id}") }
    put = ->(ts) { trace.event(:instant, 1, 1, ts: ts, pid: 1, tid: 1) }
    trace.section(7)
    put[1]
    trace.section(9)
    put[2]
    trace.string(1, "of 9 anew")
    trace.section(7)
    put[3]
    trace.section(9)
    put[4]
    trace.provider(7)
    trace.init
    trace.string(1, "of 7 anew")
    put[5]
    trace.section(9)
    put[6]
    with_files(trace, trace) do |*files|
      merge(*files) do |out, result|
        assert_equal ["of 7", "of 9", "of 7", "of 9 anew", "of 7 anew", "of 9 anew"] * 2, events(out).map { |e| e["name"] }
        assert_match(/1.fxt: process 1 is also in an earlier file/, result.err)
      end
    end
  end

  def test_a_provider_that_was_never_introduced_is_told_apart_too
    trace = ->(name) { FxtBuilder.new.tap { |b| b.init; b.event(:instant, "c", name, ts: 1, pid: name.ord, tid: 1) } }
    with_files(trace["a"], trace["b"]) do |*files|
      merge(*files) do |out, result|
        assert_equal "", result.err
        assert_equal %w[a b], events(out).map { |e| e["name"] }
        assert_equal 0, tool("check", out).status
      end
    end
  end

  def test_a_full_buffer_is_still_said
    trace = FxtBuilder.simple { |b| b.record(0, 3 << 16 | 1 << 20); b.event(:instant, "c", "n", ts: 1) }
    with_files(FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1) }, trace) do |*files|
      merge(*files) { |out,| assert_match(/provider 2 reports that its buffer was full/, tool("check", out).err) }
    end
  end

  def test_padding_is_left_out
    merge(File.join(TRACES, "killed.fxt")) do |out,|
      assert_operator File.size(out), :<, File.size(File.join(TRACES, "killed.fxt")) / 10
      assert_equal events(File.join(TRACES, "killed.fxt")), events(out)
    end
  end

  def test_a_process_in_two_files_is_said
    with_files(OurTrace.new.build, OurTrace.new.build) do |*files|
      merge(*files) do |_, result|
        assert_equal "vm-trace: #{files[1]}: process 42 is also in an earlier file: Perfetto shows the two as one process\n",
                     result.err
        assert_equal 0, result.status
      end
    end
  end

  def test_what_can_be_read_of_a_cut_file_is_merged
    whole = OurTrace.new.build
    with_files(whole) do |file|
      File.binwrite("#{file}.cut", whole.bytes[0...-20])
      merge("#{file}.cut", "#{file}.cut") do |out, result|
        assert_match(/the file is truncated/, result.err)
        assert_equal 1, result.status
        assert_equal events("#{file}.cut") * 2, events(out)
      end
    end
  end

  def test_stack_samples_of_both_files_are_there
    file = Conformance.files("streams/exits_as_samples.fxt").first
    sql = <<~SQL
      SELECT s.ts, t.tid, f.name FROM stack_sample s
        JOIN stack_profile_callsite c ON c.id = callsite_id
        JOIN stack_profile_frame f ON f.id = c.frame_id
        JOIN stack_sample_task_context x ON x.id = s.task_context_id
        JOIN thread t USING (utid) ORDER BY 1, 2, 3
    SQL
    one = tool("query", file, sql).out.lines
    skip "the tool was built without SQLite" if one.empty?
    twice = [one.first, *one.drop(1).flat_map { |line| [line, line] }]
    merge(file, file) { |out| assert_equal twice, tool("query", out, sql).out.lines }
  end

  def test_standard_input_and_output
    bytes = OurTrace.new.build.bytes
    result = tool("merge", "-", stdin: bytes)
    assert_equal 0, result.status, result.err
    with_file(result.out) { |path| with_file(bytes) { |original| assert_equal events(original), events(path) } }
  end

  # [blocked durations that are open at its end, and that begin and end in it]
  def piece(at, open, ended)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: at, tid: 7, args: { "pid" => [:uint32, 42] })
      ended.times do |i|
        b.event(:begin, "blocked", "sleep", ts: at + 10 * i)
        b.event(:end, "blocked", "sleep", ts: at + 10 * i + 4)
      end
      open.each_with_index { |name, i| b.event(:begin, "blocked", name, ts: at + 100 + i) }
      b.event(:instant, "trace", "summary", ts: at + 220, tid: 7) # the next piece begins earlier
    end
  end

  def test_a_duration_that_began_after_the_next_piece_ends_when_it_began
    Dir.mktmpdir do |dir|
      files = [piece(1000, ["late"], 0), piece(1090, [], 0)].each_with_index.map do |trace, i|
        File.join(dir, "a-42-20261126T221504-#{i + 1}-time.fxt").tap { |path| File.binwrite(path, trace.bytes) }
      end
      merge(*files) do |out,|
        late = tool("dump", out).out.lines.map { |line| JSON.parse(line) }.select { |event| event["name"] == "late" }
        assert_equal [1100, 1100], late.map { |event| event["ts"] }
      end
    end
  end

  # A thread that waits when the recorder cuts has the begin in both pieces.
  def test_durations_that_are_open_at_the_end_of_a_piece_end_there
    blocked = "select ts, dur, depth, name from slice where category = 'blocked' order by ts"
    Dir.mktmpdir do |dir|
      files = [piece(1000, ["outer", "", "\u00e9" * 600], 1), piece(1200, ["sleep"], 2), piece(1400, ["sleep"], 1)]
      files = files.each_with_index.map do |trace, i|
        File.join(dir, "a-42-20261126T221504-#{i + 1}-time.fxt").tap { |path| File.binwrite(path, trace.bytes) }
      end
      merge(*files) do |out, result|
        assert_equal ["", 0], [result.err, result.status]
        slices = tool("query", out, blocked).out
        assert_equal <<~CSV, slices.sub(/\u00e9+/, "E").delete('"')
          ts,dur,depth,name
          1000,4,0,sleep
          1100,100,0,outer
          1101,99,1,
          1102,98,2,E
          1200,4,0,sleep
          1210,4,0,sleep
          1300,100,0,sleep
          1400,4,0,sleep
          1500,-1,0,sleep
        CSV
        assert_equal slices, tool("query", *files, blocked).out
      end
      # Not pieces of one process, or not one after the other.
      merge(files[1], files[0]) { |out, result| assert_match(/also in an earlier file/, result.err) }
      other = files[1].sub("a-42", "b-42").tap { |path| FileUtils.cp(files[1], path) }
      merge(files[0], other) do |out, result|
        assert_match(/also in an earlier file/, result.err)
        assert_includes tool("query", out, blocked).out, "1100,-1,0,\"outer\""
      end
    end
  end
end
