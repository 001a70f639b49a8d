# Advice for reasons (`vm-trace explain`): each reason that a JIT has is explained, no other is, the
# pages of the guide are up to date, and each example has the reason that it is for in its trace.
#
# The reasons of a JIT are read from its source, so this is skipped for a base that has no source here.
# Bases: ruby-4.1 ruby-4.0 ruby-3.4 ruby-3.3
require "minitest/autorun"
require "csv"
require "open3"
require "tmpdir"
require_relative "../../scripts/reason-pages"

class TestReasonPages < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  TOOL = File.expand_path(ENV["VM_TRACE"] || "build/tool/vm-trace", TOP)
  ROWS = ReasonPages.rows(TOOL)
  # What is explained and is in no list of a JIT's source: names that the tracer gives.
  OF_THE_TRACER = [
    "(site table full)", "uncompiled_insn", "invalidated_block", "invalidated_everything", "ExceptionHandler",
    "getivar", "setivar", "recompile_exit",
  ].freeze

  FLAGS = { "ZJIT" => "--zjit-trace-exits", "YJIT" => "--yjit-trace-side-exits" }.freeze
  ROWS.select { |row| row["example"] }.uniq { |row| row["example"] + row["topic"] }.each do |row|
    base = row["topic"].end_with?("only in Ruby 4.0", "Only in Ruby 4.0") ? "ruby-4.0" : "ruby-4.1"
    define_method "test_example_of_#{row["jit"]}_#{row["reason"].gsub(/\W+/, "_")}" do
      skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
      skip "base #{base} is not built here" unless File.exist?(ruby(base))
      assert_operator row["example"].lines.size, :<=, 9
      # An example is that of its entry's reasons: where an interrupt is met is for the scheduler to say.
      names = ROWS.select { |other| other.values_at("example", "topic") == row.values_at("example", "topic") }
      names.map! { |other| other["reason"] }
      seen = recorded(ruby(base), row["jit"], row["example"])
      assert_operator counted(seen, names), :>, 0, "#{names}: #{seen}"
    end
  end

  # What the pair changes is what the advice is for: its exits are gone, or one in twenty is left. Counts are exact at
  # any rate.
  ROWS.select { |row| row["tested"] }.group_by { |row| row.values_at("jit", "tested", "help") }.each do |key, rows|
    jit, pair, = key
    define_method "test_pair_of_#{jit}_#{rows.first["reason"].gsub(/\W+/, "_")}" do
      skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
      ruby = %w[ruby-4.0 ruby-4.1].map { |base| ruby(base) }.find { |path| File.exist?(path) }
      skip "neither ruby-4.0 nor ruby-4.1 is built here" unless ruby
      before, after = %w[before after].map do |side|
        program = File.read(File.join(TOP, "examples/fixes", pair, "#{side}.rb"))
        counted(recorded(ruby, jit, program, "#{FLAGS.fetch(jit)}-sample-rate=97"), rows.map { |row| row["reason"] })
      end
      assert_operator before, :>=, 100
      assert_operator after, :<=, before / 20
    end
  end

  def test_pages_are_up_to_date
    files = ReasonPages.files
    assert_equal %w[reasons-yjit.md reasons-zjit.md reasons.md], files.map { |file| File.basename(file) }
    files.each do |file|
      text = File.read(file)
      assert_equal ReasonPages.page(text, ROWS), text, "run scripts/reason-pages.rb --write build/tool/vm-trace"
    end
  end

  # Every reason is on a page.
  def test_pages_have_all_reasons
    text = ReasonPages.files.map { |file| File.read(file) }.join
    assert_empty ROWS.map { |row| row["reason"] }.reject { |reason| text.include?(ReasonPages.code(reason)) }
  end

  def test_each_reason_has_all_texts
    ROWS.each do |row|
      texts = row.values_at("meaning", "cause", "help")
      assert texts.all? { |text| text&.match?(/\A[`A-Z<].*[.)]\z/) }, row
      assert texts.all? { |text| text.count("`").even? || text.include?("``") }, row
      assert_operator texts.sum(&:size), :<, 800, row
    end
    assert_empty ROWS.map { |row| row.values_at("kind", "reason", "jit") }.tally.select { |_, count| count > 1 }
  end

  def test_a_reason_is_not_hidden_by_a_glob_before_it
    ROWS.group_by { |row| row["kind"] }.each_value do |rows|
      names = rows.map { |row| row["reason"] }
      names.each_with_index do |name, i|
        assert_empty names.first(i).select { |earlier| earlier.include?("*") && File.fnmatch(earlier, name) }, name
      end
    end
  end

  %w[ruby-4.0 ruby-4.1].each do |base|
    define_method "test_exits_of_zjit_in_#{base}" do
      assert_explained zjit_exits(base), "exit", "ZJIT", 30
    end

    define_method "test_compile_errors_of_zjit_in_#{base}" do
      assert_explained compile_errors(base), "compile error", "ZJIT", 7
    end

    define_method "test_fallbacks_of_zjit_in_#{base}" do
      assert_explained fallbacks(base), "fallback", "ZJIT", 40
    end

    define_method "test_invalidations_of_zjit_in_#{base}" do
      assert_explained zjit_invalidations(base), "invalidation", "ZJIT", 7
    end
  end

  %w[ruby-3.3 ruby-3.4 ruby-4.0 ruby-4.1].each do |base|
    define_method "test_exits_of_yjit_in_#{base}" do
      assert_explained exits_of(base), "exit", "YJIT", 55
    end

    define_method "test_invalidations_of_yjit_in_#{base}" do
      assert_explained yjit_invalidations(base), "invalidation", "YJIT", 6
    end
  end

  def test_outcomes
    strings = File.read(File.join(TOP, "vm_trace/schema/events.def"))
    words = strings[/PROFILING, .*?VERSION_LIMIT, "\w+"/m].scan(/"(\w+)"/).flatten
    assert_equal words, named("outcome", "ZJIT")
  end

  def test_no_reason_of_zjit_is_explained_that_no_ruby_has
    bases = %w[ruby-4.0 ruby-4.1]
    assert_used bases.flat_map { |base| zjit_exits(base) }, "exit", "ZJIT"
    assert_used bases.flat_map { |base| compile_errors(base) }, "compile error", "ZJIT"
    assert_used bases.flat_map { |base| fallbacks(base) }, "fallback", "ZJIT"
    assert_used bases.flat_map { |base| zjit_invalidations(base) }, "invalidation", "ZJIT"
  end

  def test_no_reason_of_yjit_is_explained_that_no_ruby_has
    bases = %w[ruby-3.3 ruby-3.4 ruby-4.0 ruby-4.1]
    assert_used bases.flat_map { |base| counters(base) }, "exit", "YJIT"
    assert_used bases.flat_map { |base| yjit_invalidations(base) }, "invalidation", "YJIT"
  end

  # "Neither Ruby 4.0 nor 4.1 uses this reason": no code of that Ruby makes such a fallback.
  def test_reasons_that_zjit_never_uses_are_said_to_be_unused
    made, unused = %w[ruby-4.0 ruby-4.1].map do |base|
      fallback_texts(base).partition { |variant, _| made?(base, variant) }.map { |pairs| pairs.map(&:last) }
    end.transpose
    in_none = unused.reduce(:&)
    assert_operator in_none.size, :>=, 1
    fallbacks = ROWS.select { |row| row["kind"] == "fallback" }
    said = fallbacks.select { |row| row["cause"].start_with?("Neither Ruby 4.0 nor 4.1 uses") }
    said.map! { |row| row["reason"] }
    assert_empty in_none - said
    assert_empty said & made.flatten
  end

  # The page of ZJIT lists what 4.0 has.
  def test_zjit_page_lists_the_reasons_of_ruby_4_0
    part = File.read(File.join(TOP, "doc/guide/reasons-zjit.md"))[/^## Ruby 4.0$.*?(?=^<!--)/m]
    listed = part[/it has:$(.*?)^It also has/m, 1].scan(/`([A-Z]\w+(?:\([\w*]+\))?)/).flatten
    own = ROWS.select { |row| row["topic"] == "Only in Ruby 4.0" }.map { |row| row["reason"] }
    heads = ->(names) { names.map { |name| name[/\APatchPoint\(\w+/] || name[/\w+/] }.uniq.sort }
    assert_equal heads[[*zjit_exits("ruby-4.0"), "CompileError", "ExceptionHandler"]], heads[[*listed, *own]]
  end

  private

  def ruby(base) = File.join(TOP, "build", base, "ruby")

  # How often one of the names is among reasons and their numbers.
  def counted(reasons, names)
    reasons.sum { |reason, count| names.any? { |name| File.fnmatch(name, reason) } ? count : 0 }
  end

  # Reasons of the exits that a program takes, and how many there are.
  def recorded(ruby, jit, program, *flags)
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "example.rb"), program)
      command = [ruby, "--disable=gems", "-W0", FLAGS.fetch(jit), *flags, "--#{jit.downcase}-trace-file=trace.fxt", "example.rb"]
      out, status = Open3.capture2e({ "RUBYOPT" => nil, "FIXES_SCALE" => "0.1" }, *command, chdir: dir)
      assert_predicate status, :success?, out
      report = [TOOL, "report", "--top=1000", "--format=csv", "--table=exits_by_reason"]
      table, = Open3.capture2(*report, File.join(dir, "trace.fxt"))
      CSV.parse(table, headers: true).to_h { |row| [row["reason"], row["count"].to_i] }
    end
  end

  # Names that are explained.
  def named(kind, jit) = ROWS.select { |row| row["kind"] == kind && row["jit"] == jit }.map { |row| row["reason"] }

  # `reasons`: as traces could have them.
  def assert_explained(reasons, kind, jit, least)
    assert_operator reasons.size, :>=, least
    names = named(kind, jit)
    assert_empty reasons.reject { |reason| names.any? { |name| File.fnmatch(name, reason) } }
  end

  # Something in `reasons` has each name. A name with details stands for one without.
  def assert_used(reasons, kind, jit)
    names = named(kind, jit) - OF_THE_TRACER
    used = ->(name, reason) { File.fnmatch(name, reason) || reason == "#{name[/\A\w+/]}(any)" }
    unused = names.reject { |name| reasons.any? { |reason| used[name, reason] } }
    assert_empty unused
  end

  def source(base, file)
    path = File.join(TOP, "build", base, "src", file)
    skip "base #{base} has no source here (make src BASE=#{base})" unless File.exist?(path)
    File.read(path)
  end

  # Variants of an enum, with "(any)" for their details.
  def variants(base, enum, file = "zjit/src/hir.rs")
    body = source(base, file)[/^pub enum #{enum} \{\n(.*?)^\}/m, 1]
    body.scan(/^    (\w+)( ?[({])?/).map { |name, details| details ? "#{name}(any)" : name }
  end

  def zjit_exits(base)
    details = variants(base, "Invariant").map { |name| "PatchPoint(#{name})" }
    details += variants(base, "CallType").map { |name| "UnhandledCallType(#{name})" }
    plain = variants(base, "SideExitReason").reject { |name| name.start_with?("PatchPoint", "UnhandledCallType") }
    plain + details
  end

  def compile_errors(base)
    parse_errors = variants(base, "ParseError").map { |name| "ParseError(#{name})" }
    errors = variants(base, "CompileError", "zjit/src/stats.rs").reject { |name| name.start_with?("ParseError") }
    (errors + parse_errors).flat_map do |error|
      error == "ExceptionHandler" ? ["CompileError(#{error})"] : [error, "CompileError(#{error})"]
    end
  end

  # Variant => text in traces
  def fallback_texts(base)
    body = source(base, "zjit/src/hir.rs")[/^impl Display for SendFallbackReason.*?^\}/m]
    body.scan(/^ +(\w+).* => write!\(f, "(.*?)"/).to_h { |variant, text| [variant, text.gsub(/\{.*?\}/, "any")] }
  end

  def fallbacks(base)
    fallback_texts(base).values + source(base, "zjit/src/stats.rs").scan(/^ +([gs]etivar_fallback_\w+),$/).flatten.uniq
  end

  # Whether any code besides lists of all variants makes a fallback with this reason.
  def made?(base, variant)
    files = %w[hir codegen cruby_methods].map { |name| source(base, "zjit/src/#{name}.rs") }
    listed = %r{=> write!|^ +#{variant}(\(.*\))?,$|^ *//}
    files.flat_map(&:lines).any? { |line| line.match?(/\b#{variant}\b/) && !line.match?(listed) }
  end

  def zjit_invalidations(base)
    call = /compile_patch_points!\(cb, patch_points, (?:\w+, )?"(.*?)"/
    texts = source(base, "zjit/src/invariants.rs").scan(call).flatten
    texts.map { |text| text.gsub(/\{.*?\}/, "any") }
  end

  def yjit_invalidations(base)
    source(base, "yjit/src/invariants.rs").scan(/trace::invalidation\((?:Counter::|")(\w+)/).flatten
  end

  # Functions that take a counter and make no exit.
  ONLY_COUNT = /counter_incr|incr_counter|exit_if|counter_ptr|\Aget\z|invalidation|shared_exit/

  def counters(base) = source(base, "yjit/src/stats.rs")[/^make_counters! \{(.*?)^\}/m, 1].scan(/^    (\w+),/).flatten

  # Counters that the code generator passes to what makes an exit, and not to what only counts.
  def exits_of(base)
    %w[codegen.rs core.rs].flat_map do |file|
      source = source(base, "yjit/src/#{file}")
      source.to_enum(:scan, /Counter::([a-z_0-9]+)/).filter_map do
        name = $1
        name unless called(source, $~.begin(0)).match?(ONLY_COUNT)
      end
    end.uniq
  end

  # The function with an argument at an offset.
  def called(source, offset)
    depth = 0
    (offset - 1).downto(0) do |i|
      case source[i]
      when ")", "}", "]" then depth += 1
      when "(", "{", "["
        return source[[i - 60, 0].max...i][/[\w!]+\z/].to_s if depth == 0
        depth -= 1
      end
    end
  end
end
