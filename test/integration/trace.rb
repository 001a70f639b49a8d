# One trace, read through the tool, and the one validator that every trace of every test goes
# through.
require "csv"
require "json"
require "open3"
require_relative "jit"

class Trace
  TOOL = File.expand_path(ENV["VM_TRACE"] || "../../build/tool/vm-trace", ENV["VM_TRACE"] ? Dir.pwd : __dir__)
  EXITS = %w[side_exit recompile_exit].freeze
  FRAMES = (0..9).map(&:to_s).freeze
  REST = "10+"
  REST_MAX_BYTES = 4096
  MOST_ARGUMENTS = 15 # of an event; then fewer frames have an argument of their own
  # A dump of more events than this is not read into Ruby: `vm-trace check` compares the sums in C.
  READABLE_EVENTS = 300_000

  class Invalid < StandardError; end

  attr_reader :path

  def initialize(path)
    @path = path
  end

  # Each event as dump prints it: "ts", "ph", "cat", "name", "pid", "tid", "thread", "args".
  def events
    @events ||= tool("dump").each_line.map { |line| JSON.parse(line) }
  end

  def in_category(*categories)
    events.select { |event| categories.include?(event["cat"]) }
  end

  def exits(reason = nil)
    in_category(*EXITS).select { |event| reason.nil? || event["name"] == Integration.jit(reason) }
  end

  # Always the first event, so a long trace need not be read for it.
  def settings
    @settings ||= IO.popen([TOOL, "dump", @path], err: File::NULL, encoding: "UTF-8") do |dump|
      event = JSON.parse(dump.gets || bad("no event at all"))
      bad("the first event is #{event["cat"]}/#{event["name"]}, not the settings") unless event["name"] == "settings"
      event["args"]
    end
  end

  def summary = @summary ||= trace_event("summary")["args"]

  def sites(reason = nil)
    found = in_category("trace").select { |event| event["name"] == "site" }.map { |event| event["args"] }
    reason ? found.select { |site| site["reason"] == Integration.jit(reason) } : found
  end

  # Rows of an SQL query, without the names of its columns.
  def query(sql) = CSV.parse(tool("query", sql)).drop(1)

  # How many exits of each [reason, innermost frame, native thread id, thread name]. Counted by the
  # tool, for traces of any length.
  def exit_counts
    sql = "SELECT s.name, a.display_value, t.tid, t.name, COUNT(*) FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0' " \
          "JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid) WHERE s.category LIKE '%_exit' GROUP BY 1, 2, 3, 4"
    query(sql).to_h { |reason, frame, tid, thread, count| [[reason, frame, tid.to_i, thread], count.to_i] }
  end

  # Labels of an event's frames in "0" to "9", innermost first.
  def self.named_frames(event) = FRAMES.filter_map { |key| event["args"][key] }

  # All frames of an event, one label each, runs expanded. If some were left out: [labels, how
  # many].
  def self.frames(event)
    labels = named_frames(event)
    left_out = 0
    (event["args"][REST] || "").split(" < ").each do |part|
      if part =~ /\A(\d+) more frames?\z/
        left_out += $1.to_i
      elsif part =~ /\A(.*) x(\d+)\z/m
        labels.concat([$1] * $2.to_i)
      else
        labels << part
      end
    end
    [labels, left_out]
  end

  # `ended`: false for a process that was killed, whose trace has no summary.
  # `recorders`: how many ractors of the process exited; each counts down by itself.
  def validate(ended: true, recorders: 1)
    checked = tool("check")
    bad("check has no closing line: #{checked.inspect}") unless checked =~ /: ok: \d+ records, (\d+) events, \d+ chunks\n\z/
    return self if $1.to_i > READABLE_EVENTS
    validate_order(ended, recorders)
    validate_rates(ended, recorders)
    validate_backtraces
    validate_spans(ended)
    validate_sums(recorders) if ended
    self
  end

  private

  def bad(what) = raise(Invalid, "#{@path}: #{what}")

  def tool(command, *arguments)
    out, err, status = Open3.capture3(TOOL, command, @path, *arguments)
    unless status.success? && err.empty?
      bad("vm-trace #{command}: status #{status.exitstatus || status}\n#{err.lines.first(10).join}")
    end
    out.force_encoding("UTF-8")
  end

  def trace_event(name)
    found = in_category("trace").select { |event| event["name"] == name }
    bad("#{found.size} events trace/#{name}, not one") unless found.size == 1
    found.first
  end

  def validate_order(ended, recorders)
    trace_event("settings") # one, and
    settings                # the first
    pids = events.map { |event| event["pid"] }.uniq
    bad("events are of pids #{pids}, the settings of #{settings["pid"]}") unless pids == [settings["pid"]]
    return unless ended
    # Each ractor has its own chunks, and chunks may be reused, so the last in the file is not
    # always the last in time. What the kernel reports is written by a thread of the tracer.
    kernel = settings["flags"].to_s.match?(/\b(syscalls|sched)\b/)
    in_order = recorders == 1 && settings["keep"] != "newest" && !kernel
    last = in_order ? events.last : events.max_by { |event| event["ts"] }
    bad("the last event is #{last["cat"]}/#{last["name"]}, not the summary") unless last["name"] == "summary"
  end

  def validate_rates(ended, recorders)
    { EXITS => settings["exit_rate"], %w[fallback] => settings["fallback_rate"] }.each do |categories, rate|
      sampled = in_category(*categories)
      bad("#{sampled.size} events of #{categories}, which were not asked for") if rate.nil? && sampled.any?
      next unless rate
      wrong = sampled.find { |event| event["args"].fetch("weight", 1) != rate }
      bad("weight of #{wrong} is not #{rate}") if wrong
      next unless ended
      total = summary[categories == EXITS ? "exits" : "fallbacks"]
      unweighed = total - sampled.size * rate
      most = counts_run_ahead?(recorders) ? total : (rate - 1) * recorders
      unless unweighed.between?(0, most) || summary["lost"] > 0
        bad("#{sampled.size} events of #{total} #{categories} at K = #{rate} with #{recorders} recorders")
      end
    end
  end

  def validate_backtraces
    in_category(*EXITS, "fallback").each do |event|
      named = Trace.named_frames(event).size
      rest = event["args"][REST]
      bad("no frame 0 in #{event}") unless event["args"]["0"]
      if samples?(event)
        validate_count(event, named, rest) if rest
        next
      end
      bad("10+ without ten frames in #{event}") if rest && !may_have_rest?(event, named, rest)
      bad("10+ of #{rest.bytesize} bytes") if rest && rest.bytesize > REST_MAX_BYTES
      bad("a frame without a place in #{event}") unless Trace.named_frames(event).all?(/ \((.*:-?\d+|<cfunc>)\)\z|\.\.\.\[\d+ bytes cut\]\z/m)
    end
  end

  # "10+" follows ten frames: fewer if the event has no room for more, or if fewer were requested.
  def may_have_rest?(event, named, rest)
    named == FRAMES.size || event["args"].size >= MOST_ARGUMENTS || left_out?(rest, named)
  end

  # Beside a sample "10+" is a number: all frames but the innermost, of a stack that has more than
  # ten, or all but those that were requested.
  def validate_count(event, named, rest)
    most = settings["stack"]
    return if rest.is_a?(Integer) && (most ? named == [most, FRAMES.size].min : named == 1 && rest >= FRAMES.size)
    bad("#{named} frames, and #{rest.inspect} as 10+, beside a sample in #{event}")
  end

  # Exits that are stack samples, too, have all further frames there.
  def samples?(event) = EXITS.include?(event["cat"]) && exits_as_samples?

  def exits_as_samples?
    settings["flags"].to_s.split.any? { |stream| stream.split(":").values_at(0, -1) == %w[exits samples] }
  end

  # If fewer frames are kept, "10+" has only the number of the others.
  def left_out?(rest, named) = settings["stack"] == named && rest.match?(/\A\d+ more frames?\z/)

  # Durations of a thread nest; the outermost one of a compilation has its results.
  def validate_spans(ended)
    open = Hash.new { |hash, tid| hash[tid] = [] }
    in_category("compile", "invalidation").each do |event|
      stack = open[event["tid"]]
      case event["ph"]
      when "B" then stack << event
      when "E"
        begun = stack.pop
        unless begun && begun.values_at("cat", "name") == event.values_at("cat", "name")
          bad("#{event} ends #{begun.inspect}")
        end
      else bad("not a duration: #{event}")
      end
    end
    left = open.values.flatten
    bad("never ended: #{left}") if ended && left.any?
  end

  def validate_sums(recorders)
    same("exit events", exits.size, "summary sampled", summary["sampled"])
    same("events before the summary", events.size - 1, "summary events", summary["events"])
    return if summary["lost"] > 0 # sites may be among what was lost
    exit_sites, fallback_sites = sites.partition { |site| EXITS.include?(site["kind"]) }
    same("hits of exit sites", exit_sites.sum { |site| site["hits"] }, "summary exits", summary["exits"])
    same("hits of fallback sites", fallback_sites.sum { |site| site["hits"] }, "summary fallbacks", summary["fallbacks"])
    same("sites", sites.size, "summary sites", summary["sites"])
    compare = counts_run_ahead?(recorders) ? method(:at_most) : method(:same)
    by_site(EXITS, exit_sites, compare) if settings["exit_rate"] == 1
    by_site(%w[fallback], fallback_sites, compare) if settings["fallback_rate"] == 1
  end

  # A snapshot that the program's only ractor did not take itself: some exits are counted after the
  # events.
  def counts_run_ahead?(recorders) = settings["snapshot"] == "signal" || (settings["snapshot"] && recorders > 1)

  # If all exits are recorded, each kind of site has as many events as hits.
  def by_site(categories, sites, compare)
    recorded = in_category(*categories).map { |event| [event["cat"], event["name"], *event["args"].values_at("insn", "version")] }.tally
    counted = Hash.new(0)
    sites.each { |site| counted[site.values_at("kind", "reason", "insn", "version")] += site["hits"] }
    (recorded.keys | counted.keys).each do |key|
      compare.("events of #{key}", recorded.fetch(key, 0), "hits of its sites", counted[key])
    end
  end

  def same(what, is, other, should_be)
    bad("#{what}: #{is}, but #{other}: #{should_be}") unless is == should_be
  end

  def at_most(what, is, other, most)
    bad("#{what}: #{is}, but #{other}: #{most}") unless is <= most
  end
end
