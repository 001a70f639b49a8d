# Post mortem: the module's gdb commands show and save what is in memory, of a stopped process and
# of a core file.
#
# Once: what is in memory is the same for each JIT.
require_relative "helper"
Integration.only "zjit" # what is in memory is the same for each JIT

class TestGdb < Integration::Test
  COMMANDS = File.join(Integration::RUBY_SRC, "vm_trace", "gdb.py")
  EXITS = 500
  PROGRAM = <<~RUBY
    Warning[:experimental] = false
    def foo(x) = x + 1
    def bar(n)
      n.times { ::RubyVM::ZJIT.induce_side_exit! }
    end
    20.times { foo(1) }
    bar(2)
    ractor = Ractor.new { bar(30); Ractor.main.send(:done); Ractor.receive }
    Ractor.receive
    #{EXITS}.times { foo(4_611_686_018_427_387_903) }
  RUBY
  FLAGS = %w[-W0 --zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-file=t.fxt].freeze

  # Programs of another processor
  GDB = Integration::EMULATED ? "gdb-multiarch" : "gdb"
  QUIETLY = [GDB, "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off"].freeze
  PYTHON = system(GDB, "-batch", "-ex", "python 1", out: File::NULL, err: File::NULL)

  def setup
    super
    skip "no gdb that has Python" unless PYTHON
    @dir = scratch_dir
  end

  def path(name) = File.join(@dir, name)

  # The output of gdb. `target`: its arguments.
  def gdb(*target, commands:)
    out, status = Open3.capture2e(Integration::ENVIRONMENT, *QUIETLY, "-x", COMMANDS,
                                  *commands.flat_map { |command| ["-ex", command] }, *target, chdir: @dir)
    assert_predicate status, :success?, out
    out.force_encoding("UTF-8")
  end

  # A command that should fail, in a form after which gdb continues.
  def failing(command) = "python\ntry: gdb.execute('#{command}')\nexcept gdb.error as e: print(e)"

  # The program under gdb; it stops itself by a signal. An emulated program has no process that gdb could
  # control: gdb reads its core.
  def gdb_at_the_end(program, *commands, flags: FLAGS)
    if Integration::EMULATED
      core = core_of(program, filter: "0x3b", flags: flags)
      return gdb(Integration::RUBY, core, commands: commands)
    end
    File.write(path("script.rb"), jit(program) + "Process.kill(:TRAP, $$)\n")
    gdb("--args", Integration::RUBY, "--disable=gems", *flags, "script.rb", commands: ["set startup-with-shell off", "run", *commands, "kill"])
  end

  # One session for the tests that only read, because gdb starts slowly. Output by command.
  LOOKING = ["vm-trace sites 2", "vm-trace sites 1000", "vm-trace writers", "vm-trace events 3", "vm-trace save saved.fxt"].freeze
  private_constant :LOOKING

  def said(command)
    @@session ||= begin
      marked = LOOKING.flat_map { |one| ["echo == #{one}\\n", one] }
      parts = gdb_at_the_end(PROGRAM, *marked).split(/^== /).to_h { |part| part.split("\n", 2) }
      { said: parts, dir: Dir.mktmpdir("vm-trace-test-") }.tap do |session|
        FileUtils.cp([path("t.fxt"), path("saved.fxt")], session[:dir])
        Minitest.after_run { FileUtils.rm_rf(session[:dir]) }
      end
    end
    @dir = @@session[:dir]
    @@session[:said].fetch(command)
  end

  # The program's core file. `filter`: which memory it contains.
  def core_of(program, filter:, flags: FLAGS)
    pattern = File.read("/proc/sys/kernel/core_pattern").chomp
    skip "cores go to #{pattern}" unless Integration::EMULATED || pattern.match?(/\A[^|\/]*\z/)
    File.write(path("script.rb"), "File.write('/proc/self/coredump_filter', '#{filter}'); #{jit(program)}Process.kill(:ABRT, $$)\nsleep\n")
    pid = Process.spawn(Integration::ENVIRONMENT, Integration::RUBY, "--disable=gems", *flags, "script.rb",
                        chdir: @dir, rlimit_core: Process::RLIM_INFINITY, in: File::NULL, out: File::NULL, err: File::NULL)
    Process.wait(pid)
    return emulators_core(pid) if Integration::EMULATED
    assert_predicate $?, :coredump?, "no core of #{pid}: #{$?.inspect}"
    Dir[path("core*")].fetch(0)
  end

  # The emulator writes the core itself. It leaves out the program's first segment, which begins with the
  # headers that gdb finds the program's place by; a kernel's core has these.
  def emulators_core(pid)
    core = Dir[path("qemu_*.core")].fetch(0) { flunk "no core of #{pid}: #{$?.inspect}" }
    File.open(core, "r+b") do |file|
      program = File.binread(Integration::RUBY)
      text_bytes = program_headers(program).find { |type,| type == PT_LOAD }.fetch(5)
      headers = program_headers(file.pread(1 << 20, 0))
      skip "the emulator did not write the whole core" if headers.any? { |_, _, offset, _, _, bytes| offset + bytes > file.size }
      _, _, offset, _, _, bytes = headers.find { |type,| type == PT_NOTE }
      place = auxiliary_values(file.pread(bytes, offset)).fetch(AT_PHDR) - ELF_HEADER_BYTES
      index = headers.index { |type, _, _, address| type == PT_LOAD && address == place }
      at = (file.size + 4095) / 4096 * 4096
      file.pwrite(program[0, text_bytes], at)
      file.pwrite([at].pack("Q<"), ELF_HEADER_BYTES + 56 * index + 8)
      file.pwrite([text_bytes].pack("Q<"), ELF_HEADER_BYTES + 56 * index + 32)
    end
    core
  end

  PT_LOAD, PT_NOTE, NT_AUXV, AT_PHDR, ELF_HEADER_BYTES = 1, 4, 6, 3, 64
  private_constant :PT_LOAD, :PT_NOTE, :NT_AUXV, :AT_PHDR, :ELF_HEADER_BYTES

  # Type, flags, offset, address, physical address, bytes in the file, in memory, alignment
  def program_headers(elf)
    Array.new(elf[56, 2].unpack1("S<")) { |i| elf[ELF_HEADER_BYTES + 56 * i, 56].unpack("L<2Q<6") }
  end

  # What the kernel tells a program, by its number, from the notes of a core.
  def auxiliary_values(notes)
    until notes.empty?
      name_bytes, bytes, type = notes.unpack("L<3")
      data = 12 + (name_bytes + 3) / 4 * 4
      return notes[data, bytes].unpack("Q<*").each_slice(2).to_h if type == NT_AUXV
      notes = notes[data + (bytes + 3) / 4 * 4..]
    end
    flunk "the core has no auxiliary values"
  end

  # The program's trace, and what gdb saved of it.
  def whole = @whole ||= Trace.new(path("t.fxt")).tap { |trace| [trace.events, trace.settings] }
  def saved(ended: false, recorders: 1) = validated(Trace.new(path("saved.fxt")), ended: ended, recorders: recorders)

  def counts(trace) = trace.exits.map { |event| event.values_at("name", "tid") }.tally

  def assert_holds_all(trace)
    assert_operator trace.exits("FixnumAddOverflow").size, :>=, EXITS - 1
    assert_equal 2, trace.exits.map { |event| event["tid"] }.uniq.size
    assert_equal counts(whole), counts(trace)
    assert_equal whole.settings, trace.settings
  end

  def test_status_says_what_is_recorded_and_where_to
    said = gdb_at_the_end(PROGRAM, "vm-trace status", flags: FLAGS + %w[--zjit-trace-compiles --zjit-trace-exits-sample-rate=7])
    assert_match(/^state     on$/, said)
    assert_match(/^file      #{Regexp.escape(File.realpath(@dir))}\/t.fxt, \d+ bytes$/, said)
    assert_match(/^records   one exit in 7, compiles$/, said)
  end

  def test_sites_are_listed_with_their_hits_the_most_frequent_first
    said = said("vm-trace sites 1000")
    listed = said.scan(/^ +(\d+)  (.+?)  (\w+)  version \d+  .*  (?:side|recompile)_exit$/)
    hits = listed.map { |count,| count.to_i }
    assert_equal hits.sort.reverse, hits
    assert_includes said, "#{listed.size} live sites, #{hits.sum} hits\n"
    sums = listed.group_by { |_, reason, insn| [reason, insn] }.transform_values { |sites| sites.sum { |count,| count.to_i } }
    assert_equal whole.exits.map { |event| [event["name"], event["args"]["insn"]] }.tally, sums.select { |_, count| count > 0 }
    assert_match(/^ +\d+  FixnumAddOverflow  opt_plus  version 1  Object#foo \(script.rb:2\)  side_exit$/, said)
  end

  def test_only_as_many_sites_are_listed_as_asked_for
    assert_equal 2, said("vm-trace sites 2").scan(/_exit$/).size
  end

  def test_writers_are_listed_with_their_chunks
    recorders = said("vm-trace writers").scan(/^recorder (\d+) .* (\d+) exits recorded, 0 lost, next sample in 1
    chunk 1 of it, at 0x\h+, file offset (\d+), \d+ of 1048576/)
    assert_equal [%w[1 0], %w[2 1048576]], recorders.map { |number, _, offset| [number, offset] }
    by_thread = whole.exits.group_by { |event| event["tid"] == whole.settings["pid"] }
    assert_equal [true, false].map { |main| by_thread[main].size }, recorders.map { |_, exits, _| exits.to_i }
  end

  def test_what_an_ended_ractor_left_is_listed_and_saved
    program = PROGRAM + "Ractor.new { bar(7) }.value\nsleep 0.001 until Ractor.count == 2\n"
    said = gdb_at_the_end(program, "vm-trace writers", "vm-trace save saved.fxt")
    assert_match(/^left by a ractor that has ended, .*\n    chunk at 0x\h+, file offset \d+, \d+ of 1048576 /, said)
    assert_match(/^saved\.fxt: 3 chunks, /, said)
    assert_includes saved(recorders: 3).exits("DirectiveInduced").group_by { |event| event["thread"] }.transform_values(&:size).values, 7
  end

  def test_the_last_events_of_each_ractor_are_shown
    said = said("vm-trace events 3")
    main, ractor = said.split(/^recorder /).last(2)
    assert_match(/\A1: the last 3 of \d+ events in its chunk \(from memory\)$/, main)
    shown = main.scan(/^  \d+\.\d{9}  thread \d+  (.*)\n      0        (.*)$/)
    assert_equal [["side_exit FixnumAddOverflow", "Object#foo (script.rb:2)"]] * 3, shown
    assert_match(/\A2: the last 3 of \d+ events/, ractor)
    assert_includes ractor, "side_exit #{jit("DirectiveInduced")}\n      0        block in Object#bar (script.rb:4)\n"
    times = said.scan(/^  (\d+\.\d{9})  /).flatten
    assert_equal 6, times.size
  end

  def test_what_is_in_memory_is_saved_as_a_valid_trace
    assert_includes said("vm-trace save saved.fxt"), "saved.fxt: 2 chunks, offset 0 from memory, offset 1048576 from memory\n"
    assert_holds_all(saved)
  end

  # Chunks before the current one are only in the file. The settings are in the first one, so gdb
  # makes new ones.
  def test_a_trace_saved_from_a_later_chunk_has_its_settings
    program = PROGRAM + "30_000.times { foo(4_611_686_018_427_387_903) }\n"
    gdb_at_the_end(program, "vm-trace save saved.fxt")
    trace = saved
    told = ->(settings) { settings.slice("ruby", "jit", "flags", "exit_rate", "pid") }
    assert_equal told.(whole.settings), told.(trace.settings)
    last = ->(exits) { exits.last(100).map { |event| event.values_at("ts", "tid", "args") } }
    assert_equal last.(whole.exits("FixnumAddOverflow")), last.(trace.exits("FixnumAddOverflow"))
  end

  # A chunk may begin in the middle of a compilation that began in the chunk before.
  def test_a_chunk_that_begins_inside_a_span_is_saved_as_a_valid_trace
    gdb_at_the_end(<<~'RUBY', "vm-trace save saved.fxt", flags: FLAGS + ["--zjit-trace-compiles"])
      2000.times { |i| eval("def m#{i}(x) = x.to_s + 'a'\n3.times { m#{i}(1) }") }
    RUBY
    assert_operator saved.in_category("compile").size, :>, 100
    assert_operator File.size(path("t.fxt")), :>, File.size(path("saved.fxt"))
  end

  MEMORY_FLAGS = ["-W0", "--zjit-call-threshold=2", "--zjit-trace-exits", "--zjit-trace-memory=4"].freeze
  # More than the current chunk, which is the newest.
  MEMORY_PROGRAM = PROGRAM + "10_000.times { foo(4_611_686_018_427_387_903) }\n"

  def assert_saved_memory(said)
    assert_match(/^saved\.fxt: \d+ bytes, all of the flight recorder's memory, with the sites and a summary$/, said)
    trace = saved(ended: true, recorders: 2)
    assert_equal [trace.exits.size, trace.summary["exits"], 0], [trace.summary["sampled"], trace.sites.sum { |site| site["hits"] }, trace.summary["lost"]]
    assert_operator trace.exits("FixnumAddOverflow").size, :>=, EXITS + 10_000 - 1
    assert_equal "memory", trace.settings["snapshot"]
  end

  def test_the_flight_recorder_s_memory_is_had_from_a_process
    said = gdb_at_the_end(MEMORY_PROGRAM, "vm-trace status", "vm-trace events 1", "vm-trace save saved.fxt", flags: MEMORY_FLAGS)
    assert_match(/^memory    \d+ of 4194304 bytes at 0x\h+, \/proc\/\d+\/fd\/\d+$/, said)
    assert_match(/ events in its chunk \(from memory\)$/, said)
    assert_saved_memory(said)
  end

  # In every core by default: it is memory without a file.
  def test_the_flight_recorder_s_memory_is_had_from_a_core
    core = core_of(MEMORY_PROGRAM, filter: "0x33", flags: MEMORY_FLAGS)
    assert_saved_memory(gdb(Integration::RUBY, core, commands: ["vm-trace save saved.fxt"]))
  end

  CALLS = <<~RUBY
    def work(n) = n == 3 ? 4 : n.to_s
    def inner(n) = (work(n); Process.kill(ENDING, $$); sleep)
    def outer(n) = [n].each { |x| inner(x) }
    20.times { |i| work(i) }
    Thread.new { outer(1) }.tap { sleep }
  RUBY
  OPEN = ["Object#inner", "block in Object#outer", "Array#each", "Object#outer", "block in <main>"].freeze
  CALLS_FLAGS = %w[-W0 --zjit-call-threshold=2 --zjit-trace-exits --vm-trace=calls].freeze

  def labels(names) = names.map { |name| name.sub(/ \([^()]*\)\z/, "") }

  def assert_open_calls(said)
    threads = said.split(/^thread \d+: \d+ calls have not returned\n/).drop(1)
    shown = threads.map { |calls| calls.scan(/^  \d+\.\d{9}(?: or before)?  (.*)$/).flatten }
    by_thread = shown.sort_by(&:size)
    assert_equal 2, by_thread.size, said
    assert_equal "<main>", labels(by_thread[0]).last
    assert_equal OPEN, labels(by_thread[1]).last(OPEN.size)
  end

  # In the trace that gdb saves, what is open goes on to its end; in the process's own it is missing.
  def assert_saved_calls(trace)
    open = trace.in_category("call").select { |event| event["args"]["ended"] == "after the trace" }
    threads = open.group_by { |event| event["tid"] }.values.map { |calls| calls.sort_by { |call| -call["ts"] } }
    names = threads.map { |calls| labels(calls.map { |call| call["name"] }) }
    assert_includes names.map { |all| all.last(OPEN.size) }, OPEN
    assert_equal 20 + 1, trace.in_category("call").count { |event| event["name"].start_with?("Object#work") }
  end

  def test_open_calls_of_a_core_are_shown_and_saved
    core = core_of("ENDING = :ABRT\n" + CALLS, filter: "0x33", flags: CALLS_FLAGS + ["--vm-trace-file=t.fxt"])
    said = gdb(Integration::RUBY, core,
               commands: ["vm-trace calls", "echo ==\\n", "vm-trace calls 1", "vm-trace save saved.fxt"])
    all, innermost = said.split("==\n")
    assert_open_calls(all)
    assert_equal 2, innermost.scan(/^  \d+\.\d{9}/).size
    assert_saved_calls(saved)
    assert_empty whole.in_category("call").select { |event| event["args"]["ended"] }
  end

  def test_open_calls_are_saved_with_the_flight_recorder_s_memory
    core = core_of("ENDING = :ABRT\n" + CALLS, filter: "0x33", flags: CALLS_FLAGS + ["--vm-trace-memory=4"])
    gdb(Integration::RUBY, core, commands: ["vm-trace save saved.fxt"])
    trace = saved(ended: true)
    assert_saved_calls(trace)
    assert_equal trace.in_category("call").size, trace.summary["calls"]
  end

  # What it called last has returned when it is killed.
  def test_an_open_call_ends_after_those_inside_it
    core = core_of(<<~RUBY, filter: "0x33", flags: CALLS_FLAGS + ["--vm-trace-file=t.fxt"])
      def inner = 100_000.times.sum
      def outer = (inner; File.write("done", ""); nil while true)
      spawn("until [ -e done ]; do sleep 0.01; done; kill -TRAP $PPID")
      outer
    RUBY
    gdb(Integration::RUBY, core, commands: ["vm-trace save saved.fxt"])
    calls = saved.in_category("call")
    inner, outer = %w[inner outer].map { |name| calls.find { |call| call["name"].start_with?("Object##{name}") } }
    assert_equal "after the trace", outer["args"]["ended"]
    inside = calls.select { |call| call["ts"] > outer["ts"] }
    assert_includes inside, inner
    inside.each { |call| assert_operator outer["ts"] + outer["dur"], :>=, call["ts"] + call["dur"] }
  end

  def test_without_calls_the_command_says_so
    assert_includes gdb_at_the_end(PROGRAM, "vm-trace calls"), "calls are not recorded\n"
  end

  def test_save_replaces_no_file
    File.write(path("saved.fxt"), "precious")
    assert_includes gdb_at_the_end(PROGRAM, failing("vm-trace save saved.fxt")), "vm-trace: saved.fxt: File exists"
    assert_equal "precious", File.read(path("saved.fxt"))
  end

  def test_without_a_trace_the_commands_say_so
    said = gdb_at_the_end("", "vm-trace status", "vm-trace sites", "vm-trace writers", flags: [])
    assert_match(/^state     off$/, said)
    assert_match(/^0 live sites, 0 hits$/, said)
  end

  def test_a_running_process_is_attached_to
    skip "gdb can't attach to an emulated program" if Integration::EMULATED
    File.write(path("script.rb"), jit(PROGRAM) + "puts 'ready'\n$stdout.flush\nsleep\n")
    IO.popen([Integration::ENVIRONMENT, Integration::RUBY, "--disable=gems", *FLAGS, "script.rb", { chdir: @dir, err: File::NULL }]) do |program|
      assert_equal "ready\n", program.gets
      said = gdb("-p", program.pid.to_s, commands: ["vm-trace save saved.fxt"])
      skip "gdb may not attach to another process here" if said.include?("Operation not permitted")
      assert_holds_all(saved)
    ensure
      Process.kill(:KILL, program.pid)
    end
  end

  # By default the chunks are not in a core, but in the file.
  def test_a_core_without_the_chunks_takes_them_from_the_file
    core = core_of(PROGRAM, filter: "0x33")
    said = gdb(Integration::RUBY, core, commands: ["vm-trace sites 1", "vm-trace events 1", "vm-trace save saved.fxt"])
    assert_match(/^ +\d+  FixnumAddOverflow/, said)
    assert_holds_all(saved)
  end

  def test_a_core_with_the_chunks_needs_no_file
    core = core_of(PROGRAM, filter: "0x3b")
    whole
    FileUtils.rm(path("t.fxt"))
    said = gdb(Integration::RUBY, core, commands: ["vm-trace events 1", "vm-trace save saved.fxt"])
    assert_match(/ events in its chunk \(from memory\)$/, said)
    assert_holds_all(saved)
  end

  def test_a_core_without_the_chunks_and_no_file_says_what_is_needed
    skip "the emulator's cores have the chunks" if Integration::EMULATED
    core = core_of(PROGRAM, filter: "0x33")
    whole
    FileUtils.rm(path("t.fxt"))
    said = gdb(Integration::RUBY, core, commands: ["vm-trace writers", failing("vm-trace events")])
    assert_match(/^recorder 1 .* exits recorded, 0 lost/, said)
    assert_match(/the chunk at offset 0 is not in the core, and .*t\.fxt: No such file or directory\. .*coredump_filter/, said)
  end
end
