# gc.rb EXTENSION ROUNDS FOLDER: nanoseconds of a recorded pause of the GC (benchmarks/collections), and microseconds of a minor
# collection untraced, traced, and beside hooks of internal events that note times. The median of some rounds, in which all take
# turns.
require_relative "../inside"

extension, rounds, folder = ARGV[0], Integer(ARGV[1]), ARGV[2]
require extension
PAUSES = 100_000
COLLECTIONS = 300
T = RubyVM::Trace

def collections(n) = n.times { GC.start(full_mark: false) }

def time(count)
  from = VMTraceBench.now
  yield count
  (VMTraceBench.now - from) * 1e9 / count
end

def round(into, pauses = :pauses)
  GC.start
  (into[pauses] ||= []) << time(PAUSES) { |n| Collections.public_send(pauses, n) }
  (into[:collection] ||= []) << time(COLLECTIONS) { |n| collections(n) }
end

off, on, peer, lost = {}, {}, {}, 0
path = "#{folder}/vm-trace-bench-#{$$}.fxt"
traced = lambda do |into|
  T.start(gc: true, exits: false, file: path)
  round(into)
  lost += T.stop.fetch(:lost)
  File.delete(path)
end
hooked = lambda do |into|
  hooks = Collections.peer_on
  round(into, :peer)
  Collections.peer_off(hooks)
end
[-> (into) { round(into) }, traced, hooked].each { |variant| variant.call({}) }
rounds.times do
  round(off)
  traced.call(on)
  hooked.call(peer)
end
{ off: off, on: on, peer: peer }.each do |name, lists|
  lists.each { |key, list| VMTraceBench.report(:"#{name}_#{key}", VMTraceBench.median(list)) }
end
VMTraceBench.report(:lost, lost)
