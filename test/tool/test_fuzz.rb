# Damaged traces against a build with the address and undefined-behaviour sanitizers: nothing
# crashes, hangs or uses too much memory. The damage is seeded, so a failure can be repeated:
# FUZZ_SEED=N, FUZZ_COUNT=N (mutants). LONG=1 tries twenty times as many.
require_relative "tool_helper"
require_relative "mutants"
require "timeout"

class TestFuzz < Minitest::Test
  include ToolHelper

  SEED = Integer(ENV["FUZZ_SEED"] || 20260822)
  COUNT = Integer(ENV["FUZZ_COUNT"] || (ENV["LONG"].to_s.empty? ? 100 : 2000))
  BATCH = [COUNT, 250].min
  MOST_CPU_SECONDS = 60 # what takes more hangs
  MOST_SECONDS = 600
  PIECES = 5
  KEPT = Dir[File.join(__dir__, "corpus/*.fxt")].sort # what `make fuzz` found once
  SQL = <<~SQL
    SELECT * FROM slice LEFT JOIN args USING (arg_set_id);
    SELECT * FROM flow;
    SELECT * FROM thread_state;
    SELECT * FROM sched;
    SELECT * FROM counter JOIN track t ON t.id = track_id;
    SELECT * FROM thread JOIN process USING (upid);
    SELECT * FROM args WHERE arg_set_id IN (-1, 0, 1, 4000000000);
    SELECT * FROM slice WHERE id IN (0, 9999999);
    SELECT * FROM stack_sample s
      JOIN stack_profile_callsite c ON c.id = callsite_id
      JOIN stack_profile_frame f ON f.id = frame_id
      JOIN stack_profile_mapping m ON m.id = mapping
      JOIN stack_profile_symbol USING (symbol_set_id)
      LEFT JOIN stack_sample_task_context x ON x.id = task_context_id
      LEFT JOIN thread USING (utid);
    SELECT * FROM stack_sample_counter JOIN stack_sample_counter_track t ON t.id = track_id
  SQL
  # To look for leaks takes as long as most commands do for one file.
  ASAN_OPTIONS = "exitcode=99:allocator_may_return_null=1:quarantine_size_mb=8:malloc_context_size=8".freeze
  ENVIRONMENT = [0, 1].map do |leaks|
    { "ASAN_OPTIONS" => "#{ASAN_OPTIONS}:detect_leaks=#{leaks}", "UBSAN_OPTIONS" => "exitcode=99:print_stacktrace=1" }
  end.freeze

  # The tool with sanitizers, for one file and for several, and whether it has the query command.
  def sanitized_tool
    skip "it builds a tool of its own, with sanitizers" if WRAPPER.any? || EMULATED || ENV.key?("MSAN_OPTIONS")
    path = instrumented_tool("sanitized", "#{ENV["CC"] || "cc"} cannot build with sanitizers")
    tools = ENVIRONMENT.map { |environment| ServedTool.new(path, environment, rlimit_cpu: MOST_CPU_SECONDS) }
    [tools, tool("query", KEPT.first, "select 1").err !~ /built without SQLite/]
  end

  # Commands that take several files.
  COMMANDS = {
    %w[check] => ->(paths) { paths }, %w[report] => ->(paths) { paths }, %w[dump] => ->(paths) { paths },
    %w[report --advice] => ->(paths) { paths }, %w[report --calls] => ->(paths) { paths },
    %w[report --endpoints --group=gem --app-only] => ->(paths) { paths },
    %w[export --format=folded --kind=calls --app-only] => ->(paths) { paths },
    %w[annotate] => ->(paths) { paths.first(1) },
    %w[query] => ->(paths) { [*paths, SQL] }, %w[export --format=sqlite --output=FILE] => ->(paths) { paths },
    %w[export --format=folded] => ->(paths) { paths },
    %w[export --format=folded --kind=blocked --threads] => ->(paths) { paths },
    %w[export --format=folded --kind=allocations] => ->(paths) { paths },
    %w[export --format=folded --kind=calls --threads] => ->(paths) { paths },
    %w[export --format=firefox --kind=calls] => ->(paths) { paths },
    %w[export --format=speedscope] => ->(paths) { paths },
    %w[export --format=pprof] => ->(paths) { paths }, %w[export --format=chrome] => ->(paths) { paths },
    %w[export --format=firefox] => ->(paths) { paths },
    %w[export --tables=FILE.tables --with-arguments] => ->(paths) { paths },
    %w[export --format=pprof --by=minute --output=FILE.minutes] => ->(paths) { paths.first(40) },
    %w[history] => ->(paths) { [*paths, "*"] }, %w[metrics] => ->(paths) { paths },
    %w[html] => ->(paths) { paths }, %w[merge] => ->(paths) { paths }, %w[diff] => ->(paths) { [paths.first, "vs", *paths] },
    %w[scrub --remove=[a-m]+ --output=FILE] => ->(paths) { paths.first(1) },
    %w[cut --since=1us --until=3us] => ->(paths) { paths.first(1) }, %w[cut] => ->(paths) { paths.last(1) },
  }.freeze
  NEEDS_SQLITE = COMMANDS.keys.grep(->(command) { command.first == "query" || command[1] == "--format=sqlite" }).freeze

  def run_batch(tools, command, paths)
    arguments = command.map { |argument| argument.sub("FILE", "#{paths.first}.db") }
    out, err, status = Timeout.timeout(MOST_SECONDS) do
      arguments.push("--max-faults=3", "--memory=64", *COMMANDS[command][paths])
      tools[paths.size > 1 ? 1 : 0].capture3(*arguments)
    end
    output = out + err
    fine = [0, 1, 4, 5].include?(status.exitstatus) || (status.exitstatus == 2 && output.match?(/nothing is after --since/n))
    return nil if !status.signaled? && fine && output !~ /runtime error:|Sanitizer/n
    "#{status}\n#{output.byteslice(-4000..) || output}"
  end

  def test_damaged_traces_are_survived
    traces = Dir[File.join(TRACES, "*.fxt")] + KEPT + Conformance.files("{,streams/}*.fxt")
    seeds = traces.sort.map { |file| File.binread(file) }
    random = Random.new(SEED)
    Dir.mktmpdir do |dir|
      tools, query = sanitized_tool
      commands = COMMANDS.keys - (query ? [] : NEEDS_SQLITE)
      COUNT.fdiv(BATCH).ceil.times do |batch|
        paths = Array.new(BATCH) do |i|
          bytes = seeds[random.rand(seeds.size)]
          bytes = bytes[0, 6000] if bytes.bytesize > 6000
          # The pieces of a spool, so that some are read as one recording.
          name = "#{batch}-#{i / PIECES}-20261126T221504-#{i % PIECES + 1}-time.fxt"
          File.join(dir, name).tap { |path| File.binwrite(path, Mutants.mutate(bytes, random)) }
        end
        commands.each do |command|
          next unless run_batch(tools, command, paths)
          groups = paths.map { |path| [path] } + paths.each_slice(PIECES).to_a
          culprits = groups.find { |group| run_batch(tools, command, group) } || paths
          kept = Dir.mktmpdir("vm-trace-#{command.first}-")
          FileUtils.cp(culprits, kept)
          flunk "vm-trace #{command.join(" ")} does not survive #{kept}/*:\n#{run_batch(tools, command, culprits)}"
        end
        paths.each { |path| File.delete(path) }
        pass
      end
    end
  end

  def test_inputs_that_once_did_harm_do_none
    refute_empty KEPT
    tools, query = sanitized_tool
    Dir.mktmpdir do |dir|
      KEPT.product(COMMANDS.keys - (query ? [] : NEEDS_SQLITE)) do |kept, command|
        path = File.join(dir, File.basename(kept))
        FileUtils.cp(kept, path)
        assert_nil run_batch(tools, command, [path]), "#{command} #{kept}"
      end
    end
  end
end
