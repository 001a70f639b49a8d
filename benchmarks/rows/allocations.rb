# allocations.rb ROUNDS FOLDER: nanoseconds of processor time of an object in a loop that does nothing
# but allocate: untraced, with one sample per 512 KiB, with each object recorded, and beside
# ObjectSpace.trace_object_allocations. Then, of an object that is kept: a save of what is alive with its
# stacks and its bytes by malloc, and what the peer needs to find the same. Strings of 2 KiB, each with a
# buffer, untraced and with one sample per 512 KiB. The median of some rounds, in which all take turns. A
# Ruby without the tracer has only what is untraced or the peer's.
require_relative "../inside"
require "objspace"

rounds, folder = Integer(ARGV[0]), ARGV[1]
T = RubyVM::Trace if defined?(RubyVM::Trace)

class Small; end

def allocate(count)
  i = 0
  while i < count
    Small.new
    [i, i]
    "text"
    Small.new
    i += 1
  end
end
OBJECTS = 4 # of a turn of the loop
MANY = 1_000_000
FEW = 10_000

def time(count)
  GC.start
  time_of(count * OBJECTS) { allocate(count) }
end

def strings(count)
  GC.start
  i = 0
  time_of(count) do
    while i < count
      "x" * 2048
      i += 1
    end
  end
end
STRINGS = 300_000

# Nanoseconds of processor time of the block, for each of so many objects.
def time_of(objects)
  from = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  yield
  (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - from) * 1e9 / objects
end

class Text < String; end
KEPT = 10_000
def keep = Array.new(KEPT) { Text.new << "x" * 1_000 }

lost = 0
traced = lambda do |rate, count, loop = :time|
  path = "#{folder}/vm-trace-bench-#{$$}.fxt"
  T.start(allocations: rate, exits: false, file: path)
  ns = send(loop, count)
  lost += T.stop.fetch(:lost)
  File.delete(path)
  ns
end
variants = { off: -> { time(MANY) }, strings_off: -> { strings(STRINGS) } }
if defined?(T)
  variants[:sampled] = -> { traced.call("512K", MANY) }
  variants[:strings_sampled] = -> { traced.call("512K", STRINGS, :strings) }
  variants[:each] = -> { traced.call(1, FEW) }
end
variants[:peer] = lambda do
  ns = ObjectSpace.trace_object_allocations { time(FEW * 10) }
  ObjectSpace.trace_object_allocations_clear
  ns
end
if defined?(T)
  variants[:saved] = lambda do
    path = "#{folder}/vm-trace-bench-#{$$}.fxt"
    T.start(allocations: 1, exits: false, memory: 64)
    kept = keep
    ns = time_of(kept.size) { T.save(path) }
    T.stop
    File.delete(path)
    ns
  end
end
variants[:peer_alive] = lambda do
  ns = ObjectSpace.trace_object_allocations do
    kept, sums = keep, Hash.new(0)
    time_of(kept.size) do
      ObjectSpace.each_object(Text) do |text|
        place = [text.class, ObjectSpace.allocation_sourcefile(text), ObjectSpace.allocation_sourceline(text)]
        sums[place] += ObjectSpace.memsize_of(text)
      end
    end
  end
  ObjectSpace.trace_object_allocations_clear
  ns
end
variants.each_value(&:call)
found = Hash.new { |hash, key| hash[key] = [] }
rounds.times do |i|
  variants.to_a.rotate(i).each { |name, variant| found[name] << variant.call }
end
found.each { |name, list| VMTraceBench.report(name, list.sort[list.size / 2]) }
{ ratio: %i[sampled off], strings_ratio: %i[strings_sampled strings_off] }.each do |name, (on, off)|
  next unless found.key?(on)
  ratios = found[on].zip(found[off]).map { |traced, untraced| traced / untraced }.sort
  VMTraceBench.report(name, ratios[ratios.size / 2])
end
VMTraceBench.report(:lost, lost)
