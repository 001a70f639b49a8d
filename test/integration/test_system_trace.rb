# Beside Perfetto's own trace of the system, which has ftrace's events: both clocks must agree, so that one file lies
# right beside the other.
#
# Once: the clock is the same for each JIT and base.
require_relative "perf"

class TestSystemTrace < Integration::Test
  include Perf

  # Between two markers of ours, one of ftrace's. An instance of its own: nothing else that is traced changes.
  PROGRAM = <<~'RUBY'
    marker = File.open(ARGV[0], "w").tap { |file| file.sync = true }
    T = RubyVM::Trace
    200.times do |i|
      T.instant("before", i: i)
      marker.syswrite("vm_trace #{i}\n")
      T.instant("after", i: i)
      sleep 0.000_5 if i % 10 == 0
    end
  RUBY
  # What the tracer's clock may be off by: it scales the processor's counter for up to 10 ms.
  MOST_NS = 3_000

  def test_ftrace_markers_lie_between_ours
    instance = "#{TRACEFS}/instances/vm-trace-test-#{$$}"
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), PROGRAM)
    result = run_in(dir, "--vm-trace=markers", "--vm-trace-file=%p.fxt", "script.rb",
                    command: [*WITH_TRACEFS, "sh", "-c", <<~SH, "sh", Integration::RUBY, "--disable=gems"])
                      mkdir #{instance} && echo boot > #{instance}/trace_clock || exit 3
                      "$@" #{instance}/trace_marker
                      cat #{instance}/trace > trace.txt
                      rmdir #{instance}
                    SH
    assert_predicate result.status, :success?, result.err
    trace = validate_all(result).trace
    # "ruby-123  [000] .....  12.345678: tracing_mark_write: vm_trace 7": us, cut
    theirs = File.readlines(File.join(result.dir, "trace.txt")).filter_map do |line|
      line.match(/ (\d+)\.(\d{6}): tracing_mark_write: vm_trace (\d+)/) do |found|
        seconds, us, number = found.captures.map(&:to_i)
        [number, (seconds * 1_000_000 + us) * 1000]
      end
    end.to_h
    assert_equal 200, theirs.size
    ours = trace.in_category("marker").group_by { |event| event["args"]["i"] }
    theirs.each do |i, ns|
      before, after = ours.fetch(i).map { |event| event["ts"] }
      assert_operator ns + 1000, :>=, before - MOST_NS, "marker #{i}"
      assert_operator ns, :<=, after + MOST_NS, "marker #{i}"
    end
  end
end
