# What Perfetto's SQL has beyond SQLite's: functions, modules, statements. Its own answers are in
# test/conformance/queries/; here each answer is compared with one that plain SQL, or this file,
# computes in another way.
require_relative "tool_helper"

class TestPerfettoSql < Minitest::Test
  include ToolHelper

  DEMO = File.join(Conformance::OURS, "queries/demo.fxt")

  # `trace`: a path, or an FxtBuilder.
  def query(sql, trace = DEMO)
    result = trace.is_a?(String) ? tool("query", trace, sql) : with_file(trace) { |path| tool("query", path, sql) }
    %w[SQLite PCRE2].each { |lib| skip "the tool was built without #{lib}" if result.err.include?("built without #{lib}") }
    result
  end

  def rows(sql, trace = DEMO)
    result = query(sql, trace)
    assert_equal "", result.err, sql
    result.out.lines.drop(1).map { |line| line.chomp.split(",").map { |cell| cell == '"[NULL]"' ? nil : cell } }
  end

  def assert_same(expected, found, trace = DEMO)
    answer = rows(expected, trace)
    refute_empty answer, expected
    assert_equal answer, rows(found, trace), found
  end

  def refused(sql, pattern)
    result = query(sql)
    assert_equal ["", 2], [result.out.lines.drop(1).join, result.status], sql
    assert_match(/\Avm-trace: query: .*#{pattern}.*\n\z/, result.err, sql)
    result.err
  end

  # Parents of parents, as SQL walks them.
  KIN = "with recursive kin(of, id) as (select id, parent_id from slice where parent_id is not null " \
        "union all select kin.of, s.parent_id from kin join slice s on s.id = kin.id where s.parent_id is not null) "

  def test_ancestors_and_descendants
    assert_same KIN + "select of, id from kin order by 1, 2",
                "select s.id, a.id from slice s, ancestor_slice(s.id) a order by 1, 2"
    assert_same KIN + "select id, of from kin order by 1, 2",
                "select s.id, d.id from slice s, descendant_slice(s.id) d order by 1, 2"
    assert_same "select * from slice where id = (select parent_id from slice where depth = 1 limit 1)",
                "select * from ancestor_slice((select id from slice where depth = 1 limit 1))"
    assert_empty rows("select * from descendant_slice(null)")
    %w[ancestor_slice(999999) ancestor_slice('x') ancestor_slice following_flow].each do |call|
      refused("select * from #{call}", "#{call[/\w+/]} takes the id of a slice: #{call[/\w+/]}\\(slice.id\\)")
    end
  end

  # a -> b -> c, and d -> e where d is in b; f -> a. The begin and the end of each slice, and the ids
  # of its flows.
  SLICES = {
    "f" => [100, 110, { flow_begin: 3 }],
    "a" => [200, 210, { flow_end: 3, flow_begin: 1 }],
    "b" => [300, 400, { flow_end: 1, flow_begin: 4 }],
    "d" => [320, 330, { flow_begin: 2 }],
    "c" => [500, 510, { flow_end: 4 }],
    "e" => [600, 610, { flow_end: 2 }],
  }.freeze

  def flows
    FxtBuilder.simple do |b|
      SLICES.each do |name, (from, to, ids)|
        b.event(:begin, "c", name, ts: from)
        ids.each { |type, id| b.event(type, "c", "flow", ts: from + 1, extra: id) }
        b.event(:end, "c", name, ts: to) unless name == "b"
        b.event(:end, "c", "b", ts: 400) if name == "d"
      end
    end
  end

  # The names of both slices of each flow that the query finds.
  def pairs(sql) = rows(sql, flows).flatten.map { |pair| pair.delete('"') }

  def walk(function, name)
    pairs(<<~SQL)
      select o.name || i.name from slice s, #{function}(s.id) f
      join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in
      where s.name = '#{name}'
    SQL
  end

  def test_flows
    all = pairs("select o.name || i.name from flow join slice o on o.id = slice_out join slice i on i.id = slice_in")
    assert_equal %w[fa ab bc de].sort, all.sort
    assert_equal %w[ab bc de], walk("following_flow", "a").sort # also from d, which is in b
    assert_equal %w[ab fa], walk("preceding_flow", "b").sort
    assert_equal %w[ab de fa], walk("preceding_flow", "e").sort # from d to b, in which it is
    assert_equal %w[ab bc fa], walk("directly_connected_flow", "a").sort # on and on, but not through others
    assert_empty walk("following_flow", "c")
  end

  def test_extract_arg
    assert_same "select s.id, a.display_value from slice s join args a using (arg_set_id) " \
                "where a.key = 'insn' order by 1",
                "select id, extract_arg(arg_set_id, 'insn') from slice " \
                "where extract_arg(arg_set_id, 'insn') is not null order by 1"
    assert_same "select sum(int_value), 'integer' from args a join slice using (arg_set_id) where key = 'version'",
                "select sum(extract_arg(arg_set_id, 'version')), min(typeof(extract_arg(arg_set_id, 'version'))) " \
                "from slice where extract_arg(arg_set_id, 'version') is not null"
    assert_equal [[nil, nil, nil]],
                 rows("select extract_arg(null, 'x'), extract_arg(1, 'no such'), extract_arg(999999, '0')")
    refused("select extract_arg('a', 'b')", "EXTRACT_ARG takes the id of a set and a key")
  end

  def test_regexp
    names = rows("select distinct name from slice").flatten.map { |name| name.delete('"') }
    {
      "^Guard" => /^Guard/,
      "[0-9]" => /[0-9]/,
      "\\d\\)?$" => /\d\)?$/,
      "(?i)^guardtype\\(" => /^guardtype\(/i,
      "^(?:build|gc)_?" => /^(?:build|gc)_?/,
      "\\." => /\./,
      "compile|invalidate" => /compile|invalidate/,
    }.each do |sql, ruby|
      found = rows("select count(distinct name) from slice where name regexp '#{sql}'")[0][0].to_i
      assert_equal names.grep(ruby).size, found, sql
    end
    assert_equal [[nil, nil]], rows("select null regexp 'a', 'a' regexp null")
    refused("select 'a' regexp '('", "REGEXP: .*: \\(")
  end

  # Ruby's own engine is the reference.
  def test_regexp_of_texts
    texts = ["5", "d", "\\", "55", "", "a\nb", "Über", "ü", "foo(bar)", "foo bar", "foobar", "a.b", "A.B", "x\u0001y", "ab"]
    patterns = ["^[\\d]$", "^[\\d\\s]+$", "[^\\w]", "\\w", "\\bbar\\b", "foo(?=bar)", "(?<!foo)bar", "^.$", "a.b", "(?i:a)\\.b",
                "\\Aa", "b\\z", "\\\\", "\\(bar\\)", "(a)(b)?", "(?:fo+|ba?)r?", "[[:digit:]]", "ü{1}", "a{2}", "\\x01", "x*"]
    quoted = ->(text) { "'#{text.gsub("'", "''")}'" }
    texts.product(patterns).each_slice(100) do |pairs|
      found = rows("select " + pairs.map { |text, pattern| "#{quoted[text]} regexp #{quoted[pattern]}" }.join(","))[0]
      pairs.zip(found) do |(text, pattern), yes|
        whole = pattern.sub(/\A\^/, "\\A").sub(/\$\z/, "\\z") # not of each line
        assert_equal text.match?(/#{whole}/) ? 1 : 0, yes.to_i, "#{text.inspect} #{pattern}"
      end
    end
    assert_equal [["0", "1"]], rows("select 'a' || char(10) regexp 'a$', 'a' || char(0) || 'b' regexp 'b$'") # as in RE2
    assert_equal [["1", "0"]], rows("select cast(x'ff61' as text) regexp 'a', cast(x'ff61' as text) regexp '^.a'")
  end

  def test_regexp_without_end
    refused("select '#{"a" * 60}!' regexp '(a+)+$'", "REGEXP: takes too many steps in a text of 61 bytes.*: \\(a\\+\\)\\+\\$")
    refused("select '#{"a" * 60}!' regexp '(a|a)*$'", "REGEXP: takes too many steps")
    refused("with t as (select replace(hex(zeroblob(2000000)), '0', 'ab') as text) select text regexp '^(a|b|c)*$' from t",
            "REGEXP: takes too many steps")
    refused("select 'a' regexp '((a{1,999}){1,999}){1,999}'", "REGEXP: regular expression is too large")
  end

  def test_bounds
    assert_same "select min(ts), max(ts + max(dur, 0)) " \
                "from (select ts, dur from slice union all select ts, 0 from counter)",
                "select * from trace_bounds"
    assert_same "select start_ts, end_ts, end_ts - start_ts from trace_bounds",
                "select trace_start(), TRACE_END(), trace_dur()"
  end

  def test_tables_of_modules
    assert_same "select s.id, t.name, p.pid from slice s join thread_track k on k.id = s.track_id " \
                "join thread t using (utid) join process p using (upid)",
                "include perfetto module slices.with_context; select id, thread_name, pid from thread_slice order by id"
    assert_same "select s.id, s.dur - (select coalesce(sum(dur), 0) from slice c where c.parent_id = s.id) " \
                "from slice s order by 1",
                "include perfetto module slices.self_dur; select id, self_dur from slice_self_dur order by 1"
    # A view of the query's own may use them.
    assert_same "select count(*) from slice where depth > 0",
                "create view v as select * from thread_slice where depth > 0; select count(*) from v"
  end

  def test_perfetto_tables_and_views
    assert_equal [["3", "4"]], rows(<<~SQL)
      drop table if exists none; -- A comment; with a semicolon
      CREATE PERFETTO TABLE t(a INT, b STRING) AS SELECT 1 AS a, 'x;y' AS b;
      create or replace perfetto table t as /* ; */ select 3 as a;
      create perfetto view v(c INT) as select a + 1 as c from t;
      create or replace perfetto view w as select 1; select a, c from t, v;
    SQL
    refused("create perfetto table t as select nowhere from slice", "no such column: nowhere")
  end

  def test_what_only_perfetto_has_is_refused_and_says_so
    {
      "include perfetto module android.startup.startups" => "the module android.startup.startups is not here",
      "create perfetto function f(x INT) returns INT as select 1" => "create perfetto function f ... is not here",
      "create perfetto macro m(x Expr) returns Expr as 1" => "create perfetto macro m ... is not here",
      "create perfetto index i on slice(ts)" => "create perfetto index i on slice ... is not here",
      "select * from android_logs" => "no such table: android_logs",
      "select to_monotonic(1)" => "no such function: to_monotonic",
      "create virtual table t using window" => "no such module: window",
    }.each do |sql, message|
      assert_match(/; Perfetto has more: open the trace in /, refused(sql, Regexp.escape(message)))
    end
    refute_match(/Perfetto/, refused("selec 1", "syntax error"))
  end

  # --- span joins, beside all pairs of rows ---

  # Spans of some partitions that do not overlap within one, and touch now and then.
  def spans(random, partitions)
    partitions.flat_map do |partition|
      at = 0
      Array.new(8) { at += random.rand(4); from = at; at += random.rand(1..6); [from, at - from, partition] }
    end
  end

  def table(name, rows, value)
    values = rows.map.with_index { |row, i| "(#{[*row, i].join(", ")})" }.join(", ")
    "create perfetto table #{name} as with r(ts, dur, p, #{value}) as (values #{values}) select * from r;"
  end

  # The times in which neither table changes, with the rows that are there.
  def expected(left, right, kind)
    (left + right).map(&:last).uniq.sort.flat_map do |partition|
      sides = [left, right].map { |rows| rows.each_with_index.select { |row, _| row[2] == partition } }
      edges = sides.flatten(1).flat_map { |(ts, dur, _), _| [ts, ts + dur] }.uniq.sort
      edges.each_cons(2).filter_map do |from, to|
        a, b = sides.map { |rows| rows.find { |(ts, dur, _), _| ts <= from && to <= ts + dur }&.last }
        there = kind == "join" ? a && b : kind == "left_join" ? a : a || b
        [from, to - from, partition, a, b] if there
      end
    end.then { |times| joined(times) }
  end

  # A time that only an edge of neither row divides is one.
  def joined(times)
    times.slice_when { |x, y| x.values_at(2, 3, 4) != y.values_at(2, 3, 4) || x[0] + x[1] != y[0] }
         .map { |group| [group[0][0], group.sum { |time| time[1] }, *group[0][2..]] }
  end

  def numbers(rows) = rows.map { |row| row.map { |cell| cell&.to_i } }

  def test_span_joins_are_the_times_of_pairs
    random = Random.new(5)
    12.times do
      left, right = spans(random, [1, 2, 4]), spans(random, [2, 3, 4])
      %w[join left_join outer_join].each do |kind|
        found = rows(<<~SQL)
          #{table("a", left, "x")}
          #{table("b", right, "y")}
          create virtual table j using span_#{kind}(a partitioned p, b PARTITIONED p);
          select ts, dur, p, x, y from j order by p, ts
        SQL
        assert_equal expected(left, right, kind), numbers(found), kind
      end
    end
  end

  def test_span_joins_with_a_table_that_has_no_partition
    random = Random.new(6)
    all, one = spans(random, [0]), spans(random, [2, 3])
    copies = [2, 3].flat_map { |partition| all.map { |ts, dur, _| [ts, dur, partition] } }
    tables = <<~SQL
      #{table("a", all, "x")}
      #{table("b", one, "y")}
      create perfetto view u as select ts, dur, x from a;
    SQL
    found = rows(<<~SQL)
      #{tables}
      create virtual table j using span_join(u, b partitioned p);
      select ts, dur, p, x, y from j order by p, ts
    SQL
    assert_equal expected(copies, one, "join").map { |ts, dur, p, x, y| [ts, dur, p, x % all.size, y] },
                 found.map { |row| row.map(&:to_i) }
    found = rows(<<~SQL)
      #{tables}
      create perfetto view v as select ts, dur, y from b where p = 2;
      create virtual table j using span_left_join(u, v);
      select * from j
    SQL
    times = expected(all.map { |ts, dur, _| [ts, dur, 2] }, one.select { |row| row[2] == 2 }, "left_join")
    assert_equal times.map { |ts, dur, _, x, y| [ts, dur, x, y] }, numbers(found)
  end

  def test_span_joins_with_rows_of_no_duration_and_without_end
    join = ->(kind) { rows(<<~SQL) }
      create perfetto table a as values (10, 20, 'a'), (40, -1, 'b');
      create perfetto view s as select column1 as ts, column2 as dur, column3 as x from a;
      create perfetto table p as
      with r(ts, y) as (values (9, 1), (10, 2), (29, 3), (30, 4), (40, 5)) select * from r;
      create virtual table j using span_#{kind}(s, p);
      select ts, dur, x, y from j
    SQL
    both = [%w[10 0 "a" 2], %w[29 0 "a" 3], %w[40 -1 "b" 5]]
    assert_equal both, join["join"]
    assert_equal [30, 40], join["outer_join"].map { |ts,| ts.to_i }.select { |ts| ts > 29 }
  end

  def test_wrong_span_joins
    start = <<~SQL
      create perfetto table a as select 1 as ts, 2 as dur, 3 as p, 4 as x;
      create perfetto table b as select 1 as ts, 2 as dur, 3 as q, 4 as x;
    SQL
    {
      "span_join(a)" => "span_join: takes two tables",
      "span_join(a partitioned z, b)" => "span_join: a has no column z",
      "span_join(a, nowhere)" => "no such table: nowhere",
      "span_join(a partitioned p, b partitioned q)" => "span_join: a and b are partitioned by different columns",
      "span_join(a by p, b)" => "span_join: takes a table",
      "span_left_join(a, b)" => "span_left_join: both a and b have a column x",
    }.each do |call, message|
      refused("#{start} create virtual table j using #{call}", message)
    end
  end

  # --- views of events ---

  # The rows of all statements.
  def json(sql, trace)
    tool("query", "--format=json", trace, sql).out.split(/(?<=^\]\n)/).flat_map { |array| JSON.parse(array) }
  end

  def views = tool("query", "--views").out
  def names_of_views = views.scan(/^CREATE OR REPLACE PERFETTO VIEW (vm_\w+) AS /).flatten

  def column(key) = key.sub(/\A(\d)\z/, 'frame_\1').sub("10+", "frames_rest")

  # What a program gives its events has no columns.
  def with_arguments_of_its_own?(slice) = %w[marker syscall].include?(slice["category"])

  def test_each_event_is_in_one_view_with_all_its_arguments
    rows("select 1") # or skip
    Dir[File.join(TRACES, "*.fxt")].each do |trace|
      slices = json(<<~SQL, trace)
        select s.id, ts, dur, utid, category, s.name from slice s left join thread_track k on k.id = s.track_id
      SQL
      args = json("select s.id, key, display_value from slice s join args using (arg_set_id)", trace)
      args = args.group_by { |arg| arg["id"] }
      found = json(names_of_views.map { |view| "select * from #{view};" }.join, trace)
      assert_equal slices.map { |slice| slice["id"] }.sort, found.map { |row| row["id"] }.sort, trace
      found = found.to_h { |row| [row["id"], row] }
      slices.each do |slice|
        row = found[slice["id"]]
        assert_equal slice, row.slice(*slice.keys)
        next if with_arguments_of_its_own?(slice)
        expected = args.fetch(slice["id"], []).to_h { |arg| [column(arg["key"]), arg["display_value"]] }
        assert_equal expected, row.except(*slice.keys).compact.transform_values(&:to_s), "#{trace}: #{slice}"
      end
    end
  end

  def test_views_are_a_module
    trace = File.join(TRACES, "exits.fxt")
    count = "select category, count(*) from vm_exit group by 1"
    expected = rows("select category, count(*) from slice where category glob '*_exit' group by 1", trace)
    refute_empty expected
    [count, "include perfetto module vm_trace.events; #{count}", "#{views} #{count}"].each do |sql|
      assert_equal expected, rows(sql, trace), sql
    end
    names_none = "select count(*) from sqlite_master where name glob 'vm*'"
    assert_equal [["0"]], rows(names_none, trace), "they are made where SQL names one"
  end

  def test_a_query_needs_a_file_but_for_the_views
    assert_equal ["", 2], [tool("query").out, tool("query").status]
    assert_match "needs a file and SQL", tool("query").err
  end
end
