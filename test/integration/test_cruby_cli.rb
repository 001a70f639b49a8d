# CRuby's own test of ZJIT's flags passes on the patched tree.
require_relative "helper"
Integration.only "zjit"

class TestCrubyCli < Integration::Test
  def test_test_zjit_cli_passes
    skip "no build folder of CRuby at #{Integration::RUBY_OBJ}" unless File.exist?(File.join(Integration::RUBY_OBJ, "Makefile"))
    dir = scratch_dir
    result = run_in(dir, "-C", Integration::RUBY_OBJ, "test-all", "TESTS=ruby/test_zjit_cli.rb", "HAVE_GIT=no", "RUBYOPT=",
                    command: ["make"], time_limit: 600)
    assert_match(/^Finished.*\n(.*\n)*?.*, 0 failures, 0 errors/, result.out, result.err.lines.last(20).join)
    assert_match(/^\d\d+ tests, /, result.out)
    assert_predicate result.status, :success?, result.out.lines.last(30).join
  end
end
