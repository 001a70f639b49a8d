# The work of every command is proportional to its input, whatever it contains: four times as much
# input costs not much more than four times as much. The tests count basic blocks and allocated
# bytes, not time, and see nothing inside libc and SQLite except their callbacks.
require_relative "tool_helper"
require_relative "mutants"

class TestGrowth < Minitest::Test
  include ToolHelper

  LONG = !ENV["LONG"].to_s.empty?

  SMALL = 500
  TIMES = 4
  # From 500 to 2000, n * n grows 16 times, and n log n 5 times. Tables that double may double once
  # more for the larger input.
  MOST_TIMES = { "basic blocks" => 6.5, "bytes allocated" => 11, "bytes at a time" => 11 }.freeze

  # The tool with counters, and whether it has the query command.
  def counting_tool
    skip "it builds a tool of its own, whose work is the same" if INSTRUMENTED
    @@counting ||= begin
      path = instrumented_tool("counting", "no compiler here counts basic blocks")
      counting = ServedTool.new(path)
      [counting, tool("query", File.join(TRACES, "exits.fxt"), "select 1").err !~ /built without SQLite/]
    end
  end

  SQL = "SELECT count(*), sum(dur) FROM slice; SELECT count(*) FROM slice LEFT JOIN args USING (arg_set_id); SELECT count(*) FROM flow;" \
        "SELECT count(*) FROM thread_state; SELECT count(*) FROM counter JOIN track t ON t.id = track_id;" \
        "SELECT count(*) FROM thread JOIN process USING (upid); SELECT count(*) FROM thread_track JOIN thread USING (utid);" \
        "SELECT count(*) FROM slice s JOIN thread_track t ON t.id = s.track_id JOIN thread USING (utid) JOIN process USING (upid)"

  COMMANDS = {
    "check" => %w[check FILE], "report" => %w[report FILE], "report json" => %w[report --format=json --top=1000000 FILE],
    "report of a part" => %w[report --since=1us --method=M* FILE], "info" => %w[info FILE], "dump" => %w[dump FILE],
    "report with advice" => %w[report --advice FILE], "annotate" => %w[annotate FILE],
    "endpoints" => %w[report --endpoints --group=gem --top=1000000 FILE],
    "application only" => %w[report --app-only FILE], "folded, application only" => %w[export --format=folded --app-only FILE],
    "annotate json" => %w[annotate --format=json --top=1000000 FILE], "history" => %w[history FILE *],
    "html" => %w[html FILE], "html with sources" => %w[html --sources FILE], "merge" => %w[merge FILE FILE],
    "cut" => %w[cut --until=1 FILE],
    "diff" => %w[diff FILE vs FILE], "diff with others" => %w[diff FILE vs OTHER], "folded" => %w[export --format=folded FILE],
    "speedscope" => %w[export --format=speedscope FILE], "pprof" => %w[export --format=pprof FILE],
    "chrome" => %w[export --format=chrome FILE], "firefox" => %w[export --format=firefox FILE],
    "query" => ["query", "FILE", SQL], "sqlite" => %w[export --sqlite=OUT FILE],
    "metrics" => %w[metrics FILE], "scrub" => %w[scrub --remove=Secret -o OUT FILE], "csv" => %w[report --format=csv --top=1000000 FILE],
    "fallbacks" => %w[export --format=folded --kind=fallbacks --threads FILE], "lost" => %w[export --format=folded --weight=lost FILE],
    "blocked" => %w[export --format=folded --kind=blocked --threads FILE], "calls" => %w[export --format=folded --kind=calls --threads FILE],
    "allocations" => %w[export --format=pprof --kind=allocations FILE], "samples" => %w[export --format=folded --kind=samples FILE],
    "minutes" => %w[export --format=pprof --by=minute -o OUT FILE], "html against" => %w[html --against=OTHER -o OUT FILE],
    "top" => %w[top --count=1 --window=1000000000 FILE],
  }.freeze
  TABLES = { "tables" => %w[export --tables=OUT FILE] }.freeze
  WITH_SQLITE = %w[query sqlite].freeze

  # Commands that read kept traces, and damaged ones.
  KEPT_COMMANDS = ["check", "report with advice", "annotate json", "html", "folded", "cut", "history"].freeze
  DAMAGED_COMMANDS = [*KEPT_COMMANDS, "html with sources", "merge", "dump"].freeze

  WORK_OF_NOTHING = {} # most tests have the same empty trace

  # [basic blocks, bytes allocated, bytes at a time] of a command. `out`: what it may write
  def work_of(tool, command, path, other, out)
    names = { "FILE" => path, "OTHER" => other, "OUT" => out }
    arguments = command.map { |word| word.gsub(/\b(FILE|OTHER|OUT)\b/, names) }
    status = tool.run(out, *arguments).exitstatus
    nothing_matches = command.first == "history" || command.include?("--method=M*")
    assert_includes nothing_matches ? [0, 1, 2] : [0, 1], status, "#{command}: #{File.read("#{out}.err", 2000)}"
    File.read("#{out}.work").split.map(&:to_i)
  end

  # Writes a trace, or a folder of several.
  def write(path, made)
    return File.binwrite(path, made.is_a?(FxtBuilder) ? made.bytes : made) unless made.is_a?(Hash)
    Dir.mkdir(path)
    made.each { |name, trace| write(File.join(path, name), trace) }
  end

  def assert_grows_in_proportion(commands = COMMANDS, count: SMALL, &trace)
    tool, query = counting_tool
    Dir.mktmpdir do |dir|
      traces = { none: 0, small: count, large: count * TIMES, other: count / 2 }.transform_values(&trace)
      traces.transform_values! { |made| made.is_a?(FxtBuilder) ? made.bytes : made }
      paths = traces.to_h do |name, made|
        path = File.join(dir, "#{name}.fxt")
        write(path, made)
        [name, path]
      end
      commands.each do |name, command|
        command = [command.first, "--max-faults=3", *command.drop(1)] unless command.first == "top"
        next if !query && WITH_SQLITE.include?(name)
        work = ->(size) { work_of(tool, command, paths[size], paths[:other], File.join(dir, "#{size} #{name}")) }
        other = traces[:other] if command.any? { |word| word.include?("OTHER") }
        none = WORK_OF_NOTHING[[command, traces[:none], other]] ||= work[:none]
        small, large = work[:small], work[:large]
        MOST_TIMES.each_with_index do |(what, most), i|
          least = [small[i] - none[i], i.zero? ? 20_000 : 1_000_000].max # what is small beside a chunk or a window is not growth
          times = (large[i] - none[i]).fdiv(least)
          assert_operator times, :<=, most, "vm-trace #{name}: #{what} of #{none[i]}, #{small[i]}, #{large[i]} for 0, #{count}, #{count * TIMES}"
        end
      end
    end
  end

  # The same with a trace of which the block writes each part: FxtBuilder.simple, and what `first` writes.
  def assert_parts_in_proportion(commands = COMMANDS, count: SMALL, first: nil, &part)
    assert_grows_in_proportion(commands, count: count) do |parts|
      FxtBuilder.simple do |b|
        first&.call(b)
        parts.times { |i| part[b, i] }
      end
    end
  end

  def text(string) = FxtBuilder::Inline.new(string)

  def side_exit(builder, at, reason = "R", frame: "M#m (/m.rb:1)", kind: "side_exit", args: {}, **who)
    args = { "0" => frame, "insn" => "send", "version" => [:uint32, 1] }.merge(args)
    builder.event(:instant, kind, reason, ts: at, args: args, **who)
  end

  def during(builder, category, name, from, to, args: {}, ends: {})
    builder.event(:begin, category, name, ts: from, args: args)
    yield if block_given?
    builder.event(:end, category, name, ts: to, args: ends)
  end

  def compile(builder, at, iseq, version, phases: 0)
    ends = { "iseq" => iseq, "version" => [:uint32, version], "code_bytes" => [:uint64, 10], "exits" => [:uint32, 1] }
    during(builder, "compile", "x", at, at + phases + 5, ends: ends) do
      phases.times { |i| during(builder, "compile", "p", at + i, at + i + 1) }
    end
  end

  # ZJIT's limit can be raised at will; a snapshot of a year may have them all.
  def test_versions_of_one_iseq
    assert_parts_in_proportion do |b, i|
      at, reason, version = i * 100, "Reason#{i % 2}", [:uint32, i + 1]
      compile(b, at, "M#m (/m.rb:1)", i + 1)
      side_exit(b, at + 20, reason, kind: "recompile_exit", frame: "M#m (/m.rb:2)",
                args: { "version" => version, "outcome" => "invalidated" })
      during(b, "invalidation", reason, at + 30, at + 32, args: { "iseq" => "M#m (/m.rb:1)", "version" => version }) do
        b.event(:async_begin, "reprofile", "M#m (/m.rb:1)", ts: at + 31, extra: i,
                args: { "version" => version, "reason" => reason })
      end
      b.event(:async_end, "reprofile", "M#m (/m.rb:1)", ts: at + 90, extra: i)
    end
  end

  # A template that is evaluated again and again.
  def test_compilations_of_one_label
    assert_parts_in_proportion do |b, i|
      compile(b, i * 100, "block in <main> ((erb):1)", 1, phases: 3)
      side_exit(b, i * 100 + 50, "GuardType(Fixnum)", frame: "block in <main> ((erb):1)")
    end
  end

  # Blocks of one method: the line says which one an exit belongs to.
  def test_iseqs_of_one_method
    assert_parts_in_proportion do |b, i|
      compile(b, i * 100, text("block in M#m (/m.rb:#{i * 3})"), 1)
      side_exit(b, i * 100 + 50, frame: text("block in M#m (/m.rb:#{i * 3 + 1})"))
    end
  end

  def test_methods_and_reasons_and_stacks
    assert_parts_in_proportion do |b, i|
      callers = { "1" => text("M#caller#{i % 7} (/m.rb:1)"), "10+" => text("A#a#{i} (/a.rb:1) < B#b (/b.rb:2) x3") }
      frame = text("M#m#{i} (/m.rb:#{i})")
      side_exit(b, i * 1000, text("Reason#{i}(0x#{i.to_s(16)})"), frame: frame, args: callers)
      side_exit(b, i * 1000 + 1, text("Reason#{i}"), kind: "fallback", frame: frame, args: callers)
    end
  end

  # Jobs, each of which runs within one long request, and much happens in it.
  def test_requests_and_endpoints
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        during(b, "marker", "request", 0, count * 100, ends: { "endpoint" => "All" }) do
          count.times do |i|
            at = i * 100
            job = { "endpoint" => text("Job#{i}"), "job_id" => text("id #{i}") }
            during(b, "marker", "job", at + 1, at + 50, args: job, ends: { "status" => [:uint32, 500] }) do
              side_exit(b, at + 2)
              during(b, "gc", "GC minor", at + 3, at + 9)
            end
            side_exit(b, at + 60)
          end
        end
      end
    end
  end

  # Sampled, so that sites count; half of them have no owner, and events that match only
  # approximately.
  def test_sites
    assert_grows_in_proportion do |count|
      trace = OurTrace.new(rate: 97)
      count.times do |i|
        trace.sites << trace.site("side_exit", "R", "#{"M#" if i.odd?}m#{i} (/m.rb:#{i % 9})", "send", 97)
        trace.exits << trace.exit_event("side_exit", "R", 3000 + i, "Other#m#{i} (/m.rb:#{i % 9})", "send", "weight" => [:uint32, 97])
      end
      trace.build
    end
  end

  def test_sites_and_events_of_one_line
    assert_grows_in_proportion do |count|
      trace = OurTrace.new(rate: 97)
      count.times do |i|
        trace.sites << trace.site("side_exit", "R", "M#m (/m.rb:1)", "send", 97).tap { |site| site[:args]["iseq"] = "M#outer#{i} (/o.rb:1)" }
        trace.exits << trace.exit_event("side_exit", "R", 3000 + i, "C#{i}#m (/m.rb:1)", "send", "weight" => [:uint32, 97])
      end
      trace.build
    end
  end

  def test_threads_and_processes
    assert_parts_in_proportion do |b, i|
      side_exit(b, i, pid: 100 + i, tid: 7)
      side_exit(b, i, pid: 5, tid: 1000 + i, args: { "thread" => text("thread #{i}") })
      b.thread_name(100 + i, 7, text("name #{i}"))
      b.process_name(100 + i, text("process #{i}"))
    end
  end

  def test_settings_and_summaries_and_losses
    assert_parts_in_proportion do |b, i|
      settings(b, 100 + i, i, command: text("ruby #{i}"))
      of_trace(b, "loss", i, 100 + i, lost: [:uint64, 1], reason: text("reason #{i}"))
      of_trace(b, "summary", i, 100 + i, exits: [:uint64, 0], lost: [:uint64, 1], sites: [:uint64, 0])
    end
  end

  def test_chunks_and_providers
    assert_parts_in_proportion do |b, i|
      b.provider(1 + i % 300, "provider #{i % 300}")
      b.init
      b.thread(1, 42, 43)
      side_exit(b, i)
    end
  end

  # The smaller one, too, nests 512 deep, as deep as slices do.
  def test_durations_that_nest_and_that_never_end
    assert_parts_in_proportion(count: 1500, first: ->(b) { b.event(:begin, "compile", "whole", ts: 0) }) do |b, i|
      b.event(:begin, "c#{i % 3}", text("name #{i}"), ts: 10 + i * 2)
      b.event(:end, "c#{i % 3}", text("name #{i}"), ts: 11 + i * 2) if i % 3 < 2
      during(b, "compile", "phase", 10 + i * 2, 11 + i * 2)
    end
  end

  def test_async_events_flows_counters_and_scheduling
    assert_parts_in_proportion do |b, i|
      b.event(:async_begin, "c", "a", ts: i, extra: i)
      b.event(:flow_begin, "c", "f", ts: i, extra: i)
      b.event(:flow_end, "c", "f", ts: i + 1, extra: i / 2)
      b.event(:counter, "counter", text("n#{i}"), ts: i, extra: i, args: { "bytes" => i })
      b.event(:complete, "x", "n", ts: i, extra: i + 5)
    end
  end

  # --- by process, thread, reason, minute, file ---

  # An event about the trace, of a process whose main thread has its number.
  def of_trace(builder, name, at, pid, **args)
    builder.event(:instant, "trace", name, ts: at, pid: pid, tid: pid, args: args.transform_keys(&:to_s))
  end

  def settings(builder, pid, at, **more)
    settings = { pid: [:uint32, pid], jit: "ZJIT", ruby: "ruby 4.1.0dev", flags: "exits threads gc" }
    of_trace(builder, "settings", at, pid, **settings, **more)
  end

  def host(builder, pid, at, unix_ns: 10**18 + at, host: "web1", service: "shop", version: "1")
    of_trace(builder, "host", at, pid, host: text(host), unix_ns: [:uint64, unix_ns], service: text(service),
             version: text(version))
  end

  # Thread 1 gives up the GVL.
  def blocks(builder, at, name = "IO#read", frame: "IO#m (/m.rb:1)")
    during(builder, "blocked", text(name), at, at + 10, args: { "0" => text(frame) }) { builder.switch(at, 1, 0, state: 3) }
  end

  # As a spool that was merged has them: each has its command, its host, threads, exits and sites.
  def process(b, i)
    pid, at = 100 + i, i * 1000
    b.provider(1 + i % 300, "provider")
    b.init
    b.thread(1, pid, pid)
    settings(b, pid, at, command: text("ruby bin/worker.rb --number=#{i}"))
    host(b, pid, at + 1, host: "host#{i}.example", version: "v#{i / 2}")
    of_trace(b, "jit", at + 2, pid, jit: "YJIT")
    of_trace(b, "loss", at + 2, pid, lost: [:uint64, 1], reason: "full")
    side_exit(b, at + 3, text("Reason#{i}"))
    during(b, "gc", "major", at + 4, at + 5, args: { "reason" => "newobj" })
    of_trace(b, "site", at + 6, pid, reason: text("Reason#{i}"), kind: "side_exit", insn: "send",
             version: [:uint32, 1], location: "M#m (/m.rb:1)", hits: [:uint64, 1])
    of_trace(b, "summary", at + 7, pid, exits: [:uint64, 1], lost: [:uint64, 1], sites: [:uint64, 1], events: [:uint64, 8])
    b.process_name(pid, text("process #{i}"))
    b.thread_name(pid, pid, text("name #{i}"))
  end

  def test_processes_with_all_that_they_have
    assert_parts_in_proportion { |b, i| process(b, i) }
  end

  # Each process has nine files.
  def test_tables_of_processes
    assert_parts_in_proportion(TABLES, count: 60) { |b, i| process(b, i) }
  end

  def test_pieces_of_snapshots
    assert_parts_in_proportion { |b, i| settings(b, 100 + i, i * 1000, snapshot: "save") }
  end

  def test_threads_with_states_that_wake_each_other
    assert_parts_in_proportion(COMMANDS.merge(TABLES), first: ->(b) { settings(b, 5, 0, command: "ruby a.rb") }) do |b, i|
      tid, at = 100 + i, 1000 + i * 1000
      b.thread(1, 5, tid)
      b.thread_name(5, tid, text("thread #{i}"))
      b.wakeup(at, tid, waker: tid - 1)
      b.switch(at + 10, 0, 1)
      side_exit(b, at + 20)
      b.event(:complete, "call", text("M#m#{i} (/m.rb:1)"), ts: at + 20, extra: [at + 40])
      blocks(b, at + 50, "IO#read#{i}", frame: "IO#m#{i} (/m.rb:1)")
      b.event(:instant, "trace", "states", ts: at + 61,
              args: { "compiled" => [:uint64, 10], "exited" => [:uint64, 3], "changes" => [:uint64, 2] })
    end
  end

  def test_reasons_of_all_kinds
    assert_parts_in_proportion(first: ->(b) { settings(b, 42, 0) }) do |b, i|
      at = 1000 + i * 100
      side_exit(b, at, text("Exit#{i}(Fixnum)"))
      side_exit(b, at + 1, text("Fallback#{i}"), kind: "fallback")
      of_trace(b, "loss", at + 2, 42, lost: [:uint64, 1], reason: text("loss #{i}"))
      during(b, "gc", "major", at + 3, at + 4, args: { "reason" => text("gc #{i}") })
      during(b, "invalidation", text("Invalidation#{i}"), at + 5, at + 6)
      b.event(:instant, "allocation", text("Class#{i}"), ts: at + 7,
              args: { "0" => text("M#a#{i} (/m.rb:#{i})"), "sample" => [:uint64, i], "size" => [:uint32, 40],
                      "weight" => [:uint32, 512] })
      b.event(:complete, "syscall", text("call#{i}"), ts: at + 8, extra: [at + 9])
      b.event(:instant, "throw", text("Error#{i}"), ts: at + 10, args: { "0" => text("M#t#{i} (/m.rb:1)") })
    end
  end

  def test_minutes
    first = ->(b) { host(b, 42, 0, unix_ns: 1_795_694_400_000_000_000) }
    assert_parts_in_proportion(COMMANDS.slice("minutes"), count: 300, first: first) do |b, i|
      at = i * 60_000_000_000
      3.times { |n| side_exit(b, at + n) }
      b.event(:complete, "call", "M#m (/m.rb:1)", ts: at + 20, extra: [at + 40])
      b.switch(at + 49, 0, 1)
      blocks(b, at + 50)
    end
  end

  # A folder, as a spool has it.
  def test_files
    commands = COMMANDS.except("annotate", "annotate json", "cut").merge(TABLES, "diff of deploys" => %w[diff --since-deploy FILE])
    assert_grows_in_proportion(commands, count: 100) do |count|
      (0..count + 1).to_h do |i|
        trace = FxtBuilder.simple(pid: 100 + i) do |b|
          settings(b, 100 + i, 5, command: text("ruby #{i}"), snapshot: "save")
          host(b, 100 + i, 5, unix_ns: 10**18 + i, version: "v#{i % 2}")
          side_exit(b, 5 + i, text("R#{i % 5}"))
        end
        ["web1-#{100 + i}-1.fxt", trace]
      end
    end
  end

  # The inverse of the tool's hash before it is seeded: texts and numbers whose hashes are equal.
  module Chosen
    MASK = 2**64 - 1
    FIRST, SECOND = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9
    FIRST_INVERSE, SECOND_INVERSE = [FIRST, SECOND].map { |factor| factor.pow(2**62 - 1, 2**64) }

    def self.unshift(word, bits)
      found = word
      (64 / bits + 1).times { found = word ^ found >> bits }
      found
    end

    def self.mix(word)
      word = (word ^ word >> 32) * FIRST & MASK
      word = (word ^ word >> 29) * SECOND & MASK
      word ^ word >> 32
    end

    def self.unmix(word)
      word = unshift(word, 32) * SECOND_INVERSE & MASK
      word = unshift(word, 29) * FIRST_INVERSE & MASK
      unshift(word, 32)
    end

    # Of 16 bytes each.
    def self.text(number)
      start = 16 * FIRST & MASK
      first = 0x6161616100000000 + number
      [first, unmix(0x123456789) ^ mix(start ^ first)].pack("Q<Q<")
    end

    # A key that differs from others in the upper half of its hash.
    def self.key(number) = unmix(number << 32 | 5)
  end

  def test_texts_that_were_chosen_for_their_hashes
    assert_equal [Chosen::MASK / 3, 77], [Chosen::MASK / 3, 77].map { |word| Chosen.mix(Chosen.unmix(word)) }
    assert_parts_in_proportion { |b, i| side_exit(b, i * 1000, text(Chosen.text(i))) }
  end

  def test_numbers_that_were_chosen_for_their_hashes
    assert_parts_in_proportion do |b, i|
      key = Chosen.key(i)
      side_exit(b, i * 1000, pid: key >> 32, tid: key & 0xffffffff)
      b.event(:flow_begin, "c", "f", ts: i * 1000 + 1, extra: Chosen.unmix(key - 42))
    end
  end

  # Records that are cut, doubled, moved, and have wild words. The fuzz tests use small inputs,
  # which hide the growth.
  def test_damaged_traces_many_times
    random = Random.new(20261122)
    files = Dir[File.join(TRACES, "*.fxt")].sort
    (LONG ? 12 : 4).times do |i|
      bytes = File.binread(files[i % files.size])
      mutant = Mutants.mutate(bytes[0, 4000], random)
      mutant = bytes if mutant.size < 200
      assert_grows_in_proportion(COMMANDS.slice(*DAMAGED_COMMANDS)) do |count|
        OurTrace.new.build.bytes + mutant * [count * 500 / mutant.bytesize, 1].max
      end
    end
  end

  # Everything else: traces as the tracer writes them, one after the other. (Not for query: all have
  # the same time, so slices nest up to 512 deep, as in Perfetto.)
  def test_the_kept_traces_many_times
    paths = Dir[File.join(TRACES, "*.fxt")].sort
    paths = paths.each_slice(4).map(&:first) unless LONG # together they have all kinds of events many times
    paths.each do |path|
      bytes = File.binread(path)
      assert_grows_in_proportion(COMMANDS.slice(*KEPT_COMMANDS)) do |count|
        bytes * [count * 1000 / bytes.bytesize, 1].max
      end
    end
  end
end
