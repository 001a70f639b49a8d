# `vm-trace query`: SQL over traces. test_conformance.rb proves that the tables are Perfetto's; this
# file has what those cases lack.
require "pty"
require "terminal"
require "timeout"
require_relative "tool_helper"

class TestQuery < Minitest::Test
  include ToolHelper

  BY_REASON_AND_METHOD = <<~SQL
    SELECT s.name AS reason, a.display_value AS method, COUNT(*) AS count
    FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0'
    GROUP BY s.name, a.display_value ORDER BY count DESC
  SQL

  def query(bytes, sql, *options)
    with_file(bytes) do |path|
      result = tool("query", *options, path, sql)
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      return result
    end
  end

  def rows(bytes, sql)
    result = query(bytes, sql)
    assert_equal "", result.err
    result.out.lines.drop(1).map(&:chomp)
  end

  def test_the_query_of_the_design
    assert_equal ['"GuardType(Fixnum)","Foo#bar (/app/foo.rb:3)",2', '"NoProfileSend","Foo#baz (/app/foo.rb:9)",1',
                  '"SendPolymorphic","Foo#bar (/app/foo.rb:4)",1'].sort,
                 rows(OurTrace.new.build, BY_REASON_AND_METHOD).sort
  end

  def test_durations_nest_and_ends_bring_arguments
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "c", "outer", ts: 100, args: { "a" => 1, "b" => 1 })
      b.event(:begin, "c", "inner", ts: 200)
      b.event(:instant, "c", "point", ts: 250)
      b.event(:end, "c", "inner", ts: 300)
      b.event(:end, "c", "outer", ts: 500, args: { "b" => 2, "c" => 3 })
    end
    assert_equal ['"outer",400,0,"[NULL]"', '"inner",100,1,"outer"', '"point",0,2,"inner"'], rows(trace, <<~SQL)
      select s.name, s.dur, s.depth, p.name from slice s left join slice p on p.id = s.parent_id
    SQL
    assert_equal %w["a","1" "b","2" "c","3"], rows(trace, "select key, display_value from args")
  end

  def test_events_are_sorted_by_time_before_they_are_paired
    trace = FxtBuilder.simple do |b|
      b.event(:end, "c", "x", ts: 300)
      b.event(:begin, "c", "x", ts: 100)
    end
    assert_equal ['"x",100,200'], rows(trace, "select name, ts, dur from slice")
  end

  def test_events_of_one_time_stay_in_their_order
    trace = FxtBuilder.simple do |b|
      b.event(:begin, "c", "outer", ts: 100)
      b.event(:begin, "c", "inner", ts: 100)
      b.event(:end, "c", "inner", ts: 200)
      b.event(:end, "c", "outer", ts: 200)
      b.event(:instant, "c", "early", ts: 50)
    end
    assert_equal ['"early",0', '"outer",0', '"inner",1'], rows(trace, "select name, depth from slice")
  end

  def test_open_duration_has_dur_minus_1
    assert_equal ["-1"], rows(FxtBuilder.simple { |b| b.event(:begin, "c", "x", ts: 1) }, "select dur from slice")
  end

  def test_overlapping_duration_is_dropped_as_perfetto_does
    trace = FxtBuilder.simple do |b|
      b.event(:complete, "c", "a", ts: 100, extra: 200)
      b.event(:complete, "c", "b", ts: 150, extra: 250)
    end
    assert_equal ['"a"'], rows(trace, "select name from slice")
  end

  def test_async_events_of_one_name_share_tracks_that_are_free
    trace = FxtBuilder.simple do |b|
      b.event(:async_begin, "c", "n", ts: 1, extra: 1)
      b.event(:async_begin, "c", "n", ts: 2, extra: 2)
      b.event(:async_end, "c", "n", ts: 3, extra: 1)
      b.event(:async_begin, "c", "n", ts: 4, extra: 3)
      b.event(:async_instant, "c", "n", ts: 5, extra: 2)
    end
    tracks = rows(trace, "select track_id, dur from slice order by ts").map { |row| row.split(",").map(&:to_i) }
    assert_equal tracks[0][0], tracks[2][0]
    refute_equal tracks[0][0], tracks[1][0]
    assert_equal [2, -1, -1, 0], tracks.map(&:last)
  end

  def test_flow_across_processes
    trace = FxtBuilder.simple do |b|
      b.event(:complete, "c", "from", ts: 10, extra: 20, pid: 1, tid: 1)
      b.event(:flow_begin, "c", "f", ts: 11, extra: 9, pid: 1, tid: 1)
      b.event(:complete, "c", "to", ts: 30, extra: 40, pid: 2, tid: 2)
      b.event(:flow_end, "c", "f", ts: 31, extra: 9, pid: 2, tid: 2)
    end
    assert_equal ['"from","to"'], rows(trace, <<~SQL)
      select a.name, b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in
    SQL
  end

  def test_faults_are_counted_as_perfetto_counts_them
    trace = FxtBuilder.simple do |b|
      2.times { b.event(:instant, 99, 0, ts: 1) }
      b.event(:counter, "c", "n", ts: 1, args: { "v" => "text" }, extra: 1)
      b.event(:instant, 0, 0, ts: 2**63)
    end
    result = query(trace, "select name, value from stats where value > 0 order by name")
    assert_equal ['"fuchsia_invalid_string_ref",2',
                  '"fuchsia_non_numeric_counters",1',
                  '"fuchsia_timestamp_overflow",1'],
                 result.out.lines.drop(1).map(&:chomp)
    assert_equal 1, result.status
  end

  def test_lookups_by_key_find_what_a_scan_finds
    trace = FxtBuilder.simple { |b| 50.times { |i| b.event(:instant, "c", "n#{i}", ts: i, args: { "i" => i }) } }
    assert_equal ['"n7"'], rows(trace, "select name from slice where id = 7")
    assert_equal ['"n7"'], rows(trace, "select name from slice where id = '7' + 0")
    assert_empty rows(trace, "select name from slice where id = 7.5 or id = -1 or id = 4294967295 or id = null")
    assert_equal ["50"], rows(trace, <<~SQL)
      select count(*) from slice s join args a using (arg_set_id) where a.int_value = s.ts
    SQL
    assert_empty rows(trace, "select * from args where arg_set_id in (0, 51, 99999999999)")
  end

  def test_several_statements_and_values
    result = query(FxtBuilder.new, "select 1 as a, 2.5 as b, null as c, 'x\"y' as d; -- and\n select 'two' as e;")
    assert_equal "\"a\",\"b\",\"c\",\"d\"\n1,2.500000,\"[NULL]\",\"x\"\"y\"\n\"e\"\n\"two\"\n", result.out
  end

  def test_tables_of_one_file_do_not_reach_into_the_next
    one = FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1) }
    other = FxtBuilder.new.tap { |b| b.section(1); b.event(:instant, 1, 1, ts: 2) }
    with_file(one) do |first|
      with_file(other) do |second|
        result = tool("query", first, second, "select count(*) from slice")
        skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
        assert_match(/provider 1 was never introduced/, result.err)
        assert_equal "\"count(*)\"\n1\n", result.out
      end
    end
  end

  def test_slices_that_touch_lie_beside_each_other_and_instants_of_one_time_upon_each_other
    trace = FxtBuilder.simple do |b|
      b.event(:complete, "c", "a", ts: 100, extra: 200)
      b.event(:complete, "c", "b", ts: 200, extra: 300)
      b.event(:instant, "c", "i", ts: 300)
      b.event(:instant, "c", "j", ts: 300)
      b.event(:complete, "c", "d", ts: 300, extra: 400)
    end
    assert_equal %w["a",0 "b",0 "i",0 "j",1 "d",0], rows(trace, "select name, depth from slice")
  end

  def test_threads_of_two_processes_with_one_tid_are_two
    trace = FxtBuilder.simple do |b|
      [1, 2, 1].each { |pid| b.event(:instant, "c", "n", ts: pid, pid: pid, tid: 5) }
    end
    assert_equal %w[1,5 2,5], rows(trace, <<~SQL)
      select pid, tid from thread join process using (upid) where tid = 5 order by pid
    SQL
    assert_equal %w[1,2 2,1], rows(trace, <<~SQL)
      select pid, count(*) from slice s join thread_track tt on tt.id = s.track_id
      join thread using (utid) join process using (upid) group by pid order by pid
    SQL
  end

  def test_several_files
    with_file(OurTrace.new.build) do |path|
      result = tool("query", path, path, BY_REASON_AND_METHOD)
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      assert_includes result.out, "\"GuardType(Fixnum)\",\"Foo#bar (/app/foo.rb:3)\",4\n"
    end
  end

  STATES = <<~SQL
    select pid, tid, thread.name, state, sum(dur) / 1000000 as ms from thread_state join thread using (utid)
    join process using (upid) where dur > 0 group by upid, utid, state order by pid, min(ts)
  SQL

  # A trace of one thread, which runs from `from` and blocks up to `to`.
  def blocked_trace(pid, tid, from, to)
    ThreadsTrace.new(pid: pid, provider: "ruby vm_trace") do |t|
      t.thread(:worker, tid)
      t.runs(:worker, from)
      t.blocks(:worker, "Kernel#sleep", from + 1, to - 1, to)
      yield t if block_given?
    end
  end

  # A child's records may name threads of its parent, as those of a recorder did that took the parent's id for its own.
  def test_scheduling_belongs_to_the_process_that_it_names
    parent = blocked_trace(10, 10, 0, 60).build
    child = blocked_trace(20, 20, 5, 30) { |t| t.builder.thread_name(20, 10, "worker") }.build
    expected = ['10,10,"worker","Running",1', '10,10,"worker","S",58', '10,10,"worker","W",1',
                '20,20,"worker","Running",1', '20,20,"worker","S",23', '20,20,"worker","W",1']
    with_files(parent, child) do |*files|
      [files, files.reverse].each { |order| assert_equal expected, tool("query", *order, STATES).out.lines(chomp: true).drop(1) }
      assert_equal expected, tool("query", merged(*files), STATES).out.lines(chomp: true).drop(1)
    end
  end

  # Threads that share native ones are numbered in each process from the same number on.
  def test_equal_thread_ids_of_two_processes_of_one_file_are_told_apart_by_their_records
    with_files(blocked_trace(10, 7, 0, 60).build, blocked_trace(20, 7, 5, 30).build) do |*files|
      assert_equal ['10,7,"worker","Running",1', '10,7,"worker","S",58', '10,7,"worker","W",1',
                    '20,7,"worker","Running",1', '20,7,"worker","S",23', '20,7,"worker","W",1'],
                   tool("query", merged(*files), STATES).out.lines(chomp: true).drop(1)
    end
  end

  # Two containers, or a process that got the pid of an earlier one: as files, and merged.
  def test_equal_process_ids_of_two_recordings_are_two_processes
    traces = [[0, 60], [5, 30]].map do |from, to|
      blocked_trace(10, 10, from, to) do |t|
        t.during(:worker, "marker", "span #{to}", to, to + 2)
        t.builder.event(:async_begin, "c", "job", ts: t.ns(to), thread: 1, extra: [1])
      end
    end
    spans = "select count(*) from slice s join thread_track t on t.id = s.track_id join thread using (utid)
             where s.name like 'span%' group by upid"
    with_files(*traces.map(&:build)) do |*files|
      [files, [merged(*files)]].each do |read|
        out = ->(sql) { tool("query", *read, sql).out.lines(chomp: true).drop(1) }
        assert_equal ['10,10,"worker","Running",1', '10,10,"worker","S",58', '10,10,"worker","W",1',
                      '10,10,"worker","Running",1', '10,10,"worker","S",23', '10,10,"worker","W",1'],
                     out[STATES.sub("order by pid", "order by upid")]
        assert_equal %w[1 1], out[spans]
        assert_equal %w[0 0], out["select depth from slice where name = 'job'"]
      end
    end
  end

  def merged(*files)
    out = File.join(File.dirname(files.first), "merged.fxt")
    assert_equal 0, tool("merge", "-o", out, *files).status
    out
  end

  # One of an event would remove the event. The answers are those of Perfetto's own trace processor.
  def test_thread_record_with_undefined_strings_in_its_arguments_still_names_the_thread
    trace = FxtBuilder.simple do |b|
      b.kernel_object(2, 50, "first", 500 => [:koid, 42])
      b.kernel_object(2, 51, "second", "process" => [:koid, 42], "other" => [:string, 501])
    end
    sql = <<~SQL
      select tid, pid, thread.name from thread join process using(upid) where tid > 43 order by tid;
      select name, value from stats where value > 0
    SQL
    expected = ['50,0,"first"', '51,42,"second"', '"fuchsia_invalid_string_ref",2']
    assert_empty expected - query(trace, sql).out.lines.map(&:chomp)
  end

  # What `make check-perfetto` found.
  def test_faults_that_perfetto_does_not_count
    trace = FxtBuilder.simple do |b|
      b.kernel_object(1, 60, "process", "no koid" => [:string, 502])
      b.record(5, 503 << 16 | 3 << 48, "")
      b.record(5, 8 << 32 | 1 << 48, "")
      b.section(77)
      b.event(:instant, 0, 0, ts: 1)
    end
    result = query(trace, "select name, value from stats where value > 0")
    assert_equal ['"fuchsia_invalid_event",1'], result.out.lines.drop(1).map(&:chomp)
    assert_match(/string 503, the blob's name, is not defined/, result.err)
    assert_match(/provider 77 was never introduced/, result.err)
  end

  # Of a sample whose stack has an undefined frame Perfetto keeps only what it counted.
  def test_sample_without_its_frame_is_in_the_counters_only
    tables = %w[counter stack_sample stack_sample_counter stack_sample_session]
    { "sample_without_its_frame" => [6, 5, 5, 1], "samples_without_frames" => [2, 0, 0, 0] }.each do |name, counts|
      file = File.join(__dir__, "corpus", "#{name}.fxt")
      found = tables.map { |table| tool("query", file, "select count(*) from #{table}").out.lines.last.to_i }
      assert_equal counts, found, name
    end
  end

  def test_scheduling_records_with_arguments_of_the_wrong_type_are_dropped_with_a_word
    trace = FxtBuilder.simple do |b|
      { "waker" => 7, "weight" => [:koid, 7] }.each do |name, value|
        b.record(8, 1 << 16 | 2 << 60, [1, 43].pack("Q<*") + b.arg(name, value))
      end
      b.record(8, 1 << 16 | 1 << 60, [1, 43, 44].pack("Q<*") + b.arg("outgoing_weight", "text"))
    end
    result = query(trace, "select count(*) from thread_state; select name, value from stats where value > 0")
    assert_equal ['"count(*)"', "0", '"name","value"', '"fuchsia_invalid_event_arg_type",3'],
                 result.out.lines.map(&:chomp)
    assert_equal ["waker is not a kernel object id", "weight is not an int32", "outgoing_weight is not an int32"],
                 result.err.scan(/argument (.*); dropped/).flatten
  end

  def test_wrong_sql_gets_sqlites_message
    {
      "selec 1" => 'near "selec": syntax error',
      "select x from slice" => "no such column: x",
      "select * from no_table" => "no such table: no_table",
      "insert into slice values (1)" => /table slice may not be modified|11 columns/,
    }.each do |sql, message|
      result = query(OurTrace.new.build, sql)
      message = /\Avm-trace: query: #{Regexp.escape(message)}(; Perfetto has more: .*)?\n\z/ if message.is_a?(String)
      assert_match(message, result.err)
      assert_equal 2, result.status
    end
  end

  def test_arguments_by_set_and_key_are_compared_as_sqlite_compares
    trace = FxtBuilder.simple do |b|
      3.times { |i| b.event(:instant, "c", "n", ts: i, args: { "a" => i, "b" => "x", "0" => "y" }) }
    end
    count = lambda do |where|
      rows(trace, "select count(*) from slice s join args a on a.arg_set_id = s.arg_set_id and #{where}").first
    end
    {
      "a.key = 'a'" => "3",
      "a.key = 'A'" => "0",
      "a.key = 'A' collate nocase" => "3",
      "a.key = '0'" => "3",
      "a.key = 0" => "0",
      "a.key = x'61'" => "0",
      "a.key = null" => "0",
      "a.key in ('a', 'b')" => "6",
      "a.key = 'no such'" => "0",
      "a.key = a.flat_key" => "9",
      "a.key = 'a' and a.int_value = s.ts" => "3",
      "a.key = 'a' and a.arg_set_id = 2" => "1",
    }.each do |where, expected|
      assert_equal expected, count[where], where
    end
    assert_equal %w[2 2], rows(trace, "select arg_set_id from args where arg_set_id = 2.0 and key in ('a', 'b')")
    assert_empty rows(trace, "select * from args where arg_set_id = '2' and key = 'a'")
    assert_empty rows(trace, "select * from args where arg_set_id = 2.5 and key = 'a'")
  end

  def test_numbers_that_are_none_are_displayed_as_perfetto_displays_them
    values = { "inf" => Float::INFINITY, "minus" => -Float::INFINITY, "nan" => Float::NAN, "real" => 1.5 }
    trace = FxtBuilder.simple { |b| b.event(:instant, "c", "n", ts: 1, args: values) }
    assert_equal ['"inf",inf,"real","Inf"',
                  '"minus",-inf,"real","-Inf"',
                  '"nan","[NULL]","real","[NULL]"',
                  '"real",1.500000,"real","1.5"'],
                 rows(trace, "select key, real_value, value_type, display_value from args order by key")
  end

  # test_growth.rb checks that they take no quadratic time.
  def test_threads_of_many_processes_and_open_async_events_are_all_there
    trace = FxtBuilder.simple do |b|
      20_000.times { |i| b.event(:instant, "c", "n", ts: i, pid: 100 + i, tid: 7) }
      20_000.times { |i| b.event(:async_begin, "c", "a", ts: i, extra: i) }
    end
    assert_equal ["40000"], rows(trace, "select count(*) from slice")
    assert_equal ["20000"], rows(trace, "select count(*) from thread where tid = 7")
  end

  def test_scheduling_of_a_thread_before_its_process_is_known
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "c", "n", ts: 1, pid: 5, tid: 6)
      b.event(:instant, "c", "n", ts: 2, pid: 9, tid: 6)
      b.event(:instant, "c", "n", ts: 3, pid: 5, tid: 6)
    end
    assert_equal %w[5,2 9,1], rows(trace, <<~SQL)
      select pid, count(*) from slice s join thread_track t on t.id = track_id
      join thread using (utid) join process using (upid) group by pid order by pid
    SQL
  end

  # Of a kernel's numbers all 64 bits count, though only 32 are shown.
  def test_states_of_threads_whose_numbers_differ_in_the_upper_half
    trace = FxtBuilder.simple do |b|
      b.wakeup(10, 50)
      b.wakeup(20, 2**32 + 50)
      b.wakeup(30, 50)
    end
    assert_equal %w[10,20,50 20,-1,50 30,-1,50], rows(trace, "select ts, dur, tid from thread_state join thread using (utid)")
  end

  # --- memory ---

  GRANTS_MORE = /\(--memory=MIB grants more(?:, vm-trace cut makes a shorter trace)?\)/

  # Each event has its own name, in the event and not in the string table.
  def events_of_different_names(count)
    FxtBuilder.simple do |b|
      count.times { |i| b.event(:instant, "c", FxtBuilder::Inline.new(format("%06d", i) * 20), ts: i) }
    end
  end

  def test_tables_count_as_memory
    trace = FxtBuilder.simple { |b| 100_000.times { |i| b.event(:instant, "c", "n", ts: i) } }
    all = query(trace, "select count(*) from slice", "--memory=64")
    assert_equal ["100000", "", 0], [all.out.lines.last.chomp, all.err, all.status]
    some = query(trace, "select count(*) from slice", "--memory=8")
    assert_match(/offset \d+: names and tables need more than 8 MiB; reading ends here #{GRANTS_MORE}$/, some.err)
    assert_equal 1, some.status
    assert_includes 10_000..99_999, some.out.lines.last.to_i
  end

  def test_what_was_read_keeps_its_memory
    skip "a sanitizer, or an emulator, takes address space of its own" if INSTRUMENTED
    skip "no bash to limit memory with" unless system("bash", "-c", "ulimit -v 1000000", err: File::NULL)
    with_file(FxtBuilder.simple { |b| 400_000.times { |i| b.event(:instant, "c", "n", ts: i) } }) do |path|
      # Without a limit its tables take 50 MiB.
      limited = 'ulimit -v 60000; exec "$0" query --memory=8 "$1" "select count(*) from slice"'
      out = IO.popen(["bash", "-c", limited, TOOL, path], err: File::NULL, &:read)
      assert_equal 1, $?.exitstatus
      assert_operator out.lines.last.to_i, :>, 10_000
    end
  end

  def test_names_never_merge_for_want_of_memory
    trace = events_of_different_names(30_000)
    result = query(trace, "select count(*), count(distinct name), sum(name = '') from slice", "--memory=2")
    assert_match(/need more than 2 MiB/, result.err)
    count, names, empty = result.out.lines.last.split(",").map(&:to_i)
    assert_operator count, :>, 1000
    assert_equal [count, 0], [names, empty]
  end

  def test_processes_and_tracks_count_as_memory
    trace = FxtBuilder.simple do |b|
      30_000.times { |i| b.event(:instant, "c", "n", ts: i, pid: 100 + i, tid: 7 + i) }
    end
    result = query(trace, "select count(*) from slice", "--memory=6")
    limit = "vm-trace: the tables need more than 6 MiB"
    assert_match(/\A#{limit}; the last (\d+) events are not in them #{GRANTS_MORE}\n\z/, result.err)
    assert_match(/,"partial"\n\d+,"the tables need more than 6 MiB; the last events are not in them/, result.out)
    assert_equal [30_000, 1], [result.out.lines.last.to_i + result.err[/last (\d+)/, 1].to_i, result.status]
    assert_equal "30000\n", query(trace, "select count(*) from slice", "--memory=64").out.lines.last
  end

  NUMBERS = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)"

  def test_sql_has_the_memory_that_the_tables_leave
    text = "#{NUMBERS} select length(group_concat(i, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')) from n"
    result = query(FxtBuilder.new, text, "--memory=4")
    assert_equal ["vm-trace: query: SQL needs more memory than the tables leave of it (--memory=MIB grants more)\n", 3],
                 [result.err, result.status]
    assert_equal 0, query(FxtBuilder.new, text, "--memory=128").status
    sorted = query(FxtBuilder.new, "#{NUMBERS} select i from n order by i * 7919 % 300007 limit 1", "--memory=1")
    assert_equal ["", 0], [sorted.err, sorted.status], "it sorts on disk"
  end

  def test_table_format
    result = query(FxtBuilder.new, <<~SQL, "--format=table")
      select 1 as id, 'ä\n' as name, null as none union all select 1000, 'b', 2.5
    SQL
    assert_equal ["  id  name  none", "----  ----  ----", "   1  ä\\n", "1000  b      2.5"],
                 result.out.lines.map(&:rstrip)
    long = query(FxtBuilder.new, <<~SQL, "-Ftable")
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) select i from n
    SQL
    assert_equal 5002, long.out.lines.size
  end

  # The widest columns give way; what follows the first thousand rows, too.
  def test_a_table_fits_the_terminal
    sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1100) " \
          "select i, 'Foo#bar (/srv/shop/app/models/' || printf('%0200d', i) || '.rb:3)' as frame, 'short' as word from n"
    with_file(FxtBuilder.new) do |path|
      arguments = [TOOL, "query", "--format=table", path, sql]
      shown, = Terminal.open(columns: 60) do |terminal|
        terminal.wait(spawn({ "COLUMNS" => nil }, *arguments, out: terminal.side))
      end
      lines = shown.lines(chomp: true)
      assert_equal 1102, lines.size
      assert_empty lines.select { |line| line.chomp("\r").size > 60 }
      assert_match(/\A   1  Foo#bar .*….*\.rb:3\)  short\r?\z/, lines[2])
      assert_match(/\A1100  Foo#bar .*….*\.rb:3\)  short\r?\z/, lines.last)
      whole = tool("query", "--format=table", path, sql).out.lines(chomp: true)
      assert_includes whole[2], "#{"0" * 199}1.rb:3)"
      words = [TOOL, "query", "--format=table", path, "select 1 as a, 'whole' as b"]
      narrow, = Terminal.open(columns: 200) do |terminal|
        terminal.wait(spawn({ "COLUMNS" => nil }, *words, out: terminal.side))
      end
      assert_equal ["a  b", "-  -----", "1  whole"], narrow.lines(chomp: true).map { |line| line.chomp("\r") }
    end
  end

  def test_columns_of_a_table_line_up_behind_wide_characters
    result = query(FxtBuilder.new, <<~SQL, "-Ftable")
      select 'x' as a, 1 as b
      union all select '短い', 2
      union all select 'Cafe\u0301', 3
      union all select '👍🏽', 4
    SQL
    assert_equal ["a     b", "----  -", "x     1", "短い  2", "Cafe\u0301  3", "👍🏽    4"],
                 result.out.lines(chomp: true)
  end

  def test_json_format
    result = query(FxtBuilder.new, <<~SQL, "--format", "json")
      select 1 as a, 2.5 as b, null as c, 'x"</y' as d, 1e999 as e;
      select 1 as none where 0;
      select 2 as z
    SQL
    assert_equal [[{ "a" => 1, "b" => 2.5, "c" => nil, "d" => "x\"</y", "e" => "inf" }], [], [{ "z" => 2 }]],
                 result.out.split(/(?<=^\]\n)/).map { |array| JSON.parse(array) }
  end

  def test_unknown_format
    result = query(FxtBuilder.new, "select 1", "--format=xml")
    assert_match(/\Avm-trace: --format takes csv, table or json, not xml\n/, result.err)
    assert_equal 2, result.status
  end

  def test_sql_from_a_file_and_from_standard_input
    with_file(OurTrace.new.build) do |path|
      File.write("#{path}.sql", "-- counts\nselect count(*) as n\nfrom slice;\n")
      result = tool("query", path, "--file", "#{path}.sql")
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      assert_equal "\"n\"\n", result.out.lines.first
      assert_equal result.out, tool("query", "--file", "-", path, stdin: "select count(*) as n from slice").out
      missing = tool("query", path, "--file", "#{path}.none")
      assert_equal "vm-trace: #{path}.none: cannot be read: No such file or directory\n", missing.err
      assert_equal 3, missing.status
      folder = File.dirname(path)
      unread = tool("query", path, "--file", folder)
      assert_equal ["vm-trace: #{folder}: cannot be read: Is a directory\n", 3], [unread.err, unread.status]
      File.write("#{path}.empty", "")
      assert_equal ["", 0], tool("query", path, "--file", "#{path}.empty").then { |r| [r.out, r.status] }
    end
  end

  def test_prompt_on_a_terminal
    with_file(OurTrace.new.build) do |path|
      skip "the tool was built without SQLite" if tool("query", path, "select 1").err.include?("built without SQLite")
      PTY.spawn({ "TERM" => "dumb" }, TOOL, "query", path) do |out, input, pid|
        text = +""
        read_to = lambda do |ending| # what comes next, up to there
          text = +""
          Timeout.timeout(20) { text << out.readpartial(4096) until text.end_with?(ending) }
        end
        read_to["sql> "]
        input.puts "select count(*) as exits"
        read_to["...> "]
        input.puts "from slice where category = 'side_exit';"
        read_to["sql> "]
        assert_match(/exits\r\n-----\r\n    2\r\n/, text)
        input.puts "selec;"
        read_to["sql> "]
        assert_match(/vm-trace: query: near "selec": syntax error/, text)
        press_end_until_it_ends(input, pid)
        assert_equal 0, $?.exitstatus
      end
    end
  end

  # A Ctrl-D that comes between the prompt and the terminal's change of mode is a NUL in the line, which Ctrl-U removes.
  def press_end_until_it_ends(input, pid)
    Timeout.timeout(20) do
      loop do
        break if Process.wait(pid, Process::WNOHANG)
        input.write "\x15\x04"
      rescue Errno::EIO # it has closed the terminal, and ends
      ensure
        sleep 0.1
      end
    end
  end

  # Up, Tab and Ctrl-D as in a shell; the next prompt has the history.
  def test_prompt_is_edited_completed_and_remembers
    with_file(OurTrace.new.build) do |path|
      Dir.mktmpdir do |home|
        environment = { "TERM" => "xterm", "HOME" => home, "XDG_STATE_HOME" => nil }
        2.times do |time|
          PTY.spawn(environment, TOOL, "query", path) do |out, input, pid|
            await = lambda do |pattern|
              text = +""
              Timeout.timeout(20) { text << out.readpartial(4096) until text.match?(pattern) }
              text
            end
            first = await[/sql> |built without SQLite/]
            skip "the tool was built without SQLite" if first.include?("built without")
            unless system("ldd #{TOOL} | grep -q libedit")
              Process.kill(:KILL, pid)
              Process.wait(pid)
              skip "the tool was built without libedit"
            end
            if time == 0
              input.write "select 'ancestor_s\t"
              await[/lice/]
              input.write "';\r"
              await[/ancestor_slice\r\n.*sql> /m]
              input.write "select 5 +\r"
              await[/\.\.\.> /]
              input.write "6 as eleven;\r"
              await[/ 11\r\n.*sql> /m]
            end
            input.write "\e[A"
            await[/select 5 \+ ?6 as eleven;/]
            input.write "\r"
            await[/ 11\r\n.*sql> /m]
            press_end_until_it_ends(input, pid)
            assert_equal 0, $?.exitstatus
          end
        end
        assert_match(/eleven/, File.read("#{home}/.local/state/vm-trace/query_history"))
      end
    end
  end

  def test_query_without_sql
    with_file(FxtBuilder.new) do |path|
      result = tool("query", path)
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      assert_match(/query needs a file and SQL/, result.err)
      assert_equal 2, result.status
    end
  end

  def test_a_missing_file_is_no_sql
    trace = File.join(TRACES, "exits.fxt")
    ["typo.fxt", "no/typo", "two words.fxt", "typo"].each do |name|
      result = tool("query", trace, name)
      skip "the tool was built without SQLite" if result.err.include?("built without SQLite")
      assert_equal ["", "vm-trace: #{name}: cannot be opened: No such file or directory; nor is it SQL\n", 3],
                   [result.out, result.err, result.status]
    end
    ["values(1)", "select(1)", "select'a.fxt'", ";", ""].each { |sql| assert_equal ["", 0], tool("query", trace, sql).to_a.drop(1), sql }
  end

  def test_control_characters_are_escaped
    trace = FxtBuilder.simple { |b| b.event(:instant, "c", "\e[31m\n", ts: 1) }
    assert_equal ['"\\x1B[31m\\n"'], rows(trace, "select name from slice")
  end

  # Perfetto's shell writes them so, too. On a terminal they could be commands.
  def test_other_characters_are_written_as_they_are
    text = "\u0080\u009b31m\u009f\u202e\u2028\u00e9"
    trace = FxtBuilder.simple { |b| b.event(:instant, "c", "#{text}\x7f", ts: 1) }
    assert_equal [%("#{text}\\x7F")], rows(trace, "select name from slice")
    with_file(trace.bytes) do |path|
      shown, = Terminal.open { |terminal| terminal.wait(spawn(TOOL, "query", path, "select name from slice", out: terminal.side)) }
      assert_includes shown.lines[1], '"\\x80\\x9B31m\\x9F\\u202E\\u2028'
    end
  end
end
