# benchmarks/targets: rows and verdicts. The rubies write traces of a known size, which must be
# deleted afterwards.

require_relative "bench_helper"

class TestTargets < BenchTest
  TARGETS = "#{ROOT}/benchmarks/targets"

  # Takes ZJIT's flags. An event has BYTES bytes in its traces; the last argument is the number of
  # exits of each of 7 iterations.
  def tracing_ruby(name, bytes)
    write(name, <<~SH)
      #!/bin/sh
      trace= n=$#
      while [ $n -gt 0 ]; do
          case $1 in
          --zjit-trace-file=*) trace=$(echo "${1#*=}" | sed "s/%p/$$/") ;;
          --zjit-trace-exits) trace=${trace:-/tmp/perfetto-$$.fxt} ;;
          --zjit*) ;;
          *) set -- "$@" "$1"; last=$1 ;;
          esac
          shift
          n=$((n - 1))
      done
      if [ -n "$trace" ]; then
          [ -z "#{'$REFUSE'}" ] || exit 5
          echo "$trace" >> #{path('traces')}
          head -c $((1000 + last * 7 * #{bytes})) /dev/zero > "$trace"
      fi
      exec #{RbConfig.ruby} "$@"
    SH
    FileUtils.chmod(0o755, path(name))
    path(name)
  end

  def targets(*arguments, env: {})
    out, status = Open3.capture2e(env, RbConfig.ruby, "-w", TARGETS, *arguments, stdin_data: "")
    [out, status.exitstatus]
  end

  def measure(only, **options)
    targets("--ours", tracing_ruby("ours", 96), "--base", tracing_ruby("base", 80), "--quick", "--only", only, "--folder", dir, "--out", path("out"), **options)
  end

  def test_bytes_an_event_are_those_that_more_exits_add
    out, status = measure("size")
    assert_equal 0, status, out
    assert_match(/^bytes an event, 8 frames +96 bytes +80 bytes +0\.833 .* <= 112 bytes +yes$/, out)
    row = JSON.parse(File.read(path("out/targets.json")))["rows"][0]
    assert_equal [96.0, 80.0, true], row.values_at("ours", "base", "met")
  end

  def test_traces_are_deleted_where_either_writes_them
    measure("size")
    traces = File.readlines(path("traces"), chomp: true)
    assert_equal 4, traces.size
    assert_equal 2, traces.count { |trace| trace.start_with?("/tmp/perfetto-") }
    assert_empty traces.select { |trace| File.exist?(trace) }
  end

  def test_a_missed_target_is_said_and_is_no_error
    out, status = targets("--ours", tracing_ruby("ours", 150), "--base", tracing_ruby("base", 80), "--only", "size", "--folder", dir)
    assert_equal 0, status, out
    assert_match(/^bytes an event, 8 frames +150 bytes .* NO$/, out)
  end

  def test_what_cannot_be_measured_is_named_with_status_3
    out, status = measure("size,memory", env: { "REFUSE" => "yes" })
    assert_equal 3, status, out
    assert_match(/^size .*\n +failed: .*status 5/, out)
    assert_match(/^memory .*\n +failed: .*status 5/, out)
  end

  # Measures a group with a program `recording` that is this shell script.
  def targets_of_recording(ruby, group, script)
    write("recording", "#!/bin/sh\n#{script}\n")
    FileUtils.chmod(0o755, path("recording"))
    targets("--ours", ruby, "--base", ruby, "--quick", "--only", group, "--folder", dir, "--recording", path("recording"))
  end

  def test_the_pause_of_a_save_is_judged_by_places
    ruby = tracing_ruby("ours", 96)
    out, status = targets_of_recording(ruby, "saving", "[ $1 = --pause ] || [ $1 = --cut ] && echo ${2}20 && [ ! -e $3 ]")
    assert_equal 0, status, out
    assert_match(/^pause of a save at 16 MiB, 100 places +10\.0 us .* yes$/, out)
    assert_match(/^pause of a save at 16 MiB, 10000 places +1000 us .* NO$/, out)
    assert_match(/^the same for a piece of a spool, K=97 +10\.0 us .*\n +10\.0 .. 10\.0 us; a save 10\.0 us$/, out)
    assert_match(/--recording PROGRAM is needed/, targets("--ours", ruby, "--base", ruby, "--only", "saving").first)
  end

  def test_the_store_is_judged_by_the_processor_time_of_all_threads
    says = "[ $1 = --store ] && printf 'write 20000 4000\\nstore 25000 2000\\n'"
    out, status = targets_of_recording(tracing_ruby("ours", 96), "store", says)
    assert_equal 0, status, out
    assert_match(%r{^100 bytes into a file +25\.0 ns +20\.0 ns +0\.8.* yes\n +all threads; 2000 MB/s; .*, 4000 MB/s$}, out)
  end

  def test_an_exit_has_a_row_for_the_whole_process
    out, status = measure("exits")
    assert_equal 0, status, out
    assert_match(/^one exit, K=1, 8 frames, processor time of the process .*\n.*; bytes an exit: 96, base 80$/, out)
  end

  def test_bad_arguments_have_status_2
    ours = tracing_ruby("ours", 96)
    { ["--ours", ours] => /--base RUBY is to be given/, ["--ours", ours, "--base", path("none")] => /base: .*no such file/,
      ["--ours", ours, "--base", ours, "--only", "nothing"] => /the groups are exits/, ["--ours", ours, "--base", ours, "more"] => /more: nothing is/,
      ["--ours", ours, "--base", ours, "--folder", path("none")] => /no folder/ }.each do |arguments, message|
      out, status = targets(*arguments)
      assert_equal 2, status, out
      assert_match(message, out.lines.first)
    end
  end
end
