# The group `rails` of benchmarks/targets: verdicts from made-up figures, and what each run gets.

require_relative "bench_helper"

class TestRailsRows < BenchTest
  MET = { default: { boot: 1.05, first_requests: 1.05, warm_requests: 1.02 },
          profile: { boot: 2, first_requests: 2, warm_requests: 1.10 },
          every: { boot: 2, first_requests: 2, warm_requests: 1.15 } }.freeze

  def lines(figures) = figures.map { |key, value| "#{key} #{value}\\n" }.join

  # Reports these figures for rows/rails.rb; untraced each phase takes a second.
  def ruby_with(figures)
    executable("ours", <<~SH)
      #!/bin/sh
      case "$*" in
      schema.rb) echo > notes.sqlite3; exit ;;
      *rows/rails.rb*)
          [ -f "${BUNDLE_GEMFILE%/*}/notes.sqlite3" ] && [ "$BUNDLE_PATH" = "#{path("gems")}" ] || exit 1
          for word; do case $word in
              --vm-trace-file=*) head -c 3000 /dev/zero > "${word#*=}" ;;
          esac; done
          case "$*" in
          *--vm-trace=default*) printf '%b' '#{lines(figures[:default])}' ;;
          *--vm-trace=profile*) printf '%b' '#{lines(figures[:profile])}' ;;
          *--vm-trace=exits:rate=1\\ *) printf '%b' '#{lines(figures[:every])}' ;;
          *) printf '%b' '#{lines(boot: 1, first_requests: 1, warm_requests: 1)}' ;;
          esac >> "$VM_TRACE_BENCH"; exit ;;
      esac
      while [ "${1#--}" != "$1" ]; do shift; done
      exec #{RbConfig.ruby} "$@"
    SH
  end

  def executable(name, text) = write(name, text).tap { |file| FileUtils.chmod(0o755, file) }

  def rows(figures, *options)
    ours = ruby_with(figures)
    tool = executable("tool", %(#!/bin/sh\necho '{"processes":{"rows":[{"recorded":20}]}}'\n))
    Open3.capture2e({ "VM_TRACE" => tool }, RbConfig.ruby, "-w", "#{ROOT}/benchmarks/targets", "--quick", "--only", "rails",
                    "--ours", ours, "--base", ours, "--folder", dir, *options, stdin_data: "")
  end

  def verdicts(figures)
    out, status = rows(figures, "--gems", path("gems"))
    assert_equal 0, status.exitstatus, out
    out.scan(/^(Rails\S* \S+: .*?)  .* (yes|NO)$/).to_h
  end

  def test_each_target_is_met_by_what_just_reaches_it_and_missed_by_more
    met = verdicts(MET)
    assert_equal ["yes"] * 10, met.values, met.inspect
    [[:default, :boot, "default / untraced, start"], [:default, :warm_requests, "default / untraced, 2000 further requests"],
     [:profile, :warm_requests, "profile / untraced, 2000 further requests"],
     [:every, :warm_requests, "K=1 / untraced, 2000 further requests"]].each do |stream, phase, name|
      more = MET.merge(stream => MET[stream].merge(phase => MET[stream][phase] + 0.001))
      missed = verdicts(more).select { |_, verdict| verdict == "NO" }
      assert_equal ["Rails, ZJIT: #{name}", "Rails, YJIT: #{name}"], missed.keys
    end
  end

  def test_bytes_of_an_exit_are_those_of_the_trace_which_is_deleted
    out, = rows(MET, "--gems", path("gems"))
    assert_match(/^Rails, ZJIT: bytes an exit, K=1 +150 bytes /, out)
    assert_empty Dir["#{dir}/**/*.fxt"]
  end

  def test_without_gems_it_says_what_to_give
    out, status = rows(MET)
    assert_equal 3, status.exitstatus, out
    assert_match(/^rails .*\n +failed: --gems FOLDER is needed/, out)
  end
end
