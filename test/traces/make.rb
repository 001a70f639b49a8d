# Makes the traces of this folder; test/tool/test_traces.rb sees that they are what this makes. Run it to write them again:
#   ruby test/traces/make.rb
require_relative "../tool/fxt_builder"

module Traces
  # What the tracer writes where every exit is recorded.
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

  # Two ractors in two processes' worth of threads, invalidations, a name that would turn a terminal red, one that is not UTF-8.
  def self.threads
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1000, args: { "command" => "ruby \e[31mred\e[0m.rb", "pid" => [:uint32, 42] })
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

  # Three processes in one file, as `vm-trace merge` joins them: every exit recorded, one in 97, and one that was killed.
  def self.processes
    killed = OurTrace.new(pid: 300, rate: 5)
    killed.summary = nil
    killed.sites = []
    builder = OurTrace.new(pid: 100).build
    [OurTrace.new(pid: 200, rate: 97), killed].each { |trace| builder.raw(trace.build.bytes) }
    builder
  end

  # Half a second in which one place goes on exiting after two recompilations, another at the limit, a third stops.
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

  def self.all = singleton_methods(false).sort - [:all]
end

if $PROGRAM_NAME == __FILE__
  Traces.all.each { |name| File.binwrite(File.join(__dir__, "#{name}.fxt"), Traces.public_send(name).bytes) }
end
