# The command line: help, statuses, wrong usage.
require "fileutils"
require "json"
require_relative "tool_helper"

class TestCli < Minitest::Test
  include ToolHelper

  def test_no_command_shows_help_on_stderr
    result = tool
    assert_match(/\AUsage: vm-trace COMMAND/, result.err)
    assert_empty result.out
    assert_equal 2, result.status
  end

  def test_help_lists_commands_and_statuses
    [%w[--help], %w[-h], %w[help]].each do |args|
      result = tool(*args)
      assert_match(/^  report .*\n  history .*\n  annotate .*\n  info .*\n  check .*\n  dump .*\n  query /, result.out)
      assert_match(/^Exit status: 0 .*; 1 .*; 2 .*;\s3 .*;\s4 .*1 .*;\s5 /m, result.out)
      assert_empty result.err
      assert_equal 0, result.status
    end
  end

  # From --help, so that a new one is tested, too.
  def commands
    names = tool("--help").out[/^Commands:\n((?:  .*\n)+)/, 1].scan(/^  (\w+)  /).flatten
    known = %w[report history annotate info check dump query diff export metrics html merge cut scrub explain record
               top start stop status save]
    assert_empty known - names
    names
  end

  def test_every_command_has_help
    commands.each do |command|
      result = tool(command, "--help")
      assert_match(/\AUsage: vm-trace #{command} /, result.out)
      assert_match(/^Exit status: /, result.out)
      assert_equal 0, result.status
      assert_equal result.out, tool("help", command).out
    end
  end

  def test_help_fits_90_columns
    [nil, *commands].each do |command|
      assert_empty tool(*command, "--help").out.lines.select { |line| line.chomp.size > 90 }, command
    end
  end

  # Commands for a running program say how it must have been started, and list their own options.
  def test_help_of_the_commands_for_running_programs
    help = %w[start stop status save].to_h { |command| [command, tool(command, "--help").out] }
    help.each { |command, text| assert_match(/\AUsage: vm-trace #{command} \[OPTION\]\.\.\. PID/, text) }
    assert_match(/RUBY_VM_TRACE_CONTROL/, help["start"])
    options = %w[counter no-exits compiles invalidations sample-rate file max-size keep memory seconds save-at timeout]
    options.each { |option| assert_match(/ --#{option}\b/, help["start"]) }
    assert_match(/\AUsage: .* PID \[PATH\]$/, help["save"])
    help.each_value { |text| refute_match(/FILE may be -/, text) }
  end

  def test_version
    assert_match(/\Avm-trace \d\S*\n\z/, tool("--version").out)
  end

  def test_unknown_command_suggests_the_nearest
    result = tool("reprot", "x")
    assert_equal "vm-trace: unknown command reprot; did you mean report?\n", result.err
    assert_equal 2, result.status
    assert_equal "vm-trace: unknown command frobnicate; vm-trace --help lists them\n", tool("frobnicate").err
  end

  def test_wrong_usage
    { %w[check] => /check needs a file to read/, %w[check --frob x] => /unrecognized option '--frob'/,
      %w[report --top x f] => /--top takes a number from 1 to \d+, not x/, %w[report --top 0 f] => /not 0/,
      %w[report --top=-1 f] => /not -1/, %w[report -n 99999999999999999999 f] => /not 9+/,
      %w[check --top 3 f] => /unrecognized option '--top'/, %w[check --memory 0 f] => /--memory takes a number/,
      %w[report --since x f] => /--since takes a time such as 1\.5, 20ms or 300us, not x/,
      %w[report --since=-1 f] => /not -1/,
      %w[report --until 5h f] => /not 5h/, %w[report --until inf f] => /not inf/, %w[report --until 1e3 f] => /not 1e3/,
      %w[report --until= f] => /takes a time/, %w[report --until 99999999999 f] => /not 9+/,
      %w[report --format xml f] => /--format takes text, json, markdown or csv, not xml/ }.each do |args, message|
      result = tool(*args)
      assert_match(/\Avm-trace: /, result.err, args.inspect)
      assert_match(message, result.err)
      assert_equal 2, result.status, args.inspect
      assert_empty result.out
    end
  end

  def test_programs_that_cannot_be_told_anything
    pid = Process.spawn({ "RUBY_VM_TRACE_CONTROL" => "/nowhere/%p" }, "sleep", "60")
    sleep 0.01 until File.read("/proc/#{pid}/environ").include?("nowhere")
    expected = {
      %w[stop] => [2, /stop needs the pid of a program/],
      %w[stop x1] => [2, /give exactly one process id/],
      %w[start --keep=best 1] => [2, /--keep takes newest or oldest, not best/],
      ["status", Process.pid.to_s] => [3, /start it with RUBY_VM_TRACE_CONTROL set/],
      ["status", pid.to_s] => [3, %r{process #{pid} does not listen at /nowhere/#{pid}: No such file}],
    }
    expected.each do |args, (status, message)|
      result = tool(*args)
      assert_match(/\Avm-trace: .*#{message}/, result.err, args.inspect)
      assert_equal status, result.status, args.inspect
    end
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  # What these print of a folder with one trace is that of the trace; `annotate` adds up several, `cut` takes one.
  def test_a_folder_stands_for_its_trace
    Dir.mktmpdir do |dir|
      { "annotate" => [], "cut" => ["--until=1ms"], "explain" => [] }.each do |command, options|
        FileUtils.rm_f(Dir["#{dir}/*"])
        result = tool(command, *options, dir)
        assert_equal ["vm-trace: #{dir}: the folder has no traces (*.fxt)\n", 3], [result.err, result.status], command
        FileUtils.cp(File.join(TRACES, "exits.fxt"), "#{dir}/1.fxt")
        ours, of_file = [dir, "#{dir}/1.fxt"].map { |argument| tool(command, *options, argument) }
        assert_equal [of_file.out, of_file.err, 0], [ours.out, ours.err, ours.status], command
        refute_empty ours.out
        FileUtils.cp("#{dir}/1.fxt", "#{dir}/2.fxt")
        both = tool(command, *options, dir)
        assert_equal command == "cut" ? 2 : 0, both.status, both.err
      end
      of_file, both = ["#{dir}/1.fxt", dir].map do |argument|
        printed = JSON.parse(tool("annotate", "--format=json", argument).out)
        printed["annotated_files"]["rows"].sum { |row| row["exits"] }
      end
      assert_equal 2 * of_file, both
    end
  end

  def test_a_folder_stands_for_its_traces
    Dir.mktmpdir do |dir|
      (commands - %w[annotate cut scrub explain metrics open record top start stop status save]).each do |command|
        arguments = { "history" => [dir, "Foo#bar"], "query" => [dir, "select count(*) from process"],
                      "diff" => [dir, dir], "export" => ["--format=folded", dir] }.fetch(command, [dir])
        FileUtils.rm_f(Dir["#{dir}/*"])
        result = tool(command, *arguments)
        assert_equal "vm-trace: #{dir}: the folder has no traces (*.fxt)\n", result.err, command
        assert_equal 3, result.status, command
        [10, 9].each { |pid| File.binwrite("#{dir}/#{pid}.fxt", OurTrace.new(pid: pid).build.bytes) }
        File.write("#{dir}/index.csv", "")
        files = arguments.flat_map { |argument| argument == dir ? %W[#{dir}/9.fxt #{dir}/10.fxt] : [argument] }
        next if command == "diff" || tool(command, *arguments).err.include?("built without SQLite")
        found = tool(command, *arguments)
        assert_equal [tool(command, *files).out, 0], [found.out, found.status], command
      end
    end
  end

  # What the recorder, a fork, a second recording of one process, the spool, scrub and merge call their files.
  TRACE_NAMES = %w[7.fxt 7.fxt.gz 7.fxt.zst 7.fxt.1234 7.fxt.2.1234 7.fxt.1234.gz a-7-20261126T221504-1-time.fxt.zst
                   b.fxt.d.fxt].freeze
  OTHER_NAMES = %w[notes.fxt.md 7.fxt.saving-1234 7.fxt~ 7.fxt.bak 7.fxt.gz.part 7.fxtx .7.fxt 7.fxt.csv 7.fxt.
                   7.fxt.12a fxt].freeze

  def test_only_what_is_named_as_a_trace_is_one
    Dir.mktmpdir do |dir|
      OTHER_NAMES.each { |name| File.write("#{dir}/#{name}", "no trace") }
      Dir.mkdir("#{dir}/folder.fxt")
      assert_equal ["vm-trace: #{dir}: the folder has no traces (*.fxt)\n", 3], tool("report", dir).to_a.values_at(1, 2)
      TRACE_NAMES.each { |name| File.binwrite("#{dir}/#{name}", OurTrace.new.build.bytes) }
      result = tool("check", dir)
      assert_equal ["", 0], [result.err, result.status]
      assert_equal TRACE_NAMES.sort, result.out.lines.map { |line| line[%r{/([^/]+): ok: }, 1] }.sort
    end
  end

  # A shell makes FOLDER/* of all that record has written there.
  def test_the_index_and_the_page_beside_traces_are_no_traces
    Dir.mktmpdir do |dir|
      traces = [10, 9].map do |pid|
        "#{dir}/#{pid}.fxt".tap { |path| File.binwrite(path, OurTrace.new(pid: pid).build.bytes) }
      end
      beside = %w[index.csv trace.html].map { |name| "#{dir}/#{name}".tap { |path| File.write(path, "none") } }
      [%w[report], %w[check], %w[metrics], %w[html], %w[query] + ["select count(*) from process"],
       %w[history] + ["Foo#bar"]].each do |command, last|
        all, alone = [traces + beside, traces].map { |files| tool(command, *files, *last) }
        assert_equal alone.to_a, all.to_a, command
        assert_equal 0, all.status unless all.err.include?("built without SQLite")
      end
      Dir.chdir(dir) { assert_equal ["", 0], tool("report", *Dir["*"].sort).to_a.drop(1) }
      assert_equal ["", 0], tool("diff", *traces, *beside, "vs", *beside, *traces).to_a.drop(1)
      # Where there is no trace beside it, it is what the user means.
      assert_equal 4, tool("check", "#{TRACES}/exits.fxt", beside[0]).status
      assert_match(/index.csv: offset 0: .*not a Fuchsia trace/, tool("report", *beside).err)
    end
  end

  def test_options_without_effect_are_refused
    trace = "#{TRACES}/exits.fxt"
    { ["diff", "--no-map", "--map=a=b", trace, trace] => "--map has no effect with --no-map",
      ["diff", "--service=x", trace, trace] => "--service is for --since-deploy",
      ["html", "--below=/", trace] => "--below is for --sources",
      ["scrub", "-z", "zstd", "-o", "/nonesuch/x.fxt", trace] =>
        "--compress is for a folder; of one trace the name of OUT decides (.gz, .zst)",
      ["check", "--unended", trace] => "--unended is for --strict",
      ["annotate", "-C", "1", "--format=json", trace] => "--context has no effect with --format=json or csv",
      ["annotate", "-C", "1", "--table=annotated_lines", trace] => "--context has no effect with --table",
      ["record", "--quiet", "--top=3", "true"] => "--top has no effect with --quiet",
      ["start", "--no-exits", "--counter=x", "1"] => "--counter has no effect with --no-exits" }.each do |command, message|
      result = tool(*command)
      assert_equal ["vm-trace: #{message}\n", 2, ""], [result.err, result.status, result.out], command.inspect
    end
  end

  # The processes of a folder are one run: what they have in common is added up.
  def test_diff_takes_a_folder_as_one_run
    Dir.mktmpdir do |dir|
      %w[a b].each { |side| Dir.mkdir("#{dir}/#{side}") }
      %w[a/1 a/2 b/1 b/5 b/6].each do |name|
        trace = OurTrace.new(pid: name[/\d/].to_i).build
        File.binwrite("#{dir}/#{name}.fxt", trace.bytes)
      end
      out = tool("diff", "--format=json", "#{dir}/a", "#{dir}/b").out
      assert_equal [2 * 3, 3 * 3], JSON.parse(out)["total"]["rows"].first.values_at("a", "b"), out
    end
  end

  def test_output_that_cannot_be_written
    skip "no /dev/full here" unless File.exist?("/dev/full")
    with_file(OurTrace.new.build) do |path|
      %w[report info check dump].each do |command|
        system(TOOL, command, path, out: "/dev/full", err: "#{path}.err")
        assert_equal 3, $?.exitstatus, command
        assert_equal "vm-trace: cannot write to standard output: No space left on device\n", File.read("#{path}.err")
      end
    end
  end

  OPTIONS = %w[top since until reason method thread format max-faults memory help version normalize kind map fail-over
               output sqlite no-reason counter no-exits compiles invalidations sample-rate file max-size keep calls
               syscalls sched seconds save-at timeout table no-map strict unended ractors].freeze

  # {letter => name} of a command, by its --help.
  def letters_of(command)
    tool(command, "--help").out.scan(/^  -(.), --([a-z-]+)/).to_h
  end

  def test_a_letter_has_one_meaning_in_all_commands
    meanings = commands.flat_map { |command| letters_of(command).to_a }.uniq
    assert_operator meanings.size, :>, 20
    assert_equal meanings.map(&:first).uniq.size, meanings.size, meanings.sort.inspect
    assert_equal meanings.map(&:last).uniq.size, meanings.size, meanings.sort.inspect
    man = File.read(File.join(ROOT, "tools/vm-trace/cli/vm-trace.1")).scan(/^\.It Fl (\w) (?:Ar \S+ )?, Fl -([a-z-]+)/)
    assert_empty man - meanings - [%w[V version]], "the man page has the same"
  end

  # What letters meant before there was one table of them.
  def test_old_letters_are_accepted_with_a_warning
    gvl = File.join(TRACES, "gvl.fxt")
    with_file("select 1 as one") do |sql|
      { %W[query -f #{sql} #{gvl}] => %W[query --file=#{sql} #{gvl}],
        ["query", "-F", "json", gvl, "select 1"] => ["query", "--format=json", gvl, "select 1"],
        %W[report -pk #{gvl}] => %W[report --samples --sched #{gvl}],
        %W[html -c 3 #{gvl}] => %W[html --max-calls=3 #{gvl}] }.each do |old, now|
        results = [old, now].map { |command| tool(*command) }
        assert_equal results[1].out, results[0].out
        assert_equal 0, results[0].status
        assert_equal "", results[1].err
        assert_match(/\A(vm-trace: -\w is no longer the letter of (--[a-z-]+); write \2\n)+\z/, results[0].err)
      end
    end
    assert_match(/-m is no longer the letter of --memory; write -M or --memory$/, tool("start", "-m", "5").err)
  end

  def test_man_page_names_every_command_and_option
    man = File.read(File.join(ROOT, "tools/vm-trace/cli/vm-trace.1"))
    words = commands.map { |command| "Cm #{command}" } + OPTIONS.map { |option| "-#{option}" }
    words.each { |word| assert_includes man, word }
  end
end
