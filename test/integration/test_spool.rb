# The spool: a recording in pieces, by several processes, into one folder.
require_relative "helper"
require "socket"

class TestSpool < Integration::Test
  parallelize_me! # each test waits for processes of its own

  FLAGS = ["--zjit-trace-exits", "--zjit-trace-spool=spool"].freeze
  FOO = <<~'RUBY'
    def foo(x) = x + 1
    60.times { foo(1) }
    BIG = 2**62 - 1
    def exits(n) = n.times { foo(BIG) }
  RUBY
  NAME = /\A(?<host>[\w.-]+)-(?<pid>\d+)-\d{8}T\d{6}-(?<number>\d+)-(?<reason>[a-z0-9_-]+)\.fxt\z/

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

  # The time of day is that of the event's own time, by the clock that events have.
  def assert_comes_from_here(trace)
    host = trace.events.find { |event| event["name"] == "host" }
    assert_equal Socket.gethostname, host["args"]["host"]
    day, boot = %i[CLOCK_REALTIME CLOCK_BOOTTIME].map { |clock| Process.clock_gettime(Process.const_get(clock), :nanosecond) }
    assert_in_delta day - boot, host["args"]["unix_ns"] - host["ts"], 50_000_000
  end

  # Exits are milliseconds apart, and a cut takes microseconds.
  def test_pieces_at_regular_times_have_each_exit
    result = recorded("2500.times { exits(1); sleep 0.001 }\n", "--zjit-trace-spool-every=1s")
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
    assert_equal [3, 300, 600, 900], by_pid.values.map { |found| found.sum { |_, trace| hits(trace) } }.sort
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
    result = record("exits(5)\nRubyVM::Trace.save\nexits(2)\nProcess.kill(:KILL, $$)\nsleep\n")
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
end
