# An exit does not take the VM lock, whatever started the trace: taking it stops all ractors, and a
# ractor in a long C function stops only when that returns.
require_relative "helper"

class TestParallel < Integration::Test
  # One ractor sorts, which checks no interrupts; the main one takes exits meanwhile, and notes
  # when. If an exit waited for the other ractor, it would not return during a sort, however the
  # threads are scheduled. Only the first exit of a place may wait: those are taken before.
  SCRIPT = <<~'RUBY'
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def guard(x) = x + 1
    def give = yield
    def throws(_) = give { break }
    def fails(x)
      ::RubyVM::ZJIT.induce_compile_failure!
      x
    end
    def exits(name, x, n)
      i = 0
      while i < n
        send(name, x)
        i += 1
      end
    end
    LARGE = 4_611_686_018_427_387_903
    DONE = "done".freeze
    name, start = ARGV
    30.times { exits(name, 1, 3) }
    sorter = Ractor.new do
      floats = Array.new(200_000) { rand }
      while Ractor.receive == :sort
        sorts = Array.new(4) { [now, floats.dup.sort! && now] }
        File.write(DONE, "")
        Ractor.main.send(sorts)
      end
    end
    RubyVM::Trace.start(file: "t.fxt", sample_rate: 10_000) if start # there are millions
    exits(name, LARGE, 100)
    # On a busy machine the two may happen to run one after the other: then once more.
    most = 0
    20.times do
      sorter.send(:sort)
      times = []
      until File.exist?(DONE)
        exits(name, LARGE, 20)
        times << now
      end
      File.delete(DONE)
      most = [most, *Ractor.receive.map { |from, to| times.count { |time| time > from && time < to } }].max
      break if most > 10
    end
    sorter.send(:end)
    puts most
  RUBY

  def stamps(name, *flags, start: true)
    result = run_ruby(SCRIPT, "--zjit-call-threshold=2", "-W:no-experimental", *flags, args: [name, *("start" if start)])
    assert_predicate result.status, :success?, result.err
    [result.out.to_i, result.traces.fetch(0)]
  end

  def test_exits_that_are_traced_from_run_time_on
    (JIT == "zjit" ? %w[guard throws fails] : %w[guard]).each do |name|
      stamps, trace = stamps(name)
      assert_operator stamps, :>, 10, name
      assert_operator trace.summary["exits"], :>, 100, name
    end
  end

  def test_exits_in_methods_that_are_left_out
    (JIT == "zjit" ? %w[guard throws fails] : %w[guard]).each do |name|
      stamps, trace = stamps(name, "--zjit-trace-later", "--zjit-trace-methods=*/no_such_file.rb")
      assert_operator stamps, :>, 10, name
      assert_equal [0, 0], trace.summary.values_at("exits", "lost"), name
    end
  end

  # What the flags leave out is no loss.
  zjit_only def test_exits_of_a_program_that_a_flag_traces
    %w[guard throws fails].each do |name|
      stamps, trace = stamps(name, "--zjit-trace-exits-sample-rate=10000", "--zjit-trace-file=%p.fxt", start: false)
      assert_operator stamps, :>, 10, name
      assert_operator trace.summary["exits"], :>, 100, name
    end
  end
end
