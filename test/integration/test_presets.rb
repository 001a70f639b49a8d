# Presets, --vm-trace=default and full, and the options of the stream `threads`, by flags, by the
# program, and from outside.
#
# Once for each JIT: presets name streams.
require_relative "helper"
require_relative "remote"

class TestPresets < Integration::Test
  include Remote

  # Blocks for 5 ms ten times and for 60 ms twice, in methods of its own.
  SLEEPS = "def short = sleep(0.005)\ndef long = sleep(0.06)\n10.times { short }\n2.times { long }\n"

  def traced(script, *flags)
    result = run_ruby(script, *flags, "--vm-trace-file=%p.fxt")
    assert_predicate result.status, :success?, result.err
    refute_match(/are traced/, result.err)
    result.trace
  end

  # `full` has also what the kernel reports, where it lets us.
  def flags_of(trace)
    flags, rate = trace.settings.values_at("flags", "exit_rate")
    [(flags.split - %w[syscalls sched]).join(" "), rate]
  end

  def without_jit(list) = flags_of(traced("p 1", "--vm-trace=#{list}"))
  def with_jit(list) = flags_of(traced("p 1", "--zjit", "--vm-trace=#{list}"))

  def test_without_a_jit_a_preset_waits_for_one
    assert_equal ["exits markers threads gc", 97], without_jit("default")
    assert_equal ["exits compiles invalidations markers threads fibers gc allocations states samples", 97],
                 without_jit("profile")
    assert_equal ["exits compiles invalidations markers threads fibers gc allocations states calls samples", 1],
                 without_jit("full")
  end

  # A framework turns the JIT on in an initializer, as Rails does: 500 exits, and 200 in a forked child.
  LATE = <<~'RUBY'
    def add(x) = x + 1
    RubyVM::ZJIT.enable
    400.times { add(1) }
    500.times { add(2**62 - 1) }
    Process.wait(fork { 200.times { add(2**62 - 1) } })
  RUBY

  def assert_late_exits(trace, count, list, jit_before)
    # A sample's signal may interrupt compiled code, which then exits, too.
    assert_equal count, trace.sites("FixnumAddOverflow").sum { |site| site["hits"] }, list
    jits = trace.events.select { |event| event["name"] == "jit" }.map { |event| event["args"]["jit"] }
    assert_equal jit_before == "none" ? [jit("ZJIT")] * 2 : [], jits, list
    assert_equal jit_before, trace.settings["jit"]
    exits = trace.exits("FixnumAddOverflow").size
    trace.settings["exit_rate"] == 1 ? assert_equal(count, exits, list) : assert_operator(exits, :>, 0, list)
  end

  def test_a_jit_that_the_program_turns_on_is_traced_from_then_on
    %w[default profile exits:rate=1 states full].each do |list|
      result = run_ruby(LATE, "--vm-trace=#{list}", "--vm-trace-file=%p.fxt")
      refute_match(/are traced/, result.err)
      parent, child = result.traces.partition { |trace| trace.settings["jit"] == "none" }.map(&:first)
      assert_late_exits(parent, 500, list, "none")
      assert_late_exits(child, 200, list, jit("ZJIT"))
      report = IO.popen([Trace::TOOL, "report", "--all", parent.path], &:read)
      assert_match(/^  jit +#{jit("ZJIT")}$.*^  jit since +0\.\d+ s: /m, report)
      next unless %w[states full].include?(list)
      states = parent.events.find { |event| event["name"] == "states" }["args"]
      assert_operator states["compiled"], :>, 0
    end
  end

  # On most machines only root may see system calls, and no container.
  def test_what_full_lacks_is_said
    result = run_ruby("p 1", "--vm-trace=full", "--vm-trace-file=%p.fxt")
    lacks = %w[sched syscalls] - result.trace.settings["flags"].split
    skip "the kernel lets us record everything" if lacks.empty?
    said = result.err.scan(/^vm_trace: the trace has no (\w+): (\S.*)$/)
    assert_equal lacks, said.map(&:first), result.err
    assert_equal said.map { |stream, why| "#{stream}: #{why}" }.join("; "), result.trace.settings["left_out"]
    info = IO.popen([Trace::TOOL, "info", result.trace.path], &:read)
    assert_match(/^  left_out +#{Regexp.escape(said.first.join(": "))}/, info)
    started = run_ruby('RubyVM::Trace.start(preset: :full, file: "a.fxt"); RubyVM::Trace.stop')
    assert_equal result.trace.settings["left_out"], started.trace.settings["left_out"]
    refute run_ruby("p 1", "--vm-trace=default", "--vm-trace-file=%p.fxt").trace.settings.key?("left_out")
  end

  def test_only_a_preset_waits_where_the_program_starts_a_trace
    result = run_ruby(<<~'RUBY')
      begin; RubyVM::Trace.start(states: true, file: "no.fxt"); rescue => error; puts error.message; end
      RubyVM::Trace.start(preset: :full, file: "a.fxt")
      def add(x) = x + 1
      RubyVM::ZJIT.enable
      100.times { add(1) }
      50.times { add(2**62 - 1) }
      p RubyVM::Trace.stop[:exits]
    RUBY
    assert_equal "no JIT is on: start Ruby with --zjit or --yjit\n50\n", result.out, result.err
    assert_equal 50, result.trace.exits.size
  end

  # A flight recorder's settings are written when it saves, and have the JIT.
  def test_a_flight_recorder_saves_the_jit_that_the_program_turned_on
    result = run_ruby(LATE, "--vm-trace=exits", "--vm-trace-memory=4", "--vm-trace-save-at=exit",
                      "--vm-trace-file=%p-%n.fxt")
    assert_equal [200, 500], result.traces.map { |trace| trace.summary["exits"] }.sort, result.err
    assert_equal [jit("ZJIT")], result.traces.map { |trace| trace.settings["jit"] }.uniq
  end

  # A stream that waits for a JIT has nothing to save, and says nothing.
  def test_what_waits_for_a_jit_can_be_saved
    %w[default profile full].each do |preset|
      result = run_ruby(<<~'RUBY', "--vm-trace=#{preset}", "--vm-trace-memory=4")
        %w[a b].each { |name| RubyVM::Trace.save("#{name}.fxt"); RubyVM::Trace.reset }
      RUBY
      assert_predicate result.status, :success?, result.err
      assert_equal %w[a b], result.traces.map { |trace| File.basename(trace.path, ".fxt") } & %w[a b], preset
    end
  end

  def test_a_preset_names_streams_with_their_options
    assert_equal ["exits markers threads gc", 97], with_jit("default")
    assert_equal ["exits compiles invalidations markers threads fibers gc allocations states calls samples", 1],
                 with_jit("full")
  end

  # Exits, compilations, threads and collections are what states consist of.
  def test_states_are_recorded_with_what_they_need
    needed = "exits compiles invalidations"
    assert_equal ["#{needed} threads gc states", 97], with_jit("states")
    assert_equal ["#{needed} threads:stack=top gc states:min=1000000ns", 5],
                 with_jit("exits:rate=5,states:min=1ms,threads:stack=top")
    result = run_ruby("p 1", "--vm-trace=states")
    assert_match(/^vm_trace: states: no JIT is on: start Ruby with --zjit or --yjit, or let/, result.err)
    assert_equal "1\n", result.out
  end

  # What --vm-trace requests beside a flag of the JIT is recorded, too. The flag says at which rate.
  def test_flags_of_the_jit_and_vm_trace_are_recorded_together
    with_states = "exits compiles invalidations threads gc states"
    assert_equal [with_states, 1], with_flag("--zjit-trace-exits", "states,threads")
    assert_equal [with_states, 7], with_flag("--zjit-trace-exits-sample-rate=7", "states")
    compiled = JIT == "zjit" ? "exits fallbacks" : "exits"
    assert_equal ["#{compiled} compiles invalidations markers threads fibers gc allocations states calls samples", 1],
                 with_flag("--zjit-trace-exits", "full")
    assert_equal ["exits markers threads gc", 1], with_flag("--zjit-trace-exits", "default")
  end

  zjit_only def test_states_are_recorded_with_fallbacks
    assert_equal ["exits fallbacks compiles invalidations threads gc states", 97],
                 with_flag("--zjit-trace-fallbacks", "states")
    assert_equal ["exits fallbacks", 1], with_flag("--zjit-trace-exits", "fallbacks")
  end

  # YJIT has no fallbacks, and its flags for the rest do not change that.
  yjit_only def test_fallbacks_are_refused_with_their_reason
    reason = "fallbacks can be recorded only in a program that was started with ZJIT and --zjit-trace-fallbacks"
    [%w[--zjit-trace-exits --vm-trace=fallbacks,markers], %w[--vm-trace=fallbacks,markers]].each do |flags|
      result = run_ruby("p 1", *flags, "--vm-trace-file=%p.fxt")
      assert_equal ["vm_trace: no fallbacks are traced: #{reason}"], result.err.lines(chomp: true).grep(/are traced/)
      assert_includes flags_of(result.trace).first.split, "markers"
    end
  end

  def with_flag(flag, list)
    script = "def f(x) = x + 1\n200.times { |i| f(i == 150 ? 1.5 : 2) }"
    result = run_ruby(script, flag, "--zjit-trace-file=%p.fxt", "--vm-trace=#{list}")
    assert_predicate result.status, :success?, result.err
    refute_match(/no \w+ are traced/, result.err)
    flags_of(result.trace)
  end

  def test_a_later_item_replaces_an_earlier_one
    assert_equal ["exits compiles markers threads gc", 5], with_jit("default,compiles,exits:rate=5")
    assert_equal ["exits markers threads gc", 1], with_jit("default,exits")
    assert_equal ["exits markers threads gc", 97], with_jit("exits:rate=5,default")
    assert_equal ["exits markers threads:stack=top gc", 97], without_jit("default,gc,threads:stack=top")
  end

  def test_the_program_starts_a_preset_and_overrides_it
    result = run_ruby(<<~'RUBY')
      RubyVM::Trace.start(preset: :default, gc: false, threads: { stack: :none, min: 0.002 }, file: "#$$.fxt")
      RubyVM::Trace.stop
    RUBY
    assert_equal ["exits markers threads:min=2000000ns:stack=none", 97], flags_of(result.trace)
    result = run_ruby(<<~'RUBY', "--zjit")
      RubyVM::Trace.start(preset: "full", exits: false, states: false, file: "#$$.fxt")
      RubyVM::Trace.stop
    RUBY
    assert_equal ["compiles invalidations markers threads fibers gc allocations calls samples", nil], flags_of(result.trace)
    result = run_ruby(%(RubyVM::Trace.start(preset: "default", sample_rate: 7, file: "\#$$.fxt")\nRubyVM::Trace.stop),
                      "--zjit")
    assert_equal ["exits markers threads gc", 7], flags_of(result.trace)
  end

  # [name, for how long, whether it has callers] of each time that the program blocked.
  def sleeps(trace)
    found = trace.query(<<~SQL)
      SELECT s.name, s.dur, (SELECT COUNT(*) FROM args a WHERE a.arg_set_id = s.arg_set_id AND a.key = '1')
      FROM slice s WHERE s.category = 'blocked' ORDER BY s.ts
    SQL
    found.map { |name, dur, callers| [name, dur.to_i, callers.to_i] }
  end

  # On a busy machine the VM itself may block: in `require`, or in <main>, which has no caller.
  def only_sleeps(found) = found.select { |name,| name == "Kernel#sleep" }

  # A busy machine makes some of the short ones long, but not all ten.
  def test_min_says_what_has_callers
    trace = traced(SLEEPS, "--vm-trace=threads:min=50ms")
    found = sleeps(trace)
    assert_operator trace.summary["suspensions_without_callers"], :>, 0
    assert_equal found.count { |_, _, callers| callers == 0 }, trace.summary["suspensions_without_callers"]
    found = only_sleeps(found)
    assert_equal 12, found.size
    assert_operator found.count { |_, _, callers| callers == 1 }, :>=, 2
    found.each { |name, dur, callers| assert_equal dur >= 50_000_000 ? 1 : 0, callers, "#{name}: #{dur} ns" }
    all = traced(SLEEPS, "--vm-trace=threads:min=0ns")
    assert_equal [1] * 12, only_sleeps(sleeps(all)).map(&:last)
    assert_equal 0, all.summary["suspensions_without_callers"]
  end

  def test_stack_says_how_much_of_it
    top = sleeps(traced(SLEEPS, "--vm-trace=threads:stack=top"))
    assert_equal [12, [0]], [only_sleeps(top).size, top.map(&:last).uniq]
    none = sleeps(traced(SLEEPS, "--vm-trace=threads:stack=none"))
    assert_equal [["(no method)", 0]], none.map { |name, _, callers| [name, callers] }.uniq
    assert_operator none.size, :>=, 12
  end

  def test_wrong_names_and_values_are_one_line
    options = "threads takes min=DURATION (such as 5ms), stack=all|top|none, not"
    {
      "--vm-trace=defualt" =>
        /\A--vm-trace: there is no stream "defualt"; streams are: .*; presets are: default, profile, full\n\z/,
      "--vm-trace=full:rate=3" => /\A--vm-trace: the preset full takes no options, not "rate=3"\n\z/,
      "--vm-trace=threads:min=5" => /\A--vm-trace: #{Regexp.escape(options)} "min=5"\n\z/,
      "--vm-trace=threads:min=-1ms" => /not "min=-1ms"\n\z/,
      "--vm-trace=threads:min=99999999999999999999s" => /not "min=9+s"\n\z/,
      "--vm-trace=threads:stack=some" => /not "stack=some"\n\z/,
      "--vm-trace=threads:rate=3" => /not "rate=3"\n\z/,
      "--vm-trace=gc:min=5ms" => /\A--vm-trace: gc takes no options, not "min=5ms"\n\z/
    }.each do |option, message|
      result = run_ruby("p 1", option)
      assert_equal [1, ""], [result.status.exitstatus, result.out], option
      assert_match message, result.err
    end
    {
      "preset: :all" => /preset: there is no preset "all"; presets are: default, profile, full/,
      "preset: 1" => /preset: takes the name of a preset, not 1/,
      "threads: { min: -1 }" => /#{Regexp.escape(options)} "min=-1"/, "threads: { every: 3 }" => /not "every=3"/,
      "threads: 3" => /threads: takes true, false, or min=.*, not 3$/, "gc: { min: 1 }" => /gc: takes true or false/
    }.each do |arguments, message|
      result = run_ruby("begin\n  RubyVM::Trace.start(#{arguments})\nrescue ArgumentError => e\n  puts e.message\nend")
      assert_match message, result.out, result.err
    end
  end

  # status and stop have what each recorded stream counts, under the names of the summary.
  COUNTS = {
    markers: %i[markers], threads: %i[suspensions suspensions_without_callers], gc: %i[gc_collections gc_pauses],
    allocations: %i[allocation_samples allocation_bytes allocation_buffers_left_out]
  }.freeze

  def test_status_and_stop_have_the_counts_of_each_stream
    always = %i[events exits sites fallbacks sampled lost path]
    COUNTS.each do |stream, names|
      result = run_ruby(<<~'RUBY', "-W:no-experimental", args: [stream.to_s])
        T = RubyVM::Trace
        T.start(exits: false, ARGV[0].to_sym => true, file: "%p.fxt")
        T.instant("a")
        20.times { Thread.new { }.join }
        kept = Array.new(300_000) { Object.new } # 24 samples on average
        GC.start
        status = T.status
        T.instant("b")
        GC.start
        20.times { Thread.new { }.join }
        p status, T.stop
      RUBY
      assert_predicate result.status, :success?, result.err
      status, stopped = result.out.lines.map { |line| eval(line) }
      assert_equal (always + names).sort, stopped.keys.sort
      assert_equal (always + names + %i[on jit session]).sort, status.keys.sort
      summary = result.trace.summary
      names.each do |name|
        assert_equal summary.fetch(name.to_s), stopped[name], name
        assert_operator status[name], :>, 0, name unless name == :allocation_buffers_left_out
        assert_operator status[name], :<=, stopped[name], name
      end
      assert_operator status[names[0]], :<, stopped[names[0]] unless stream == :allocations
    end
  end

  def test_from_outside
    beside do |pid, dir|
      assert_equal 0, tell("start", pid, "--preset=default", "--thread-options=min=2ms:stack=top", "--file=%p.fxt")[0]
      assert_match(/^suspensions +\d+$.*^gc_pauses +\d+$/m, tell("status", pid)[1])
      assert_equal 0, tell("stop", pid)[0]
      trace = validated(Trace.new(File.join(dir, "#{pid}.fxt")), ended: true, recorders: 1)
      assert_equal ["exits markers threads:min=2000000ns:stack=top gc", 97], flags_of(trace)
      assert_match(/there is no preset/, tell("start", pid, "--preset=none")[2])
    end
  end
end
