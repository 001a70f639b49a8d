# The example for CI, examples/ci/: its commands are run as the workflow has them.
require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"
require "yaml"

class TestCiExample < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  STEPS = YAML.safe_load(File.read(File.join(TOP, "examples/ci/workflow.yml")))["jobs"]["compare"]["steps"]

  def command(name) = STEPS.find { |step| step["name"] == name }.fetch("run")

  def run_step(dir, command, env = {})
    path = "#{dir}/bin:#{TOP}/build/#{ENV.fetch("BASE", "ruby-4.0")}:#{TOP}/build/tool:#{ENV["PATH"]}"
    environment = { "PATH" => path, "RUBYOPT" => nil, "RUBY_VM_TRACE" => nil }.merge(env)
    Open3.capture2e(environment, "sh", "-ec", command, chdir: dir)
  end

  def test_a_baseline_is_made_then_compared_with_and_growth_fails
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    Dir.mktmpdir do |dir|
      FileUtils.cp_r(File.join(TOP, "examples"), dir)
      out, status = run_step(dir, command("compare"))
      assert_predicate status, :success?, out
      assert_equal %w[run-1.fxt.gz run-2.fxt.gz run-3.fxt.gz], Dir.children("#{dir}/baseline").sort

      out, status = run_step(dir, command("compare"), "LIMITS" => "--fail-over=exits:5")
      assert_predicate status, :success?, out
      assert_match(/all limits are met/, File.read("#{dir}/build/vm-trace/comment.md"))

      # The program exits three times as often.
      demo = File.read("#{dir}/examples/demo.rb")
      File.write("#{dir}/examples/demo.rb", "#{demo}\n2.times { load #{File.join(TOP, "examples/demo.rb").inspect} }\n")
      out, status = run_step(dir, command("compare"))
      assert_equal 1, status.exitstatus, out
      assert_match(/exits grew by/, out)
      assert_match(/limits are exceeded/, File.read("#{dir}/build/vm-trace/comment.md"))
      assert_match(/<failure message="vm-trace: diff: exits grew by/, File.read("#{dir}/build/vm-trace/junit.xml"))

      # The comment is what the next step sends.
      FileUtils.mkdir("#{dir}/bin")
      File.write("#{dir}/bin/gh", "#!/bin/sh\necho \"$*\" > sent\n")
      File.chmod(0o755, "#{dir}/bin/gh")
      out, status = run_step(dir, command("comment"), "NUMBER" => "7")
      assert_predicate status, :success?, out
      assert_equal "pr comment 7 --body-file build/vm-trace/comment.md\n", File.read("#{dir}/sent")
    end
  end
end
