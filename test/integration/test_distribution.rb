# Programs from the distribution's packages: with every exit recorded they print the same as
# untraced, and their traces are valid. They are for the released Ruby: the development branch lacks
# gems that they need.
require_relative "helper"
Integration.only "yjit", "ruby-3.3"

class TestDistribution < Integration::Test
  GEMS = "/usr/share/rubygems-integration/all/gems"
  VENDOR = "/usr/lib/ruby/vendor_ruby"
  ROOT = Integration::ROOT

  def test_options_templates_and_json_of_the_library = assert_same_answers("test/integration/programs/stdlib.rb")
  def test_rack = assert_same_answers("test/integration/programs/rack.rb", libraries: %w[rack])
  def test_minitest = assert_same_answers("test/integration/programs/minitest.rb", libraries: %w[minitest])

  def test_sinatra_on_webrick_under_load
    libraries = %w[sinatra rack rack-protection mustermann tilt ruby2_keywords webrick]
    assert_same_answers("examples/web_app.rb", "300", libraries: libraries, exits: 1000)
  end

  private

  # Only times may differ.
  def answers(text) = text.gsub(/\d+\.\d+(?=s,| s =|\/s)|\d+\.\d+ (runs|assertions)\/s/, "...")

  def assert_same_answers(program, *args, libraries: [], exits: 100)
    paths = libraries.flat_map { |name| ["-I", library(name)] }
    command = [Integration::RUBY, "--disable=gems", "-W0", "--yjit", "--yjit-call-threshold=2", *paths]
    program = File.join(ROOT, program)
    untraced = run_in(scratch_dir, program, *args, command: command)
    assert_predicate untraced.status, :exited?, untraced.err
    refute_empty untraced.out, untraced.err

    [1, 13].each do |rate|
      flags = ["--yjit-trace-side-exits", "--yjit-trace-side-exits-sample-rate=#{rate}", "--yjit-trace-compiles", "--yjit-trace-invalidation"]
      dir = scratch_dir
      traced = run_in(dir, program, *args, command: [*command, *flags, "--yjit-trace-file=#{dir}/%p.fxt"])
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
    Dir["#{GEMS}/#{name}-[0-9]*/lib"].max || (VENDOR if File.exist?("#{VENDOR}/#{name}.rb")) or
      skip "the distribution's package ruby-#{name.tr("_", "-")} is not installed"
  end
end
