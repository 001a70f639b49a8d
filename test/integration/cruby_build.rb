# make in the folder of CRuby's build, for CRuby's own tests.
require_relative "helper"

module CRubyBuild
  # Of all tests of a suite, on a busy machine.
  TIME_LIMIT = 4 * Integration::TIME_LIMIT

  # Two makes in one folder would get into each other's way: the later one waits. CRuby's tests give their programs ten
  # seconds or so, which is too short on a busy machine.
  def make(*arguments)
    makefile = File.join(Integration::RUBY_OBJ, "Makefile")
    skip "no build folder of CRuby at #{Integration::RUBY_OBJ}" unless File.exist?(makefile)
    File.open(File.join(Integration::BUILD, "tests.lock"), "w") do |lock|
      lock.flock(File::LOCK_EX)
      run_in(scratch_dir, "-C", Integration::RUBY_OBJ, "HAVE_GIT=no", *arguments, command: ["make"],
             env: { "RUBY_TEST_TIMEOUT_SCALE" => "10" }, time_limit: TIME_LIMIT)
    end
  end
end
