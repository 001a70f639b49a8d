# What the tests of the streams that the kernel feeds share: running a program where tracefs is
# mounted, and reading what it recorded.
require_relative "helper"

module Perf
  TRACEFS = "/sys/kernel/tracing"
  # A mount namespace of the program's own: nothing of the system changes.
  WITH_TRACEFS = ["unshare", "--mount", "sh", "-c",
                  "test -e #{TRACEFS}/events || mount -t tracefs nodev #{TRACEFS}; exec \"$@\"", "sh"].freeze
  NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].freeze
  READABLE = ["sh", "-c", "test -e #{TRACEFS}/events/raw_syscalls/sys_enter/id"].freeze

  def self.refused
    return "only root may read #{TRACEFS}" unless Process.uid.zero?
    "there is no tracefs that can be mounted" unless system(*WITH_TRACEFS, *READABLE, out: File::NULL, err: File::NULL)
  end

  def setup
    super
    why = Perf.refused
    skip why if why
  end

  # Its traces are validated. `before`: a command to run it under.
  def record(script, streams, *flags, before: [], args: [], ended: true, files: {}, recorders: 1, success: true)
    dir = scratch_dir
    files.merge("script.rb" => script).each { |name, text| File.write(File.join(dir, name), text) }
    streams = streams ? ["--vm-trace=#{streams}", "--vm-trace-file=%p.fxt"] : []
    result = run_in(dir, *streams, *flags, "script.rb", *args,
                    command: [*WITH_TRACEFS, *before, Integration::RUBY, "--disable=gems"])
    assert_predicate result.status, :success?, result.err if success
    validate_all(result, ended: ended, recorders: recorders)
  end

  # Of one category, by thread id, in the order of their times.
  def by_thread(trace, category) = in_order(trace, category).group_by { |event| event["tid"] }

  # Of the thread with that name.
  def named(trace, category, thread) = in_order(trace, category).select { |event| event["thread"] == thread }

  def in_order(trace, category) = trace.in_category(category).sort_by { |event| event["ts"] }

  def names(events) = events.map { |event| event["name"] }
end
