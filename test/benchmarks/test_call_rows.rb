# The group `calls` of benchmarks/targets: verdicts from made-up figures.

require_relative "bench_helper"

class TestCallRows < BenchTest
  MET = { call: 20, peer: 200, memory: 21, off: 3, bytes: 24.06, repeated: 0,
          slowdown_5: 1.12, rate_5: 5, slowdown_20: 1.45, rate_20: 20 }.freeze
  FRAMELESS = { constant: 25, leaf: 20, call: 20 }.freeze # what recording adds
  TRACE_BYTES = { "calls" => 40_960, "calls:min=1us" => 4_096 }.freeze

  def lines(figures) = figures.map { |key, value| "#{key} #{value}\\n" }.join

  # Reports these figures for rows/calls.rb and rows/frames.rb. The emulator leaves traces of given sizes.
  def ruby_with(figures, traces = TRACE_BYTES, frameless: FRAMELESS)
    script = <<~SH
      #!/bin/sh
      case "$*" in
      *rows/calls.rb*) printf '%b' '#{lines(figures)}' >> "$VM_TRACE_BENCH"; exit ;;
      *--vm-trace=calls*rows/frames.rb*)
          printf '%b' '#{lines(frameless.transform_values { |ns| ns + 3 })}' >> "$VM_TRACE_BENCH"; exit ;;
      *rows/frames.rb*) printf '%b' '#{lines(frameless.transform_values { 3 })}' >> "$VM_TRACE_BENCH"; exit ;;
      *emulator.rb*)
          for word; do case $word in
              --vm-trace=calls) bytes=#{traces["calls"]} ;;
              --vm-trace=calls:min=1us) bytes=#{traces["calls:min=1us"]} ;;
              --vm-trace-file=*) file=${word#*=} ;;
          esac; done
          head -c $bytes /dev/zero > "$file"; exit ;;
      esac
      while [ "${1#--}" != "$1" ]; do shift; done
      exec #{RbConfig.ruby} "$@"
    SH
    executable("ours", script)
  end

  def executable(name, text)
    write(name, text).tap { |file| FileUtils.chmod(0o755, file) }
  end

  # A clock read takes 8 ns. `profiler` is the ruby-prof that is found.
  def rows(ours, profiler: "raise LoadError, 'cannot load such file -- ruby-prof'")
    recording = executable("recording", "#!/bin/sh\n[ $1 = --clock ] && echo 8000\n")
    write("lib/ruby-prof.rb", profiler)
    out, status = Open3.capture2e({ "RUBYLIB" => path("lib") }, RbConfig.ruby, "-w", "#{ROOT}/benchmarks/targets",
                                  "--quick", "--only", "calls", "--ours", ours, "--base", ours, "--folder", dir,
                                  "--recording", recording, stdin_data: "")
    assert_equal 0, status.exitstatus, out
    out
  end

  def verdicts(out)
    out.scan(/^(\S.*?)  .* (yes|NO)$/).to_h
  end

  JITS = ["ZJIT: one call and its return", "YJIT: one call and its return"].freeze
  MISSED_BY = {
    { call: 20.1, peer: 201 } => JITS,
    { call: 24.1, peer: 250 } => [*JITS, "interpreter: one call and its return"],
    { peer: 199 } => JITS,
    { bytes: 25 } => ["bytes a call"],
    { slowdown_5: 1.121 } => ["5 million calls a second, traced / untraced"],
    { slowdown_20: 1.451 } => ["20 million calls a second, traced / untraced"]
  }.freeze

  def test_each_target_is_met_by_what_just_reaches_it_and_missed_by_more
    met = verdicts(rows(ruby_with(MET)))
    assert_equal ["yes"] * 9, met.values, met.inspect
    MISSED_BY.each do |figures, names|
      missed = verdicts(rows(ruby_with(MET.merge(figures)))).select { |_, verdict| verdict == "NO" }
      assert_equal names, missed.keys, figures.inspect
    end
  end

  def test_the_trace_without_short_calls_is_compared_in_bytes_and_deleted
    out = rows(ruby_with(MET, TRACE_BYTES.merge("calls:min=1us" => 4_097)))
    assert_match(/^calls:min=1us \/ calls, bytes, emulator .* NO$/, out)
    assert_empty Dir["#{dir}/*.fxt"]
  end

  def test_calls_that_need_no_frame_are_compared_with_ordinary_ones
    slow = verdicts(rows(ruby_with(MET, frameless: FRAMELESS.merge(leaf: 25.1)))).select { |_, verdict| verdict == "NO" }
    assert_equal %w[ZJIT YJIT].map { |jit| "#{jit}: a call that needs no frame, from the beginning" }, slow.keys
  end

  def test_traces_that_lost_calls_and_were_repeated_are_in_the_note
    refute_match(/repeated/, rows(ruby_with(MET)))
    assert_equal 3, rows(ruby_with(MET.merge(repeated: 2))).scan("; repeated because of losses: 2").size
  end

  def test_a_missing_ruby_prof_is_said_and_gets_no_verdict
    missing = /no ruby-prof for Ruby #{RUBY_VERSION}: .*cannot load such file/
    assert_match(/^ZJIT: one call, beside ruby-prof +20\.0 ns .*ratio >= 50\n +#{missing}/, rows(ruby_with(MET)))
  end

  def test_ruby_prof_is_the_peer_where_it_is_installed
    profiler = "module RubyProf; class Profile; def start = Thread.current[:ruby_prof] = true; def stop = 0; end; end"
    assert_match(/^ZJIT: one call, beside ruby-prof .* ratio >= 50 +NO\n +the peer is ruby-prof, on Ruby #{RUBY_VERSION}$/,
                 rows(ruby_with(MET), profiler: profiler))
  end
end
