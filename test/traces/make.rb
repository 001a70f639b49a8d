# Makes the traces of this folder; test/tool/test_traces.rb sees that they are what this makes. Run
# it to write them again:
#   ruby test/traces/make.rb
require_relative "../tool/fxt_builder"
require_relative "../tool/fibers_trace"

module Traces
  # What the tracer writes when every exit is recorded.
  def self.exits = OurTrace.new.build

  # One exit in 97 is recorded, one fallback in 5.
  def self.sampled = OurTrace.new(rate: 97, fallback_rate: 5).build

  # The program was killed: no summary, a compilation is open, the rest of the chunk is padding.
  def self.killed
    trace = OurTrace.new
    trace.summary = nil
    trace.sites = []
    trace.spans.pop
    trace.build.tap { |b| b.padding(4095); b.padding(100) }
  end

  # The disk was full for a while.
  def self.lost
    trace = OurTrace.new
    trace.losses << { type: :instant, cat: "trace", name: "loss", ts: 7000,
                      args: { "lost" => [:uint64, 1234], "reason" => "no space left on device" } }
    trace.build
  end

  # Two ractors with several threads, invalidations, a name that would turn a terminal red, one that
  # is not UTF-8.
  def self.threads
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: { "command" => "ruby \e[31mred\e[0m.rb", "pid" => [:uint32, 42], "exit_rate" => [:uint32, 1] })
      6.times do |i|
        b.event(:instant, "side_exit", "Reason#{i % 3}", ts: 2000 + i,
                args: { "0" => "caf\xe9#m (/app/a.rb:#{i})".b, "insn" => "send", "version" => [:uint32, 1] })
      end
      b.provider(2, "ractor 2")
      b.init
      b.thread(1, 42, 44)
      b.thread_name(42, 44, "worker\n2")
      b.event(:begin, "invalidation", "NoSingletonClass", ts: 2001)
      b.event(:end, "invalidation", "NoSingletonClass", ts: 52_001)
      2.times do |i|
        b.event(:instant, "recompile_exit", "Reason#{i}", ts: 60_000 + i,
                args: { "0" => "Worker#run (/app/w.rb:7)", "insn" => "send", "version" => [:uint32, 1],
                        "outcome" => %w[invalidated version_limit][i] })
      end
    end
  end

  # Three processes in one file, as `vm-trace merge` joins them: every exit recorded, one in 97, and
  # one that was killed.
  def self.processes
    killed = OurTrace.new(pid: 300, rate: 5)
    killed.summary = nil
    killed.sites = []
    builder = OurTrace.new(pid: 100).build
    [OurTrace.new(pid: 200, rate: 97), killed].each { |trace| builder.raw(trace.build.bytes) }
    builder
  end

  # Half a second in which one place exits after two recompilations, another at the limit, and a
  # third stops.
  def self.loops
    trace = OurTrace.new
    trace.exits = []
    trace.spans = []
    add = lambda do |at_ms, reason, frame, version, outcome|
      trace.exits << trace.exit_event("recompile_exit", reason, at_ms * 1_000_000, frame, "opt_send_without_block",
                                      "version" => [:uint32, version], "outcome" => outcome)
    end
    40.times { |i| add[1 + i, "GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", 1, i == 39 ? "invalidated" : "profiling"] }
    60.times { |i| add[100 + i, "GuardType(Float)", "Foo#bar (/app/foo.rb:3)", 2, i == 59 ? "invalidated" : "profiling"] }
    300.times { |i| add[200 + i, "GuardType(String)", "Foo#bar (/app/foo.rb:3)", 3, "version_limit"] }
    100.times { |i| add[400 + i, "NoProfileSend", "Foo#baz (/app/foo.rb:9)", 2, "version_limit"] }
    9.times { |i| add[50 + i, "NoProfileSend", "Foo#fine (/app/foo.rb:20)", 1, i == 8 ? "invalidated" : "profiling"] }
    places = trace.exits.group_by { |exit| [exit[:name], exit[:args]["0"], exit[:args]["version"]] }
    trace.sites = places.map do |(reason, frame, version), exits|
      trace.site("recompile_exit", reason, frame, "opt_send_without_block", exits.size).tap do |site|
        site[:ts] = 510_000_000
        site[:args]["version"] = version
      end
    end
    trace.summary[:ts] = 520_000_000
    trace.build
  end

  # An ISEQ with three versions, the last of which exits for ever; two blocks of one method, the
  # second of which is recompiled; inlined methods, and code that could not be compiled.
  def self.recompiled
    trace = OurTrace.new
    trace.exits = []
    trace.spans = []
    trace.settings["flags"] = "exits compiles invalidations"
    ms = 1_000_000
    add = ->(type, cat, name, at_ms, **rest) { trace.spans << { type: type, cat: cat, name: name, ts: (at_ms * ms).to_i, **rest } }
    compile = lambda do |iseq, version, from_ms, to_ms, id: nil, **more|
      add[:async_end, "reprofile", iseq, from_ms, id: id] if id
      add[:begin, "compile", "x", from_ms]
      add[:flow_end, "reprofile", "recompilation", from_ms, id: id] if id
      add[:begin, "compile", "optimize", from_ms + 0.1]
      add[:end, "compile", "optimize", from_ms + 0.2]
      add[:end, "compile", "x", to_ms, args: { "iseq" => iseq, "version" => [:uint32, version], "code_bytes" => [:uint64, 1000 * version],
                                               "exit_bytes" => [:uint64, 300], "exits" => [:uint64, 3] }.merge(more)]
    end
    invalidate = lambda do |iseq, version, at_ms, reason, id, exit = nil|
      args = { "iseq" => iseq, "version" => [:uint32, version] }
      args["0"] = exit if exit
      add[:begin, "invalidation", reason, at_ms, args: args]
      add[exit ? :flow_step : :flow_begin, "reprofile", "recompilation", at_ms, id: id]
      add[:async_begin, "reprofile", iseq, at_ms, id: id, args: { "version" => [:uint32, version], "reason" => reason }]
      add[:end, "invalidation", reason, at_ms + 0.05]
    end
    exits = lambda do |count, from_ms, step_ms, reason, frame, version, outcome, **more|
      count.times do |i|
        trace.spans << trace.exit_event("recompile_exit", reason, ((from_ms + i * step_ms) * ms).to_i, frame, "send",
                                        { "version" => [:uint32, version], "outcome" => outcome, **more })
      end
    end
    bar, first, second, helper = "Foo#bar (/app/foo.rb:2)", "block in Foo#all (/app/foo.rb:21)", "block in Foo#all (/app/foo.rb:31)", "Foo#helper (/app/foo.rb:9)"
    compile[bar, 1, 2, 3, "inlined" => "#{helper} x2"]
    exits[4, 10, 1, "NoProfileSend", "Foo#bar (/app/foo.rb:3)", 1, "profiling"]
    exits[1, 14, 1, "NoProfileSend", "Foo#bar (/app/foo.rb:3)", 1, "invalidated"]
    add[:flow_begin, "reprofile", "recompilation", 14, id: 1]
    invalidate[bar, 1, 14.1, "NoProfileSend", 1, "Foo#bar (/app/foo.rb:3)"]
    compile[bar, 2, 20, 22, id: 1]
    exits[9, 30, 1, "GuardType(Fixnum)", helper, 2, "profiling", "iseq" => bar]
    add[:begin, "invalidation", "CME is invalidated: 0x7f00", 45, args: { "0" => "<main> (/app/run.rb:7)" }]
    invalidate[bar, 2, 45.01, "CME is invalidated: 0x7f00", 2]
    add[:end, "invalidation", "CME is invalidated: 0x7f00", 46]
    compile[bar, 3, 50, 53, id: 2]
    exits[20, 60, 2, "GuardType(Fixnum)", "Foo#bar (/app/foo.rb:3)", 3, "version_limit"]
    compile[first, 1, 70.4, 70.8]
    compile[second, 1, 72.2, 72.6]
    exits[1, 80.3, 1, "NoProfileSend", "block in Foo#all (/app/foo.rb:22)", 1, "profiling"]
    exits[1, 82.5, 1, "NoProfileSend", "block in Foo#all (/app/foo.rb:33)", 1, "invalidated"]
    add[:flow_begin, "reprofile", "recompilation", 82.5, id: 3]
    invalidate[second, 1, 82.6, "NoProfileSend", 3, "block in Foo#all (/app/foo.rb:33)"]
    compile["Foo#huge (/app/foo.rb:50)", 0, 90.5, 90.9, "error" => "IseqStackTooLarge", "exit_bytes" => [:uint64, 0], "exits" => [:uint64, 0]]
    place = ->(event) { event[:args].values_at("0", "version", "iseq").unshift(event[:name]) }
    found = trace.spans.select { |event| event[:cat] == "recompile_exit" }
    trace.sites = found.group_by(&place).map do |(reason, frame, version, iseq), events|
      trace.site("recompile_exit", reason, frame, "send", events.size).tap do |site|
        site[:ts] = 110 * ms
        site[:args]["version"] = version
        site[:args]["iseq"] = iseq || { "22" => first, "33" => second }.fetch(frame[/\d+(?=\)\z)/], bar)
      end
    end
    # The summary counts them as exits.
    trace.exits, trace.spans = trace.spans.sort_by.with_index { |event, i| [event[:ts], i] }, []
    trace.summary = { ts: 120 * ms, args: { "exits" => [:uint64, found.size], "fallbacks" => [:uint64, 0], "sampled" => [:uint64, found.size], "lost" => [:uint64, 0],
                                            "events" => [:uint64, 1 + trace.exits.size + trace.sites.size], "sites" => [:uint64, trace.sites.size] } }
    trace.build
  end

  # A request waits for a thread that builds an index; a ractor beside them; garbage collections.
  def self.gvl
    trace = ThreadsTrace.new do |t|
      t.thread(:index, 44)
      t.thread(:"web 1", 45)
      t.thread(:"ractor 2", 2**30 + 1, cpu: 1)
      t.runs(:main, 0)
      t.leaves(:main, 2, ThreadsTrace::BLOCKED)
      t.event(:begin, :main, "blocked", "sleep", 2)
      t.wakes(:"web 1", 1, 2, by: :main)
      t.leaves(:"web 1", 5, ThreadsTrace::BLOCKED)
      t.event(:begin, :"web 1", "blocked", "IO#wait", 5, fd: 7, class: "TCPSocket")
      t.wakes(:index, 1.5, 5, by: :main)
      t.event(:begin, :index, "marker", "build index", 6)
      t.during(:index, "gc", "GC minor", 10, 12, count: [:uint64, 1], reason: "newobj") do
        t.during(:index, "gc", "mark", 10.1, 11)
        t.during(:index, "gc", "sweep", 11.1, 11.9, ends: { freed_slots: [:uint64, 500] })
      end
      t.runs(:"ractor 2", 10)
      t.during(:index, "gc", "GC major", 22, 26, count: [:uint64, 2], reason: "malloc", major_by: "oldmalloc") do
        t.during(:index, "gc", "barrier", 22.1, 22.2)
        t.during(:index, "gc", "mark", 22.3, 25.9)
      end
      t.event(:counter, :index, "gc", "GC heap", 26, extra: 1, heap_bytes: [:uint64, 4_000_000], live_slots: [:uint64, 70_000])
      t.leaves(:index, 30, ThreadsTrace::RUNNABLE)
      t.event(:end, :"web 1", "blocked", "IO#wait", 20)
      t.wakes(:"web 1", 20, 30)
      t.leaves(:"web 1", 33, ThreadsTrace::BLOCKED)
      t.event(:begin, :"web 1", "blocked", "Mutex#lock", 33, class: "Thread::Mutex")
      t.runs(:index, 33)
      t.during(:index, "gc", "GC major", 40, 41, count: [:uint64, 2]) do
        t.during(:index, "gc", "sweep", 40.1, 40.9, ends: { freed_slots: [:uint64, 2500] })
      end
      t.leaves(:index, 53, ThreadsTrace::RUNNABLE)
      t.event(:end, :"web 1", "blocked", "Mutex#lock", 35)
      t.wakes(:"web 1", 35, 53, by: :index)
      t.leaves(:"web 1", 54, ThreadsTrace::DEAD)
      t.runs(:index, 54)
      t.event(:end, :index, "marker", "build index", 60)
      t.blocks(:index, "Queue#pop", 62, class: "Thread::Queue")
      t.blocks(:"ractor 2", "sleep", 20, 30, 30.5)
      t.event(:end, :main, "blocked", "sleep", 90)
      t.wakes(:main, 90, 90.01)
    end
    trace.build
  end

  # Two methods that allocate, one of which keeps what it makes; one sample is not followed.
  def self.allocations
    trace = ThreadsTrace.new(settings: { allocations: [:uint64, 524_288] }) do |t|
      t.thread(:worker, 44)
      render = ["String#+ (/app/page.rb:7)", "Page#render (/app/page.rb:7)", "<main> (/app/run.rb:3)"]
      index = ["Array#map (<internal:array>:12)", "Index#add (/app/index.rb:20)", "<main> (/app/run.rb:5)"]
      12.times { |i| t.allocates(:main, "String", 1 + i, sample: i, weight: 524_308, frames: render) }
      4.times { |i| t.allocates(:worker, "Array", 20 + i, sample: 20 + i, size: 160, weight: 524_368, frames: index) }
      t.allocates(:worker, "Index::Entry", 30, sample: 30, size: 80, weight: 524_328, frames: index.drop(1))
      t.allocates(:main, "(imemo)", 31, sample: 31, weight: 524_308, untracked: [:uint32, 1])
      11.times { |i| t.freed(:worker, 40 + 0.01 * i, i) }
      t.freed(:worker, 50, 20, survived: 2)
      t.freed(:main, 50, 11, survived: 1)
      3.times { |i| t.alive(:main, 99 + 0.01 * i, 21 + i, survived: 3 + i) }
      t.alive(:main, 99.5, 30, survived: 0)
    end
    trace.build(allocation_samples: 18, allocation_bytes: 12 * 524_308 + 4 * 524_368 + 524_328 + 524_308)
  end

  # Ten seconds. One exit before a long loop costs most, and is not recorded; 20,000 exits in set-up code
  # cost nothing. A method was compiled late, another one never.
  def self.states
    trace = StatesTrace.new(rate: 97, ends: 10_000, settings: { states_min_ns: [:uint64, 100_000] }) do |t|
      scan, render, cell = "Parser#scan (/app/parser.rb:31)", "Page#render (/app/page.rb:7)", "Page#cell (/app/page.rb:20)"
      setup, add = "Setup#define (/app/setup.rb:3)", "Index#add (/app/index.rb:20)"
      t.thread(:worker, 44)
      6.times { |i| t.exits(:main, "CalleeSideExit", setup, 100 + i, lost: 0.002 + 0.0001 * i) }
      t.compiles(:main, "Page#cell (/app/page.rb:18)", 1000, 1010)
      4.times { |i| t.exits(:main, "NoProfileSend", cell, 1200 + 300 * i, lost: 0.05 + 0.02 * i, kind: "recompile_exit") }
      t.during(:main, "invalidation", "NoProfileSend", 3000, 3001, iseq: "Page#cell (/app/page.rb:18)", version: [:uint32, 1])
      t.compiles(:main, "Page#cell (/app/page.rb:18)", 3100, 3112, version: 2)
      t.compiles(:main, "Legacy#eval (/app/legacy.rb:2)", 3200, 3203, version: 0, error: "ParseError(MalformedIseq)")
      8.times { |i| t.exits(:main, "GuardType(String)", render, 4000 + 500 * i, lost: [0.004, 0.006, 0.008, 0.009, 0.01, 0.012, 0.02, 0.9][i]) }
      t.exits(:worker, "Throw", add, 8100, lost: 0)
      t.compiles(:main, "Report#sum (/app/report.rb:9)", 9000, 9004)
      t.slice(:main, "interpreted", 10, 600, why: "not compiled yet", iseq: "Parser#scan (/app/parser.rb:30)")
      t.slice(:main, "compiling", 1000, 1010)
      t.slice(:main, "interpreted", 5600, 8000, reason: "GuardType(Fixnum)", insn: "opt_plus", "0": scan)
      t.slice(:main, "compiled", 5500, 9900, iseq: "Parser#scan (/app/parser.rb:30)")
      t.site("GuardType(Fixnum)", scan, 1, lost: 2400, insn: "opt_plus")
      t.site("GuardType(String)", render, 40_000, lost: 500, max: 0.95)
      t.site("NoProfileSend", cell, 3000, lost: 240, max: 2, kind: "recompile_exit")
      t.site("NoProfileSend", cell, 10, lost: 1, max: 0.2, version: 2, kind: "recompile_exit")
      t.site("CalleeSideExit", setup, 20_000, lost: 40, max: 0.05)
      t.site("Throw", add, 500, lost: 19, max: 0.5)
      t.interpreted("Parser#scan (/app/parser.rb:30)", "not compiled yet", 3, 590, first: 10, last: 20)
      t.interpreted("Legacy#eval (/app/legacy.rb:2)", "cannot be compiled", 70_000, 900, first: 15, last: 9950)
      t.interpreted("Report#sum (/app/report.rb:9)", "not compiled yet", 29, 8, first: 7000, last: 8990)
      t.states(:main, compiled: 4200, exited: 3100, uncompiled: 600, uncompilable: 900, reprofiled: 50, fallback: 100,
                      c_function: 500, compiling: 120, gc: 230, waiting: 150, blocked: 50)
      t.states(:worker, unseen: 2000, compiled: 600, exited: 100, c_function: 150, waiting: 150, blocked: 7000)
    end
    trace.build
  end

  # A second of a web server: one of its requests is slow, and one call in it. Calls below 10 us are left out.
  def self.calls
    handle, render, query = "App#call (/app/app.rb:5)", "Page#render (/app/page.rb:7)", "Store#find (/app/store.rb:12)"
    block, walk = "block in Page#render (/app/page.rb:8)", "Node#walk (/app/node.rb:3)"
    trace = CallsTrace.new(settings: { flags: "calls:min=10000ns", calls_min_ns: [:uint64, 10_000] }, ends: 1000) do |t|
      t.thread(:worker, 44)
      t.call(:main, "<main> (/app/run.rb:1)", 0.001, 1000, began: true, ended: true) do
        t.call(:main, "Server#run (/app/server.rb:9)", 0.002, 990) do
          8.times do |i|
            at = 20 + 100 * i
            t.call(:main, handle, at, at + (i == 5 ? 90 : 20), left_out: 30 + i, left_out_ms: 0.2) do
              t.call(:main, query, at + 1, at + (i == 5 ? 70 : 4), left_out: 2, left_out_ms: 0.01)
              t.call(:main, render, at + (i == 5 ? 71 : 5), at + (i == 5 ? 85 : 18)) do
                from = at + (i == 5 ? 72 : 6)
                t.call(:main, "Array#each", from, from + 10) do
                  3.times { |n| t.call(:main, block, from + 1 + 3 * n, from + 3 + 3 * n, left_out: 5, left_out_ms: 0.03) }
                end
              end
            end
          end
        end
        t.call(:worker, walk, 100, 400) do
          t.call(:worker, walk, 110, 250) { t.call(:worker, walk, 120, 200, left_out: 400, left_out_ms: 2) }
          t.call(:worker, walk, 260, 390)
        end
      end
      t.call(:worker, "Thread::Queue#pop", 400.5, 1000, ended: true)
    end
    trace.build(calls_left_out: trace.left_out + 17)
  end

  # 100 ms of two threads that read files, on a machine where a compiler takes one of two CPUs.
  def self.kernel
    settings = { flags: "threads calls syscalls sched:min=1000ns", sched_min_ns: [:uint64, 1000] }
    trace = KernelTrace.new(settings: settings) do |t|
      read, load = "IO#read", "Config#load (/app/config.rb:4)"
      file = { fd: [:uint32, 7], buf: [:pointer, 0x7f00_0000_1000] }
      t.thread(:worker, 44)
      t.thread(:timer, 45)
      t.runs(:main, 0)
      t.cpu(:main, 0, 0, 10)
      t.call(:main, "<main> (/app/run.rb:1)", 1, 95) do
        t.call(:main, load, 2, 60) do
          t.syscall(:main, "openat", 3, 3.5, dfd: -100, result: 7)
          4.times do |i|
            at = 4 + 5 * i
            t.call(:main, read, at, at + 4) { t.syscall(:main, "read", at + 1, at + 3, **file, count: [:uint64, 4096], result: 4096) }
          end
          t.syscall(:main, "read", 30, 31, **file, errno: "EAGAIN")
          t.syscall(:main, "close", 32, 32.5, fd: [:uint32, 7])
        end
        t.syscall(:main, "futex", 70, 90, errno: "ETIMEDOUT", uaddr: [:pointer, 16], val: [:uint32, 0])
        t.syscall(:main, "futex", 91, 92, errno: "EAGAIN", uaddr: [:pointer, 16], val: [:uint32, 0])
      end
      t.runnable(:main, 10, 25, why: "preempted", cpu: 1, other: "cc1 77")
      t.cpu(:main, 1, 25, 65)
      t.leaves(:main, 65, ThreadsTrace::BLOCKED)
      t.wakes(:worker, 66, 66)
      t.runnable(:worker, 66, 70, cpu: 1, other: "main 43", waker: "main 43")
      t.cpu(:worker, 1, 70, 80)
      t.runnable(:worker, 80, 82, why: "preempted", cpu: 0, other: "cc1 77")
      t.cpu(:worker, 0, 82, 90)
      t.syscall(:worker, "syscall 470", 84, 85, register0: [:pointer, 3], result: 0)
      t.leaves(:worker, 89, ThreadsTrace::DEAD)
      t.syscall(:worker, "exit", 89.5, 90, error_code: 0, ended: "never")
      t.runnable(:main, 90, 91, cpu: 0, other: "worker 44", waker: "77")
      t.cpu(:main, 0, 91, 100)
      t.wakes(:main, 90, 91)
      t.cpu(:timer, 1, 50, 50.1)
      t.syscall(:timer, "poll", 51, 100, ended: "after the trace", nfds: [:uint32, 1])
    end
    trace.build(sched_left_out: 12)
  end

  # One fiber computes while two others are ready; the thread's own one is their event loop.
  def self.fibers
    pop = ["Fiber.yield (/gems/loop-1.0/lib/loop.rb:9)", "Loop#block (/gems/loop-1.0/lib/loop.rb:9)",
           "Thread::Queue#pop (/app/jobs.rb:5)", "Jobs#take (/app/jobs.rb:5)", "block in <main> (/app/run.rb:3)"]
    gets = ["Fiber.yield (/gems/loop-1.0/lib/loop.rb:15)", "Loop#io_wait (/gems/loop-1.0/lib/loop.rb:15)",
            "IO#gets (/app/mail.rb:12)", "Mail#line (/app/mail.rb:12)"]
    FibersTrace.new do |t|
      3.times { |i| t.fiber(i + 1) }
      t.wait(:main, "Fiber.schedule", 0, 5, ["Fiber.schedule (/app/run.rb:3)"])
      t.wait(1, "Thread::Queue#pop", 5, 40, pop, ran: 5, ready: 20, waker: 2, scheduler: "Loop#block")
      t.wait(3, "IO#gets", 6, 42, gets, ran: 0.5, waker: 1, scheduler: "Loop#io_wait")
      t.wait(2, "Thread::Queue#pop", 39, 70, pop, ran: 30, ready: 1, waker: 3, scheduler: "Loop#block")
      t.wait(1, "Thread::Queue#pop", 44, 60, pop, ran: 4, ready: 0.1, scheduler: "Loop#block")
      t.wait(3, "IO#gets", 61, 75, gets, ran: 1, scheduler: "Loop#io_wait", ended: "after the trace")
    end.build
  end

  def self.all = singleton_methods(false).sort - [:all]
end

if $PROGRAM_NAME == __FILE__
  Traces.all.each { |name| File.binwrite(File.join(__dir__, "#{name}.fxt"), Traces.public_send(name).bytes) }
end
