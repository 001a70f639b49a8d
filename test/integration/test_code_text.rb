# `--zjit-trace-compiles=hir`: the HIR of versions, and the instruction that each exit belongs to. The reference is what
# `--zjit-dump-hir` prints in the same process.
require_relative "helper"
Integration.only "zjit"

class TestCodeText < Integration::Test
  FLAGS = %w[--zjit-num-profiles=2 --zjit-trace-fallbacks --zjit-trace-invalidation].freeze
  HIR = "--zjit-trace-compiles=hir"

  # Guards of types and shapes, an overflow, a throw, code that was never profiled, blocks, inlined callees.
  WORK = <<~'RUBY'
    class Point
      def initialize(x, y) = (@x = x; @y = y)
      def sum = @x + @y
    end
    class Wide < Point
      def initialize(x, y) = (@w = 1; super)
    end
    def add(a, b) = a + b
    def less(a, b) = a < b ? a : b
    def at(list, i) = list[i]
    def rare(x) = x > 50 ? x.to_s.size + x.inspect.size : x
    def find(list) = list.each { |x| return x if x > 3 }
    def splat(*a) = a.size
    def call_splat(a) = splat(*a)
    def symbols = [:"one\nand\n  another", :"two\n"].size
    point, wide = Point.new(1, 2), Wide.new(3, 4)
    60.times do |i|
      add(i, 1); less(i, 3); at([1, 2, 3], i % 3); rare(i); find([1, i, 5]); call_splat([1] * (i % 4)); symbols
      (i > 30 ? wide : point).sum
    end
    60.times { |i| add(2**62 - 1, i); add(1.5, i); less(1.0, i); at({ 0 => 1 }, 0) }
  RUBY

  # What the instruction of an exit looks like, by the exit's reason.
  INSTRUCTIONS = {
    /\AGuard(Type|Shape|BitEquals|Not|Super|Greater|Less)|BlockParamProxy|\AInvokeBlockIseqChanged/ => /\bGuard/,
    /\AFixnum(\w+)Overflow\z/ => /\bFixnum/,
    /\APatchPoint\(/ => /\bPatchPoint\b/,
    /\ANoProfile/ => /\bSideExit NoProfile/,
    /\A(?:UnhandledHIRInsn\(throw\)|Throw)\z/ => /\bThrow\b/,
    /\AUnhandledHIRInsn\((\w+)\)\z/ => /=|\A/,
  }.freeze

  def traced(script, *flags, **options) = trace(script, *FLAGS, HIR, *flags, **options)

  # Its texts by ISEQ and version: parts are put together.
  def texts(trace)
    codes = trace.in_category("trace").select { |event| event["name"] == "code" }.map { |event| event["args"] }
    codes.group_by { |code| code.values_at("iseq", "version") }.transform_values do |parts|
      text = parts.map { |part| part["text"] }.join
      assert_equal [text.bytesize], parts.map { |part| part["bytes"] }.uniq
      text
    end
  end

  def line_of(texts, site)
    texts.fetch(site.values_at("iseq", "version")).lines(chomp: true).fetch(site["code_line"] - 1)
  end

  # What the JIT printed: each text ends with an empty line. Ruby 4.0 prints where on its own stack a C function's
  # address is.
  def printed(out) = out.split("Optimized HIR:\n").drop(1).map { |text| plain(text[/\Afn .*?\n(?=\n)/m]) }
  def plain(text) = text.gsub(/0x7ff\h{9}/, "0x")

  def test_texts_are_what_the_jit_prints
    result = traced(WORK.sub(", :\"two\\n\"", "").sub("one\\nand\\n  another", "one"), "#{HIR},all", "--zjit-dump-hir")
    texts = texts(result.trace)
    ends = result.trace.in_category("compile").select { |event| event["ph"] == "E" }
    compiled = ends.map { |event| event["args"].values_at("iseq", "version") }.select { |_, version| version.to_i > 0 }
    refute_empty compiled
    compiled.each { |version| assert_includes texts, version }
    assert_empty texts.values.map { |text| plain(text) } - printed(result.out)
  end

  # Names with newlines in them do not shift lines.
  def test_each_exit_is_at_its_instruction
    trace = traced(WORK).trace
    texts = texts(trace)
    sites = trace.sites.reject { |site| site["insn"] == "(handler)" }
    assert_operator sites.map { |site| site["reason"] }.uniq.size, :>=, 5
    sites.each do |site|
      line = line_of(texts, site)
      if site["kind"] == "fallback"
        assert_match(/SendFallbackReason|IvarGeneric|SetIvar|GetIvar/, line, site.inspect)
      else
        _, instruction = INSTRUCTIONS.find { |reason, _| reason.match?(site["reason"]) }
        refute_nil instruction, site.inspect
        assert_match instruction, line, site.inspect
      end
    end
    # And the type of a guard is that of its exit.
    guards = sites.select { |site| site["reason"].match?(/\AGuardType\(\w+\)\z/) }
    refute_empty guards
    guards.each { |site| assert_includes line_of(texts, site), site["reason"][/\((\w+)\)/, 1] }
  end

  # With hir only code that exits is there, and the version after it; with hir,all any.
  def test_of_code_that_does_not_exit_there_is_no_text
    trace = traced(WORK).trace
    with_exits = trace.sites.map { |site| site.values_at("iseq", "version") }
    texts = texts(trace)
    assert_empty texts.keys - with_exits - with_exits.map { |iseq, version| [iseq, version + 1] }
    assert_operator texts(traced(WORK, "#{HIR},all").trace).size, :>, texts.size
    assert_equal "hir", trace.settings["code_text"]
  end

  # Exits of code without trace points of its own: their lines are kept with the version.
  def test_by_a_trace_of_the_vm
    flags = %w[--zjit-num-profiles=2 --zjit-call-threshold=2 --vm-trace-file=%p.fxt]
    trace = run_ruby(WORK, "--vm-trace=exits,compiles:hir", *flags).trace
    texts = texts(trace)
    sites = trace.sites.select { |site| site["code_line"] }
    guards = sites.select { |site| site["reason"].match?(/\AGuardType\(\w+\)\z/) }
    refute_empty guards
    guards.each { |site| assert_includes line_of(texts, site), "GuardType" }
  end

  # The code was compiled before the trace began.
  def test_of_a_trace_that_begins_later
    script = <<~RUBY
      def add(a, b) = a + b
      20.times { add(1, 2) }
      RubyVM::Trace.stop
      RubyVM::Trace.start(file: "later.fxt")
      5.times { add(1.5, 2) }
      RubyVM::Trace.stop
    RUBY
    result = run_ruby(script, "--zjit-call-threshold=2", "--vm-trace=exits,compiles:hir", "--vm-trace-file=first.fxt")
    later = file(result, "later.fxt")
    site = later.sites.find { |known| known["location"].start_with?("Object#add") }
    assert_includes line_of(texts(later), site), "GuardType"
  end

  def test_a_trace_without_the_jit_that_has_them_says_what_it_needs
    result = run_ruby("1", "--yjit", "--vm-trace=exits,compiles:hir", "--vm-trace-file=%p.fxt")
    assert_match(/no compiles are traced: HIR is kept while ZJIT compiles/, result.err)
    result = run_ruby("1", "--zjit", "--zjit-trace-compiles=lir")
    refute_predicate result.status, :success?
    assert_match(/--zjit-trace-compiles takes hir, hir,all, or nothing, not 'lir'/, result.err)
  end

  # Without exits there would be none.
  def test_texts_of_code_that_exits_need_exits
    trace = run_ruby(WORK, "--zjit-call-threshold=2", HIR, "--zjit-trace-file=%p.fxt").trace
    refute_empty texts(trace)
    refute_empty trace.exits
    flags = ["--zjit-call-threshold=2", "--vm-trace-file=%p.fxt"]
    result = run_ruby(WORK, "--vm-trace=compiles:hir", *flags)
    assert_includes result.err, "compiles:hir keeps the text of code that exits, and no exits are traced: add exits, " \
                                "or request compiles:hir=all"
    all = run_ruby(WORK, "--vm-trace=compiles:hir=all", *flags)
    refute_match(/keeps the text/, all.err)
    refute_empty texts(all.trace)
  end

  # Each process has the texts of what exits in it, whoever compiled it.
  def test_a_forked_child_has_texts_of_its_own
    script = <<~RUBY
      def add(a, b) = a + b
      20.times { add(1, 2) }
      5.times { add(1.5, 2) }
      Process.wait(fork { 3.times { add("a", "b") } })
    RUBY
    result = traced(script)
    assert_equal 2, result.traces.size
    result.traces.each do |trace|
      texts = texts(trace)
      trace.sites.each { |site| assert_includes texts, site.values_at("iseq", "version") }
    end
  end

  # What a flight recorder saves has them each time, also those of code that is gone.
  def test_each_saved_trace_has_them
    script = <<~RUBY
      eval("def gone(a, b) = a + b; 20.times { gone(1, 2) }; 5.times { gone(1.5, 2) }; undef gone")
      GC.start
      def add(a, b) = a + b
      20.times { add(1, 2) }
      2.times { |n| 5.times { add(1.5, n) }; RubyVM::Trace.save("saved\#{n}.fxt") }
    RUBY
    result = run_traced(script, *FLAGS, HIR, "--zjit-trace-memory=16")
    saved = result.traces.select { |trace| File.basename(trace.path).start_with?("saved") }
    assert_equal 2, saved.size
    saved.each do |trace|
      site = trace.sites.find { |known| known["location"].start_with?("Object#add") }
      assert_includes line_of(texts(trace), site), "GuardType"
    end
  end

  def test_code_that_is_freed_leaves_its_text
    trace = traced(<<~RUBY).trace
      30.times do |n|
        code = "def gone(a, b) = a + b + \#{n}; 20.times { gone(1, 2) }; 5.times { gone(1.5, 2) }; undef gone"
        eval(code, binding, "e\#{n}.rb")
      end
      GC.start
    RUBY
    sites = trace.sites.select { |site| site["location"].start_with?("Object#gone") }
    assert_equal 30, sites.map { |site| site["iseq"] }.uniq.size
    sites.each { |site| assert_includes texts(trace), site.values_at("iseq", "version") }
  end

  # A text of more than a record's 32 kB has several events.
  def test_a_long_text_is_there_as_a_whole
    script = "def long(a)\n#{"  a = a + 1\n" * 600}  a\nend\n20.times { long(1) }\n5.times { long(1.5) }\n"
    result = traced(script, "--zjit-dump-hir")
    text = texts(result.trace).find { |(iseq, _), _| iseq.start_with?("Object#long") }.last
    assert_operator text.bytesize, :>, 40_000
    assert_includes printed(result.out), plain(text)
  end

  def test_history_shows_exits_and_what_changed
    trace = traced(WORK).trace
    out, = ServedTool.capture3(Trace::TOOL, "history", trace.path, "Object#add")
    assert_match(/^HIR of version 1 of Object#add \(script.rb:8\)$/, out)
    assert_match(/^ +[1-9]\d*  +v\d+:Fixnum = GuardType /, out)
    return unless Integration.can?(:recompile_exits)

    changed = "made after GuardType(Fixnum); - and + compare it with version 1"
    assert_match(/^HIR of version 2 of Object#add .*, #{Regexp.escape(changed)}$/, out)
  end
end
