# Calls of CRuby's own test programs (bootstraptest) and benchmarks: each method, block and class body as
# often as TracePoint sees it in another, untraced run. A sample of them; `make check-all` runs all.
#
# Once: it runs a hundred programs three times; test_calls has the calls of each pair.
require_relative "helper"
require_relative "call_kinds"
require "csv"

class TestCallsOfCRuby < Integration::Test
  include CallKinds
  JIT_FLAGS = [1, 30].map { |threshold| Integration.jit("--zjit --zjit-call-threshold=#{threshold}").split }.freeze
  SAMPLE = 60
  MOST_MIB = 2048
  CPU_SECONDS = 60 # for one untraced run
  TRACED_LIMIT = 4 * Integration::TIME_LIMIT
  ATTEMPTS = 3 # to record everything: a busy disk cannot keep up with millions of calls a second

  # Counts calls by "kind:line" of what is written in the script, until everything else has ended. A
  # method of define_method is a call, and right after it a block.
  JUDGE = <<~'RUBY'
    script, counts, kinds, defined_by_block = File.join(Dir.pwd, "script.rb"), Hash.new(0), {}, {}
    block = lambda do |tp|
      kinds.fetch([tp.defined_class, tp.method_id, tp.lineno]) do |key|
        iseq = RubyVM::InstructionSequence.of(tp.defined_class.instance_method(tp.method_id))
        kinds[key] = iseq && iseq.disasm.start_with?("== disasm: #<ISeq:block ")
      rescue StandardError
        false
      end
    end
    point = TracePoint.new(:call, :b_call, :class) do |tp|
      next unless tp.path == script || tp.path == "script.rb"
      kind = { call: "call", b_call: "block", class: "class" }.fetch(tp.event)
      next if kind == "class" && tp.self.singleton_class?
      next defined_by_block[Thread.current] = true if kind == "call" && block.(tp)
      kind = "call" if kind == "block" && defined_by_block.delete(Thread.current)
      counts["#{kind}:#{tp.lineno}"] += 1
    end
    at_exit { point.disable; File.binwrite("counts.#{$$}", Marshal.dump(counts)) }
    point.enable
  RUBY

  # Collects the programs that a file of bootstraptest passes to its assertions.
  class Programs
    SOURCE = {
      assert_equal: 1, assert_match: 1, assert_not_match: 1, assert_normal_exit: 0, assert_finish: 1, assert_check: 0
    }.freeze

    def initialize(found) = @found = found
    def respond_to_missing?(*) = true

    def method_missing(name, *args, **)
      program = SOURCE[name] && args[SOURCE[name]]
      @found << program if program.is_a?(String)
    end
  end

  # They need Ruby itself, are about threads and ractors, or take minutes.
  LEFT_OUT = /objectspace|ractor|thread|30k|rust_port|pending|runner|finalizer|env|gc/
  # TracePoint has no event for the body of a regular expression that is made once, and sees one ractor only.
  # The judge does not see how the VM prints an exception at the end, nor anything when a program traces
  # itself.
  NOT_JUDGED = %r{/[imxnesu]*o[imxnesu]*\b|\$stderr =|set_trace_func|TracePoint|Ractor}

  def self.programs
    files = Dir[File.join(Integration::RUBY_SRC, "bootstraptest", "*.rb")].sort
    files.grep_v(/(?:#{LEFT_OUT})[^\/]*\.rb\z/).to_h do |file|
      found = []
      Programs.new(found).instance_eval(File.read(file, encoding: "UTF-8"), file)
      [File.basename(file, ".rb").delete_prefix("test_"), found.uniq.grep_v(NOT_JUDGED)]
    end
  end

  def self.benchmarks
    names = Integration::LONG ? "{app,so}_*" : "app_raise" # others take up to minutes
    Dir[File.join(Integration::RUBY_SRC, "benchmark", "#{names}.rb")].sort.map { |file| [File.basename(file), File.read(file)] }
  end

  # {"kind:line" => count} by TracePoint; nil, if the program did not end by itself.
  def judged(script)
    dir = scratch_dir
    File.binwrite(File.join(dir, "script.rb"), script)
    File.write(File.join(dir, "judge.rb"), JUDGE)
    ruby = [Integration::RUBY, "--disable=gems", *Integration::COMPATIBILITY]
    result = run_in(dir, "-W0", "-r./judge.rb", "script.rb", command: [*cpu_limit(CPU_SECONDS), *ruby])
    file = File.join(dir, "counts.#{result.pid}")
    Marshal.load(File.binread(file)) if File.exist?(file)
  rescue Integration::StillRunning
    nil
  end

  def kind_and_line(name)
    return unless name =~ / \((?:\.\/)?script\.rb:(\d+)\)\z/
    line, kind = $1, call_kind(name)
    "#{kind}:#{line}" if kind && kind != "singleton class"
  end

  # The path of a trace that lost nothing; nil, if the disk was too slow for it each time.
  def whole_trace(script, flags)
    flags += ["--vm-trace=calls", "--vm-trace-file=%p.fxt", "--vm-trace-max-size=#{MOST_MIB}"]
    ATTEMPTS.times do
      dir = scratch_dir(mib: MOST_MIB)
      File.binwrite(File.join(dir, "script.rb"), script)
      result = run_in(dir, "-W0", *flags, "script.rb", time_limit: TRACED_LIMIT)
      return File.join(dir, "#{result.pid}.fxt") unless result.err.match?(/ events lost \(the disk was too slow/)
    end
    nil
  end

  def traced(script, flags)
    path = whole_trace(script, flags) or skip "the disk is too slow for a trace of all calls"
    check, ok = Open3.capture2e(Trace::TOOL, "check", path)
    assert ok.success?, check
    out, = Open3.capture2(Trace::TOOL, "report", "--calls", "--format=csv", "--table=calls", "--top=100000", path)
    CSV.parse(out, headers: true).each_with_object(Hash.new(0)) do |row, counts|
      kind_and_line(row["method"])&.then { |key| counts[key] += row["calls"].to_i }
    end
  end

  # [message] of what differs
  def differences(expected, counts)
    (expected.keys | counts.keys).reject { |key| counts[key] == expected[key] }
      .map { |key| "#{key}: #{counts[key]} in the trace, #{expected[key]} by TracePoint" }
  end

  def assert_same_calls(script)
    expected = judged(script) or return
    [[], *JIT_FLAGS].each do |flags|
      differ = differences(expected, traced(script, flags))
      next if differ.empty? || judged(script) != expected # it is not the same from run to run
      flunk "#{flags.join(" ")}:\n#{differ.join("\n")}\n#{script}"
    end
    true
  end

  all = programs
  step = Integration::LONG ? 1 : [all.sum { |_, found| found.size } / SAMPLE, 1].max
  all.each do |name, found|
    chosen = found.each_slice(step).map(&:first)
    define_method("test_#{name}") do
      compared = chosen.count { |script| assert_same_calls(script) }
      assert_operator compared, :>, 0, "no program of #{chosen.size} ended by itself"
    end
  end

  benchmarks.each do |name, script|
    define_method("test_#{name}") { assert_same_calls(script) or skip "TracePoint takes more than #{CPU_SECONDS} s" }
  end
end
