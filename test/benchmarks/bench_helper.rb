# For the tests of benchmarks/: rubies that are scripts around the system's ruby, and a way to run
# the command. They need no CRuby, and no test asserts a time, only what is computed from it.

require "fileutils"
require "json"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../waiting"

ROOT = File.expand_path("../..", __dir__)
$LOAD_PATH.unshift("#{ROOT}/benchmarks/lib")
ENV["RUBYOPT"] = "--disable=gems" # of the hundreds of rubies that the commands start: half of their time

class BenchTest < Minitest::Test
  include Waiting

  COMPARE = "#{ROOT}/benchmarks/compare"

  attr_reader :dir

  def setup
    @dir = Dir.mktmpdir("vm-trace-bench-test-")
  end

  def teardown
    FileUtils.rm_rf(dir)
  end

  def path(name)
    File.join(dir, name)
  end

  def write(name, text)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path(name), text)
    path(name)
  end

  # A "ruby" with a given speed: our workload reports SPEED times its time.
  def ruby(name, speed: 1, before: "")
    write(name, <<~SH)
      #!/bin/sh
      #{before}
      SPEED=#{speed} exec #{RbConfig.ruby} --disable=gems "$@"
    SH
    FileUtils.chmod(0o755, path(name))
    path(name)
  end

  # A workload that reports a made-up time: SPEED times 10 ms, plus noise that differs in each
  # process. The noise is the same whenever the test runs: with new noise a test would sometimes
  # fail, as often as the confidence allows. `cpu` is code for the processor time, if it reports one.
  def made_up(name, noise: 0.002, body: "", cpu: nil)
    write(name, <<~RUBY)
      #{body}
      random = Random.new(File.open("#{path("processes")}", "a") { |file| file.write("."); file.flush; file.size })
      File.open(ENV.fetch("VM_TRACE_BENCH"), "a") do |file|
        5.times do
          time = 0.01 * ENV.fetch("SPEED").to_f * (1 + #{noise} * (random.rand - 0.5))
          file.puts "iteration \#{time} #{cpu && "\#{#{cpu}}"}"
        end
      end
    RUBY
  end

  def compare(*arguments, env: {})
    env = { "VM_TRACE_BENCH_SAVED" => path("saved"), **env }
    command = [RbConfig.ruby, "--disable=gems", "-w", COMPARE]
    out, err, status = Open3.capture3(env, *command, *arguments, chdir: dir, stdin_data: "")
    [out, err, status.exitstatus]
  end

  # `status` may be a list of those that are right, as where real time decides whether it is noisy.
  def assert_compare(status, *arguments, **options)
    out, err, found = compare(*arguments, **options)
    assert_includes [*status], found, out + err
    [out, err]
  end

  # The line of the table about one workload.
  def row(out, name)
    out.lines.find { |line| line.start_with?("#{name} ") } or flunk "no row #{name} in:\n#{out}"
  end
end
