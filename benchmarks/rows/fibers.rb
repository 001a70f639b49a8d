# fibers.rb ROUNDS FOLDER: nanoseconds of a switch between two fibers: not recorded; with waits that are too short to be
# recorded; with each wait recorded; and noted by the peer, a TracePoint of `fiber_switch`. The median of some rounds, in
# which all take turns.
require_relative "../inside"

rounds, folder = Integer(ARGV[0]), ARGV[1]
RESUMES = 50_000
T = RubyVM::Trace

def switch
  fiber = Fiber.new { loop { Fiber.yield } }
  from = VMTraceBench.now
  RESUMES.times { fiber.resume }
  (VMTraceBench.now - from) * 1e9 / (2 * RESUMES)
end

path = "#{folder}/vm-trace-bench-#{$$}.fxt"
lost = 0
traced = lambda do |streams|
  T.start(streams: streams, exits: false, file: path)
  ns = switch
  lost += T.stop.fetch(:lost)
  File.delete(path)
  ns
end
noted = []
peer = TracePoint.new(:fiber_switch) { noted << [Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond), Fiber.current] }
sides = { off: -> { switch }, short: -> { traced.call("fibers") }, on: -> { traced.call("fibers:min=0ns") },
          peer: -> { noted.clear; peer.enable { switch } } }
sides.each_value(&:call)
found = Hash.new { |hash, side| hash[side] = [] }
rounds.times { sides.each { |side, body| found[side] << body.call } }
found.each { |side, list| VMTraceBench.report(side, list.sort[list.size / 2]) }
VMTraceBench.report(:lost, lost)
