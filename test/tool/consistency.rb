# All outputs of the tool must say the same of a trace, and what an independent reader says (fxt_sums.rb):
#   Consistency.disagreements(tool, "a.fxt", "b.fxt") # => ["query: calls [...]: 3, not 4", ...]
# Several paths are read as one run, as the tool reads them.
require "csv"
require "json"
require "minitest"
require "open3"
require "tmpdir"
require "zlib"
require_relative "fxt_sums"
require_relative "page_numbers"
require_relative "pprof_reader"
require_relative "report_sums"
require_relative "served_tool"

module Consistency
  # options: of the report alone, which then is compared with itself; summaries: see ReportSums.
  def self.disagreements(tool, *paths, options: [], summaries: true)
    bad = ReportSums.disagreements(tool, *paths, options: options, summaries: summaries)
    options.empty? ? bad + Outputs.new(tool, paths).disagreements : bad
  end

  # The same with --method or --reason: what is left of the reader's sums.
  def self.disagreements_of_picked(tool, path, **picks) = Picked.new(tool, path, **picks).disagreements

  # Where outputs differ on purpose. Each method gives what the reader says in the terms of an output, or the other way
  # round; all else is compared as it is.
  module Definitions
    # Addresses are shown as 0x..., but in query. Bytes that are not UTF-8 are shown as \xHH, but in query and
    # speedscope; a recorder writes none. Profiles have no line 0.
    def shown(text)
      return text unless text.is_a?(String)
      text.scrub.gsub(/\\x[89A-F]\h/, "\uFFFD").gsub(/0x\h+/, "0x...").sub(/:0(\)?)\z/, "\\1")
    end

    # A site may lack the owner of its frame, or have another class than an event of it: the line is the same.
    # Exits without a frame are (unknown) in these tables.
    def line(label) = label.empty? ? "(unknown)" : label[/ \((.*)\)\z/, 1] || label

    # Metrics have no details of reasons.
    def family(reason) = reason[/\A[^(]+/] || reason

    # SQL has Perfetto's states, which know of no collections: a thread that collects runs. W (woken) and R (it gave up
    # the GVL) are the same wait. X and Z (dead) are no state of a life.
    SQL_STATES = { "Running" => :running, "R" => :waiting, "W" => :waiting, "X" => nil, "Z" => nil }
                 .tap { |all| all.default = :blocked }

    # A state that is open at the end has the dur -1 in SQL, and ends with its process elsewhere. A wake-up of a
    # thread that runs begins a W in SQL, but changes nothing elsewhere.
    def sql_pieces(rows, last)
      state = nil
      rows.map do |row|
        state = SQL_STATES[row["state"]] unless row["state"] == "W" && state == :running
        [state, row["dur"] == -1 ? [last - row["ts"], 0].max : row["dur"]]
      end
    end

    # SQL has no state before a thread's first record; elsewhere one that stops running did run before.
    def states_of_sql(reader)
      sums = Hash.new(0)
      reader.states.each { |(pid, tid, state), ns| sums[[pid, tid, state == :gc ? :running : state]] += ns }
      reader.ran_before.each { |key, ns| sums[key] -= ns }
      sums
    end

    # SQL has no slices deeper than Perfetto's.
    SQL_DEPTH = 512

    # A pause that was going on at the begin of a cut is a part of one: tables of collections leave it out, while the
    # thread collects. One that never ended has no length.
    def whole_pause?(dur, began) = dur >= 0 && began.nil?

    # It is a span as any other in the tables, and the page shows it without a kind.
    PARTS = { parts: :pauses, ns_of_parts: :ns }.freeze

    # Tables are those of each file: what two pieces of a spool both have at their border is there twice.
    def read_apart(paths) = FxtSums.new(paths, joined: false)

    # Several files on one side of diff are runs to compare, those of a folder are one.
    def as_one_run(paths)
      return yield(paths[0]) if paths.size == 1
      Dir.mktmpdir do |dir|
        paths.each { |path| File.symlink(File.expand_path(path), File.join(dir, File.basename(path))) }
        yield dir
      end
    end

    # Folded stacks have whole microseconds, whose roundings even out over the lines.
    MICROSECONDS = %w[blocked calls samples].freeze

    # Shares have six digits.
    def within_share(whole) = 1 + whole / 1_000_000
  end

  class Outputs
    include Definitions, PprofReader, Minitest::Assertions
    attr_accessor :assertions

    SAMPLE_STATES = { "GC" => "gc", "no CPU" => "no_cpu", "without GVL" => "without_gvl" }
                    .tap { |all| all.default_proc = ->(_, name) { name } }
    STATE_COLUMNS = { running_ns: :running, gc_ns: :gc, waiting_ns: :waiting, blocked_ns: :blocked }.freeze
    KINDS = %w[exits fallbacks blocked preempted allocations calls samples].freeze
    FORMATS = %w[speedscope pprof folded].freeze
    ALL_ROWS = "--top=1000000".freeze

    def initialize(tool, paths)
      @tool, @paths, @bad, @assertions = tool, paths, [], 0
      @reader = FxtSums.new(paths)
    end

    def disagreements
      %i[report page tables query metrics diff stacks].each { |output| send(@output = output) }
      @bad
    end

    private

    # --- comparing --------------------------------------------------------------------------------------------

    # The reader's sums, with other keys; a key of nil is left out.
    def sums(table)
      table = @reader.public_send(table) if table.is_a?(Symbol)
      table.each_with_object(Hash.new(0)) { |(key, sum), all| (key = yield(*key)) && all[key] += sum }
    end

    def sum_up(pairs) = pairs.each_with_object(Hash.new(0)) { |(key, value), all| all[key] += value }

    def agree(what, found, wanted, within: 0)
      shown = ->(key) { key.is_a?(Array) ? key.map { |part| shown(part) } : shown(key) }
      found = sum_up(sum_up(found).map { |key, value| [shown[key], value] })
      (found.keys | wanted.keys).each do |key|
        is, should_be = found.fetch(key, 0), wanted.fetch(key, 0)
        next if (is - should_be).abs <= (within.respond_to?(:call) ? within[key] : within)
        @bad << "#{@output}: #{what} #{key.inspect}: #{is}, not #{should_be}"
      end
    end

    def run_tool(*arguments)
      out, err, status = ServedTool.capture3(@tool, *arguments)
      raise "vm-trace #{arguments}: status #{status}: #{err}" unless [0, 1].include?(status.exitstatus)
      out.force_encoding("UTF-8")
    end

    def json(*arguments) = JSON.parse(run_tool(*arguments))

    # What all have: of exits and fallbacks each with its weight, of threads, of calls.
    def weighed_by_reason = sums(:weighed) { |kind, reason, _| [kind, shown(reason)] }
    def weighed_by_label = sums(:weighed) { |kind, _, label| [kind, shown(label)] }
    def counted_by_reason = sums(:counted) { |kind, reason, _| [kind, shown(reason)] }
    def counted_by_line = sums(:counted) { |kind, _, label| [kind, line(shown(label))] }
    def calls = sums(:calls) { |name, what| [shown(name), what] }
    def gc = sums(:gc) { |name, what| PARTS.key?(what) ? nil : [name, what] }
    def blocked = sums(:blocked) { |name, _, what| [shown(name), what] }
    def allocated = sums(:allocated) { |name, what| [shown(name), what] }

    def kind(category) = category == "fallback" ? "fallbacks" : "exits"

    # --- report -----------------------------------------------------------------------------------------------

    def report
      data = json("report", "--format=json", ALL_ROWS, *@paths)
      rows = ->(table) { data.dig(table, "rows") || [] }
      exits = rows["exits_by_reason"].map { |row| [["exits", row["reason"]], row["count"]] }
      agree "reason", exits + reported_fallbacks(rows, "reason"), counted_by_reason
      lines = rows["exits_by_line"].map { |row| [["exits", line(row["method"])], row["count"]] }
      agree "line", lines + reported_fallbacks(rows, "method") { |label| line(label) }, counted_by_line
      agree "state", columns(rows["thread_states"], %w[pid tid], **STATE_COLUMNS), @reader.states
      agree "collections", columns(rows["gc"], %w[kind], collections: :collections, pauses: :pauses, total_ns: :ns), gc
      agree "blocked", columns(rows["blocked"], %w[name], count: :count, total_ns: :ns), blocked
      agree "preempted", { "all" => rows["preempted"].sum { |row| row["count"] } }, sums(:preempted) { "all" }
      agree "allocations", columns(rows["allocations_by_class"], %w[class], bytes: :bytes, samples: :samples), allocated
      reported_calls
      reported_samples
    end

    def reported_fallbacks(rows, column)
      rows["fallbacks"].map { |row| [["fallbacks", block_given? ? yield(row[column]) : row[column]], row["count"]] }
    end

    # [[*key, name], value] for each of the columns.
    def columns(rows, key, **columns)
      rows.flat_map { |row| columns.map { |column, name| [[*row.values_at(*key), name], row[column.to_s]] } }
    end

    def reported_calls
      rows = json("report", "--calls", "--format=json", ALL_ROWS, *@paths).dig("calls", "rows") || []
      rows = rows.reject { |row| row["method"] == "(outside recorded calls)" }
      agree "calls", columns(rows, %w[method], calls: :calls, total_ns: :total, own_ns: :own), calls
    end

    def reported_samples
      rows = json("report", "--samples", "--format=json", ALL_ROWS, *@paths).dig("samples_by_thread", "rows") || []
      threads = sums(:sampled) { |pid, tid, _| [pid, tid] }
      agree "samples of", columns(rows, %w[pid tid], time_ns: nil).map { |key, ns| [key.first(2), ns] }, threads
      states = rows.flat_map do |row|
        ReportSums::SHARES.map { |state| [[row["pid"], row["tid"], state], (row[state].to_f * row["time_ns"]).round] }
      end
      agree "samples", states, @reader.sampled, within: ->(key) { within_share(threads[key.first(2)]) }
    end

    # --- the page ---------------------------------------------------------------------------------------------

    def page
      page = run_tool("html", *@paths)
      data = JSON.parse(page[%r{<script type="application/json" id="data">(.*?)</script>}m, 1])
      texts, numbers = data["strings"], PageNumbers.of(data)
      rows = data["rows"].map { |row| [kind(texts[row[0]]), texts[row[1]], texts[row[2]], row[6], numbers[row[9]]] }
      agree "reason", rows.map { |kind, reason, _, count| [[kind, reason], count] }, weighed_by_reason
      agree "frame", rows.map { |kind, _, frame, count| [[kind, frame], count] }, weighed_by_label
      agree "bins", rows.map { |kind, reason, *, bins| [[kind, reason], bins.sum(&:last)] }, weighed_by_reason
      whole = sums(:weighed) { |kind, *| kind }
      agree "head", { "exits" => data["exits"], "fallbacks" => data["fallbacks"] }, whole
      agree "stacks", { "exits" => data["stacks"][0][2] }, whole.slice("exits")
      agree "state", timeline_states(data), @reader.states
      agree "collections", timeline_pauses(data["timeline"], texts),
            sums(:gc) { |name, what| PARTS.key?(what) ? [what] : [name, what] }
      agree "blocked", timeline_blocked(data["timeline"], texts), blocked.select { |(_, what), _| what == :ns }
      page_calls(page, data, texts)
      return unless data["sampled"]
      agree "samples", data["sample_states"].map { |name| SAMPLE_STATES[name] }.zip(data["sampled"][0].drop(2)),
            sums(:sampled) { |_, _, state| state }
    end

    def timeline_states(data)
      data["timeline"]["tracks"].flat_map do |process, tid, *track|
        pid = data["processes"][process][0]
        sums = PageNumbers.segments(track[8]).map(&:ns).transpose.map(&:sum)
        %i[waiting blocked gc running].zip(sums).map { |state, ns| [[pid, tid, state], ns || 0] }
      end
    end

    def timeline_pauses(timeline, texts)
      PageNumbers.segments(timeline["pauses"]).flat_map(&:names).flat_map do |reason, count, ns, _, first|
        next [[[:parts], count], [[:ns_of_parts], ns]] if reason < 0
        name = texts[timeline["reasons"][reason][0]]
        [[[name, :pauses], count], [[name, :ns], ns], [[name, :collections], first]]
      end
    end

    def timeline_blocked(timeline, texts)
      timeline["tracks"].flat_map { |track| PageNumbers.segments(track[10]).flat_map(&:names) }
                        .map { |name, _, ns| [[texts[timeline["names"][name][0]], :ns], ns] }
    end

    def page_calls(page, data, texts)
      return agree("calls", {}, calls) unless data["calls"]
      found = data["calls"]["methods"].flat_map do |name, count, total, own|
        [[[texts[name], :calls], count], [[texts[name], :total], total], [[texts[name], :own], own]]
      end
      agree "calls", found, calls
      slices, = PageNumbers.calls(page, data)
      agree "slices of", nested(slices.map { |track, name, from, ns| [track, name, from, from + ns] }), of_slices(calls)
    end

    # What calls add up to: [track, name, from, to].
    def nested(calls)
      CallsReference.new(calls).methods.flat_map do |name, (count, total, own)|
        [[[name, :calls], count], [[name, :total], total], [[name, :own], own]]
      end
    end

    # What slices tell of the sums.
    def of_slices(sums) = sums

    # --- tables for databases ---------------------------------------------------------------------------------

    def tables
      whole = @reader
      @reader = read_apart(@paths) if @paths.size > 1
      Dir.mktmpdir do |dir|
        run_tool("export", "--tables=#{dir}", *@paths)
        all = Hash.new { |known, table| known[table] = read_table(dir, table) }
        pids = all["processes"].to_h { |row| [row["process"], row["pid"].to_i] }
        thread = ->(row) { [pids.fetch(row["process"]), row["tid"].to_i] }
        frames = all["frames"].to_h { |row| [row["frame_id"], row["frame"]] }
        sites = all["sites"].map { |row| [kind(row["kind"]), row["reason"], line(row["frame"]), row["count"].to_i] }
        agree "reason of sites", sites.map { |kind, reason, _, count| [[kind, reason], count] }, counted_by_reason
        agree "line of sites", sites.map { |kind, _, line, count| [[kind, line], count] }, counted_by_line
        table_events(all["events"], frames)
        sums = all["threads"].map { |row| row.merge("pid" => pids[row["process"]], "tid" => row["tid"].to_i) }
        found = columns(sums, %w[pid tid], **STATE_COLUMNS).map { |key, ns| [key, ns.to_i] }
        agree "state of threads", found, @reader.states
        agree "state", all["states"].flat_map { |row| table_state(row, thread[row]) }, @reader.states
        table_spans(all["spans"])
      end
      @reader = whole
    end

    def read_table(dir, table)
      Dir["#{dir}/#{table}/*/*/*.csv.gz"].sort.flat_map do |path|
        names, *rows = CSV.parse(Zlib.gunzip(File.binread(path)).force_encoding("UTF-8"))
        rows.map { |row| names.zip(row).to_h }
      end
    end

    def table_events(events, frames)
      exits, others = events.partition { |row| %w[side_exit recompile_exit fallback].include?(row["category"]) }
      exits = exits.map { |row| [kind(row["category"]), row["name"], frames[row["frame_id"]].to_s, row["weight"].to_i] }
      agree "reason of events", exits.map { |kind, reason, _, weight| [[kind, reason], weight] }, weighed_by_reason
      agree "frame of events", exits.map { |kind, _, frame, weight| [[kind, frame], weight] }, weighed_by_label
      objects = others.select { |row| row["category"] == "allocation" && !%w[freed alive].include?(row["name"]) }
      agree "allocations", sampled_objects(objects), allocated
    end

    def sampled_objects(rows)
      rows.flat_map { |row| [[[row["name"], :bytes], row["weight"].to_i], [[row["name"], :samples], 1]] }
    end

    def table_state(row, thread)
      state, ns, gc = row["state"].to_sym, row["dur_ns"].to_i, row["gc_ns"].to_i
      [[[*thread, state], ns - gc], [[*thread, :gc], gc]]
    end

    def table_spans(spans)
      spans = spans.reject { |row| row["open"] == "1" }
      of_calls = spans.select { |row| row["category"] == "call" }.map do |row|
        from, ns = row.values_at("start_ns", "dur_ns").map(&:to_i)
        [row.values_at("process", "tid"), row["name"], from, from + ns]
      end
      agree "calls", nested(of_calls), of_slices(calls)
      pauses = spans.select { |row| row["category"] == "gc" && row["name"].start_with?("GC ") }
      found = pauses.flat_map { |row| [[[row["name"], :pauses], 1], [[row["name"], :ns], row["dur_ns"].to_i]] }
      agree "collections", found,
            sums(:gc) { |name, what| what == :collections ? nil : [name, PARTS.fetch(what, what)] }
    end

    # --- SQL --------------------------------------------------------------------------------------------------

    def select(sql) = json("query", "--format=json", *@paths, sql)

    def query
      slices = select(<<~SQL)
        SELECT s.id, s.parent_id, s.dur, s.category, s.name, p.upid, EXTRACT_ARG(s.arg_set_id, '0') AS frame,
          EXTRACT_ARG(s.arg_set_id, 'weight') AS weight, EXTRACT_ARG(s.arg_set_id, 'count') AS number,
          EXTRACT_ARG(s.arg_set_id, 'began') AS began,
          COALESCE(EXTRACT_ARG(s.arg_set_id, 'reason'), EXTRACT_ARG(s.arg_set_id, 'major_by')) AS reason
        FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid)
          LEFT JOIN process p USING (upid)
      SQL
      by_category = slices.group_by { |row| row["category"] }.tap { |all| all.default = [] }
      exits = by_category.values_at("side_exit", "recompile_exit", "fallback").flatten
      exits = exits.map { |row| [kind(row["category"]), row["name"], row["frame"].to_s, row["weight"] || 1] }
      agree "reason", exits.map { |kind, reason, _, weight| [[kind, reason], weight] }, weighed_by_reason
      agree "frame", exits.map { |kind, _, frame, weight| [[kind, frame], weight] }, weighed_by_label
      objects = by_category["allocation"].reject { |row| %w[freed alive].include?(row["name"]) }
      agree "allocations", sampled_objects(objects), allocated
      agree "preempted", by_category["preempted"].map { |row| [row["name"], 1] },
            sums(:preempted) { |name, _| shown(name) }
      query_pauses(by_category["gc"], slices)
      query_calls(by_category["call"], slices)
      agree "state", query_states, states_of_sql(@reader)
      agree "samples", query_samples, @reader.sampled
    end

    def query_pauses(rows, slices)
      rows = rows.select { |row| above(row, slices).nil? && whole_pause?(row["dur"], row["began"]) }
      found = rows.flat_map { |row| [[[row["name"], :pauses], 1], [[row["name"], :ns], row["dur"]]] }
      first = rows.select { |row| row["reason"] }
      agree "collections", found + first.map { |row| [[row["name"], :collections], 1] }, gc
    end

    # The nearest slice of the same category around this one.
    def above(row, slices)
      @by_id = [slices, slices.to_h { |slice| [slice["id"], slice] }] unless @by_id&.first.equal?(slices)
      above = @by_id[1][row["parent_id"]]
      above = @by_id[1][above["parent_id"]] until above.nil? || above["category"] == row["category"]
      above
    end

    def query_calls(rows, slices)
      return if @reader.depth >= SQL_DEPTH
      found = rows.flat_map do |row|
        above = above(row, slices)
        own = [[[row["name"], :own], row["dur"]], [[row["name"], :calls], 1]]
        own.clear if row["name"] == CallsReference::SUSPENDED
        above ? own << [[above["name"], :own], -row["dur"]] : own
      end
      agree "calls", found, calls.reject { |(_, what), _| what == :total }
    end

    def query_states
      rows = select(<<~SQL)
        SELECT s.ts, s.dur, s.state, t.tid, p.pid, p.upid FROM thread_state s JOIN thread t USING (utid)
          JOIN process p USING (upid)
        ORDER BY s.utid, s.ts, s.id
      SQL
      of_pid = rows.map { |row| row.values_at("pid", "upid") }.uniq.sort.group_by(&:first)
      rows.group_by { |row| row.values_at("upid", "tid") }.flat_map do |(upid, tid), of_thread|
        pid = of_thread[0]["pid"]
        ends = @reader.ends[pid][of_pid[pid].index([pid, upid])]
        sql_pieces(of_thread, ends).filter_map { |state, ns| state && [[pid, tid, state], ns] }
      end
    end

    def query_samples
      rows = select(<<~SQL)
        SELECT p.pid, t.tid, k.name, w.value FROM stack_sample s
          JOIN stack_sample_task_context x ON x.id = s.task_context_id
          JOIN thread t USING (utid) JOIN process p USING (upid)
          JOIN stack_sample_counter w ON w.stack_sample_id = s.id
          JOIN stack_sample_counter_track k ON k.id = w.track_id
        WHERE s.source = 'ruby.samples' AND k.name NOT IN ('wall time', 'CPU time')
      SQL
      rows.map { |row| [row.values_at("pid", "tid", "name"), row["value"].round] }
    end

    # --- metrics, diff ----------------------------------------------------------------------------------------

    def metrics
      found = run_tool("metrics", *@paths).scan(/^vm_trace_(\w+)(?:{(.*)})? (\S+)$/).map do |name, labels, value|
        [name, labels.to_s.scan(/(\w+)="((?:[^"\\]|\\.)*)"/).to_h, value]
      end
      of = ->(name) { found.filter_map { |metric, labels, value| [labels, Rational(value)] if metric == name } }
      reasons = { "exits" => "exits", "fallbacks" => "fallbacks" }.flat_map do |name, kind|
        of[name].map { |labels, value| [[kind, labels["reason"]], value] }
      end
      agree "reason", reasons, sums(:counted) { |kind, reason, _| [kind, family(shown(reason))] }
      agree "state", of["thread_seconds"].map { |labels, s| [labels["state"].to_sym, s * 10**9] },
            sums(:states) { |_, _, state| state }
      pauses = of["gc_pauses"].map { |labels, value| [["GC #{labels["kind"]}", :pauses], value] } +
               of["gc_pause_seconds"].map { |labels, s| [["GC #{labels["kind"]}", :ns], s * 10**9] }
      agree "collections", pauses, gc.reject { |(_, what), _| what == :collections }
    end

    # A trace compared with itself: nothing differs, and the sums of each side are those of the trace.
    def diff
      %w[exits fallbacks].each do |kind|
        options = ["--format=json", "--normalize=none", "--kind=#{kind}"]
        data = as_one_run(@paths) { |side| json("diff", *options, side, side) }
        total, = data["total"]["rows"]
        counted = sums(:counted) { |of, *| of }
        agree "total", { kind => total["a"] }, counted.slice(kind)
        agree "total", { kind => total["b"] }, counted.slice(kind)
        next unless kind == "exits"
        data.reject { |name, _| name == "time_spans" }.each_value.flat_map { |table| table["rows"] }.each do |row|
          @bad << "diff with itself: #{row}" if row["a"] != row["b"] || row["change"] != "unchanged"
        end
        diff_sums(data["sums"] ? data["sums"]["rows"] : [])
      end
    end

    def diff_sums(rows)
      wanted = sums(:states) { |_, _, state| state.to_s }
      wanted["gc"] = @reader.gc.sum { |(_, what), ns| what == :ns ? ns : 0 }
      wanted["collections"] = @reader.gc.sum { |(_, what), count| what == :collections ? count : 0 }
      wanted["calls"] = @reader.calls.sum { |(_, what), ns| what == :own ? ns : 0 }
      wanted["allocations"] = @reader.allocated.sum { |(_, what), bytes| what == :bytes ? bytes : 0 }
      agree "sums", rows.map { |row| [row["sum"], row["a"]] }.reject { |sum, _| sum == "lost" }, wanted
    end

    # --- stacks -----------------------------------------------------------------------------------------------

    # A stack ends with what it is weighted for. What the trace has none of is none in one of the formats, in turn.
    def stacks
      kinds.each_with_index do |kind, i|
        wanted, innermost = wanted_stacks(kind)
        (wanted.empty? ? [FORMATS[i % FORMATS.size]] : FORMATS).each do |format|
          found = send(@output = format, run_tool("export", "--format=#{format}", "--kind=#{kind}", *@paths))
          rounded = format == "folded" && MICROSECONDS.include?(kind)
          rounded ? same_microseconds(kind, found, wanted) : same_stacks(kind, found, wanted, innermost)
        end
      end
    end

    def kinds = KINDS

    # Each gives [[frames, outermost first], weight] of each stack.
    def speedscope(out)
      profile = JSON.parse(out)
      frames = profile["shared"]["frames"].map { |frame| frame_text(*frame.values_at("name", "file", "line")) }
      profile["profiles"].flat_map do |one|
        one["samples"].map { |stack| stack.map { |frame| frames[frame] } }.zip(one["weights"])
      end
    end

    def pprof(out)
      _, samples, = read_pprof(out.b)
      samples.map { |stack, values| [stack.reverse.map { |frame| frame_text(*frame) }, values.last] }
    end

    def folded(out)
      out.lines(chomp: true).map { |line| line.rpartition(" ").values_at(0, 2) }
         .map { |stack, weight| [stack.split(";"), weight.to_i] }
    end

    def frame_text(name, file, line)
      file.to_s.empty? ? name : "#{name} (#{file}#{":#{line}" if line.to_i > 0})"
    end

    def wanted_stacks(kind)
      case kind
      when "exits", "fallbacks"
        of_kind = @reader.weighed.select { |(of, *), _| of == kind }
        [sums(of_kind) { |_, reason, _| shown(reason) }, sums(of_kind) { |_, _, label| shown(label) }]
      when "blocked" then sums(:blocked) { |_, label, what| what == :ns ? shown(label) : nil }
      when "preempted" then sums(:preempted) { |_, label| shown(label) }
      when "allocations" then sums(:allocated) { |name, what| what == :bytes ? shown(name) : nil }
      when "calls" then sums(:calls) { |name, what| what == :own ? shown(name) : nil }
      when "samples" then sums(:sampled) { |_, _, state| state }
      end
    end

    def same_stacks(kind, found, wanted, innermost)
      agree "#{kind} by leaf", found.map { |stack, weight| [stack.last, weight] }, wanted
      agree "#{kind} by frame", found.map { |stack, weight| [stack[-2].to_s, weight] }, innermost if innermost
    end

    def same_microseconds(kind, found, wanted)
      agree kind, { "all" => found.sum(&:last) }, { "all" => (wanted.sum(&:last) / 1000.0).round }
      lines = found.group_by { |stack, _| shown(stack.last) }
      agree "#{kind} by leaf", found.map { |stack, weight| [stack.last, weight] },
            wanted.transform_values { |ns| ns / 1000.0 }, within: ->(leaf) { lines.fetch(leaf, []).size }
    end
  end

  # With --method or --reason, which all outputs but metrics and query have.
  class Picked < Outputs
    def initialize(tool, path, method: nil, reason: nil)
      super(tool, [path])
      @reason = reason
      @reader.pick(method, reason)
      @options = [*(method && "--method=#{method}"), *(reason && "--reason=#{reason}")]
    end

    def disagreements
      %i[report page tables sqlite diff stacks].each { |output| send(@output = output) }
      @bad
    end

    private

    # Only the slices of chosen methods are there, so calls inside of them count for their own times.
    def of_slices(sums) = sums.reject { |(_, what), _| what == :own }
    def nested(calls) = of_slices(super)

    def kinds = @reason ? %w[exits fallbacks] : %w[exits fallbacks allocations calls]

    def run_tool(command, *arguments)
      super(command, *@options, *arguments)
    end

    # In a database, whose arguments are rows.
    def sqlite
      return unless system("sqlite3", "-version", out: File::NULL, err: File::NULL)
      Dir.mktmpdir do |dir|
        run_tool("export", "--sqlite=#{dir}/db", *@paths)
        out, status = Open3.capture2("sqlite3", "-json", "#{dir}/db", <<~SQL)
          SELECT category, name, COALESCE(w.int_value, 1) AS weight, f.string_value AS frame FROM slice s
            LEFT JOIN args w ON w.arg_set_id = s.arg_set_id AND w.key = 'weight'
            LEFT JOIN args f ON f.arg_set_id = s.arg_set_id AND f.key = '0'
        SQL
        assert status.success?
        rows = out.empty? ? [] : JSON.parse(out)
        by_category = rows.group_by { |row| row["category"] }.tap { |all| all.default = [] }
        exits = by_category.values_at("side_exit", "recompile_exit", "fallback").flatten
        exits = exits.map { |row| [kind(row["category"]), row["name"], row["frame"].to_s, row["weight"]] }
        agree "reason", exits.map { |kind, reason, _, weight| [[kind, reason], weight] }, weighed_by_reason
        agree "frame", exits.map { |kind, _, frame, weight| [[kind, frame], weight] }, weighed_by_label
        agree "allocations", sampled_objects(by_category["allocation"]), allocated
        agree "calls", by_category["call"].map { |row| [[row["name"], :calls], 1] },
              calls.select { |(_, what), _| what == :calls }
        agree "others", by_category["gc"].map { |row| [row["name"], 1] }, {}
      end
    end
  end
end
