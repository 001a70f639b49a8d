# The flight recorder: recording into memory, and its saved traces.
#
# Once for each base: memory and files are the module's.
require_relative "helper"

class TestRecorder < Integration::Test
  parallelize_me! # each test waits for processes of its own

  FLAGS = ["--zjit-trace-memory=4"].freeze
  # foo exits at each call with BIG; `exits` takes so many.
  FOO = <<~'RUBY'
    Warning[:experimental] = false
    def foo(x) = x + 1
    60.times { foo(1) }
    BIG = 2**62 - 1
    def exits(n) = n.times { foo(BIG) }
    def error
      yield
      nil
    rescue => e
      "#{e.class}: #{e.message}"
    end
  RUBY

  # Runs the script, which saves where it likes; each trace in the folder is validated.
  def record(script, *flags, **options)
    run_traced(FOO + script, *FLAGS, *flags, **options)
  end

  def recorded(script, *flags, **options)
    record(script, *flags, **options).tap { |result| assert_predicate result.status, :success?, result.err }
  end

  def named(result, name)
    result.traces.find { |trace| File.basename(trace.path) == name } or flunk "no #{name}: #{Dir.children(result.dir)}\n#{result.err}"
  end

  def foo_exits(trace) = trace.exits("FixnumAddOverflow").count { |event| event["args"]["0"].start_with?("Object#foo") }

  def test_save_makes_a_trace_of_all_that_was_recorded
    result = recorded(<<~'RUBY')
      exits(100)
      told = RubyVM::Trace.save("a.fxt")
      puts told.keys.inspect, told[:path], told[:events], told[:exits], told[:lost], File.stat("a.fxt").mode.to_s(8)
      exits(10)
      RubyVM::Trace.save("b.fxt")
    RUBY
    a, b = named(result, "a.fxt"), named(result, "b.fxt")
    assert_equal [100, 110], [foo_exits(a), foo_exits(b)]
    assert_equal ["[:path, :events, :exits, :lost]", "a.fxt", a.events.size.to_s, a.exits.size.to_s, "0", "100600"], result.out.lines(chomp: true)
    assert_equal ["save", "newest", 4 << 20], a.settings.values_at("snapshot", "keep", "max_bytes")
    assert_equal "save", a.summary["snapshot"]
    assert_equal ["main"], a.exits.map { |event| event["thread"] }.uniq
  end

  def test_nothing_is_written_unless_it_is_asked_for
    result = recorded("exits(100)")
    assert_equal ["script.rb"], Dir.children(result.dir).reject { |name| name.start_with?(".") }
    assert_equal [jit("ZJIT: recording to memory, 4 MiB at most\n")], result.err.lines
  end

  def test_reset_forgets_what_came_before
    result = recorded(<<~'RUBY', "--zjit-trace-exits-sample-rate=2")
      3.times do |i|
        RubyVM::Trace.reset
        exits(10 * i)
        RubyVM::Trace.save("#{i}.fxt")
      end
    RUBY
    3.times do |i|
      trace = named(result, "#{i}.fxt")
      assert_equal 10 * i, trace.sites.sum { |site| site["hits"] }, i
      assert_equal 5 * i, trace.exits.size
    end
  end

  def test_status_counts_from_the_reset
    result = recorded(<<~'RUBY', "--zjit-trace-memory=8")
      exits(50)
      RubyVM::Trace.reset
      exits(7)
      status = RubyVM::Trace.status
      saved = RubyVM::Trace.save("t.fxt")
      puts [status[:exits], status[:sampled], saved[:exits]].uniq.size, status[:events] < 50, status[:exits] >= 7, status[:lost], saved[:lost]
    RUBY
    assert_equal %w[1 true true 0 0], result.out.split
  end

  # At rates that record all and one in three. Each takes another number of exits in the end, which
  # all have to be there.
  def test_hits_are_exact_however_many_ractors_reset
    [1, 3].each do |rate|
      result = recorded(<<~'RUBY', "--zjit-trace-memory=32", "--zjit-trace-exits-sample-rate=#{rate}", recorders: 12)
        Ractor.new { exits(40) }.value
        Array.new(8) { Ractor.new { 200.times { |i| RubyVM::Trace.reset if i % 3 == 0; exits(i % 4) } } }.each(&:value)
        RubyVM::Trace.save("any.fxt")
        RubyVM::Trace.reset
        Array.new(8) { |n| Ractor.new(n) { |more| exits(10 + more) } }.each(&:value)
        RubyVM::Trace.save("last.fxt")
      RUBY
      last, any = named(result, "last.fxt"), named(result, "any.fxt")
      hits = ->(trace) { trace.sites.sum { |site| site["kind"] == "fallback" ? 0 : site["hits"] } }
      foo = last.sites.sum { |site| site["location"].include?("foo (") ? site["hits"] : 0 }
      assert_equal 8 * 10 + 28, foo, "K=#{rate}"
      assert_equal [hits.(any), hits.(last)], [any, last].map { |trace| trace.exits.size } if rate == 1
    end
  end

  # Read by the tool: the least memory holds very many events.
  def test_memory_stays_what_was_promised_and_the_newest_stay
    result = recorded(<<~'RUBY', args: [Trace::TOOL])
      exits(100_000)
      def last(x) = x + 1
      60.times { last(1) }
      last(BIG)
      fd = Dir["/proc/self/fd/*"].find { |name| File.readlink(name).include?("memfd:vm_trace") rescue false }
      told = RubyVM::Trace.save("t.fxt")
      puts File.stat(fd).size, File.size("t.fxt"), told[:exits], told[:lost]
      system(ARGV[0], "check", "t.fxt", out: File::NULL, exception: true)
      system(ARGV[0], "query", "t.fxt", "SELECT a.display_value FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0' ORDER BY ts DESC LIMIT 1")
      File.delete("t.fxt")
    RUBY
    said = result.out.lines(chomp: true)
    memory, size, exits, lost = said.map(&:to_i)
    assert_operator memory, :<=, 4 << 20
    assert_operator size, :<=, 5 << 20
    assert_operator exits, :>, 20_000
    assert_operator lost, :>=, 100_000 - exits
    assert_includes said.last, "Object#last"
  end

  def test_seconds_leave_out_what_is_older
    result = recorded("exits(50)\nsleep 3.1\nexits(20)\nRubyVM::Trace.save('t.fxt')\n", "--zjit-trace-memory=4,3")
    trace = named(result, "t.fxt")
    assert_equal [20, 70, 3], [foo_exits(trace), trace.summary["exits"], trace.settings["seconds"]]
  end

  # --- bad use ---

  def test_bad_use_raises_and_loses_nothing
    result = recorded(<<~'RUBY')
      exits(10)
      RubyVM::Trace.save("t.fxt")
      exits(10)
      Dir.mkdir("folder")
      File.symlink("t.fxt", "link")
      puts error { RubyVM::Trace.save("no/where.fxt") }, error { RubyVM::Trace.save("folder") }, error { RubyVM::Trace.save("link") },
        error { RubyVM::Trace.save(7) }, error { RubyVM::Trace.save("a\0b") }
      puts Dir.children(".").grep_v(/\A\./).sort.join(" ")
      RubyVM::Trace.save("later.fxt")
    RUBY
    said = result.out.lines(chomp: true)
    assert_equal "Errno::ENOENT: No such file or directory - no/where.fxt: the trace can't be saved there", said[0]
    assert_match(/\AErrno::EEXIST: File exists - folder: .*: it exists and is not a regular file\z/, said[1])
    assert_match(/\AErrno::EEXIST: File exists - link: .*: it exists and is not a regular file\z/, said[2])
    assert_match(/\ATypeError: /, said[3])
    assert_match(/\AArgumentError: /, said[4])
    assert_equal "folder link script.rb t.fxt", said[5]
    assert_equal [10, 20], [foo_exits(named(result, "t.fxt")), foo_exits(named(result, "later.fxt"))]
  end

  def test_without_a_recorder_the_exception_says_how_to_have_one
    script = FOO + "puts error { RubyVM::Trace.save('t.fxt') }, error { RubyVM::Trace.reset }\n"
    untraced = run_ruby(script)
    assert_equal 2, untraced.out.scan("RuntimeError: nothing is recorded: start ruby with").size, untraced.out
    assert_includes untraced.out, jit("--zjit-trace-memory=16")
    traced = run_traced(script)
    assert_equal 2, traced.out.scan("RuntimeError: the trace goes to a file (#{traced.dir}/#{traced.pid}.fxt), not to memory").size, traced.out
    assert_includes traced.out, jit("--zjit-trace-memory=16")
  end

  # The unit test of the options has what else they refuse.
  { "--zjit-trace-memory" => "3", "--zjit-trace-save-at" => "never" }.each do |option, value|
    define_method("test_a_bad_value_of_#{option}_is_refused") do
      result = run_in(scratch_dir, "#{option}=#{value}", "-e", "puts 1")
      assert_equal [1, ""], [result.status.exitstatus, result.out], value
      assert_match(/\A#{jit(option)} takes .*, not '#{value}'\n.*invalid/, result.err)
    end
  end

  # --- moments ---

  def why_of(result) = result.trace.settings["snapshot"]

  def test_a_trace_is_saved_at_exit
    result = recorded("exits(10)\nexit", "--zjit-trace-save-at=exit")
    assert_equal ["exit", 10], [why_of(result), foo_exits(result.trace)]
    assert_match(/^.JIT: saved \d+ exits, \d+ events to .*#{result.pid}\.fxt \(exit\)$/, result.err)
  end

  def test_a_trace_is_saved_at_an_exception_that_ends_the_program_and_at_no_other_end
    result = record("exits(10)\nat_exit { exits(5) }\nraise 'the end'", "--zjit-trace-save-at=exception")
    assert_equal ["exception", 15], [why_of(result), foo_exits(result.trace)]
    assert_includes result.err, "the end (RuntimeError)"
    ["exit 3", "begin; raise 'x'; rescue; end", "Process.kill(:TERM, $$); sleep"].each do |ending|
      assert_empty record("exits(10)\n#{ending}", "--zjit-trace-save-at=exception").traces, ending
    end
  end

  # In that case $! is not an object: using it as one crashes even a program that records nothing.
  def test_a_return_that_ends_the_program_is_one_of_these_ends
    result = record("exits(10)\nEND { return }", "--zjit-trace-save-at=exception")
    assert_equal ["exception", 10], [why_of(result), foo_exits(result.trace)]
    untraced = run_ruby("END { return }")
    assert_equal [result.status.exitstatus, "unexpected return"], [untraced.status.exitstatus, untraced.err[/unexpected return/]]
  end

  def test_a_trace_is_saved_at_a_crash
    result = record("exits(1000)\nProcess.kill(:SEGV, $$); sleep", "--zjit-trace-save-at=crash", ended: false)
    assert_predicate result.status, :signaled?
    assert_equal ["memory", 1000], [why_of(result), foo_exits(result.trace)]
    assert_includes result.err, "vm_trace: saved to #{result.trace.path}"
  end

  # The tracer's own thread saves: the program need not be able to.
  def test_a_trace_is_saved_at_a_signal_also_while_the_program_hangs
    result = recorded(<<~'RUBY', "--zjit-trace-save-at=exit,USR2", "--zjit-trace-file=t.fxt")
      exits(10)
      helper = fork do
        Process.kill(:USR2, Process.ppid)
        sleep 0.001 until File.exist?("t.fxt")
        File.rename("t.fxt", "signal.fxt")
        Process.kill(:KILL, $$)
      end
      # Holds the GVL and checks no interrupts.
      /(a*)*\1b/.match?("a" * 23) until File.exist?("signal.fxt")
      Process.wait(helper)
      exits(10)
    RUBY
    assert_equal "signal", named(result, "signal.fxt").settings["snapshot"]
    assert_equal [10, 20], [foo_exits(named(result, "signal.fxt")), foo_exits(named(result, "t.fxt"))]
  end

  def test_saved_traces_are_kept_apart
    result = recorded(<<~'RUBY', "--zjit-trace-save-at=exit,USR2", "--zjit-trace-file=t.fxt")
      2.times do |i|
        exits(10)
        Process.kill(:USR2, $$)
        sleep 0.001 until File.exist?(i == 0 ? "t.fxt" : "t.fxt.2")
      end
      exits(10)
    RUBY
    assert_equal [10, 20, 30], %w[t.fxt t.fxt.2 t.fxt.3].map { |name| foo_exits(named(result, name)) }
    assert_match(/^.JIT: saved .* to \S*\/t\.fxt\.2 \(signal\)$/, result.err)
  end

  def test_patterns_of_a_path_name_each_trace
    result = recorded(<<~'RUBY')
      time = Time.now.utc
      paths = %w[%n-%p.fxt %n-%p.fxt %t.fxt 100%%.fxt].map { |path| exits(10); RubyVM::Trace.save(path)[:path] }
      puts paths, time.strftime("%Y%m%dT%H%M%S.fxt") <= paths[2] && paths[2] <= Time.now.utc.strftime("%Y%m%dT%H%M%S.fxt")
    RUBY
    said = result.out.lines(chomp: true)
    assert_equal ["1-#{result.pid}.fxt", "2-#{result.pid}.fxt"], said[0, 2]
    assert_equal ["100%.fxt", "true"], said[3, 2]
    assert_equal [10, 20, 30, 40], said[0, 4].map { |name| foo_exits(named(result, name)) }
  end

  def test_the_default_path_has_the_number
    result = run_in(scratch_dir, *FLAGS, "--zjit-call-threshold=2", "--zjit-trace-exits", "-e",
                    FOO + "3.times { exits(5); RubyVM::Trace.save.then { |told| puts told[:path] } }")
    assert_predicate result.status, :success?, result.err
    paths = result.out.lines(chomp: true)
    assert_equal (1..3).map { |n| "/tmp/perfetto-#{result.pid}-#{n}.fxt" }, paths
    assert_equal [5, 10, 15], paths.map { |path| foo_exits(validated(Trace.new(path))) }
  ensure
    FileUtils.rm_f(paths) if paths
  end

  # The program exits faster than four MiB can hold for a day.
  def test_a_line_says_that_memory_held_less_than_was_asked_for
    result = recorded("exits(100_000)\np RubyVM::Trace.save('t.fxt')[:seconds]\n",
                      "--zjit-trace-memory=4,86400", "--zjit-trace-save-at=exit", "--zjit-trace-file=u.fxt")
    assert_match(/\A\d+\.\d+\n\z/, result.out)
    assert_match(/^.JIT: memory held the last \d+\.\d of 86400 seconds: /, result.err)
    young = recorded("exits(10)\np RubyVM::Trace.save('t.fxt').key?(:seconds)\n", "--zjit-trace-memory=4,86400", "--zjit-trace-save-at=exit")
    assert_equal "false\n", young.out
    refute_includes young.err, "memory held"
  end

  def test_memory_can_be_read_from_outside_at_any_time
    result = recorded(<<~'RUBY', ended: false)
      exits(300)
      fd = Dir["/proc/self/fd/*"].find { |name| File.readlink(name).include?("memfd:vm_trace") rescue false }
      IO.copy_stream(fd, "outside.fxt")
    RUBY
    assert_equal 300, foo_exits(named(result, "outside.fxt"))
  end

  # --- processes, threads, ractors ---

  def test_a_forked_child_begins_with_an_empty_recorder_of_its_own
    result = recorded(<<~'RUBY')
      exits(30)
      RubyVM::Trace.reset
      exits(20)
      child = fork do
        RubyVM::Trace.save("child-before.fxt")
        exits(7)
        RubyVM::Trace.save("child.fxt")
      end
      Process.wait(child)
      exit 1 unless $?.success?
      RubyVM::Trace.save("parent.fxt")
    RUBY
    assert_equal [0, 7, 20], %w[child-before child parent].map { |name| foo_exits(named(result, "#{name}.fxt")) }
    refute_equal named(result, "child.fxt").settings["pid"], named(result, "parent.fxt").settings["pid"]
  end

  # Each trace is complete, whatever the others do.
  def test_saving_while_ractors_and_threads_record
    result = recorded(<<~'RUBY', "--zjit-trace-memory=16", recorders: 4)
      ractors = 2.times.map { Ractor.new { 20.times { exits(10) }; :done } }
      threads = 2.times.map { |n| Thread.new { 3.times { |i| exits(20); RubyVM::Trace.save("thread-#{n}-#{i}.fxt") } } }
      3.times { |i| exits(50); RubyVM::Trace.save("main-#{i}.fxt") }
      threads.each(&:join)
      ractors.map(&:value)
      RubyVM::Trace.save("last.fxt")
      Ractor.new { exits(100); RubyVM::Trace.save("ractor.fxt") }.value
    RUBY
    assert_equal 11, result.traces.size
    last, ractor = %w[last.fxt ractor.fxt].map { |name| foo_exits(named(result, name)) }
    assert_includes 600..670, last # a version that is profiled again meanwhile does not exit
    assert_equal last + 100, ractor
  end

  # The ring wraps around many times while it is saved repeatedly.
  def test_saving_again_and_again_while_others_fill_the_memory
    result = recorded(<<~'RUBY', args: [Trace::TOOL])
      recording = true
      thread = Thread.new { exits(100) while recording }
      5.times { |i| RubyVM::Trace.save("#{i}.fxt"); system(ARGV[0], "check", "#{i}.fxt", out: File::NULL, exception: true); File.delete("#{i}.fxt") }
      recording = false
      thread.join
      puts RubyVM::Trace.save("last.fxt")[:lost] > 0
      File.delete("last.fxt")
    RUBY
    assert_equal "true\n", result.out
  end

  def test_many_saves_and_resets_lose_nothing_and_leak_nothing
    result = recorded(<<~'RUBY', args: [Integration::LONG ? "1000" : "100"])
      counts = Integer(ARGV[0]).times.map do |i|
        RubyVM::Trace.reset
        exits(i % 7)
        RubyVM::Trace.save("t.fxt")[:exits]
      end
      p counts == counts.size.times.map { |i| i % 7 }
      puts Dir.children("/proc/self/fd").size, Dir.children("/proc/self/task").size
      RubyVM::Trace.save("t.fxt")
      puts Dir.children("/proc/self/fd").size, Dir.children("/proc/self/task").size
    RUBY
    assert_equal "true", result.out.lines[0].chomp
    assert_equal result.out.lines[1..2], result.out.lines[3..4]
  end
end
