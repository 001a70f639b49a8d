# Programs from the distribution's packages: with every exit recorded they print the same as
# untraced, and their traces are valid.
#
# Once: it runs large programs, untraced and traced.
require_relative "helper"
require_relative "../../benchmarks/packages"

class TestDistribution < Integration::Test
  Packages = VMTraceBench::Packages
  ROOT = Integration::ROOT

  def test_options_templates_and_json_of_the_library = assert_same_answers("test/integration/programs/stdlib.rb")
  def test_rack = assert_same_answers("test/integration/programs/rack.rb", libraries: %w[rack])
  def test_kramdown_and_rouge = assert_same_answers("test/integration/programs/markdown.rb", libraries: %w[kramdown rexml rouge])
  def test_liquid = assert_same_answers("test/integration/programs/liquid.rb", libraries: %w[liquid])
  def test_minitest = assert_same_answers("test/integration/programs/minitest.rb", libraries: %w[minitest], exits: 20)

  def test_sinatra_on_webrick_under_load
    libraries = %w[sinatra rack rack-protection mustermann tilt ruby2_keywords webrick]
    assert_same_answers("examples/web_app.rb", "300", libraries: libraries, exits: 1000)
  end

  private

  # Only times may differ.
  def answers(text) = text.gsub(/\d+\.\d+(?=s,| s =|\/s)|\d+\.\d+ (runs|assertions)\/s/, "...")

  def assert_same_answers(program, *args, libraries: [], exits: 100)
    paths = [moved, *libraries.map { |name| library(name) }].compact.flat_map { |folder| ["-I", folder] }
    command = [Integration::RUBY, "--disable=gems", "-W0", *jit("--zjit --zjit-call-threshold=2").split, *paths]
    program = File.join(ROOT, program)
    untraced = run_in(scratch_dir, program, *args, command: command)
    assert_predicate untraced.status, :exited?, untraced.err
    # A package may be too old for this Ruby.
    fault = untraced.err[/cannot load such file -- \S+|FrozenError - can't modify frozen \w+/]
    skip "the distribution's #{libraries.join(", ")} cannot run in #{BASE}: #{fault}" if fault
    refute_empty untraced.out, untraced.err

    [1, 13].each do |rate|
      flags = ["--zjit-trace-exits", "--zjit-trace-exits-sample-rate=#{rate}", "--zjit-trace-compiles", "--zjit-trace-invalidation"]
      dir = scratch_dir
      traced = run_in(dir, program, *args, command: [*command, *[*flags, "--zjit-trace-file=#{dir}/%p.fxt"].map { |flag| jit(flag) }])
      assert_equal answers(untraced.out), answers(traced.out)
      assert_equal untraced.status.exitstatus, traced.status.exitstatus
      assert_equal untraced.err, traced.own_err
      validate_all(traced)
      assert_equal 1, traced.traces.size
      assert_operator traced.trace.summary["exits"], :>, exits
      assert_equal 0, traced.trace.summary["lost"]
    end
  end

  def library(name)
    Packages.folder(name) || (Packages::VENDOR unless Packages.files(name, Packages::VENDOR).empty?) or
      skip "the distribution's package #{Packages.debian(name)} is not installed"
  end

  # A folder with what newer Rubies have as gems and this one lacks; not the distribution's folder, which
  # would hide this Ruby's own library.
  def moved
    files = Packages.moved("#{RUBY_SRC}/lib", RbConfig::CONFIG["rubylibdir"])
    Packages.link(files, scratch_dir) unless files.empty?
  end
end
