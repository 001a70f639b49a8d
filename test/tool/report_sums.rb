# What all tables of `vm-trace report` must agree on, for any trace and any filter: all have the same sum, that of
# the summaries. consistency.rb compares them with the other outputs.
require "json"
require_relative "served_tool"

module ReportSums
  EXITS = %w[exits_by_reason exits_by_line exits_by_instruction worst].freeze
  ALL_ROWS = 1_000_000
  SHARES = %w[compiled interpreted compiling gc blocked waiting no_cpu without_gvl].freeze # of sampled time, by state

  # A list of disagreements. `tool`: the program; `summaries`: whether the summaries cover the same
  # time as the events, as in every whole trace.
  def self.disagreements(tool, *paths, options: [], summaries: true)
    Check.new(tool, paths, options).run(summaries)
  end

  class Check
    def initialize(tool, paths, options)
      @tool, @paths, @options = tool, paths, options
      @bad = []
    end

    def run(summaries)
      @data = report("--top=#{ALL_ROWS}")
      @totals = @data["totals"]["rows"][0]
      exits
      compilations
      versions
      thread_states
      allocations
      the_first_rows_and_the_rest
      of_the_summaries if summaries && @options.empty?
      @bad
    end

    private

    def same(what, is, should_be) = (@bad << "#{what}: #{is}, not #{should_be}" unless is == should_be)

    def run_tool(*arguments)
      out, _, status = ServedTool.capture3(@tool, *arguments, *@paths)
      raise "vm-trace #{arguments}: status #{status.exitstatus}" unless [0, 1, 2].include?(status.exitstatus) # 2: no method matches
      out.force_encoding("UTF-8")
    end

    def report(*options) = JSON.parse(run_tool("report", "--format=json", *options, *@options))
    def rows(table) = @data.fetch(table)["rows"]
    def sum(table, column) = rows(table).sum { |row| row.fetch(column) || 0 }

    def exits
      EXITS.each do |table|
        same "count of #{table}", sum(table, "count"), @totals["exits"]
        same "recorded of #{table}", sum(table, "recorded"), @totals["exits_recorded"]
        seen = rows(table).select { |row| row["recorded"] > 0 }
        same "rows of #{table} that are recorded and have no rate", seen.count { |row| row["rate"].nil? }, 0
        same "rows of #{table} that count less than was recorded", seen.count { |row| row["count"] < row["recorded"] }, 0
      end
      same "count of fallbacks", sum("fallbacks", "count"), @totals["fallbacks"]
      recompile = rows("exits_by_reason").select { |row| row["kind"] == "recompile_exit" }.sum { |row| row["count"] }
      same "count of outcomes", sum("outcomes", "count"), recompile
      same "exits of processes", sum("processes", "exits"), @totals["exits"]
      same "fallbacks of processes", sum("processes", "fallbacks"), @totals["fallbacks"]
      same "recorded of processes", sum("processes", "recorded"), @totals["exits_recorded"] + sum("fallbacks", "recorded")
      same "exits of threads", sum("threads", "count"), @totals["exits"]
      same "fallbacks of threads", sum("threads", "fallbacks"), @totals["fallbacks"]
    end

    def compilations
      whole = rows("compile_phases").find { |row| row["name"] == "(whole)" } || { "count" => 0, "total_ns" => 0 }
      same "(whole) compilations", whole["count"], @totals["compilations"]
      same "ISEQs that were compiled", rows("compiled_iseqs").size, @totals["compiled_iseqs"]
      same "compilations by ISEQ", sum("compiled_iseqs", "count"), @totals["compilations"]
      same "time of them", sum("compiled_iseqs", "total_ns"), whole["total_ns"]
      same "code of them", sum("compiled_iseqs", "code_bytes"), @totals["code_bytes"]
      same "of them with no code", sum("compiled_iseqs", "nothing"), @totals["compiled_nothing"]
    end

    def counts_of(text) = text.scan(/\d+: ([\d,]+)/).sum { |(count)| count.delete(",").to_i }

    def versions
      rows("recompiled").each do |row|
        next if row["exits_by_version"].include?(" more, ")
        same "exits of the versions of #{row["iseq"]}", counts_of(row["exits_by_version"]), row["exits"]
      end
      rows("recompile_loops").each do |row|
        same "exits in the versions at #{row["method"]}", counts_of(row["versions"]), row["count"] unless row["versions"].include?(" more, ")
        @bad << "#{row["method"]}: #{row["at_limit"]} at the limit of #{row["count"]}" if row["at_limit"] > row["count"]
      end
    end

    # A trace has these tables only if the streams were on.
    def thread_states
      return unless @data["thread_states"]
      rows("thread_states").each do |row|
        same "states of #{row["thread"]}", row.values_at("waiting_ns", "blocked_ns", "gc_ns", "running_ns").sum, row["life_ns"]
        @bad << "#{row["thread"]}: its longest wait is longer than all" if row["longest_wait_ns"] > row["waiting_ns"]
      end
      %w[count total_ns].each { |column| same "#{column} of what blocked", sum("blocked_by_thread", column), sum("blocked", column) }
      @bad << "more waiting is charged than there is" if @options.empty? && sum("gvl_holders", "others_ns") > sum("thread_states", "waiting_ns")
      rows("gvl_holders").each do |row|
        @bad << "#{row["thread"]} held longer than it ran" if row["held_ns"] - row["held_gc_ns"] > rows("thread_states").find { |states| states.values_at("pid", "tid") == row.values_at("pid", "tid") }["running_ns"]
        @bad << "#{row["thread"]}: its longest hold is longer than all" if row["longest_hold_ns"] > row["held_ns"]
      end
    end

    def allocations
      return unless @data["allocations"]
      all = rows("allocations")[0]
      %w[allocations_by_class allocations_by_method].each do |table|
        %w[bytes samples].each { |column| same "#{column} of #{table}", sum(table, column), all[column] }
      end
      %w[survivors_by_class survivors_by_method].each do |table|
        same "alive in #{table}", sum(table, "alive_bytes"), all["alive_bytes"]
        rows(table).each do |row|
          next if row["survived_3_samples"] <= row["survived_1_samples"]
          @bad << "#{table}: more survive three collections than one: #{row}"
        end
      end
    end

    def the_first_rows_and_the_rest
      report("--top=1").each do |name, table|
        next unless table["more"]
        (table["rows"][0].keys & table["more"].keys).each do |column|
          next if SHARES.include?(column) || column.end_with?("_share") || !table["more"][column].is_a?(Integer)
          same "#{name}.#{column} of the first row and the others", table["rows"].sum { |row| row[column] || 0 } + table["more"][column],
               sum(name, column)
        end
      end
    end

    def of_the_summaries
      # Only these lines: the backtraces of exits can be a hundred megabytes.
      lines = ServedTool.capture3(@tool, "dump", *@paths)[0].lines.grep(/"cat":"trace","name":"summary"/n)
      summaries = lines.map { |line| JSON.parse(line.force_encoding("UTF-8"))["args"] }
      return if summaries.empty? || summaries.size < rows("processes").size
      same "exits", @totals["exits"], summaries.sum { |s| s["exits"] }
      same "fallbacks", @totals["fallbacks"], summaries.sum { |s| s["fallbacks"] || 0 }
      same "exits recorded", @totals["exits_recorded"], summaries.sum { |s| s["sampled"] }
    end
  end
end
