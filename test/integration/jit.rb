# The JIT that the tests drive: the environment's JIT, or the first that the file of the base names.
#
# Tests are written once, in terms of ZJIT: its flags, the exit that a directive induces, its
# reasons. For another JIT `Integration.jit` translates. The helper translates flags and scripts,
# Trace the reasons in its arguments, and a test what it expects on stderr. Features of one JIT are
# tested in a file with `Integration.only "zjit"`, or by `zjit_only def test_...`.
module Integration
  ROOT = File.expand_path("../..", __dir__)
  BASE = ENV["BASE"] || "ruby-4.0"
  JIT = ENV["JIT"] || File.read(File.join(ROOT, "bases", BASE))[/^jits="?(\w+)/, 1]

  # What ZJIT does on some bases only: exits that cause a recompilation, with --zjit-max-versions;
  # methods inlined with a frame of their own, with --zjit-inline-threshold; directives for tests; the
  # size of all exits in its statistics.
  FEATURES = JIT == "zjit" && BASE != "ruby-4.0" ? %i[recompile_exits inlining directives exit_size].freeze : [].freeze
  def self.can?(feature) = FEATURES.include?(feature)
  NO_INLINING = can?(:inlining) ? %w[--zjit-inline-threshold=0].freeze : [].freeze

  # An addition of constants that overflows exits each time, like ZJIT's directive.
  YJIT_TERMS = {
    "::RubyVM::ZJIT.induce_side_exit!" => "(4611686018427387903 + 1)",
    "DirectiveInduced" => "opt_plus_overflow",
    "FixnumAddOverflow" => "opt_plus_overflow",
    "FixnumSubOverflow" => "opt_minus_overflow",
    "exit_directive_induced" => "opt_plus_overflow",
    "exit_fixnum_add_overflow" => "opt_plus_overflow",
    "exit_fixnum_sub_overflow" => "opt_minus_overflow",
    "--zjit-trace-exits" => "--yjit-trace-side-exits",
    "--zjit-stats-quiet" => "--yjit-stats=quiet",
    "RubyVM::ZJIT.stats" => "RubyVM::YJIT.runtime_stats",
    "zjit" => "yjit",
    "ZJIT" => "YJIT",
  }.freeze
  # Without directives: an expression that ZJIT has no code for exits each time, and a method with an
  # array of so many elements is not compiled.
  ZJIT_TERMS = can?(:directives) ? {}.freeze : {
    "::RubyVM::ZJIT.induce_side_exit!" => "(case 0 when *[] then 0 end)",
    "::RubyVM::ZJIT.induce_compile_failure!" => "[#{(["self"] * 128).join(",")}]",
    "ParseError(DirectiveInduced)" => "IseqStackTooLarge",
    "DirectiveInduced" => "UnhandledYARVInsn(checkmatch)",
    "exit_directive_induced" => "exit_unhandled_yarv_insn",
    "exit_exception_handler" => "compile_error_exception_handler",
  }.freeze
  TERMS = { "zjit" => ZJIT_TERMS, "yjit" => YJIT_TERMS }.fetch(JIT)

  # What each script begins with, so that it can be written for the newest Ruby.
  COMPATIBILITY = (BASE < "ruby-4.0" ? ["-r", File.join(__dir__, "before_4.rb")] : []).freeze

  # A label as this Ruby's own backtraces show it: before 3.4 without owner.
  OWNERS_IN_BACKTRACES = BASE >= "ruby-3.4"
  def self.backtrace_label(label) = OWNERS_IN_BACKTRACES ? label : label.sub(/\A(block .*?in )?[[:upper:]][[:word:]:]*[#.](?=\S)/, '\1')

  # How this Ruby's own errors quote: before 3.4 with a backtick.
  def self.quoted(text) = OWNERS_IN_BACKTRACES ? "'#{text}'" : "`#{text}'"

  def self.jit(text)
    return text if TERMS.empty?
    text.gsub(Regexp.union(TERMS.keys.sort_by { |term| -term.size }), TERMS)
  end

  NOT_APPLICABLE = 4 # the exit status that scripts/run-tests.rb knows

  # For a file that is about one JIT, one base, or a feature.
  def self.only(*wanted)
    return if (wanted - [JIT, BASE, *FEATURES]).empty?
    warn "these tests are for #{wanted.join(", ")}"
    exit NOT_APPLICABLE
  end

  # For a file about what one base or JIT does not have.
  def self.except(*unwanted, reason)
    this = [JIT, BASE].intersection(unwanted).first or return
    warn "these tests are not for #{this}: #{reason}"
    exit NOT_APPLICABLE
  end

  def jit(text) = Integration.jit(text)
end
