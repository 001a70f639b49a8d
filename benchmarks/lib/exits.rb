# The exits of a workload, by reason and method, as `vm-trace query` reads them from a trace of one
# run.

require "csv"
require "fileutils"
require "tmpdir"
require_relative "side"
require_relative "table"

module Bench
  class Exits
    # One exit in K is recorded: that shows where, and keeps the trace small. The sites' counters
    # are exact.
    RATE = 97

    COUNTERS = <<~SQL
      SELECT r.display_value, l.display_value, SUM(h.int_value)
      FROM slice s
      JOIN args k ON k.arg_set_id = s.arg_set_id AND k.key = 'kind' AND k.display_value IN ('side_exit', 'recompile_exit')
      JOIN args r ON r.arg_set_id = s.arg_set_id AND r.key = 'reason'
      JOIN args l ON l.arg_set_id = s.arg_set_id AND l.key = 'location'
      JOIN args h ON h.arg_set_id = s.arg_set_id AND h.key = 'hits'
      WHERE s.category = 'trace' AND s.name = 'site' GROUP BY 1, 2
    SQL

    # The flag that records exits, and the one that names the file. YJIT of the base has a
    # --yjit-trace-exits of its own, so ours is another word.
    FLAGS = {
      zjit: %w[--zjit-trace-exits --zjit-trace-file], yjit: %w[--yjit-trace-side-exits --yjit-trace-file]
    }.freeze

    # For the tracer of the unpatched base's ZJIT, which has no counters.
    EVENTS = <<~SQL
      SELECT s.name, a.display_value, COUNT(*)
      FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0'
      WHERE s.category IN ('side_exit', 'recompile_exit') GROUP BY 1, 2
    SQL

    def initialize(tool, timeout: nil)
      @tool, @timeout = tool, timeout
    end

    # {[reason, method] => count}; empty for a side without a JIT. Raises Failed when the side has no
    # tracer, or the workload fails under it.
    def of(side, workload)
      return {} unless side.jit
      Dir.mktmpdir("vm-trace-bench") do |folder|
        trace = "#{folder}/exits.fxt"
        next of_iterations(side, workload, trace) if workload.tracing(trace, "exits")
        exits, file = FLAGS.fetch(side.jit)
        if side.takes?(exits, "#{file}=#{folder}/try.fxt")
          side.run_unmeasured(workload, timeout: @timeout,
                              flags: [exits, "#{exits}-sample-rate=#{RATE}", "#{file}=#{trace}"])
          count(trace, COUNTERS)
        elsif side.jit == :zjit
          count(base_trace(side, workload, trace), EVENTS).transform_values { |n| n * RATE }
        else
          raise Failed, "#{side} has no #{exits}; what the base's --yjit-trace-exits writes has no reasons " \
                        "and is no trace"
        end
      end
    end

    # [reason, method, baseline's count, candidate's count], largest difference first.
    def self.beside(baseline, candidate)
      (baseline.keys | candidate.keys)
        .map { |key| [*key, baseline.fetch(key, 0), candidate.fetch(key, 0)] }
        .sort_by { |reason, method, a, b| [-(b - a).abs, -[a, b].max, reason, method] }
    end

    # Rows of the answer, as texts.
    def self.query(tool, trace, sql)
      out = IO.popen([tool, "query", trace, sql], err: File::NULL, &:read)
      # 1: the trace has faults or is cut, and what could be read was used
      raise Failed, "#{tool} cannot read the trace (status #{$?.exitstatus})" unless [0, 1].include?($?.exitstatus)
      CSV.parse(out).drop(1)
    rescue SystemCallError => e
      raise Failed, "#{tool}: #{e.message} (make tool builds it)"
    end

    def self.table(rows, limit: 20)
      return "    no exits on either side\n" if rows.empty?
      cells = rows.first(limit).map { |_, _, a, b| [Table.number(a), Table.number(b), change(a, b)] }
      lines = [%w[baseline candidate change], *cells]
      widths = lines.transpose.map { |column| column.map(&:size).max }
      names = ["exits: reason in method", *rows.first(limit).map { |reason, method, *| "#{reason} in #{method}" }]
      out = lines.zip(names).map { |cells, name| "    #{cells.each_with_index.map { |cell, i| cell.rjust(widths[i]) }.join('  ')}  #{name}" }
      out << "    ... and #{rows.size - limit} more" if rows.size > limit
      out.join("\n") + "\n"
    end

    def self.change(a, b)
      return "new" if a == 0
      return "gone" if b == 0
      a == b ? "=" : "%+.0f %%" % ((b - a) * 100.0 / a)
    end

    private

    # Without warm-up.
    def of_iterations(side, workload, trace)
      raise Failed, "#{side} has no tracer that starts after the warm-up" unless side.can?("RubyVM::Trace.start")
      side.run_unmeasured(workload, timeout: @timeout, env: workload.tracing(trace, "exits:rate=#{RATE}"))
      count(trace, COUNTERS)
    end

    # The unpatched base always writes to the same path, and its rate N means one in N+1.
    def base_trace(side, workload, trace)
      flags = ["--zjit-trace-exits", "--zjit-trace-exits-sample-rate=#{RATE - 1}"]
      pid = nil
      side.run_unmeasured(workload, timeout: @timeout, flags: flags) { |started| pid = started }
      written = "/tmp/perfetto-#{pid}.fxt"
      raise Failed, "#{side} records no exits (no --zjit-trace-file, and no #{written})" unless File.file?(written) && File.owned?(written)
      FileUtils.mv(written, trace)
      trace
    ensure
      File.unlink(written) if written && File.file?(written) && File.owned?(written)
    end

    def count(trace, sql)
      Exits.query(@tool, trace, sql).each_with_object(Hash.new(0)) do |(reason, place, n), counts|
        counts[[reason, method_of(place)]] += n.to_i
      end.then { |counts| Hash[counts] }
    end

    # "Owner#method (path:line)" without path and line, which the base does not record and an edit
    # moves.
    def method_of(place)
      place.to_s.sub(/ \([^()]*\)\z/, "")
    end
  end
end
