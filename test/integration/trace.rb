# One trace, read through the tool, and the one validator that every trace of every test goes
# through: `vm-trace check --strict`.
require "csv"
require "json"
require "open3"
require_relative "jit"
require_relative "../tool/served_tool"

class Trace
  TOOL = File.expand_path(ENV["VM_TRACE"] || "../../build/tool/vm-trace", ENV["VM_TRACE"] ? Dir.pwd : __dir__)
  EXITS = %w[side_exit recompile_exit].freeze
  FRAMES = (0..9).map(&:to_s).freeze
  REST = "10+"

  class Invalid < StandardError; end

  attr_reader :path

  def initialize(path)
    @path = path
  end

  # Each event as dump prints it: "ts", "ph", "cat", "name", "pid", "tid", "thread", "args".
  def events
    @events ||= tool("dump").each_line.map { |line| JSON.parse(line) }
  end

  # Without reading the others, as long as nothing has asked for all: backtraces can be a hundred megabytes.
  def in_category(*categories)
    return @events.select { |event| categories.include?(event["cat"]) } if @events
    @in_category ||= {}
    @in_category[categories] ||=
      tool("dump", "--category=#{categories.join(",")}").each_line.map { |line| JSON.parse(line) }
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
  # `recorders`: how many ractors of the process exited at most; each counts down by itself.
  def validate(ended: true, recorders: 1)
    checked = tool("check", "--strict", "--ractors=#{recorders}", *("--unended" unless ended))
    bad("check has no closing line: #{checked.inspect}") unless checked.match?(/: ok: \d+ records, \d+ events, \d+ chunks\n\z/)
    self
  end

  private

  def bad(what) = raise(Invalid, "#{@path}: #{what}")

  def tool(command, *arguments)
    out, err, status = ServedTool.capture3(TOOL, command, @path, *arguments)
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
end
