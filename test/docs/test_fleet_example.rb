# The ten questions of examples/fleet, asked of real engines over traces of real processes: each answer is what
# `vm-trace report` and `query` say about the same files. 30 processes; with LONG=1, 1,000.
#
# DuckDB is the program that DUCKDB names, or `duckdb`, or node with the npm package, which the cache keeps:
#   npm install --prefix ~/.cache/ruby-vm-trace @duckdb/node-api
# ClickHouse is Debian's clickhouse-server and clickhouse-client.
require "minitest/autorun"
require "csv"
require "json"
require "open3"
require "socket"
require "tmpdir"
require "zlib"

class TestFleetExample < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  EXAMPLE = File.join(TOP, "examples/fleet")
  TOOL = File.join(TOP, "build/tool/vm-trace")
  RUBY = File.join(TOP, "build", ENV.fetch("BASE", "ruby-4.0"), "ruby")
  PROCESSES = ENV["LONG"].to_s.empty? ? 30 : 1000
  CACHE = File.join(ENV["XDG_CACHE_HOME"] || File.expand_path("~/.cache"), "ruby-vm-trace/node_modules")
  QUESTIONS = %w[exits_by_reason sites_since_deploy lost_time_by_site busiest_hosts gvl_waiting gc_pauses slowest_spans
                 compilations_by_version recorder_losses new_exits].freeze
  WORDS = ["service=shop", "old=42", "new=43"].freeze
  Trace = Struct.new(:path, :host, :service, :version)

  class << self
    attr_accessor :fleet

    def run!(*command, env: {})
      out, status = Open3.capture2e(env, *command, chdir: TOP)
      raise "#{command.join(" ")}\n#{out}" unless status.success?
      out
    end

    # Each run has a parent and up to nine workers. Hosts have names of their own where that is allowed.
    def make_fleet
      @dir = Dir.mktmpdir
      Minitest.after_run { FileUtils.rm_rf(@dir) }
      named = system("unshare", "--uts", "hostname", "web1", err: File::NULL)
      traces, run = [], 0
      while traces.size < PROCESSES
        host = named ? "web#{run / 2 % 3}" : Socket.gethostname
        service, version = %w[shop shop shop cart][run % 4], (42 + run % 2).to_s
        folder = "#{@dir}/traces/#{run}"
        FileUtils.mkdir_p(folder)
        env = { "OTEL_SERVICE_NAME" => service, "OTEL_RESOURCE_ATTRIBUTES" => "service.version=#{version}",
                "RELEASE" => version }
        jit = service == "cart" ? "zjit" : "yjit"
        command = [RUBY, "--#{jit}", "--#{jit}-call-threshold=2", "--vm-trace=default,exits:rate=3,states,compiles",
                   "--vm-trace-file=#{folder}/%p.fxt", "--vm-trace-quiet", "#{EXAMPLE}/worker.rb",
                   [9, PROCESSES - traces.size - 1].min.to_s]
        command = ["unshare", "--uts", "sh", "-c", 'hostname "$1" && shift && exec "$@"', "sh", host, *command] if named
        run!(*command, env: env)
        traces.concat(Dir["#{folder}/*.fxt"].sort.map { |path| Trace.new(path, host, service, version) })
        run += 1
      end
      @tables = %w[csv ndjson].to_h do |format|
        out = run!(TOOL, "export", "--tables=#{@dir}/#{format}", "--table-format=#{format}", *traces.map(&:path))
        raise out unless out.start_with?("#{PROCESSES} of #{PROCESSES} traces written")
        [format, "#{@dir}/#{format}"]
      end
      @fleet = traces
    end

    attr_reader :dir, :tables
  end

  def setup
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    self.class.fleet || self.class.make_fleet
  end

  def fleet = self.class.fleet
  def of(service, version = nil) = fleet.select { |t| t.service == service && (version.nil? || t.version == version) }
  def run!(...) = self.class.run!(...)

  # --- the engines --------------------------------------------------------------------------------------

  # The environment in which it is found.
  def duckdb
    env = { "NODE_PATH" => [CACHE, ENV["NODE_PATH"]].compact.join(":") }
    node = system(env, "node", "-e", 'require("@duckdb/node-api")', err: File::NULL)
    return env if ENV["DUCKDB"] || program?("duckdb") || node
    skip "DuckDB is not installed (npm install --prefix ~/.cache/ruby-vm-trace @duckdb/node-api)"
  end

  def test_duckdb
    env = duckdb
    database = "#{self.class.dir}/fleet.duckdb"
    2.times { ask(env, "duckdb", database, "load", "tables=#{self.class.tables["csv"]}") } # it replaces what is there
    compare { |question| ask(env, "duckdb", database, question, "--json", *WORDS) }
  end

  # Whose tables lack their last columns.
  def test_duckdb_loads_an_older_schema
    env, folder = duckdb, "#{self.class.dir}/older"
    FileUtils.cp_r(self.class.tables["csv"], folder)
    path = Dir["#{folder}/frames/*/*/*.gz"].max_by { |file| File.size(file) }
    head, *rows = Zlib.gunzip(File.binread(path)).lines
    older = [head, *rows.map { |row| row.sub(/\A\d+,/, "0,") }].map { |row| row.sub(/,[^,\n]*$/, "") }
    File.binwrite(path, Zlib.gzip(older.join))
    ask(env, "duckdb", "#{folder}.duckdb", "load", "tables=#{folder}")
    sql = "SELECT schema, count(*) AS n, count(line) AS lines FROM frames GROUP BY schema ORDER BY schema"
    old, new = ask(env, "duckdb", "#{folder}.duckdb", "sql=#{sql}", "--json")
    assert_equal({ "schema" => 0, "n" => rows.size, "lines" => 0 }, old)
    assert_equal new["n"], new["lines"]
  end

  def test_clickhouse
    missing = %w[clickhouse-server clickhouse-client].reject { |name| program?(name) }
    skip "#{missing.join(" and ")} not installed (Debian has them)" if missing.any?
    port = free_ports
    folder = "#{self.class.dir}/clickhouse"
    run!("#{EXAMPLE}/clickhouse/start.sh", folder, port.to_s)
    2.times { run!("#{EXAMPLE}/clickhouse/load.sh", self.class.tables["ndjson"], port.to_s, (port + 1).to_s) }
    shards = [port, port + 1].map do |shard|
      run!("clickhouse-client", "--port", shard.to_s, "--query", "SELECT count() FROM processes_local").to_i
    end
    assert_equal PROCESSES, shards.sum
    assert_operator shards.min, :>, 0, "both shards have a part"
    compare { |question| ask({}, "clickhouse", port.to_s, question, "--json", *WORDS) }
  ensure
    Dir["#{folder}/*.pid"].each { |path| Process.kill(:TERM, File.read(path).to_i) } if folder
  end

  def test_engines_have_the_same_questions
    names = %w[duckdb clickhouse].map { |name| File.read("#{EXAMPLE}/#{name}/questions.sql").scan(/^-- (\w+): (.*)/) }
    assert_equal QUESTIONS, names.first.map(&:first)
    assert_equal(*names)
  end

  # vm-trace itself finds what release 43 changed. (How long an exit takes differs with the machine's load.)
  def test_diff_since_deploy
    options = %w[--since-deploy --service=shop --normalize=run --format=json]
    json = run!(TOOL, "diff", *options, *fleet.map(&:path))
    new = JSON.parse(json)["sites"]["rows"].select { |row| row["change"] == "new" }
    assert_includes new.map { |row| row["place"] }.join, "Shop#discount"
  end

  # What the loaders say of columns is the tool's schema.
  def test_loaders_have_the_columns_of_the_schema
    schema = JSON.parse(File.read("#{self.class.tables["csv"]}/schema.json"))["tables"]
    wanted = schema.to_h { |table| [table["name"], table["columns"].map { |column| column["name"] }] }
    sql = File.read("#{EXAMPLE}/duckdb/load.sql")
    found = sql.scan(/TABLE (\w+) AS.*?columns = \{(.*?)\}/m)
    assert_equal wanted, found.to_h { |name, columns| [name, columns.scan(/(\w+): '/).flatten] }
    sql = File.read("#{EXAMPLE}/clickhouse/tables.sql")
    found = sql.scan(/TABLE IF NOT EXISTS (\w+)_local \(\s*day Date,(.*?)\) ENGINE/m)
    assert_equal wanted, found.to_h { |name, columns| [name, columns.scan(/(\w+) (?:Int64|String|Float64)/).flatten] }
  end

  private

  def program?(name) = system("which", name, out: File::NULL)

  # Two that follow each other.
  def free_ports
    20.times do
      first = TCPServer.new("127.0.0.1", 0)
      second = TCPServer.new("127.0.0.1", first.addr[1] + 1)
      return first.addr[1]
    rescue SystemCallError
      next
    ensure
      first&.close
      second&.close
    end
    flunk "no two free ports"
  end

  def ask(env, *words)
    lines = run!("ruby", "#{EXAMPLE}/ask.rb", *words, env: env).lines
    lines.map { |line| JSON.parse(line).transform_values { |value| number(value) } }
  end

  # Engines write 64 bits as texts.
  def number(value) = value.is_a?(String) && value.match?(/\A-?\d+\z/) ? value.to_i : value

  def compare
    expected.each do |question, rows|
      found = yield(question)
      refute_empty rows, question
      assert_equal rows.size, found.size, question
      rows.zip(found) do |one, other|
        assert_equal one.keys, other.keys, question
        one.each do |key, value|
          next assert_in_delta(value, other[key], 1e-6, "#{question}: #{key}") if value.is_a?(Float)
          assert_equal value, other[key], "#{question}: #{key} of #{other}"
        end
      end
    end
  end

  # --- the same from vm-trace ---------------------------------------------------------------------------

  def report(table, traces)
    text = run!(TOOL, "report", "--format=csv", "--table=#{table}", "--top=1000000", *traces.map(&:path))
    rows = CSV.parse(text, headers: true).map { |row| row.to_h.transform_values { |value| number(value) } }
    rows.each { |row| row["instruction"]&.sub!(/@\d+\z/, "") } # the tables have the index in a column of its own
  end

  def query(trace, sql) = JSON.parse(run!(TOOL, "query", "--format=json", trace.path, sql))

  # Sums of rows with equal keys.
  def sums(rows, keys, *columns)
    groups = rows.group_by { |row| row.values_at(*keys) }
    groups.transform_values { |same| columns.map { |column| same.sum { |row| row[column].to_i } } }
  end

  # Of the same method, reason and instruction; lines may differ.
  def places(traces)
    rows = report("exits_by_place", traces).select { |row| row["count"] > 0 }
    rows.each { |row| row["method"] = row["method"].sub(/ \([^()]*\)\z/, "") }
    sums(rows, %w[reason method instruction], "count", "lost_ns")
  end

  def expected
    @expected ||= QUESTIONS.to_h { |name| [name, send(name)] }
  end

  def exits_by_reason
    rows = sums(report("exits_by_reason", fleet), %w[reason], "count", "lost_ns")
    rows = rows.map { |(reason), (count, lost)| { "reason" => reason, "exits" => count, "lost_ns" => lost } }
    rows.sort_by { |row| [-row["exits"], row["reason"]] }
  end

  def sites_since_deploy
    old, new = %w[42 43].map { |version| places(of("shop", version)) }
    traced_s = %w[42 43].map { |version| report("processes", of("shop", version)).sum { |row| row["span_ns"] } / 1e9 }
    rows = (old.keys | new.keys).map do |key|
      counts = [old, new].map { |side| side.fetch(key, [0]).first }
      { "reason" => key[0], "method" => key[1], "insn" => key[2], "old_exits" => counts[0], "new_exits" => counts[1],
        "old_per_second" => counts[0] / traced_s[0], "new_per_second" => counts[1] / traced_s[1] }
    end
    rows.sort_by { |row| [row["old_per_second"] - row["new_per_second"], *row.values_at("reason", "method", "insn")] }
  end

  def lost_time_by_site
    # The report tells exits of one instruction apart by what they call, and by kind.
    rows = report("exits_by_place", fleet).group_by { |row| row.values_at("reason", "method", "instruction") }
    rows = rows.map do |(reason, frame, insn), same|
      { "reason" => reason, "frame" => frame, "insn" => insn, "exits" => same.sum { |row| row["count"] },
        "lost_ns" => same.sum { |row| row["lost_ns"].to_i }, "longest_ns" => same.map { |row| row["longest_ns"].to_i }.max }
    end
    rows.sort_by { |row| [-row["lost_ns"], -row["exits"], *row.values_at("reason", "frame", "insn")] }.first(20)
  end

  def busiest_hosts
    rows = fleet.group_by(&:host).map do |host, traces|
      processes = report("processes", traces)
      exits, ns = %w[exits span_ns].map { |column| processes.sum { |row| row[column] } }
      { "host_name" => host, "exits" => exits, "traced_ns" => ns, "exits_per_second" => exits * 1e9 / ns }
    end
    rows.sort_by { |row| [-row["exits_per_second"], row["host_name"]] }
  end

  def gvl_waiting
    rows = fleet.group_by(&:service).map do |service, traces|
      threads = report("thread_states", traces)
      waiting, life = %w[waiting_ns life_ns].map { |column| threads.sum { |row| row[column] } }
      { "service" => service, "total_waiting_ns" => waiting, "share" => waiting.fdiv(life),
        "longest_ns" => threads.map { |row| row["longest_wait_ns"] }.max }
    end
    rows.sort_by { |row| -row["total_waiting_ns"] }
  end

  def gc_pauses
    sql = "SELECT dur FROM slice WHERE category = 'gc' AND name IN ('GC minor', 'GC major') AND dur >= 0"
    rows = fleet.group_by(&:service).map do |service, traces|
      times = traces.flat_map { |trace| query(trace, sql).map { |row| row["dur"] } }.sort
      assert_equal report("gc", traces).sum { |row| row["pauses"] }, times.size
      { "service" => service, "pauses" => times.size, "total_ns" => times.sum,
        "p99_ns" => times[(times.size * 99 + 99) / 100 - 1], "longest_ns" => times.last }
    end
    rows.sort_by { |row| [-row["p99_ns"], row["service"]] }
  end

  SLICES = "SELECT s.ts, s.dur, s.name, tid, s.arg_set_id FROM slice s " \
           "JOIN thread_track k ON k.id = s.track_id JOIN thread USING (utid) WHERE s.category IN "

  def slowest_spans
    spans = fleet.flat_map { |trace| query(trace, "#{SLICES}('marker')").map { |span| [trace, span] } }
    spans.sort_by { |_, span| -span["dur"] }.first(10).flat_map { |trace, span| exits_of(trace, span) }
  end

  # The key of a process is that of its first event, as report shows it.
  def key_of(trace)
    host = query(trace, "SELECT s.ts, int_value AS unix FROM slice s JOIN args USING (arg_set_id) " \
                        "WHERE s.name = 'host' AND key = 'unix_ns' ORDER BY s.ts LIMIT 1").first
    pid = query(trace, "SELECT pid FROM process WHERE pid > 0").first["pid"]
    "#{trace.host}-#{pid}-#{host["unix"] - host["ts"] + query(trace, "SELECT min(ts) AS ts FROM slice").first["ts"]}"
  end

  def exits_of(trace, span)
    inside = "('side_exit', 'recompile_exit') AND tid = #{span["tid"]} " \
             "AND s.ts BETWEEN #{span["ts"]} AND #{span["ts"] + span["dur"]}"
    args = query(trace, "SELECT arg_set_id, key, display_value FROM args WHERE key IN ('0', 'weight')")
    args = args.group_by { |arg| arg["arg_set_id"] }
    exits = query(trace, SLICES + inside).map do |exit|
      values = args.fetch(exit["arg_set_id"]).to_h { |arg| arg.values_at("key", "display_value") }
      { "process" => key_of(trace), "span" => span["name"], "start_ns" => span["ts"], "dur_ns" => span["dur"],
        "reason" => exit["name"], "frame" => values["0"], "exits" => values.fetch("weight", 1).to_i }
    end
    rows = exits.group_by { |row| row.except("exits") }
    rows = rows.map { |row, same| row.merge("exits" => same.sum { |one| one["exits"] }) }
    rows.sort_by { |row| [-row["exits"], row["reason"], row["frame"]] }
  end

  def compilations_by_version
    rows = fleet.group_by { |trace| [trace.service, trace.version] }.map do |(service, version), traces|
      whole = report("compile_phases", traces).find { |row| row["name"] == "(whole)" }
      totals = report("totals", traces).first
      { "service" => service, "version" => version.to_i, "compilations" => totals["compilations"],
        "total_ns" => whole["total_ns"], "total_code_bytes" => totals["code_bytes"] }
    end
    rows.sort_by { |row| row.values_at("service", "version") }
  end

  def recorder_losses
    rows = fleet.group_by { |trace| [trace.service, trace.host] }.map do |(service, host), traces|
      processes = report("processes", traces)
      { "service" => service, "host_name" => host, "processes" => traces.size,
        "lost" => report("losses", traces).sum { |row| row["events"] },
        "incomplete" => processes.count { |row| row["ended"] != "yes" } }
    end
    rows.sort_by { |row| [-row["lost"], -row["incomplete"], row["service"], row["host_name"]] }
  end

  def new_exits
    known, traces = places(of("shop", "42")), of("shop", "43")
    by_process = traces.map { |trace| places([trace]).reject { |key, _| known.key?(key) } }
    rows = by_process.flat_map(&:keys).uniq.map do |key|
      found = by_process.filter_map { |counts| counts[key] }
      exits, lost = found.sum(&:first), found.sum(&:last)
      mean = exits.fdiv(traces.size)
      squares = found.sum { |count, _| (count - mean)**2 } + (traces.size - found.size) * mean**2
      { "reason" => key[0], "method" => key[1], "insn" => key[2], "processes" => found.size, "exits" => exits,
        "lost_ns" => lost, "of_processes" => traces.size, "per_process" => mean,
        "spread" => Math.sqrt(squares / (traces.size - 1)) }
    end
    rows.sort_by { |row| [-row["lost_ns"], -row["exits"], *row.values_at("reason", "method", "insn")] }
  end
end
