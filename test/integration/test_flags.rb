# Each trace flag and its bad values.
require_relative "helper"

class TestFlags < Integration::Test
  SCRIPT = <<~'RUBY'
    def foo(x) = x + 1
    def bar = (::RubyVM::ZJIT.induce_side_exit!)
    20.times { foo(1); bar }
    9.times { foo(4_611_686_018_427_387_903) }
    puts "done"
  RUBY
  FILE = "--zjit-trace-file=%p.fxt"
  USUAL = ["--zjit-call-threshold=2", FILE].freeze

  def traced_with(*flags)
    result = run_ruby(SCRIPT, *USUAL, *flags)
    assert_predicate result.status, :success?, result.err
    assert_equal "done\n", result.out
    result
  end

  # Ruby's own message.
  def invalid(flag) = jit("invalid ZJIT option #{Integration.quoted(jit(flag).sub(/\A--.jit-/, ""))} (")

  # Nothing runs, no file is made, one line names the option and its values, and Ruby's own error
  # follows.
  def assert_refused(flag, takes)
    result = run_ruby("puts 'it ran'", *USUAL, flag)
    assert_equal 1, result.status.exitstatus, result.err
    assert_empty result.out
    assert_empty result.traces
    option, value = jit(flag).split("=", 2)
    assert_equal 2, result.err.lines.size, result.err
    assert_includes result.err.lines[0], option
    assert_includes result.err.lines[0], takes
    assert_includes result.err.lines[0], "'#{value}'" unless value.nil? || value.empty?
    assert_includes result.err.lines[1], invalid(flag)
  end

  FALLBACKS = JIT == "zjit"

  ["--zjit-trace-exits-sample-rate", *("--zjit-trace-fallbacks-sample-rate" if FALLBACKS)].each do |option|
    ["0", "-1", "x", "1x", "", "4294967296", "1.5", " 1", "+1", "0x10", "99999999999999999999999", "１"].each do |value|
      define_method("test_#{option}_of_#{value.inspect}_is_refused") do
        assert_refused("#{option}=#{value}", "a whole number from 1")
      end
    end

    define_method("test_#{option}_without_a_value_is_refused") do
      assert_refused(option, "a whole number from 1")
    end
  end

  ["nonsense", "exit_", "side_exit_count", "exit_directive_induced ", "EXIT_THROW", "GUARD_SEND_INTERRUPTED"].each do |counter|
    define_method("test_exits_of_the_unknown_counter_#{counter.inspect}_are_refused") do
      assert_refused("--zjit-trace-exits=#{counter}", "counter")
    end
  end

  def test_an_empty_path_is_refused
    assert_refused("--zjit-trace-file=", "path")
  end

  def test_a_path_without_a_value_is_refused
    assert_refused("--zjit-trace-file", "path")
  end

  %w[--zjit-trace-compiles=1 --zjit-trace-invalidation=x --zjit-trace-fallbacks=all --zjit-trace --zjit-trace-nothing].each do |flag|
    define_method("test_#{flag}_is_an_invalid_option") do
      result = run_ruby("puts 'it ran'", *USUAL, flag)
      assert_equal 1, result.status.exitstatus
      assert_empty result.out
      assert_includes result.err, invalid(flag)
    end
  end

  def exit_counters
    names = JIT == "zjit" ? "/\\Aexit_/" : "/\\A(guard|opt|getivar|setivar|leave|jit_rb|expandarray|exit_from)_/"
    result = run_ruby("puts RubyVM::ZJIT.stats.keys.grep(#{names})", "--zjit-stats-quiet")
    result.out.split.tap { |names| assert_operator names.size, :>, Integration.can?(:exit_size) || JIT == "yjit" ? 50 : 40, result.err }
  end

  def test_every_exit_counter_is_taken
    dir = scratch_dir
    exit_counters.each_slice(LONG ? 1 : 4).map(&:first).each do |name|
      result = run_in(dir, "--zjit-call-threshold=2", FILE, "--zjit-trace-exits=#{name}", "-e", "nil")
      assert_predicate result.status, :success?, "#{name}: #{result.err}"
      validate_all(result)
      assert_equal name, result.trace.settings["counter"]
      FileUtils.rm(result.trace.path)
    end
  end

  def test_a_counter_records_only_what_it_counts
    all = traced_with("--zjit-trace-exits").trace
    assert_equal %w[DirectiveInduced FixnumAddOverflow].map { |reason| jit(reason) }.uniq.sort, all.exits.map { |event| event["name"] }.uniq.sort
    { "exit_fixnum_add_overflow" => "FixnumAddOverflow", "exit_directive_induced" => "DirectiveInduced" }.each do |counter, reason|
      one = traced_with("--zjit-trace-exits=#{counter}").trace
      assert_equal all.exits(reason).size, one.exits.size
      assert_equal [jit(reason)], one.exits.map { |event| event["name"] }.uniq
      assert_equal one.exits.size, one.summary["exits"]
    end
  end

  def test_a_counter_that_counts_no_exit_of_the_program_records_none
    trace = traced_with("--zjit-trace-exits=#{JIT == "zjit" ? "exit_interrupt" : "guard_send_interrupted"}").trace
    assert_empty trace.exits
    assert_equal 0, trace.summary["exits"]
  end

  def test_without_a_trace_flag_nothing_is_traced_or_said
    result = run_ruby(SCRIPT, "--zjit-call-threshold=2")
    assert_equal ["done\n", ""], [result.out, result.err]
    assert_empty result.traces
  end

  def exits_of(result) = result.trace.exits("FixnumAddOverflow").count { |event| event["args"]["0"].start_with?("Object#foo") }

  def test_a_trace_file_alone_traces_exits
    result = traced_with
    assert_equal ["exits", 1], result.trace.settings.values_at("flags", "exit_rate")
    assert_equal traced_with("--zjit-trace-exits").trace.summary["exits"], result.trace.summary["exits"]
  end

  # None of them has an effect unless something is traced.
  %w[--zjit-trace-max-size=4 --zjit-trace-min-free=0 --zjit-trace-stack=2 --zjit-trace-methods=Object#foo].each do |flag|
    define_method("test_#{flag}_alone_traces_exits") do
      path = scratch_dir
      result = run_in(path, "--zjit-call-threshold=2", flag, "-e", SCRIPT)
      assert_predicate result.status, :success?, result.err
      default = "/tmp/perfetto-#{result.pid}.fxt"
      result.traces = [validated(Trace.new(default))]
      assert_equal "exits", result.trace.settings["flags"]
      assert_operator exits_of(result), :>, 0
    ensure
      FileUtils.rm_f(default) if default
    end
  end

  def test_memory_alone_traces_exits
    result = run_ruby(SCRIPT + "RubyVM::Trace.save('t.fxt')\n", "--zjit-call-threshold=2", "--zjit-trace-memory=4")
    assert_operator exits_of(result), :>, 0
  end

  def test_a_moment_of_saving_alone_records_into_the_default_memory
    result = run_ruby(SCRIPT, *USUAL, "--zjit-trace-save-at=exit")
    assert_operator exits_of(result), :>, 0
    assert_equal ["exit", 16 << 20], result.trace.settings.values_at("snapshot", "max_bytes")
    assert_includes result.err, jit("ZJIT: recording to memory, 16 MiB at most")
  end

  # What the option says is what the signal does: without memory it ended the program.
  def test_a_signal_of_saving_alone_saves
    result = run_ruby(SCRIPT + <<~'RUBY', *USUAL, "--zjit-trace-save-at=USR2")
      Process.kill(:USR2, $$)
      sleep 0.001 until File.exist?("#{$$}.fxt")
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal "signal", result.trace.settings["snapshot"]
    assert_operator exits_of(result), :>, 0
  end

  def test_what_is_to_be_recorded_is_only_what_a_flag_says
    assert_equal "compiles", traced_with("--zjit-trace-compiles", "--zjit-trace-stack=3").trace.settings["flags"]
  end

  def test_quiet_alone_traces_nothing
    result = run_ruby(SCRIPT, "--zjit-call-threshold=2", "--zjit-trace-quiet")
    assert_equal ["done\n", ""], [result.out, result.err]
    assert_empty result.traces
  end

  # The other flags of the JIT put trace points into code when it is compiled.
  def test_what_may_not_be_traced_late_is_traced_by_flags_only
    script = <<~'RUBY'
      def foo(x) = x + 1
      20.times { foo(1) }
      begin
        RubyVM::Trace.start(file: "late.fxt")
      rescue RubyVM::Trace::Error => e
        puts e.message
      end
      9.times { foo(4_611_686_018_427_387_903) }
    RUBY
    result = run_ruby(script, "--zjit-call-threshold=2", "--vm-trace-late=no")
    assert_equal ["", []], [result.err, result.traces]
    assert_match(/--vm-trace-late=no; a trace flag of the JIT traces exits all the same$/, result.out)
    result = run_ruby(SCRIPT, *USUAL, "--zjit-trace-exits", "--vm-trace-late=no")
    assert_operator result.trace.exits("FixnumAddOverflow").size, :>, 0
  end

  def test_a_trace_that_is_to_start_later_has_the_methods_of_a_flag
    script = <<~'RUBY'
      def foo(x) = x + 1
      def other(x) = x + 1
      20.times { foo(1); other(1) }
      RubyVM::Trace.start(file: "later.fxt")
      9.times { foo(4_611_686_018_427_387_903); other(4_611_686_018_427_387_903) }
      RubyVM::Trace.stop
    RUBY
    result = run_ruby(script, "--zjit-call-threshold=2", "--zjit-trace-later", "--zjit-trace-methods=Object#foo")
    assert_predicate result.status, :success?, result.err
    assert_equal ["later.fxt"], result.traces.map { |trace| File.basename(trace.path) }
    assert_equal ["Object#foo"], result.trace.exits.map { |event| event["args"]["0"][/\A\S+/] }.uniq
  end

  def test_nothing_is_traced_without_the_jit
    result = run_ruby(SCRIPT, FILE, "--zjit-trace-exits", "--zjit-disable")
    assert_equal ["done\n", ""], [result.out, result.err]
    assert_empty result.traces
  end

  def test_a_jit_enabled_late_traces
    result = run_ruby("RubyVM::ZJIT.enable\n" + SCRIPT, *USUAL, "--zjit-trace-exits", "--zjit-disable")
    assert_equal "done\n", result.out
    assert_operator result.trace.exits("FixnumAddOverflow").size, :>, 0
  end

  def test_flags_may_come_from_rubyopt
    result = run_ruby(SCRIPT, env: { "RUBYOPT" => "--zjit-call-threshold=2 --zjit-trace-exits #{FILE}" })
    assert_equal "done\n", result.out
    assert_operator result.trace.exits.size, :>, 0
  end

  {
    "--zjit-trace-exits" => { "flags" => "exits", "exit_rate" => 1 },
    "--zjit-trace-exits-sample-rate=5" => { "flags" => "exits", "exit_rate" => 5 },
    "--zjit-trace-compiles" => { "flags" => "compiles" },
    "--zjit-trace-invalidation" => { "flags" => "invalidations" },
    "--zjit-trace-fallbacks" => { "flags" => "fallbacks", "fallback_rate" => 1 },
    "--zjit-trace-fallbacks-sample-rate=3" => { "flags" => "fallbacks", "fallback_rate" => 3 },
  }.each do |flag, expected|
    next if expected["flags"] == "fallbacks" && !FALLBACKS
    define_method("test_#{flag}_is_among_the_settings_and_turns_on_nothing_else") do
      trace = traced_with(flag).trace
      assert_equal expected, trace.settings.slice("flags", "exit_rate", "fallback_rate")
      wanted = { "exits" => %w[side_exit recompile_exit], "compiles" => %w[compile],
                 "invalidations" => %w[invalidation reprofile], "fallbacks" => %w[fallback] }.fetch(expected["flags"])
      wanted += ["counter"] if %w[compiles invalidations].include?(expected["flags"])
      assert_empty trace.events.map { |event| event["cat"] }.uniq - wanted - ["trace"]
    end
  end

  def test_the_settings_say_who_ran_what
    result = traced_with("--zjit-trace-exits")
    settings = result.trace.settings
    assert_equal run_ruby("puts RUBY_DESCRIPTION", "--zjit-call-threshold=2").out.chomp, settings["ruby"]
    assert_equal jit("ZJIT"), settings["jit"]
    assert_equal result.pid, settings["pid"]
    assert_includes settings["command"], jit(" --zjit-trace-exits script.rb") unless POSIX
    platform = / \(posix\)/ if POSIX
    assert_match(/\A#{BASE} [0-9a-f]{12}( \+ [a-z0-9-]+)*#{platform}, vm_trace \d+\.\d+\z/, settings["base"])
  end

  def test_a_late_flag_wins_over_an_early_one
    trace = traced_with("--zjit-trace-exits-sample-rate=5", "--zjit-trace-exits-sample-rate=2").trace
    assert_equal 2, trace.settings["exit_rate"]
  end

  def test_stderr_has_one_line_at_the_start_and_one_at_the_end
    result = traced_with("--zjit-trace-exits")
    path = "#{result.dir}/#{result.pid}.fxt"
    exits = result.trace.summary["exits"]
    events = result.trace.events.size
    assert_equal jit("ZJIT: tracing to #{path}\nZJIT: wrote #{exits} of #{exits} exits, #{events} events to #{path}, nothing lost\n"), result.err
  end

  def test_the_last_line_says_how_many_were_sampled
    result = traced_with("--zjit-trace-exits-sample-rate=3")
    summary = result.trace.summary
    assert_equal jit("ZJIT: wrote") + " #{summary["sampled"]} of #{summary["exits"]} exits (one in 3), " \
                 "#{result.trace.events.size} events to #{result.dir}/#{result.pid}.fxt, nothing lost\n", result.err.lines[1]
  end

  def test_help_lists_each_flag_within_80_columns
    help = run_ruby("", "--help").out.lines(chomp: true)
    long = help.select { |line| line.size > 80 && !line.start_with?("Usage: ") } # that has the path
    assert_empty long
    flags = %w[--zjit-trace-exits[=counter,...] --zjit-trace-exits-sample-rate=num --zjit-trace-file=path
               --zjit-trace-invalidation --zjit-trace-later]
    flags << (JIT == "zjit" ? "--zjit-trace-compiles[=hir[,all]]" : "--zjit-trace-compiles")
    flags.push("--zjit-trace-fallbacks", "--zjit-trace-fallbacks-sample-rate=num") if FALLBACKS
    flags.each do |flag|
      assert_equal 1, help.count { |line| line.split(/\s+/).include?(jit(flag)) }, flag
    end
  end
end
