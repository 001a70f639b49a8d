# The spool: a recording in pieces, by several processes, into one folder.
#
# Once: files are the module's.
require_relative "helper"
require_relative "remote"
require "socket"

class TestSpool < Integration::Test
  include Remote

  parallelize_me! # each test waits for processes of its own

  FLAGS = ["--zjit-trace-exits", "--zjit-trace-spool=spool"].freeze
  FOO = <<~'RUBY'
    def foo(x) = x + 1
    60.times { foo(1) }
    BIG = 2**62 - 1
    def exits(n) = n.times { foo(BIG) }
  RUBY
  NAME = /\A(?<host>[\w.-]+)-(?<pid>\d+)-\d{8}T\d{6}-(?<number>\d+)-(?<reason>[a-z0-9_-]+)\.fxt(?<suffix>\.gz|\.zst|)\z/

  def record(script, *flags, **options)
    run_ruby(FOO + script, *FLAGS, *flags, **options)
  end

  def recorded(script, *flags, **options)
    record(script, *flags, **options).tap { |result| assert_predicate result.status, :success?, result.err }
  end

  # [name's parts, trace] of each piece, in their order.
  def pieces(result)
    Dir.children(File.join(result.dir, "spool")).map do |name|
      parts = NAME.match(name) or flunk "#{name} is no name of a piece"
      trace = Trace.new(File.join(result.dir, "spool", name))
      trace.validate
      [parts, trace]
    end.sort_by { |parts, _| [parts[:pid].to_i, parts[:number].to_i] }
  end

  def hits(trace) = trace.sites("FixnumAddOverflow").sum { |site| site["hits"] }

  def test_saves_without_a_path_cut_the_recording
    result = recorded(<<~'RUBY')
      exits(10)
      one = RubyVM::Trace.save
      exits(20)
      two = RubyVM::Trace.save(reason: "slow")
      exits(5)
      RubyVM::Trace.save("copy.fxt") # no piece: what comes next has it, too
      exits(1)
      puts one[:path], two[:path], one[:events] > 10
    RUBY
    found = pieces(result)
    assert_equal [["1", "save", 10], ["2", "slow", 20], ["4", "exit", 6]],
                 found.map { |parts, trace| [parts[:number], parts[:reason], hits(trace)] }
    assert_equal %w[save slow exit], found.map { |_, trace| trace.settings["snapshot"] }
    assert_equal 5, hits(Trace.new(File.join(result.dir, "copy.fxt")))
    assert_equal found.first(2).map { |_, trace| trace.path } + ["true"], result.out.lines(chomp: true)
    found.each { |_, trace| assert_comes_from_here(trace) }
  end

  def test_report_takes_pieces_for_those_of_one_process
    result = recorded(<<~'RUBY', "--vm-trace=threads")
      3.times do |i|
        exits(10 + i)
        20.times { sleep 0.001 }
        RubyVM::Trace.save
      end
      Process.wait(fork { exits(5); sleep 0.001 })
    RUBY
    found = pieces(result)
    report, status = Open3.capture2(Trace::TOOL, "report", "--format=json", File.join(result.dir, "spool"))
    assert_predicate status, :success?
    tables = JSON.parse(report)
    rows = ->(table, *columns) { tables.fetch(table)["rows"].map { |row| row.values_at(*columns) } }
    parent, child = found.group_by { |parts, _| parts[:pid] }.values.sort_by { |all| -all.size }
    sums = [parent, child].map { |all| [all[0][0][:pid].to_i, all.size, all.sum { |_, trace| hits(trace) }] }
    assert_equal [33, 5], sums.map(&:last)
    assert_equal sums.sort, rows["processes", "pid", "pieces", "exits"].sort
    assert_equal sums.map { |pid, _, exits| [pid, "main", exits] }.sort,
                 rows["threads", "pid", "thread", "count"].select { |row| row[1] == "main" }.sort
    assert_equal sums.map { |pid,| [pid, "main"] }.sort, rows["thread_states", "pid", "thread"].sort
    assert_operator rows["blocked", "count", "name"].to_h(&:reverse).fetch("Kernel#sleep"), :>=, 61
  end

  # The earlier piece has no end of them.
  def test_waits_and_spans_end_at_the_cut_if_pieces_are_read_as_one_trace
    result = recorded(<<~'RUBY', "--vm-trace=threads,markers")
      RubyVM::Trace.span("all") do
        waiting = Thread.new { RubyVM::Trace.span("thread") { Thread.stop } }
        Thread.pass until waiting.stop?
        3.times do
          sleep 0.01
          RubyVM::Trace.save
        end
        waiting.run
        waiting.join
      end
    RUBY
    files = pieces(result).map { |_, trace| trace.path }
    assert_equal 4, files.size
    merged = File.join(result.dir, "merged.fxt")
    assert_equal "", Open3.capture2e(Trace::TOOL, "merge", "-o", merged, *files).first
    sql = "select name, max(depth), sum(dur < 0) from slice where category in ('blocked', 'marker') group by 1"
    [files, [merged]].each do |read|
      out, status = Open3.capture2(Trace::TOOL, "query", *read, sql)
      assert_predicate status, :success?
      depths = out.lines.drop(1).to_h { |line| line.chomp.split(",", 2) }
      names = ['"all"', '"Kernel#sleep"', '"thread"', '"Thread.stop"']
      assert_equal ["0,0", "1,0", "0,0", "1,0"], depths.values_at(*names)
      assert_equal ["0,0"], depths.values_at('"RubyVM::Trace.save"').uniq
    end
  end

  # The time of day is that of the event's own time, by the clock that events have.
  def assert_comes_from_here(trace)
    host = trace.events.find { |event| event["name"] == "host" }
    assert_equal Socket.gethostname, host["args"]["host"]
    assert_in_delta day_of_boot_ns, host["args"]["unix_ns"] - host["ts"], 50_000_000
  end

  # A thread may wait for a processor between two looks at the clocks: the closest looks count.
  def day_of_boot_ns
    clocks = %i[CLOCK_BOOTTIME CLOCK_REALTIME CLOCK_BOOTTIME].map { |clock| Process.const_get(clock) }
    looks = Array.new(100) { clocks.map { |clock| Process.clock_gettime(clock, :nanosecond) } }
    before, day, after = looks.min_by { |from, _, to| to - from }
    day - (before + after) / 2
  end

  # Exits are milliseconds apart, and a cut takes microseconds.
  def test_pieces_at_regular_times_have_each_exit
    result = recorded("2500.times { exits(1); sleep #{0.001 * SLOWNESS} }\n", "--zjit-trace-spool-every=#{SLOWNESS}s")
    found = pieces(result)
    assert_operator found.size, :>=, 3
    assert_equal ["exit"] + ["time"] * (found.size - 1), found.map { |parts, _| parts[:reason] }.rotate(-1)
    assert_includes 2497..2500, found.sum { |_, trace| hits(trace) }
    found.each_cons(2) do |(_, before), (_, after)|
      assert_operator before.summary["events"], :>, 0
      assert_operator last(before), :<=, first(after)
    end
  end

  def first(trace) = trace.exits.map { |event| event["ts"] }.min || Float::INFINITY
  def last(trace) = trace.exits.map { |event| event["ts"] }.max || 0

  def test_each_process_of_a_preforking_server_has_pieces_of_its_own
    result = recorded(<<~'RUBY', "--zjit-trace-spool-every=1s")
      exits(3)
      3.times { |i| fork { 30.times { exits(10 * (i + 1)); sleep 0.05 } } }
      Process.waitall
    RUBY
    by_pid = pieces(result).group_by { |parts, _| parts[:pid] }
    by_pid.each { |pid, found| assert_equal [pid.to_i], found.map { |_, trace| trace.settings["pid"] }.uniq }
    # On a busy machine the interpreter makes the first call after some of the pauses (test_patching.rb).
    [3, 300, 600, 900].zip(by_pid.values.map { |found| found.sum { |_, trace| hits(trace) } }.sort) do |made, found|
      assert_in_delta made, found, made / 20.0
    end
  end

  def test_limits_hold_for_all_processes_and_the_newest_stay
    result = recorded(<<~'RUBY', "--zjit-trace-spool-limit=8,4", "--zjit-trace-memory=4")
      worker = ->(n) { n.times { exits(50); RubyVM::Trace.save } }
      2.times { fork { worker.(20) } }
      Process.waitall
      worker.(3)
    RUBY
    found = pieces(result)
    assert_equal 4, found.size
    assert_equal 1, found.map { |parts, _| parts[:pid] }.uniq.size - 1, "three of the parent, one of a child"
  end

  def test_killed_process_leaves_its_pieces
    # Without a piece at its time, which could be half written then.
    result = record("exits(5)\nRubyVM::Trace.save\nexits(2)\nProcess.kill(:KILL, $$)\nsleep\n", "--zjit-trace-spool-every=24h")
    assert_equal [5], pieces(result).map { |_, trace| hits(trace) }
  end

  def test_exception_and_signal_are_reasons
    result = record(<<~'RUBY', "--zjit-trace-save-at=USR2")
      exits(1)
      Process.kill(:USR2, $$)
      sleep 0.01 until Dir["spool/*-signal.fxt"].any?
      exits(2)
      raise "x"
    RUBY
    found = pieces(result).first(2).map { |parts, trace| [parts[:reason], hits(trace)] }
    assert_equal [["signal", 1], ["exception", 2]], found
  end

  def test_program_without_events_writes_nothing
    result = recorded("sleep 1.3\n", "--zjit-trace-spool-every=1s", "--zjit-trace-methods=Nothing#at_all")
    assert_empty pieces(result)
  end

  def test_folder_that_cannot_be_is_said_at_the_start
    result = run_ruby("puts 1", "--zjit-trace-exits", "--zjit-trace-spool=/proc/spool")
    refute_predicate result.status, :success?
    message = %r{--zjit-trace-spool=/proc/spool: .*; give a folder that this user can write to}
    assert_match(message, jit(result.err).tr("y", "z"))
  end

  def test_reasons_are_checked
    result = recorded(<<~'RUBY')
      ["", "A", "a/b", "x" * 33, "a\0b", 1].each do |reason|
        RubyVM::Trace.save(reason: reason)
      rescue ArgumentError, TypeError => e
        puts e.class
      end
      puts RubyVM::Trace.save(reason: :ok)[:path]
    RUBY
    assert_equal %w[ArgumentError] * 5 + %w[TypeError], result.out.lines(chomp: true).first(6)
    assert_match(/-1-ok\.fxt\n\z/, result.out)
  end

  def test_pieces_are_compressed
    %w[zstd gzip].zip(%w[.zst .gz]).each do |how, suffix|
      result = recorded(<<~'RUBY', "--zjit-trace-spool-compress=#{how}")
        exits(10)
        puts RubyVM::Trace.save[:path]
        fork { exits(7) }
        Process.wait
        exits(20)
      RUBY
      found = pieces(result)
      assert_equal [["save", 10], ["exit", 20], ["exit", 7]].sort, found.map { |parts, trace| [parts[:reason], hits(trace)] }.sort
      assert_equal [suffix] * 3, found.map { |parts, _| parts[:suffix] }
      assert_includes found.map { |_, trace| trace.path }, result.out.chomp
    end
  end

  # --- RubyVM::Trace.start(spool:), vm-trace start --spool ---

  def started(script)
    result = run_ruby(FOO + script, "--zjit")
    assert_predicate result.status, :success?, result.err
    result
  end

  def test_program_starts_and_stops_a_spool
    result = started(<<~'RUBY')
      p RubyVM::Trace.start(spool: "spool", spool_every: 3600, spool_limit: [8, 4], memory: 4)
      p RubyVM::Trace.status.values_at(:memory, :spool)
      exits(10)
      puts RubyVM::Trace.save(reason: "slow")[:path]
      exits(20)
      p RubyVM::Trace.stop.values_at(:path, :lost)
      exits(40)
      RubyVM::Trace.record(spool: "spool") { exits(5) }
      p RubyVM::Trace.record(spool: "spool", exits: false, markers: true) { }.key?(:events) # writes no piece
      RubyVM::Trace.start(spool: "spool", spool_compress: :gzip)
      exits(3)
    RUBY
    found = pieces(result)
    assert_equal [["1", "slow", 10], ["2", "stop", 20], ["3", "stop", 5], ["4", "exit", 3]],
                 found.map { |parts, trace| [parts[:number], parts[:reason], hits(trace)] }
    assert_equal ["", "", "", ".gz"], found.map { |parts, _| parts[:suffix] }
    spool = File.join(result.dir, "spool")
    assert_equal ["nil", [4, spool].inspect, found.first[1].path, "[nil, 0]", "true"], result.out.lines(chomp: true)
    assert_empty result.err
  end

  # A thread of an earlier session goes by the times of the next; a forked child has one of its own.
  def test_each_session_has_its_own_period
    result = started(<<~'RUBY')
      RubyVM::Trace.record(spool: "spool", spool_every: "1h") { exits(1) }
      body = -> do
        RubyVM::Trace.start(spool: "spool", spool_every: 1)
        until Dir["spool/*-#{$$}-*-time.fxt"].size >= 2
          exits(1)
          sleep 0.005
        end
        RubyVM::Trace.stop
      end
      body.()
      Process.wait(fork(&body))
      p $?.success?
    RUBY
    assert_equal "true\n", result.out
    found = pieces(result).group_by { |parts, _| parts[:pid] }
    assert_equal 2, found.size
    found.each_value { |list| assert_operator list.count { |parts, _| parts[:reason] == "time" }, :>=, 2 }
  end

  def test_options_of_a_spool_are_checked
    result = started(<<~'RUBY')
      File.write("file", "")
      [{ spool_every: 5 }, { spool_limit: 5 }, { spool: "spool", spool_every: 0.5 }, { spool: "spool", spool_every: "soon" },
       { spool: "spool", spool_limit: 0 }, { spool: "spool", spool_limit: [8, 0] }, { spool: "file" },
       { spool: "spool", spool_compress: :lz4 },
       { spool: "/proc/spool" }, { spool: "spool", file: "a" }, { spool: "spool", seconds: 5 },
       { spool: "spool", save_at: :exit }, { spool: "spool", max_size: 8 }, { spool: "spool", memory: 1 }].each do |options|
        RubyVM::Trace.start(**options)
        puts "started with #{options}"
      rescue ArgumentError => e
        puts e.message
      end
      p RubyVM::Trace.status[:on], Dir.exist?("spool")
    RUBY
    expected = ["spool_every: is for pieces", "spool_limit: is for pieces",
                "spool_every: takes a time from 1s to 24h, such as 5min, or seconds, not 0.5",
                'spool_every: takes a time from 1s to 24h, such as 5min, or seconds, not "soon"',
                "spool_limit: takes the MiB", "spool_limit: takes the MiB",
                "spool: file: ", "spool_compress: takes zstd, gzip or none, not :lz4",
                "spool: /proc/spool: No such file or directory; give a folder", "file: does not go with spool:",
                "seconds: does not go with spool:", "save_at: does not go with spool:", "max_size: is for a file",
                "memory: takes a number of MiB", "false", "false"]
    lines = result.out.lines(chomp: true)
    assert_equal expected.size, lines.size, result.out
    expected.zip(lines) { |text, line| assert line.start_with?(text), "#{line} should begin with #{text}" }
  end

  # In the piece that goes on.
  def wait_for_exits(pid) = wait_until("the program exits") { tell("status", pid)[1].match?(/^exits +[1-9]/) }

  def test_running_program_gets_a_spool_from_outside
    beside do |pid, dir|
      status, out, err = tell("start", "--spool=spool", "--spool-every=1h", "--spool-limit=64,10", "--memory=4", pid)
      assert_equal [0, "memory\n", ""], [status, out, err]
      assert_match(%r{^spool +#{dir}/spool$}, tell("status", pid)[1])
      wait_for_exits(pid)
      assert_match(/-1-save\.fxt$/, tell("save", pid)[1])
      wait_for_exits(pid)
      assert_equal 0, tell("stop", pid).first
      names = Dir.children(File.join(dir, "spool")).sort
      assert_equal %w[1-save 2-stop], names.map { |name| name[/\d+-\w+(?=\.fxt)/] }
      traces = names.map { |name| Trace.new(File.join(dir, "spool", name)).tap { |trace| trace.validate(recorders: 2) } }
      traces.each { |trace| assert_operator trace.exits.size, :>, 0 }
      assert_operator last(traces[0]), :<=, first(traces[1])
      assert_match(/spool_every: takes a time from 1s to 24h/, tell("start", "--spool=spool", "--spool-every=never", pid)[2])
    end
  end
end
