# The work of every command is proportional to its input, whatever it contains: four times as much
# input costs not much more than four times as much. The tests count basic blocks and allocated
# bytes, not time, and see nothing inside libc and SQLite except their callbacks.
require_relative "tool_helper"
require_relative "mutants"

class TestGrowth < Minitest::Test
  include ToolHelper

  LONG = !ENV["LONG"].to_s.empty?

  SMALL = 1500
  TIMES = 4
  # From 1500 to 6000, n * n grows 16 times, and n log n 5 times. Tables that double may double once
  # more for the larger input.
  MOST_TIMES = { "basic blocks" => 6.5, "bytes allocated" => 11, "bytes at a time" => 11 }.freeze

  # The tool with counters, and whether it has the query command.
  def counting_tool
    skip "it builds a tool of its own, whose work is the same" if INSTRUMENTED
    path = instrumented_tool("counting", "no compiler here counts basic blocks")
    [path, tool("query", File.join(TRACES, "exits.fxt"), "select 1").err !~ /built without SQLite/]
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

  # [basic blocks, bytes allocated, bytes at a time] of a command
  def work_of(tool, command, path, other)
    Dir.mktmpdir do |dir|
      names = { "FILE" => path, "OTHER" => other, "OUT" => File.join(dir, "out") }
      arguments = command.map { |word| word.gsub(/\b(FILE|OTHER|OUT)\b/, names) }
      counted = File.join(dir, "work")
      _, err, status = Open3.capture3({ "WORK" => counted, "LC_ALL" => "C.UTF-8" }, tool, *arguments, binmode: true)
      nothing_matches = command.first == "history" || command.include?("--method=M*")
      assert_includes nothing_matches ? [0, 1, 2] : [0, 1], status.exitstatus, "#{command}: #{err[0, 2000]}"
      File.read(counted).split.map(&:to_i)
    end
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
      paths = { none: 0, small: count, large: count * TIMES, other: count / 2 }.to_h do |name, size|
        path = File.join(dir, "#{name}.fxt")
        write(path, trace[size])
        [name, path]
      end
      commands.each do |name, command|
        command = [command.first, "--max-faults=3", *command.drop(1)] unless command.first == "top"
        next if !query && WITH_SQLITE.include?(name)
        none, small, large = %i[none small large].map { |size| work_of(tool, command, paths[size], paths[:other]) }
        MOST_TIMES.each_with_index do |(what, most), i|
          least = [small[i] - none[i], i.zero? ? 20_000 : 1_000_000].max # what is small beside a chunk or a window is not growth
          times = (large[i] - none[i]).fdiv(least)
          assert_operator times, :<=, most, "vm-trace #{name}: #{what} of #{none[i]}, #{small[i]}, #{large[i]} for 0, #{count}, #{count * TIMES}"
        end
      end
    end
  end

  def exit_args(frame, version: 1, **more) = { "0" => frame, "insn" => "send", "version" => [:uint32, version] }.merge(more.transform_keys(&:to_s))
  def text(string) = FxtBuilder::Inline.new(string)

  def compile(builder, at, iseq, version, phases: 0, thread: 1)
    builder.event(:begin, "compile", "x", ts: at, thread: thread)
    phases.times { |i| builder.event(:begin, "compile", "p", ts: at + i, thread: thread); builder.event(:end, "compile", "p", ts: at + i + 1, thread: thread) }
    builder.event(:end, "compile", "x", ts: at + phases + 5, thread: thread,
                  args: { "iseq" => iseq, "version" => [:uint32, version], "code_bytes" => [:uint64, 10], "exits" => [:uint32, 1] })
  end

  # ZJIT's limit can be raised at will; a snapshot of a year may have them all.
  def test_versions_of_one_iseq
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times do |i|
          at = i * 100
          compile(b, at, "M#m (/m.rb:1)", i + 1)
          b.event(:instant, "recompile_exit", "Reason#{i % 2}", ts: at + 20, args: exit_args("M#m (/m.rb:2)", version: i + 1, outcome: "invalidated"))
          b.event(:begin, "invalidation", "Reason#{i % 2}", ts: at + 30, args: { "iseq" => "M#m (/m.rb:1)", "version" => [:uint32, i + 1] })
          b.event(:async_begin, "reprofile", "M#m (/m.rb:1)", ts: at + 31, extra: i, args: { "version" => [:uint32, i + 1], "reason" => "Reason#{i % 2}" })
          b.event(:end, "invalidation", "Reason#{i % 2}", ts: at + 32)
          b.event(:async_end, "reprofile", "M#m (/m.rb:1)", ts: at + 90, extra: i)
        end
      end
    end
  end

  # A template that is evaluated again and again.
  def test_compilations_of_one_label
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times do |i|
          compile(b, i * 100, "block in <main> ((erb):1)", 1, phases: 3)
          b.event(:instant, "side_exit", "GuardType(Fixnum)", ts: i * 100 + 50, args: exit_args("block in <main> ((erb):1)"))
        end
      end
    end
  end

  # Blocks of one method: the line says which one an exit belongs to.
  def test_iseqs_of_one_method
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times do |i|
          compile(b, i * 100, text("block in M#m (/m.rb:#{i * 3})"), 1)
          b.event(:instant, "side_exit", "R", ts: i * 100 + 50, args: exit_args(text("block in M#m (/m.rb:#{i * 3 + 1})")))
        end
      end
    end
  end

  def test_methods_and_reasons_and_stacks
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times do |i|
          frames = exit_args(text("M#m#{i} (/m.rb:#{i})"), "1" => text("M#caller#{i % 7} (/m.rb:1)"), "10+" => text("A#a#{i} (/a.rb:1) < B#b (/b.rb:2) x3"))
          b.event(:instant, "side_exit", text("Reason#{i}(0x#{i.to_s(16)})"), ts: i * 1000, args: frames)
          b.event(:instant, "fallback", text("Reason#{i}"), ts: i * 1000 + 1, args: frames)
        end
      end
    end
  end

  # Jobs, each of which runs within one long request, and much happens in it.
  def test_requests_and_endpoints
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        b.event(:begin, "marker", "request", ts: 0)
        count.times do |i|
          at = i * 100
          b.event(:begin, "marker", "job", ts: at + 1, args: { "endpoint" => text("Job#{i}"), "job_id" => text("id #{i}") })
          b.event(:instant, "side_exit", "R", ts: at + 2, args: exit_args("M#m (/m.rb:1)"))
          b.event(:begin, "gc", "GC minor", ts: at + 3)
          b.event(:end, "gc", "GC minor", ts: at + 9)
          b.event(:end, "marker", "job", ts: at + 50, args: { "status" => [:uint32, 500] })
          b.event(:instant, "side_exit", "R", ts: at + 60, args: exit_args("M#m (/m.rb:1)"))
        end
        b.event(:end, "marker", "request", ts: count * 100, args: { "endpoint" => "All" })
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
    assert_grows_in_proportion do |count|
      FxtBuilder.new.tap do |b|
        b.provider(1, "test")
        b.init
        count.times do |i|
          b.event(:instant, "side_exit", "R", ts: i, pid: 100 + i, tid: 7, args: exit_args("M#m (/m.rb:1)"))
          b.event(:instant, "side_exit", "R", ts: i, pid: 5, tid: 1000 + i, args: exit_args("M#m (/m.rb:1)").merge("thread" => text("thread #{i}")))
          b.thread_name(100 + i, 7, text("name #{i}"))
          b.process_name(100 + i, text("process #{i}"))
        end
      end
    end
  end

  def test_settings_and_summaries_and_losses
    assert_grows_in_proportion do |count|
      FxtBuilder.new.tap do |b|
        b.provider(1, "test")
        b.init
        count.times do |i|
          who = { pid: 100 + i, tid: 7 }
          b.event(:instant, "trace", "settings", ts: i, args: { "pid" => [:uint32, 100 + i], "jit" => "ZJIT", "command" => text("ruby #{i}") }, **who)
          b.event(:instant, "trace", "loss", ts: i, args: { "lost" => [:uint64, 1], "reason" => text("reason #{i}") }, **who)
          b.event(:instant, "trace", "summary", ts: i, args: { "exits" => [:uint64, 0], "lost" => [:uint64, 1], "sites" => [:uint64, 0] }, **who)
        end
      end
    end
  end

  def test_chunks_and_providers
    assert_grows_in_proportion do |count|
      FxtBuilder.new.tap do |b|
        count.times do |i|
          b.provider(1 + i % 300, "provider #{i % 300}")
          b.init
          b.thread(1, 42, 43)
          b.event(:instant, "side_exit", "R", ts: i, args: exit_args("M#m (/m.rb:1)"))
        end
      end
    end
  end

  def test_durations_that_nest_and_that_never_end
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        b.event(:begin, "compile", "whole", ts: 0)
        count.times do |i|
          b.event(:begin, "c#{i % 3}", text("name #{i}"), ts: 10 + i * 2)
          b.event(:end, "c#{i % 3}", text("name #{i}"), ts: 11 + i * 2) if i % 3 < 2
          b.event(:begin, "compile", "phase", ts: 10 + i * 2)
          b.event(:end, "compile", "phase", ts: 11 + i * 2)
        end
      end
    end
  end

  def test_async_events_flows_counters_and_scheduling
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times do |i|
          b.event(:async_begin, "c", "a", ts: i, extra: i)
          b.event(:flow_begin, "c", "f", ts: i, extra: i)
          b.event(:flow_end, "c", "f", ts: i + 1, extra: i / 2)
          b.event(:counter, "counter", text("n#{i}"), ts: i, extra: i, args: { "bytes" => i })
          b.event(:complete, "x", "n", ts: i, extra: i + 5)
        end
      end
    end
  end

  # --- by process, thread, reason, minute, file ---

  def settings(builder, pid, at, **more)
    args = { "pid" => [:uint32, pid], "jit" => "ZJIT", "ruby" => "ruby 4.1.0dev", "flags" => "exits threads gc" }
    builder.event(:instant, "trace", "settings", ts: at, pid: pid, tid: pid, args: args.merge(more.transform_keys(&:to_s)))
  end

  # As a spool that was merged has them: each has its command, its host, threads, exits and sites.
  def test_processes_with_all_that_they_have
    assert_grows_in_proportion { |count| processes(count) }
  end

  # Each process has nine files.
  def test_tables_of_processes
    assert_grows_in_proportion(TABLES, count: 60) { |count| processes(count) }
  end

  def processes(count)
    FxtBuilder.new.tap do |b|
      count.times do |i|
        b.provider(1 + i % 300, "provider")
        b.init
        who = { pid: 100 + i, tid: 100 + i }
        settings(b, 100 + i, i * 1000, command: text("ruby bin/worker.rb --number=#{i}"))
        args = { "host" => text("host#{i}.example"), "unix_ns" => [:uint64, 10**18 + i * 1000], "service" => "shop", "version" => text("v#{i / 2}") }
        b.event(:instant, "trace", "host", ts: i * 1000 + 1, args: args, **who)
        b.event(:instant, "trace", "jit", ts: i * 1000 + 2, args: { "jit" => "YJIT" }, **who)
        b.event(:instant, "trace", "loss", ts: i * 1000 + 2, args: { "lost" => [:uint64, 1], "reason" => "full" }, **who)
        b.event(:instant, "side_exit", text("Reason#{i}"), ts: i * 1000 + 3, args: exit_args("M#m (/m.rb:1)"), **who)
        b.event(:begin, "gc", "major", ts: i * 1000 + 4, args: { "reason" => "newobj" }, **who)
        b.event(:end, "gc", "major", ts: i * 1000 + 5, **who)
        b.event(:instant, "trace", "site", ts: i * 1000 + 6, args: { "reason" => text("Reason#{i}"), "kind" => "side_exit", "insn" => "send", "version" => [:uint32, 1], "location" => "M#m (/m.rb:1)", "hits" => [:uint64, 1] }, **who)
        b.event(:instant, "trace", "summary", ts: i * 1000 + 7, args: { "exits" => [:uint64, 1], "lost" => [:uint64, 1], "sites" => [:uint64, 1], "events" => [:uint64, 8] }, **who)
        b.process_name(100 + i, text("process #{i}"))
        b.thread_name(100 + i, 100 + i, text("name #{i}"))
      end
    end
  end

  def test_pieces_of_snapshots
    assert_grows_in_proportion do |count|
      FxtBuilder.new.tap do |b|
        b.provider(1, "test")
        b.init
        count.times { |i| settings(b, 100 + i, i * 1000, snapshot: "save") }
      end
    end
  end

  def test_threads_with_states_that_wake_each_other
    assert_grows_in_proportion(COMMANDS.merge(TABLES)) do |count|
      FxtBuilder.new.tap do |b|
        b.provider(1, "test")
        b.init
        settings(b, 5, 0, command: "ruby a.rb")
        count.times do |i|
          tid = 100 + i
          b.thread(1, 5, tid)
          b.thread(2, 5, tid - 1)
          b.thread_name(5, tid, text("thread #{i}"))
          at = 1000 + i * 1000
          b.wakeup(at, tid, waker: tid - 1)
          b.switch(at + 10, 0, 1)
          b.event(:instant, "side_exit", "R", ts: at + 20, args: exit_args("M#m (/m.rb:1)"))
          b.event(:complete, "call", text("M#m#{i} (/m.rb:1)"), ts: at + 20, extra: [at + 40])
          b.event(:begin, "blocked", text("IO#read#{i}"), ts: at + 50, args: { "0" => text("IO#m#{i} (/m.rb:1)") })
          b.switch(at + 50, 1, 0, state: 3)
          b.event(:end, "blocked", text("IO#read#{i}"), ts: at + 60)
          b.event(:instant, "trace", "states", ts: at + 61, args: { "compiled" => [:uint64, 10], "exited" => [:uint64, 3], "changes" => [:uint64, 2] })
        end
      end
    end
  end

  def test_reasons_of_all_kinds
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        settings(b, 42, 0)
        count.times do |i|
          at = 1000 + i * 100
          b.event(:instant, "side_exit", text("Exit#{i}(Fixnum)"), ts: at, args: exit_args("M#m (/m.rb:1)"))
          b.event(:instant, "fallback", text("Fallback#{i}"), ts: at + 1, args: exit_args("M#m (/m.rb:1)"))
          b.event(:instant, "trace", "loss", ts: at + 2, args: { "lost" => [:uint64, 1], "reason" => text("loss #{i}") })
          b.event(:begin, "gc", "major", ts: at + 3, args: { "reason" => text("gc #{i}") })
          b.event(:end, "gc", "major", ts: at + 4)
          b.event(:begin, "invalidation", text("Invalidation#{i}"), ts: at + 5)
          b.event(:end, "invalidation", text("Invalidation#{i}"), ts: at + 6)
          b.event(:instant, "allocation", text("Class#{i}"), ts: at + 7, args: { "0" => text("M#a#{i} (/m.rb:#{i})"), "sample" => [:uint64, i], "size" => [:uint32, 40], "weight" => [:uint32, 512] })
          b.event(:complete, "syscall", text("call#{i}"), ts: at + 8, extra: [at + 9])
          b.event(:instant, "throw", text("Error#{i}"), ts: at + 10, args: { "0" => text("M#t#{i} (/m.rb:1)") })
        end
      end
    end
  end

  def test_minutes
    assert_grows_in_proportion(COMMANDS.slice("minutes"), count: 300) do |count|
      FxtBuilder.simple do |b|
        b.event(:instant, "trace", "host", ts: 0, args: { "host" => "h", "unix_ns" => [:uint64, 1_795_694_400_000_000_000], "service" => "s", "version" => "1" })
        count.times do |i|
          at = i * 60_000_000_000
          3.times { |n| b.event(:instant, "side_exit", "R", ts: at + n, args: exit_args("M#m (/m.rb:1)")) }
          b.event(:complete, "call", "M#m (/m.rb:1)", ts: at + 20, extra: [at + 40])
          b.switch(at + 49, 0, 1)
          b.event(:begin, "blocked", "IO#read", ts: at + 50, args: { "0" => "IO#m (/m.rb:1)" })
          b.switch(at + 50, 1, 0, state: 3)
          b.event(:end, "blocked", "IO#read", ts: at + 60)
        end
      end
    end
  end

  # A folder, as a spool has it.
  def test_files
    commands = COMMANDS.except("annotate", "annotate json", "cut").merge(TABLES, "diff of deploys" => %w[diff --since-deploy FILE])
    assert_grows_in_proportion(commands, count: 100) do |count|
      (0..count + 1).to_h do |i|
        trace = FxtBuilder.simple(pid: 100 + i) do |b|
          settings(b, 100 + i, 5, command: text("ruby #{i}"), snapshot: "save")
          version = { "host" => "web1", "unix_ns" => [:uint64, 10**18 + i], "service" => "shop", "version" => text("v#{i % 2}") }
          b.event(:instant, "trace", "host", ts: 5, args: version)
          b.event(:instant, "side_exit", text("R#{i % 5}"), ts: 5 + i, args: exit_args("M#m (/m.rb:1)"))
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
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times { |i| b.event(:instant, "side_exit", text(Chosen.text(i)), ts: i * 1000, args: exit_args("M#m (/m.rb:1)")) }
      end
    end
  end

  def test_numbers_that_were_chosen_for_their_hashes
    assert_grows_in_proportion do |count|
      FxtBuilder.simple do |b|
        count.times do |i|
          key = Chosen.key(i)
          b.event(:instant, "side_exit", "R", ts: i * 1000, pid: key >> 32, tid: key & 0xffffffff, args: exit_args("M#m (/m.rb:1)"))
          b.event(:flow_begin, "c", "f", ts: i * 1000 + 1, extra: Chosen.unmix(key - 42))
        end
      end
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
