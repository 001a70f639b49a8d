# threads.rb EXTENSION ROUNDS FOLDER: nanoseconds that a thread takes to give up the GVL and get it
# back, and to pass it to another thread: not recorded, recorded, and recorded by the peer
# (benchmarks/gvl_json). The median of some rounds, in which all take turns.
require_relative "../inside"

extension, rounds, folder = ARGV[0], Integer(ARGV[1]), ARGV[2]
require extension
ALONE = 50_000
PASSES = 10_000
T = RubyVM::Trace
NOTHING = File.open(File::NULL, "w").tap { |file| file.sync = true }

# Nobody waits for the GVL, so this is what the events themselves cost.
def alone = ALONE.times { NOTHING.syswrite("x") }

def pass
  there, back = Thread::Queue.new, Thread::Queue.new
  other = Thread.new { PASSES.times { back << there.pop } }
  PASSES.times { there << 1; back.pop }
  other.join
end

CASES = { alone: [ALONE, -> { alone }], pass: [2 * PASSES, -> { pass }] }.freeze

def round(into)
  CASES.each do |name, (count, body)|
    from = VMTraceBench.now
    body.call
    (into[name] ||= []) << (VMTraceBench.now - from) * 1e9 / count
  end
end

lost = events = bytes = 0
path = "#{folder}/vm-trace-bench-#{$$}.fxt"
traced = lambda do |into|
  T.start(threads: true, exits: false, file: path)
  round(into)
  status = T.stop
  lost += status.fetch(:lost)
  bytes = File.size(path)
  File.delete(path)
end
peer = lambda do |into|
  GVLJSON.start(path)
  round(into)
  GVLJSON.stop
  File.delete(path)
end
off, on, json = {}, {}, {}
[-> { round({}) }, -> { traced.call({}) }, -> { peer.call({}) }].each(&:call)
rounds.times do
  round(off)
  traced.call(on)
  peer.call(json)
end
{ off: off, on: on, json: json }.each do |side, lists|
  lists.each { |name, list| VMTraceBench.report(:"#{side}_#{name}", list.sort[list.size / 2]) }
end
ratios = on[:pass].zip(off[:pass]).map { |a, b| a / b }.sort
VMTraceBench.report(:pass_ratio, ratios[ratios.size / 2])
VMTraceBench.report(:bytes, bytes.fdiv(ALONE + 2 * PASSES))
VMTraceBench.report(:lost, lost)
