# vm-trace record: the program runs as without it, and all its processes are recorded. And RUBY_VM_TRACE, which is how
# they learn of it.
#
# Once for each base: the base reads its environment.
require_relative "helper"
require_relative "remote"
require "csv"
require "open3"
require "rbconfig"
require "terminal"

class TestRecord < Integration::Test
  include Remote

  JIT_FLAGS = ["--#{JIT}", "--#{JIT}-call-threshold=2"].freeze
  # The Ruby that runs these tests has no tracer.
  OTHER_RUBY = RbConfig.ruby

  def dir = (@dir ||= scratch_dir)
  def path(name) = File.join(dir, name)

  def script(text, name = "script.rb")
    File.write(path(name), jit(text))
    name
  end

  # Runs `vm-trace record -o traces OPTIONS -- COMMAND` in the folder.
  def record(*command, options: [], env: {}, ended: true)
    out, err, status = Open3.capture3(ENVIRONMENT.merge(env), Trace::TOOL, "record", "-o", "traces", *options,
                                      "--", *command, chdir: dir)
    Run.new(status: status, out: out, err: err, dir: dir, traces: traces(ended: ended))
  end

  def traces(ended: true)
    Dir[path("traces/*.fxt*")].sort.map { |file| validated(Trace.new(file), ended: ended) }
  end

  def test_the_program_runs_as_without_it
    script(<<~'RUBY')
      def foo = (::RubyVM::ZJIT.induce_side_exit!)
      1000.times { foo }
      puts $stdin.read.upcase, ARGV.inspect
      warn "to stderr"
      exit 7
    RUBY
    out, err, status = Open3.capture3(ENVIRONMENT, Trace::TOOL, "record", "-o", "traces",
                                      RUBY, *JIT_FLAGS, "script.rb", "-o", "a b", "--quiet",
                                      chdir: dir, stdin_data: "typed")
    assert_equal "TYPED\n[\"-o\", \"a b\", \"--quiet\"]\n", out
    assert_equal 7, status.exitstatus
    assert_match(/^to stderr$/, err)
    assert_match(/^Where the time went: .*^More: vm-trace report traces, .*^vm-trace: 1 trace, .* in traces$/m, err)
    trace = traces.fetch(0)
    assert_equal "exits compiles invalidations markers threads fibers gc allocations states samples", trace.settings["flags"]
    assert_equal 97, trace.settings["exit_rate"]
    index = CSV.read(path("traces/index.csv"), headers: true)
    assert_equal [trace.settings["pid"].to_s], index["pid"]
    assert_match(/script\.rb -o a b --quiet\z/, index["command"].first)
  end

  def test_quiet_says_nothing
    result = record(RUBY, *JIT_FLAGS, "-e", "puts 1", options: ["--quiet"])
    assert_equal ["1\n", "", 0, 1], [result.out, result.err, result.status.exitstatus, result.traces.size]
  end

  def test_options_choose_what_is_recorded
    result = record(RUBY, *JIT_FLAGS, "-e", "1.then { |x| x }", options: %w[--vm-trace=exits,gc --every=5])
    assert_equal ["exits gc", 5], result.trace.settings.values_at("flags", "exit_rate"), result.err
  end

  # A Ruby without the tracer is none of its business.
  def test_children_are_recorded_each_in_its_own_file
    script(<<~RUBY)
      pids = 2.times.map { |i| fork { sleep 0.01 * i; exit! if i == 5 } }
      pids.each { |pid| Process.wait(pid) }
      system(#{RUBY.inspect}, "--disable=gems", "-e", "puts :again")
      system(#{OTHER_RUBY.inspect}, "--disable=gems", "-e", "puts :other")
      system("sh", "-c", "exec #{RUBY} --disable=gems -e 'puts :shell'")
      exec(#{RUBY.inspect}, "--disable=gems", "-e", "puts :executed")
    RUBY
    result = record("sh", "-c", "#{RUBY} --disable=gems script.rb", ended: false) # one executes another program
    assert_equal "again\nother\nshell\nexecuted\n", result.out, result.err
    assert_equal 6, result.traces.size, Dir.children(path("traces")).inspect
    assert_equal 6, CSV.read(path("traces/index.csv")).size - 1
    report, = Open3.capture2(Trace::TOOL, "report", "--all", "traces", chdir: dir)
    assert_match(/^Processes: 6$/, report)
  end

  def test_a_script_names_its_ruby
    File.write(path("app"), "#!#{RUBY} --disable=gems\nputs 5\n")
    File.chmod(0o755, path("app"))
    assert_equal ["5\n", 1], record("./app").then { |result| [result.out, result.traces.size] }
  end

  def test_a_ruby_without_tracer_is_named_and_not_run
    File.write(path("app"), "#!/usr/bin/env -S #{OTHER_RUBY} -W\nputs 5\n")
    File.chmod(0o755, path("app"))
    [[OTHER_RUBY, "-e", "puts 5"], ["./app"]].each do |command|
      result = record(*command)
      assert_equal ["", 3], [result.out, result.status.exitstatus]
      assert_match(/\Avm-trace: record: #{OTHER_RUBY} \(ruby \d.*\) has no tracer: `make` .*\n\z/, result.err)
      refute_path_exists path("traces")
    end
  end

  def test_an_empty_folder_of_the_user_stays
    Dir.mkdir(path("traces"))
    assert_equal 127, record("./nonesuch").status.exitstatus
    assert_equal 0, record("true").status.exitstatus
    assert_path_exists path("traces")
  end

  # Whoever shows the page gets signals as the tool got them.
  def test_after_the_program_signals_are_as_before
    File.write(path("show"), "#!/bin/sh\ngrep -E '^Sig(Blk|Ign)' /proc/self/status > signals\n")
    File.chmod(0o755, path("show"))
    result = record(RUBY, "--disable=gems", "-e", "1", options: ["--open"], env: { "BROWSER" => path("show") })
    assert_equal 0, result.status.exitstatus, result.err
    expected = File.readlines("/proc/self/status").grep(/^Sig(Blk|Ign)/).map(&:split).to_h
    found = File.readlines(path("signals")).map(&:split).to_h
    assert_equal expected["SigBlk:"].to_i(16), found["SigBlk:"].to_i(16)
    assert_equal 0, found["SigIgn:"].to_i(16) & 0b110, "SIGINT and SIGQUIT"
  end

  # Only what is certainly a Ruby is asked for its version, which runs it.
  def test_a_program_whose_name_begins_with_ruby_runs_once
    File.write(path("ruby_job.sh"), "#!/bin/sh\necho ran >> times\n")
    File.write(path("ruby"), "#!/bin/sh\necho ran >> times\nexec #{RUBY} --disable=gems -e 'puts 7'\n")
    %w[ruby_job.sh ruby].each do |name|
      File.chmod(0o755, path(name))
      result = record("./#{name}")
      assert_equal 0, result.status.exitstatus, result.err
      assert_equal "ran\n", File.read(path("times")), name
      File.delete(path("times"))
      FileUtils.rm_rf(path("traces"))
    end
  end

  # Compiled, and named as a Ruby might be: it is not asked what it is.
  def test_a_compiled_program_whose_name_begins_with_ruby_runs_once
    File.write(path("job.c"), <<~'C')
      #include <stdio.h>
      int main(void) { FILE *times = fopen("times", "a"); fputs("ran\n", times); return fclose(times); }
    C
    assert system("cc", "-o", path("ruby-job"), path("job.c"))
    assert_equal 0, record("./ruby-job").status.exitstatus
    assert_equal "ran\n", File.read(path("times"))
  end

  def test_what_is_no_ruby_runs_all_the_same
    result = record("sh", "-c", "echo 1; exit 3")
    assert_equal ["1\n", "", 3], [result.out, result.err, result.status.exitstatus]
    assert_match(/\Avm-trace: record: true ran no Ruby that has the tracer .*\n\z/, record("true").err)
    refute_path_exists path("traces")
    assert_equal 127, record("./nonesuch").status.exitstatus
    File.write(path("text"), "")
    assert_equal 126, record("./text").status.exitstatus
  end

  def test_the_folder_must_be_new_or_empty
    Dir.mkdir(path("traces"))
    assert_equal 1, record(RUBY, "-e", "1").traces.size
    result = record(RUBY, "-e", "puts 1")
    assert_equal ["", 3], [result.out, result.status.exitstatus]
    assert_match(/\Avm-trace: traces: has traces already; give -o/, result.err)
    out, = Open3.capture2e(ENVIRONMENT, Trace::TOOL, "record", RUBY, "-e", "1", chdir: dir)
    assert_match(/ in vm-trace-\d{8}-\d{6}$/, out)
    assert_equal 1, Dir[path("vm-trace-*/*.fxt")].size
  end

  # In a path, spaces separate options, % begins the pid.
  def test_a_folder_of_any_name
    name = "a b\\c %p %t\t'\"ü"
    _, err, = Open3.capture3(ENVIRONMENT, Trace::TOOL, "record", "-o", name, RUBY, "-e", "1", chdir: dir)
    assert_equal 1, Dir.children(path(name)).grep(/\A\d+\.fxt\z/).size, err
  end

  def test_a_signal_that_ends_the_program_is_passed_on
    result = record(RUBY, "-e", "sleep 0.1; Process.kill(:KILL, $$)", ended: false)
    assert_equal [9, 1], [result.status.termsig, result.traces.size]
    FileUtils.rm_r(path("traces"))
    assert_equal 15, record(RUBY, "-e", "Process.kill(:TERM, $$); sleep").status.termsig
  end

  def test_signals_to_it_are_for_the_program
    script("$stdout.sync = true\ntrap(:USR1) { puts :usr1 }\ntrap(:TERM) { puts :term; exit 4 }\n" \
           "File.write('ready', '')\nsleep\nsleep\n")
    reader, writer = IO.pipe
    pid = Process.spawn(ENVIRONMENT, Trace::TOOL, "record", "-q", "-o", "traces", RUBY, "script.rb",
                        chdir: dir, out: writer)
    writer.close
    wait_for(path("ready"))
    Process.kill(:USR1, pid)
    assert_equal "usr1\n", reader.gets
    Process.kill(:TERM, pid)
    assert_equal "term\n", reader.read
    assert_equal 4, Process.wait2(pid).last.exitstatus
    assert_equal 1, traces.size
  end

  # As a terminal sends it: to the program and to vm-trace.
  def in_terminal(*command)
    Terminal.open do |terminal|
      side = terminal.side
      pid = Process.spawn(ENVIRONMENT.merge("TERM" => "xterm"), "setsid", "-c", "-w",
                          Trace::TOOL, "record", "-o", "traces", *command,
                          chdir: dir, in: side, out: side, err: side)
      yield terminal.keys
      return terminal.wait(pid)
    end
  end

  def test_ctrl_c_ends_the_program_as_without_it
    script("begin\n File.write('ready', '')\n sleep\nrescue Interrupt\n puts 'interrupted'\n sleep 0.1\n exit 9\nend\n")
    shown = nil
    text, status = in_terminal(RUBY, "script.rb") do |keys|
      wait_for(path("ready"))
      shown = await(keys, / 1 process, /)
      keys.write("\x03")
    end
    text = shown + text
    assert_equal 9, status.exitstatus, text
    assert_match(/interrupted\r\n/, text)
    assert_match(/\e\[24;1H\e\[2K\e\[2mvm-trace: recording for \d:\d\d, 1 process, /, text)
    assert_operator text.rindex("\e[r"), :>, text.rindex("recording for"), "the terminal scrolls as before"
    assert_match(/vm-trace: 1 trace/, text)
    assert_equal 1, traces.size
  end

  # In a shell with job control: the shell scrolls all rows meanwhile.
  def test_ctrl_z_gives_the_last_row_back
    script("File.write('ready', '')\nsleep 0.01 until File.exist?('go_on')\n")
    Terminal.open do |terminal|
      side = terminal.side
      pid = Process.spawn(ENVIRONMENT.merge("TERM" => "xterm", "PS1" => "ready> ", "HISTFILE" => nil), "setsid", "-c", "-w",
                          "bash", "--norc", "--noediting", "-i", chdir: dir, in: side, out: side, err: side)
      keys = terminal.keys
      await(keys, /ready> /)
      keys.write("#{Trace::TOOL} record -o traces #{RUBY} --disable=gems script.rb\n")
      assert_match(/\e\[1;23r/, await(keys, / 1 process, /))
      wait_for(path("ready"))
      keys.write("\x1a")
      assert_match(/\e\[r\e\[24;1H\e\[2K.*Stopped/m, await(keys, /Stopped.*ready> /m))
      keys.write("fg\n")
      assert_match(/\e\[1;23r/, await(keys, /fg\r\n.* 1 process, /m))
      File.write(path("go_on"), "")
      await(keys, /vm-trace: 1 trace.*ready> /m)
      keys.write("exit\n")
      terminal.wait(pid)
    end
  end

  # Marks steps until a recording has begun and ended, in this process and in a child, and some more. Each prints
  # its pid and the number of its last step.
  STEPS = <<~'RUBY'
    $stdout.sync = true
    def mark(n) = RubyVM::Trace.instant("step", n: n)
    def on? = RubyVM::Trace.status[:on]
    def steps
      n = -1
      step = -> { mark(n += 1); sleep 0.003 }
      step.() until on? || n > 3000
      step.() while on?
      20.times { step.() }
      puts [Process.pid, n].join(" ")
    end
    fork { steps }
    steps
    Process.wait
  RUBY

  # [the recorded numbers of a process, its last step] of each; nil, if a process had not begun in time.
  def recorded_steps(*options)
    script(STEPS)
    result = record(RUBY, *JIT_FLAGS, "script.rb", options: options)
    assert_predicate result.status, :success?, result.err
    last = result.out.lines.to_h { |line| line.split.map(&:to_i) }
    return unless result.traces.size == 2
    result.traces.map do |trace|
      marks = trace.events.select { |event| event["name"] == "step" }.map { |event| event["args"]["n"] }
      return if marks.empty?
      assert_equal (marks.min..marks.max).to_a, marks
      [marks, last.fetch(trace.settings["pid"])]
    end
  ensure
    FileUtils.rm_rf(path("traces"))
  end

  # A delay that is too short for the program to begin in, on a busy machine, is doubled.
  def test_a_part_of_the_run
    delay = 1
    found = nil
    wait_until("a recording that begins after the program", every: 0) do
      found = recorded_steps("--delay=#{delay}", "--duration=700ms")
      delay *= 2
      found&.all? { |marks, _| marks.min > 0 }
    end
    found.each { |marks, last| assert_operator marks.max, :<, last }
  end

  # It lasts until the child has certainly begun.
  def test_the_first_part_of_the_run
    duration = 1
    found = nil
    wait_until("a recording of both processes", every: 0) do
      found = recorded_steps("--duration=#{duration}")
      duration *= 2
      found&.all? { |marks, last| marks.max < last }
    end
    assert_equal [0, 0], found.map { |marks, _| marks.min }
  end

  # Runs until its trace is off, or for so long that a test has failed, and says which it was.
  UNTIL_OFF = <<~'RUBY'
    on = -> { RubyVM::Trace.status[:on] }
    File.write("ready", "")
    Integer(ARGV[0] || 0).times { break if on.(); sleep 0.01 }
    12_000.times { break unless on.(); sleep 0.01 }
    File.write("found", on.() ? "on" : "off")
  RUBY

  # What a shell starts in the background, and leaves.
  def launcher(*arguments) = ["sh", "-c", "#{RUBY} --disable=gems script.rb #{arguments.join} > out 2>&1 & exit 5"]

  def test_a_duration_ends_traces_of_what_a_launcher_left
    script(UNTIL_OFF)
    result = record(*launcher, options: %w[--duration=700ms])
    assert_equal 5, result.status.exitstatus
    assert_match(/^vm-trace: the command has ended; what it started is recorded until Ctrl-C at the latest$/, result.err)
    wait_for(path("found"))
    assert_equal ["off", 1], [File.read(path("found")), result.traces.size]
  end

  # The program has seconds to start; on a machine that needs longer the trace begins never.
  def test_a_delay_begins_traces_of_what_a_launcher_left
    script(UNTIL_OFF)
    record(*launcher(3000), options: %w[--delay=1 --duration=5], ended: false)
    wait_for(path("found"))
    assert_equal ["off", 1], [File.read(path("found")), Dir[path("traces/*.fxt")].size]
  end

  def test_an_interrupt_ends_traces_of_what_a_launcher_left
    script(UNTIL_OFF)
    reader, writer = IO.pipe
    pid = Process.spawn(ENVIRONMENT, Trace::TOOL, "record", "-o", "traces", "--duration=1000", *launcher, chdir: dir,
                        err: writer)
    writer.close
    assert_match(/the command has ended/, reader.gets)
    wait_for(path("ready"))
    Process.kill(:INT, pid)
    rest = Thread.new { reader.read }
    assert_equal 5, Process.wait2(pid).last.exitstatus
    rest.join
    wait_for(path("found"))
    assert_equal ["off", 1], [File.read(path("found")), traces.size]
  end

  # Also one that it becomes after the time is over, whose environment asks for a trace.
  def test_a_duration_is_over_for_the_next_program_of_a_process
    script(UNTIL_OFF)
    script(UNTIL_OFF + "exec #{RUBY.inspect}, '--disable=gems', 'script.rb'\n", "first.rb")
    result = record(RUBY, "--disable=gems", "first.rb", options: %w[--duration=500ms], ended: false)
    assert_equal 0, result.status.exitstatus, result.err
    assert_equal "off", File.read(path("found"))
    refute_match(/not started|does not listen/, result.err)
  end

  def test_a_program_that_ends_its_trace_or_is_no_ruby_any_more
    result = record(RUBY, "--disable=gems", "-e", "exec 'sleep', '1'", options: %w[--duration=100ms -q], ended: false)
    assert_equal ["", 0], [result.err, result.status.exitstatus]
  end

  def test_streams_that_do_not_exist
    list = "there is no stream"
    { "bogus" => /\Avm-trace: --vm-trace: #{list} bogus; streams and presets are: exits, .*, full$/,
      "gc,exit" => /\Avm-trace: --vm-trace: #{list} exit; did you mean exits\?$/,
      "thread:min=5ms" => /\Avm-trace: --vm-trace: #{list} thread; did you mean threads\?$/,
      "gc," => /\Avm-trace: --vm-trace takes names of streams with commas between them, not gc,$/,
      "exits:foo=3" => /\Avm-trace: record: --vm-trace: exits takes rate=N, .*, not "foo=3"$/,
      "samples:1ms,9" => /\Avm-trace: record: --vm-trace: samples takes .*, not "9"$/ }.each do |streams, message|
      result = record(RUBY, "-e", "puts 1", options: ["--vm-trace=#{streams}"])
      assert_equal ["", 2], [result.out, result.status.exitstatus], streams
      assert_match(message, result.err)
      refute_path_exists path("traces")
    end
    result = record("sh", "-c", "echo 1", options: ["--vm-trace=bogus"])
    assert_equal ["", 2], [result.out, result.status.exitstatus]
  end

  # The tool has a list of its own.
  def test_the_tool_knows_the_streams_of_ruby
    ruby = Open3.capture2e(RUBY, "--vm-trace=zzzzzzzz", "--version").first
    expected = ruby[/streams are: (.*);/, 1].split(", ") + ruby[/presets are: (.*)$/, 1].split(", ")
    tool = record("true", options: ["--vm-trace=zzzzzzzz"]).err
    assert_equal expected, tool[/streams and presets are: (.*)$/, 1].split(", ")
  end

  def test_a_program_that_runs
    beside(LOOP.sub("foo until") { "(foo; sleep 0.001) until" }) do |pid, _|
      out, err, status = Open3.capture3(ENVIRONMENT, Trace::TOOL, "record", "-o", "traces", "--pid=#{pid}",
                                        "--duration=0.3", "--every=3", chdir: dir)
      assert_equal ["", 0], [out, status.exitstatus], err
      assert_equal 3, traces.fetch(0).settings["exit_rate"]
      assert_equal "#{pid}.fxt", File.basename(traces.first.path)
      assert_match(/^on +false$/, tell("status", pid)[1])
    end
    out, status = Open3.capture2e(ENVIRONMENT, Trace::TOOL, "record", "--pid=1", "sleep", "1", chdir: dir)
    assert_equal ["vm-trace: record takes a command, or --pid=PID; see vm-trace record --help\n", 2],
                 [out, status.exitstatus]
  end

  def test_only_the_newest_files_stay
    script("4.times { |i| Process.wait(fork { RubyVM::Trace.instant('child', i: i); sleep 0.02 }) }\n")
    result = record(RUBY, "script.rb", options: %w[--max-files=2])
    assert_equal 2, result.traces.size
    children = result.traces.flat_map { |trace| trace.events.select { |event| event["name"] == "child" } }
    kept = children.map { |event| event["args"]["i"] }
    assert_equal [3], kept.sort.last(1)
    assert_match(/; 3 older ones are removed \(--max-files\)$/, result.err)
  end

  def test_a_page_is_opened
    File.write(path("browser"), "#!/bin/sh\necho \"$1\" > opened\n")
    File.chmod(0o755, path("browser"))
    record(RUBY, "-e", "1", options: ["--open"], env: { "BROWSER" => "./browser" })
    page = File.read(path("opened")).chomp
    assert_equal File.realpath(path("traces/trace.html")), page
    assert_match(/\A<!doctype html>/i, File.read(page))
  end

  # --- RUBY_VM_TRACE ---

  def test_options_of_the_command_line_override_those_of_the_environment
    env = { "RUBY_VM_TRACE" => "--vm-trace=gc,markers --vm-trace-file=environment.fxt  --vm-trace-quiet" }
    result = run_ruby("1", env: env)
    assert_equal ["", "gc markers"], [result.err, result.trace.settings["flags"].split.sort.join(" ")]
    result = run_ruby("1", "--vm-trace=threads", "--vm-trace-file=mine.fxt", env: env)
    assert_equal %w[mine.fxt], result.traces.map { |trace| File.basename(trace.path) }
    assert_equal %w[gc markers threads], result.trace.settings["flags"].split.sort
  end

  def test_flags_of_a_jit_are_joined_with_it
    env = { "RUBY_VM_TRACE" => "--vm-trace=gc --vm-trace-file=environment.fxt" }
    result = run_traced("1.then { |x| x }", env: env)
    assert_equal "exits gc", result.trace.settings["flags"]
    assert_match(/\A\d+\.fxt\z/, File.basename(result.trace.path))
  end

  def test_what_is_wrong_in_it_is_reported_and_ignored
    {
      "--vm-trace=nonesuch" => /there is no stream "nonesuch".*\n.*RUBY_VM_TRACE is ignored from there on\n\z/m,
      "gc" => /RUBY_VM_TRACE holds gc, not an option such as --vm-trace=LIST\n.*ignored from there on\n\z/m,
      "--vm-trace-fiel=x" => /there is no option --vm-trace-fiel/,
      "" => /\A\z/,
      "  " => /\A\z/,
    }.each do |value, message|
      result = run_ruby("puts 1", env: { "RUBY_VM_TRACE" => value })
      assert_equal ["1\n", 0], [result.out, result.status.exitstatus], value
      assert_match(message, result.err, value)
      assert_empty result.traces
    end
  end

  # --- RubyVM::Trace.start(streams:) ---

  def test_streams_are_named_as_in_the_option
    result = run_ruby(<<~'RUBY', *JIT_FLAGS)
      RubyVM::Trace.start(streams: "default,samples:5ms,exits:rate=3", gc: false, file: "a.fxt")
      RubyVM::Trace.stop
      begin
        RubyVM::Trace.start(streams: "nonesuch")
      rescue ArgumentError => error
        puts error.message
      end
    RUBY
    assert_equal ["exits markers threads samples", 3, 5_000_000],
                 result.trace.settings.values_at("flags", "exit_rate", "samples_ns")
    assert_match(/\Astreams: there is no stream "nonesuch"; streams are: .*\n\z/, result.out)
  end
end
