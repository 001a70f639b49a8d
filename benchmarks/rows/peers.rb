# peers.rb SITUATION PROFILER FOLDER: a small program that asks one question with a known answer, under one profiler
# of Ruby, started and stopped by the program itself. Reported: processor time of the process and its children until
# the profiler has stopped, the right answer, which the program counts or measures itself, and the profiler's, if it
# has one. PROFILER `none` measures the program alone.
require "json"
require_relative "../inside"

name, profiler, folder = ARGV
OUT = "#{folder}/vm-trace-bench-#{$$}"
BETWEEN = 1000 # us between two samples

# --- profilers: what each answers after the program -----------------------------------------------------

# Answers in ms, bytes or calls; nil where the tool has no such number. `ms`: the time of a method and what it
# called. `cpu`: on a CPU alone. `gvl`: waits for the GVL of all threads.
class Profiler
  def start(_kind) = nil
  def stop = nil
  def close = nil
  %i[ms cpu gvl gc bytes calls frames child exits].each { |answer| define_method(answer) { |*| nil } }
end

class OfVmTrace < Profiler
  STREAMS = { ms: "samples:1ms", frames: "samples:1ms", cpu: "samples:cpu,1ms", gvl: "threads", gc: "gc", bytes: "allocations",
              calls: "calls", child: "samples:1ms", exits: "exits" }.freeze

  def start(kind) = RubyVM::Trace.start(streams: STREAMS.fetch(kind), file: "#{OUT}.%p.fxt")
  def stop = RubyVM::Trace.stop
  def close = Dir["#{OUT}*"].each { |file| File.delete(file) }

  def ms(method, pid = $$) = stacks("samples", pid).sum { |names, us| names.include?(method) ? us : 0 } / 1e3
  alias cpu ms
  alias child ms
  def bytes(method) = stacks("allocations").sum { |names, bytes| names.include?(method) ? bytes : 0 }
  def frames(wanted) = wanted.count { |name| ms_of_all[name] > 500 }
  def gvl = rows("thread_states").sum { |row| row["waiting_ns"] } / 1e6
  def gc = rows("gc").sum { |row| row["total_ns"] } / 1e6
  def calls(method) = rows("calls").sum { |row| name_of(row["method"]) == method ? row["calls"] : 0 }
  def exits = rows("processes").sum { |row| row["exits"] }

  private

  def ms_of_all
    @ms_of_all ||= stacks("samples").each_with_object(Hash.new(0)) do |(names, us), all|
      names.uniq.each { |name| all[name] += us / 1e3 }
    end
  end

  def stacks(kind, pid = $$)
    vm_trace("export", "--format=folded", "--kind=#{kind}", pid).lines.map do |line|
      frames, weight = line.chomp.match(/\A(.*) (\d+)\z/).captures
      [frames.split(";").map { |frame| name_of(frame) }, weight.to_i]
    end
  end

  def name_of(frame) = frame.sub(/ \(.*/, "")[/[^#.]+\z/]
  def rows(table) = JSON.parse(vm_trace("report", "--format=json", "--top=1000", $$)).fetch(table)["rows"]
  def vm_trace(*words, pid) = IO.popen([ENV.fetch("VM_TRACE"), *words, "#{OUT}.#{pid}.fxt", err: File::NULL], &:read)
end

class OfStackprof < Profiler
  def initialize = require("stackprof")

  def start(kind)
    StackProf.start(mode: kind == :cpu ? :cpu : :wall, interval: BETWEEN)
  end

  def stop
    StackProf.stop
    @results = StackProf.results
  end

  def ms(method) = samples(method) * BETWEEN / 1e3
  alias cpu ms
  def gc = @results[:gc_samples] * BETWEEN / 1e3
  def frames(names) = @results[:frames].values.count { |frame| names.include?(name_of(frame)) && frame[:total_samples] > 500 }

  private

  def samples(method) = @results[:frames].values.sum { |frame| name_of(frame) == method ? frame[:total_samples] : 0 }
  def name_of(frame) = frame[:name][/[^#.]+\z/]
end

class OfVernier < Profiler
  def initialize = require("vernier")

  def start(_kind) = Vernier.start_profile(interval: BETWEEN)
  def stop = @result = Vernier.stop_profile

  def ms(method)
    each_stack.sum { |names, weight| names.include?(method) ? weight : 0 } * BETWEEN / 1e3
  end

  def frames(wanted)
    totals = Hash.new(0)
    each_stack { |names, weight| names.uniq.each { |name| totals[name] += weight } }
    wanted.count { |name| totals[name] > 500 }
  end

  def gvl = spent(@result.threads.values.flat_map { |thread| thread[:markers] }.select { |marker| marker[1] == "Thread Stalled" })
  def gc = spent(@result.gc_markers.select { |marker| marker[0] == Vernier::Marker::Type::GC_PAUSE })

  private

  def spent(markers) = markers.sum { |_, _, from, to| to - from } / 1e6

  def each_stack
    return enum_for(:each_stack) unless block_given?
    @result.each_sample { |stack, weight| yield stack.frames.map { |frame| frame.name[/[^#.]+\z/] }, weight }
  end
end

class OfRubyProf < Profiler
  def initialize = require("ruby-prof")

  def start(kind)
    @profile = RubyProf::Profile.new(measure_mode: kind == :cpu ? RubyProf::PROCESS_TIME : RubyProf::WALL_TIME).tap(&:start)
  end

  def stop = @result = @profile.stop
  def ms(method) = methods_named([method]).sum(&:total_time) * 1000.0
  alias cpu ms
  def calls(method) = methods_named([method]).sum(&:called)
  def frames(names) = methods_named(names).count { |method| method.total_time > 0.5 }

  private

  def methods_named(names)
    @result.threads.flat_map(&:methods).select { |method| names.include?(method.method_name.to_s) }
  end
end

class OfGvlTracing < Profiler
  def initialize = require("gvl-tracing")
  def start(_kind) = GvlTracing.start("#{OUT}.json")
  def stop = GvlTracing.stop
  def close = File.delete("#{OUT}.json")

  def gvl = total("wants_gvl")
  def gc = total("gc")

  private

  # Each event ends the one before it on its thread.
  def total(wanted)
    JSON.parse(File.read("#{OUT}.json")).group_by { |event| event["tid"] }.values.sum do |events|
      pairs = events.select { |event| event["ts"] }.each_cons(2).select { |a, _| a.values_at("name", "ph") == [wanted, "B"] }
      pairs.sum { |a, b| b["ts"] - a["ts"] }
    end / 1e3
  end
end

class OfGvltools < Profiler
  def initialize = require("gvltools")
  def start(_kind) = GVLTools::GlobalTimer.tap(&:reset).enable

  def stop
    @waited = GVLTools::GlobalTimer.monotonic_time
    GVLTools::GlobalTimer.disable
  end

  def gvl = @waited / 1e6
end

PROFILERS = { "none" => Profiler, "vm_trace" => OfVmTrace, "stackprof" => OfStackprof, "vernier" => OfVernier,
              "ruby-prof" => OfRubyProf, "gvl-tracing" => OfGvlTracing, "gvltools" => OfGvltools }.freeze

# --- situations ---------------------------------------------------------------------------------------------

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def cpu_of_all = Process.times.then { |times| times.utime + times.stime + times.cutime + times.cstime }
def cpu_of_thread = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

def timed(clock = :now)
  from = send(clock)
  yield
  (send(clock) - from) * 1000
end

def spin(count)
  i = 0
  i += 1 while i < count
end

def spin_for(seconds)
  from = now
  spin(10_000) while now - from < seconds
end

def heavy = spin_for(0.02)
def light = spin_for(0.005)

def burst = spin_for(0.005)

# A word that the collector has to follow.
Node = Struct.new(:other, :word)
def churn
  list = Array.new(50_000) { |i| Node.new(nil, "word #{i}") }
  10.times { list.map { |node| Node.new(node, node.word + "!") } }
end

300.times { |i| Object.class_eval("def m#{i}(n) = #{i == 299 ? "spin_for(n)" : "m#{i + 1}(n)"}") }

class Dyn
  %i[cheap costly].each { |method| define_method(method) { method == :costly ? spin_for(0.02) : spin_for(0.004) } }
end

def fill = Array.new(100) { "x" * 1_000_000 }
def tiny(i) = i & 1
def squeeze(data) = Zlib.deflate(data, 9)
def polling = Array.new(1000) { syscall(7, 0, 0, 1) && 0 rescue 1 } # poll(2), 1 ms, with the GVL
def add(a, b) = a + b

# Each: the profiler's kind of recording, and a block that runs it and returns the right answer.
Situation = Struct.new(:kind, :run, :ask)
SITUATIONS = {
  "methods" => Situation.new(:ms, -> { timed { 40.times { heavy } }.tap { 40.times { light } } }, ->(p) { p.ms("heavy") }),
  "cpu" => Situation.new(:cpu, lambda {
    Array.new(40) { timed(:cpu_of_thread) { burst }.tap { sleep 0.02 } }.sum
  }, ->(p) { p.cpu("burst") }),
  # From the moment that all four may run: what of it they did not.
  "gvl" => Situation.new(:gvl, lambda {
    gate = Queue.new
    threads = Array.new(4) { Thread.new { gate.pop; timed(:cpu_of_thread) { spin(8_000_000) }.then { |ran| [now, ran] } } }
    Thread.pass until gate.num_waiting == 4
    from = now
    gate.close
    threads.sum { |thread| thread.value.then { |to, ran| (to - from) * 1000 - ran } }
  }, ->(p) { p.gvl }),
  "gc" => Situation.new(:gc, -> { before = GC.total_time; 2.times { churn }; (GC.total_time - before) / 1e6 }, ->(p) { p.gc }),
  "native" => Situation.new(:ms, lambda {
    require "zlib"
    data = Random.new(1).bytes(6_000_000)
    timed { 3.times { squeeze(data) } }
  }, ->(p) { p.ms("squeeze") }),
  "deep" => Situation.new(:frames, -> { m0(1.0); 300 }, ->(p) { p.frames(Array.new(300) { |i| "m#{i}" }) }),
  "define_method" => Situation.new(:ms, lambda {
    dyn = Dyn.new
    timed { 20.times { dyn.costly } }.tap { 20.times { dyn.cheap } }
  }, ->(p) { p.ms("costly") }),
  "calls" => Situation.new(:calls, -> { 3_000_000.times { |i| tiny(i) }; 3_000_000 }, ->(p) { p.calls("tiny") }),
  "malloc" => Situation.new(:bytes, -> { fill; 100e6 }, ->(p) { p.bytes("fill") }),
  "child" => Situation.new(:child, lambda {
    pid = fork { 40.times { heavy } }
    Process.wait(pid)
    $child = pid
    800
  }, ->(p) { p.child("heavy", $child) }),
  "poll" => Situation.new(:ms, -> { $interrupted = polling.sum; 0 }, ->(_) { $interrupted }),
  "exits" => Situation.new(:exits, -> { 100_000.times { add(2**62 - 1, 1) }; 100_000 }, ->(p) { p.exits })
}.freeze

situation = SITUATIONS.fetch(name)
spin(3_000_000)
100.times { add(1, 2) }
measured = PROFILERS.fetch(profiler).new
begin
  from = cpu_of_all
  measured.start(situation.kind)
  right = situation.run.call
  measured.stop
  cpu = cpu_of_all - from
  found = situation.ask.call(measured)
ensure
  measured.close
end
{ cpu: cpu, right: right, found: found }.compact.each do |what, value|
  VMTraceBench::REPORT ? VMTraceBench.report(what, value) : puts("#{what} #{value}")
end
