# Real input: CRuby's own benchmark programs print the same traced as untraced, and leave a valid
# trace.
#
# Once for each JIT: each program runs for seconds.
require_relative "helper"
require "etc"

class TestBenchmarks < Integration::Test
  parallelize_me! # each test waits for a process of its own

  # Programs that take more processor time than this untraced are skipped, and named.
  UNTRACED_CPU_SECONDS = 45
  # Longer than any slow run on a busy machine: the program hangs.
  TRACED_LIMIT = 4 * Integration::TIME_LIMIT

  FLAGS = %w[--zjit-call-threshold=2].freeze
  # Some would write gigabytes, and keep the disk busy for the tests that follow.
  TRACED = %w[--zjit-trace-exits --zjit-trace-file=t.fxt --zjit-trace-max-size=512].freeze
  LOST = Regexp.union("the disk was too slow, and the program did not wait for it",
                      "older events gave way at the limit of the file's size")
  PROGRAMS = Dir[File.join(Integration::RUBY_SRC, "benchmark", "{app,so}_*.rb")].sort.freeze
  # They take as long as all others.
  SLOW = %w[app_aobench app_lc_fizzbuzz app_mandelbrot app_pentomino
            so_ackermann so_binary_trees so_spectralnorm].freeze

  def test_there_are_programs_to_run
    assert_operator PROGRAMS.size, :>=, 30, "no benchmark folder in #{Integration::RUBY_SRC}"
  end

  PROGRAMS.each do |program|
    name = File.basename(program, ".rb")
    next if SLOW.include?(name) && !Integration::LONG
    define_method("test_#{name}_prints_the_same_traced") do
      dir = scratch_dir(mib: 512 * ENV.fetch("N", Etc.nprocessors).to_i)
      untraced = run_untraced(dir, *FLAGS, program)
      skip "left out: takes more than #{UNTRACED_CPU_SECONDS} s of processor time untraced" unless untraced
      skip "left out: it fails untraced: #{untraced.err.lines.first}" unless untraced.status.success?
      traced = run_in(dir, *FLAGS, *TRACED, program, time_limit: TRACED_LIMIT)
      assert_predicate traced.status, :success?, traced.err
      assert traced.out == untraced.out, "its output differs traced"
      assert_equal untraced.err, traced.own_err
      lost = /nothing lost|\d+ events lost \(#{LOST}(; #{LOST})?\)/
      assert_match(/#{jit("ZJIT")}: wrote \d+ of \d+ exits, \d+ events to \S+, (#{lost})\n\z/, traced.err)
      validate_all(traced)
    end
  end

  # nil: it took too long and was stopped.
  def run_untraced(dir, *arguments)
    ruby = [Integration::RUBY, "--disable=gems", *Integration::COMPATIBILITY]
    result = run_in(dir, *arguments, command: [*cpu_limit(UNTRACED_CPU_SECONDS), *ruby])
    result unless out_of_cpu?(result.status)
  rescue Integration::StillRunning
    nil
  end
end
