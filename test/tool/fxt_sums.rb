# Reads Fuchsia traces by the format's specification (https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format),
# Perfetto's stack_sample.proto and doc/internals/events.md, and adds them up. It shares no code with the tool, nor with
# fxt_builder.rb: what both read wrong, it does not. A process is a pid of one recording: a file, or a spool's pieces.
require_relative "calls_reference"
require_relative "pprof_reader"

class FxtSums
  include ProtocolBuffers

  Event = Struct.new(:type, :pid, :tid, :category, :name, :ts, :args, :to, :order)
  Change = Struct.new(:pid, :tid, :ts, :to, :cpu, :order) # to: running, waiting, woken, blocked, dead
  Duration = Struct.new(:from, :to, :category, :name, :args, :outermost)
  TYPES = %i[instant counter begin end complete].freeze # others do not count
  PIECE = /\A.*-\d+(?=-\d{8}T\d{6}-\d+-)/ # of a spool: its process

  # Each is { key => sum }. weighed: events times their weight; counted: the same of a process without a summary, else
  # the hits of its sites; ran_before: of `states`, what no record says but that a thread stopped.
  attr_reader :weighed, :counted, :states, :ran_before, :blocked, :preempted, :gc, :allocated, :calls, :sampled
  attr_reader :ends # pid => the last record of each of its processes, in the order of the files
  attr_reader :depth # of calls in calls

  # joined: pieces of a spool are one recording.
  def initialize(paths, joined: true)
    @weighed, @counted, @states, @ran_before, @blocked, @preempted, @gc, @allocated, @calls, @sampled =
      Array.new(10) { Hash.new(0) }
    @depth, @objects = 0, []
    @ends = Hash.new { |all, pid| all[pid] = [] }
    paths.slice_when { |a, b| !joined || a[PIECE].nil? || a[PIECE] != b[PIECE] }.each do |pieces|
      @known, @last = {}, {} # thread => the end of what earlier pieces have
      pieces.each { |path| file(File.binread(path)) }
      @last.each { |pid, ts| @ends[pid] << ts }
    end
  end

  # Leaves what --method and --reason choose.
  def pick(method, reason)
    chosen = lambda do |label|
      method.nil? || [label, label[/\A.*?(?= \()/]].compact.any? { |text| File.fnmatch(method, text) }
    end
    reasons = ->(text) { reason.nil? || [text, text[/\A[^(]*/]].any? { |name| File.fnmatch(reason, name) } }
    [@weighed, @counted].each { |sums| sums.select! { |(_, text, label), _| reasons[text] && chosen[label] } }
    @calls.select! { |(name, _), _| reason.nil? && chosen[name] }
    [@states, @ran_before, @blocked, @preempted, @gc, @sampled, @allocated].each(&:clear)
    @objects.each do |name, bytes, frames|
      own = frames.find { |label| !label.include?("(<internal:") } || frames[0]
      next unless reason.nil? && chosen[own.to_s]
      @allocated[[name, :bytes]] += bytes
      @allocated[[name, :samples]] += 1
    end
  end

  private

  def file(bytes)
    @events, @changes = [], []
    read(bytes)
    events_and_sites
    threads
    calls_by_method
  end

  # --- records ----------------------------------------------------------------------------------------------

  def read(bytes)
    providers = Hash.new { |all, id| all[id] = { id: id, strings: {}, threads: {}, ticks: 10**9, pids: {} } }
    @pids, @sequences, provider, at = {}, {}, providers[0], 0
    while at + 8 <= bytes.bytesize
      head = bytes.unpack1("Q<", offset: at)
      size = head[0, 4] == 15 ? head[4, 32] : head[4, 12]
      break if size == 0 || at + 8 * size > bytes.bytesize
      @provider, @record, @at = provider, bytes.byteslice(at, 8 * size), 8
      case head[0, 4]
      when 0 then provider = providers[head[20, 32]] if [1, 2].include?(head[16, 4])
      when 1 then provider[:ticks] = word
      when 2 then provider[:strings][head[16, 15]] = text(head[32, 31])
      when 3 then provider[:threads][head[16, 8]] = [word, word]
      when 4 then event(head)
      when 5 then blob(head)
      when 7 then object(head)
      when 8 then scheduling(head)
      end
      at += 8 * size
    end
  end

  def word = @record.unpack1("Q<", offset: @at).tap { @at += 8 }
  def text(length) = @record.byteslice(@at, length).force_encoding("UTF-8").tap { @at += (length + 7) / 8 * 8 }
  def string(ref) = ref[15] == 1 ? text(ref[0, 15]) : ref == 0 ? "" : @provider[:strings].fetch(ref)
  def thread(ref) = ref == 0 ? [word, word] : @provider[:threads].fetch(ref)
  def time(ticks) = ticks * 10**9 / @provider[:ticks]

  def args(count)
    Array.new(count) do
      start, head = @at, word
      name = string(head[16, 16])
      value = case head[0, 4]
              when 1, 2, 9 then head[32, 32]
              when 6 then string(head[32, 16])
              when 3, 4, 5, 7, 8 then word
              end
      @at = start + 8 * head[4, 12]
      [name, value]
    end.to_h
  end

  def event(head)
    ts = time(word)
    pid, tid = thread(head[24, 8])
    category, name, type = string(head[32, 16]), string(head[48, 16]), TYPES[head[16, 4]]
    args = args(head[20, 4])
    to = time(word) if type == :complete
    happened(pid, ts)
    @events << Event.new(type, pid, tid, category, name, ts, args, to, @events.size + @changes.size)
  end

  def happened(pid, ts) = @last[pid] = [@last.fetch(pid, ts), ts].max

  def object(head)
    tid, = word, string(head[24, 16])
    @provider[:pids][tid] = @pids[tid] = args(head[40, 4])["process"] if head[16, 8] == 2
  end

  def blob(head)
    string(head[16, 16])
    packets(@record.byteslice(@at, head[32, 15])) if head[48, 8] == 3
  end

  # A wake-up names no process: it means what its provider switched or named last, or else any.
  def scheduling(head)
    case head[60, 4]
    when 0
      ts, out, into = time(word), thread(head[28, 8]), thread(head[36, 8])
      left = { 0 => :waiting, 1 => :waiting, 4 => :dead, 5 => :dead }.fetch(head[24, 4], :blocked)
      change(*out, ts, left, head[16, 8])
      change(*into, ts, :running, head[16, 8])
    when 2
      ts, tid = time(word), word
      pid = @provider[:pids][tid] || @pids[tid]
      change(pid, tid, ts, :woken, head[20, 16]) if pid
    end
  end

  def change(pid, tid, ts, to, cpu)
    return if tid == 0 # nobody holds the GVL
    @provider[:pids][tid] = @pids[tid] = pid unless to == :woken
    happened(pid, ts)
    @changes << Change.new(pid, tid, ts, to, cpu, @events.size + @changes.size)
  end

  # --- packets of samples -----------------------------------------------------------------------------------

  def packets(bytes)
    fields(bytes)[1].each do |packet|
      packet = fields(packet)
      id = [@provider[:id], packet[10][0]]
      @sequences.delete(id) if packet[13][0].to_i[0] == 1
      sequence = @sequences[id] ||= { tasks: {}, counters: {} }
      packet[59].each { |defaults| fields(defaults)[100].each { |s| sequence[:source] = fields(s)[1][0] } }
      packet[12].each do |data|
        fields(data).then do |tables|
          tables[48].each { |task| fields(task).then { |t| sequence[:tasks][t[1][0]] = [t[2][0], t[3][0]] } }
          tables[50].each { |counter| fields(counter).then { |c| sequence[:counters][c[1][0]] = c[2][0] } }
        end
      end
      packet[135].each { |message| sample(sequence, fields(message)) } if sequence[:source] == "ruby.samples"
    end
  end

  def sample(sequence, message)
    thread = sequence[:tasks].fetch(message[2][0])
    message.values_at(13, 14).map { |packed| varints(packed[0]) }.transpose.each do |counter, ns|
      @sampled[[*thread, sequence[:counters].fetch(counter)]] += ns
    end
  end

  # --- events -----------------------------------------------------------------------------------------------

  def events_and_sites
    weighed, hits = Hash.new { |all, pid| all[pid] = Hash.new(0) }, Hash.new { |all, pid| all[pid] = Hash.new(0) }
    @events.select { |event| event.type == :instant }.each do |event|
      args = event.args
      case event.category
      when "side_exit", "recompile_exit", "fallback"
        weighed[event.pid][[kind(event.category), event.name, args["0"].to_s]] += args.fetch("weight", 1)
      when "allocation"
        next if %w[freed alive].include?(event.name)
        @allocated[[event.name, :bytes]] += args["weight"]
        @allocated[[event.name, :samples]] += 1
        @objects << [event.name, args["weight"], args.values_at(*"0".."9").compact]
      when "preempted" then @preempted[[event.name, args["0"] || event.name]] += 1
      when "trace"
        next unless event.name == "site"
        hits[event.pid][[kind(args["kind"]), args["reason"], args["location"].to_s]] += args["hits"]
      end
    end
    whole = @events.select { |event| event.category == "trace" && event.name == "summary" }.map(&:pid)
    weighed.each_value { |sums| add(@weighed, sums) }
    (weighed.keys | hits.keys).each { |pid| add(@counted, (whole.include?(pid) ? hits : weighed)[pid]) }
  end

  def kind(category) = category == "fallback" ? "fallbacks" : "exits"
  def add(sums, more) = sums.update(more) { |_, a, b| a + b }

  def calls_by_method
    calls = @events.select { |event| event.category == "call" && event.type == :complete }
    reference = CallsReference.new(calls.map { |call| [[call.pid, call.tid], call.name, call.ts, call.to] })
    @depth = [@depth, reference.depth.to_i].max
    reference.methods.each do |name, (count, total, own)|
      @calls[[name, :calls]] += count
      @calls[[name, :total]] += total
      @calls[[name, :own]] += own
    end
  end

  # --- threads: durations and states ------------------------------------------------------------------------

  def threads
    by_thread = ->(list) { list.group_by { |one| [one.pid, one.tid] }.tap { |all| all.default = [].freeze } }
    events, changes = by_thread[@events], by_thread[@changes]
    (events.keys | changes.keys).each do |thread|
      durations = durations(events[thread]).select(&:outermost)
      states = pieces(thread, changes[thread])
      collects, blocks = %w[gc blocked].map { |category| durations.select { |d| d.category == category } }
      states.each { |state, from, to, before| add_state(thread, state, from, to, collects, before) }
      blocks.each { |duration| add_blocked(thread, duration, changes[thread]) }
      collects.each { |pause| add_pause(thread, pause) if pause.to }
      @known[thread] = [@known[thread], states.map { |_, _, to| to }.max].compact.max
    end
  end

  def durations(events)
    edges = events.flat_map do |event|
      whole = event.type == :complete && %w[gc blocked].include?(event.category)
      [([event.ts, event.order, 0, event] if whole || event.type == :begin),
       ([event.to || event.ts, event.order, 1, event] if whole || event.type == :end)].compact
    end
    open, all = [], []
    edges.sort_by { |edge| edge.first(3) }.each do |ts, _, ends, event|
      if ends == 1
        open.pop&.then { |duration| duration.to, duration.args = ts, event.args.merge(duration.args) }
      else
        outermost = open.none? { |duration| duration.category == event.category }
        all << Duration.new(ts, nil, event.category, event.name, event.args, outermost)
        open << all.last
      end
    end
    all
  end

  # [[state, from, to, whether it was before the thread's first record] ...]
  def pieces(thread, changes)
    state, since, found = nil, nil, []
    changes.sort_by { |change| [change.ts, change.order] }.each do |change|
      next if change.to == :woken && %i[running waiting].include?(state)
      found << [state, since, change.ts, false] if state && state != :dead
      found << [:running, free_since(change), change.ts, true] if state.nil? && !%i[running woken].include?(change.to)
      state, since = change.to == :woken ? :waiting : change.to, change.ts
    end
    found << [state, since, @last[thread[0]], false] if state && state != :dead
    found
  end

  # A thread whose first record says that it stops ran since nobody held the GVL, or since its ractor's first record.
  def free_since(change)
    earlier = @changes.select do |other|
      other.pid == change.pid && other.cpu == change.cpu && ([other.ts, other.order] <=> [change.ts, change.order]) < 0
    end.sort_by { |other| [other.ts, other.order] }
    last = earlier.reject { |other| other.to == :woken }.last
    return change.ts if last&.to == :running
    last&.ts || earlier.first&.ts || change.ts
  end

  def add_state(thread, state, from, to, collects, before)
    from = [from, @known[thread] || from].max
    return if from >= to
    gc = state == :running ? collects.sum { |d| [[d.to || to, to].min - [d.from, from].max, 0].max } : 0
    @states[[*thread, state]] += to - from - gc
    @states[[*thread, :gc]] += gc
    @ran_before[[*thread, :running]] += to - from if before
  end

  # It ends where its thread is woken; what is open lasts to the end of its process.
  def add_blocked(thread, duration, changes)
    to = duration.to || @last[thread[0]]
    woken = changes.select { |change| change.to == :woken && change.ts.between?(duration.from, to) }.map(&:ts).min
    from = [duration.from, @known[thread] || duration.from].max
    label = duration.args["0"] || duration.name
    @blocked[[duration.name, label, :count]] += 1
    @blocked[[duration.name, label, :ns]] += [[woken || to, to].min - from, 0].max
  end

  def add_pause(thread, pause)
    if pause.args.key?("began") # before a cut
      @gc[[pause.name, :parts]] += 1
      @gc[[pause.name, :ns_of_parts]] += pause.to - pause.from
      return
    end
    # Only the first pause has a reason. One without goes on with a collection, which may be older than the trace.
    @gc[[pause.name, :pauses]] += 1
    @gc[[pause.name, :ns]] += pause.to - pause.from
    @gc[[pause.name, :collections]] += 1 if %w[reason major_by].any? { |arg| pause.args.key?(arg) }
  end
end
