# CRuby's own test of ZJIT's flags passes on the patched tree (4.0 has it among all tests of ZJIT), and
# `make check-cruby` runs others.
#
# Level: all. It runs CRuby's own tests.
require_relative "cruby_build"
Integration.only "zjit"

class TestCrubyCli < Integration::Test
  include CRubyBuild

  FILE = %w[test_zjit_cli.rb test_zjit.rb].find { |file| File.exist?(File.join(Integration::RUBY_SRC, "test/ruby", file)) }

  def test_test_zjit_cli_passes
    result = make("test-all", "TESTS=ruby/#{FILE}", "RUBYOPT=")
    assert_match(/^Finished.*\n(.*\n)*?.*, 0 failures, 0 errors/, result.out, result.err.lines.last(20).join)
    assert_match(/^\d\d+ tests, /, result.out)
    assert_predicate result.status, :success?, result.out.lines.last(30).join
  end

  def test_check_cruby_runs_the_tests_that_are_asked_for
    result = run_in(scratch_dir, "-C", ROOT, "--no-print-directory", "check-cruby", "BASE=#{BASE}", "CRUBY=--only test_defined --thresholds 30 --rates 7",
                    env: { "MAKEFLAGS" => nil, "MFLAGS" => nil, "MAKELEVEL" => nil }, command: ["make"],
                    time_limit: CRubyBuild::TIME_LIMIT)
    assert_match(/^ruby\/test_defined\.rb .*--zjit-call-threshold=30 --zjit-trace-exits-sample-rate=7 +[1-9]\d* tests, +0 failed/, result.out, result.err)
    assert_match(/^\d+ tests of CRuby, [1-9]\d* traces checked, 0 failures$/, result.out)
    assert_predicate result.status, :success?
  end
end
