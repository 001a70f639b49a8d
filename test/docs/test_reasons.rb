# The pages of reasons: each reason that a JIT has stands on its page, the page has no other, and
# each example makes an exit for the reason that it stands under.
#
# Names of ZJIT come from `vm-trace explain`, those of YJIT from the code that makes exits. The
# explanations are written in the pages alone, so nothing else has to agree with them.
#
# Bases: ruby-4.1 ruby-4.0
require "minitest/autorun"
require "csv"
require "open3"
require "tmpdir"

class TestReasonPages < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  TOOL = File.join(TOP, "build/tool/vm-trace")
  # The heading below which reasons are those of base ruby-4.0 alone
  OLDER = "## Ruby 4.0\n"
  FULL = "(site table full)" # the tracer's own, for any JIT
  # As uncompiled_reason() and Reason in yjit/src/trace.rs.
  NOT_COUNTERS = %w[uncompiled_insn invalidated_block invalidated_everything].freeze

  def self.page(jit) = File.read(File.join(TOP, "doc/guide/reasons-#{jit}.md"))
  # Its parts: [reasons of the heading, text]
  def self.sections(jit)
    parts = page(jit).split(/^(?=\#{2,3} )/).select { |part| part.start_with?("### ") }
    parts.map { |part| [named(part[/^### .*/]), part] }
  end

  def self.named(heading) = heading.scan(/`([^`]+)`/).flatten
  def self.reasons(jit) = sections(jit).flat_map(&:first)

  FLAGS = { "zjit" => "--zjit-trace-exits", "yjit" => "--yjit-trace-side-exits" }.freeze
  FLAGS.each do |jit, flag|
    older = page(jit)[/^#{OLDER}.*/m].to_s
    sections(jit).each do |reasons, text|
      base = older.include?(text) ? "ruby-4.0" : "ruby-4.1"
      text.scan(/^```ruby\n(.*?)^```/m).each_with_index do |(example), i|
        define_method "test_example_#{i}_of_#{jit}_#{reasons.first.gsub(/\W+/, "_")}" do
          skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
          skip "base #{base} is not built here" unless File.exist?(ruby(base))
          assert_operator example.lines.size, :<=, 9
          seen = recorded(ruby(base), jit, flag, example)
          assert seen.any? { |reason| File.fnmatch(reasons.first, reason) }, "#{reasons.first}: #{seen}"
        end
      end
    end
  end

  def test_zjit_page_has_the_exits_of_explain
    assert_equal [*explained[:exits], FULL].sort, self.class.reasons("zjit").sort
  end

  def test_zjit_page_has_the_fallbacks_of_explain
    rows = self.class.page("zjit")[/^## Fallbacks.*/m].scan(/^\| (`.*?`) \|/).flatten
    table = rows.flat_map { |names| names.scan(/(`+) ?(.+?) ?\1/).map(&:last) }
    assert_equal explained[:fallbacks].sort, table.sort
  end

  def test_yjit_page_has_all_counters_of_exits
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    made = exits_of("ruby-4.1")
    assert_operator made.size, :>, 60
    assert_empty made - self.class.reasons("yjit")
  end

  def test_yjit_page_has_only_counters
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    newer, older = self.class.page("yjit").split(/^## Names of base `ruby-3.3`$/).map do |part|
      part.scan(/^### .*/).flat_map { |heading| self.class.named(heading) }
    end
    assert_operator newer.size, :>, 60
    assert_empty newer - counters("ruby-4.1") - NOT_COUNTERS - [FULL]
    skip "base ruby-3.3 has no source here" unless File.directory?(File.join(TOP, "build/ruby-3.3/src"))
    assert_empty older - counters("ruby-3.3")
    assert_empty exits_of("ruby-3.3") - self.class.reasons("yjit")
  end

  # The page lists what 4.0 has, in the names of `vm-trace explain`.
  def test_zjit_page_lists_the_reasons_of_ruby_4_0
    source = File.join(TOP, "build/ruby-4.0/src/zjit/src/hir.rs")
    skip "base ruby-4.0 has no source here" unless File.exist?(source)
    text = File.read(source)
    variants = ->(enum) { text[/^pub enum #{enum} \{\n(.*?)^\}/m, 1].scan(/^    (\w+)/).flatten }
    in_source = variants["SideExitReason"] - ["PatchPoint"] + variants["Invariant"] + %w[CompileError ExceptionHandler]
    part = self.class.page("zjit")[/^#{OLDER}.*?(?=^## Fallbacks)/m]
    listed = part[/it has:$(.*?)^Some have/m, 1].scan(/`(\w+)(?:\((\w+))?/).map { |name, inner| name == "PatchPoint" ? inner : name }
    listed -= ["exit_compile_error"]
    own = part.scan(/^### .*/).flat_map { |heading| self.class.named(heading) }.map { |name| name[/\w+/] }
    assert_equal in_source.sort, (listed + own).uniq.sort
  end

  private

  def ruby(base) = File.join(TOP, "build", base, "ruby")

  def explained
    out, status = Open3.capture2(TOOL, "explain")
    assert_predicate status, :success?
    exits, fallbacks = out.split("\n\n").first(2).map do |part|
      part.lines.drop(1).map { |line| line.split(/ {2,}/).first }
    end
    { exits: exits, fallbacks: fallbacks }
  end

  # Reasons of the exits that a program takes.
  def recorded(ruby, jit, flag, program)
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "example.rb"), program)
      command = [ruby, "--disable=gems", "-W0", flag, "--#{jit}-trace-file=trace.fxt", "example.rb"]
      out, status = Open3.capture2e({ "RUBYOPT" => nil }, *command, chdir: dir)
      assert_predicate status, :success?, out
      report = [TOOL, "report", "--top=1000", "--format=csv", "--table=exits_by_reason"]
      table, = Open3.capture2(*report, File.join(dir, "trace.fxt"))
      CSV.parse(table, headers: true).map { |row| row["reason"] }
    end
  end

  # Functions that take a counter and make no exit.
  ONLY_COUNT = /counter_incr|incr_counter|exit_if|counter_ptr|\Aget\z|invalidation|shared_exit/

  def yjit(base, file) = File.read(File.join(TOP, "build", base, "src/yjit/src", file))
  def counters(base) = yjit(base, "stats.rs")[/^make_counters! \{(.*?)^\}/m, 1].scan(/^    (\w+),/).flatten

  # Counters that the code generator passes to what makes an exit, and not to what only counts.
  def exits_of(base)
    %w[codegen.rs core.rs].flat_map do |file|
      source = yjit(base, file)
      source.to_enum(:scan, /Counter::([a-z_0-9]+)/).filter_map do
        name = $1
        name unless called(source, $~.begin(0)).match?(ONLY_COUNT)
      end
    end.uniq
  end

  # The function whose argument stands at an offset.
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
