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

  def self.all = singleton_methods(false).sort - [:all]
end

if $PROGRAM_NAME == __FILE__
  Traces.all.each { |name| File.binwrite(File.join(__dir__, "#{name}.fxt"), Traces.public_send(name).bytes) }
end
