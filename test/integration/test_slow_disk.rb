# A slow disk: the program continues, and what could not be recorded is counted.
#
# Once: the file is the module's.
# Alone: it asks how long the program stands still.
require_relative "helper"
require "rbconfig"

class TestSlowDisk < Integration::Test
  # Each call takes as long as on a sleeping disk, in its thread.
  SLOW = <<~'C'
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <sys/uio.h>
    #include <unistd.h>
    static volatile int calls;
    static void wait_for_disk(void) { if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) > 2) usleep(SLOW_US); } /* the first chunk is quick */
    int fallocate(int fd, int mode, off_t offset, off_t bytes) {
      static int (*next)(int, int, off_t, off_t);
      if (!next) *(void **)&next = dlsym(RTLD_NEXT, "fallocate");
      wait_for_disk();
      return next(fd, mode, offset, bytes);
    }
    int fallocate64(int fd, int mode, off_t offset, off_t bytes) { return fallocate(fd, mode, offset, bytes); }
    ssize_t writev(int fd, const struct iovec *pieces, int count) {
      static ssize_t (*next)(int, const struct iovec *, int);
      if (!next) *(void **)&next = dlsym(RTLD_NEXT, "writev");
      wait_for_disk();
      return next(fd, pieces, count);
    }
  C

  # Exits for three seconds; returns the longest time of one.
  PROGRAM = <<~'RUBY'
    def foo = ::RubyVM::ZJIT.induce_side_exit!
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    longest = 0.0
    start = last = now
    n = 0
    while last - start < 3
      foo
      n += 1
      time = now
      longest = time - last if time - last > longest
      last = time
    end
    puts n, longest
  RUBY

  def setup
    super
    @dir = scratch_dir
    File.write(File.join(@dir, "slow.c"), SLOW)
    @library = File.join(@dir, "slow.so")
    skip "no C compiler" unless system("cc", "-shared", "-fPIC", "-DSLOW_US=1000000", "-o", @library, File.join(@dir, "slow.c"), "-ldl")
  end

  def run_slowly(script, *flags)
    File.write(File.join(@dir, "script.rb"), jit(script))
    run_in(@dir, "--zjit-call-threshold=2", "--zjit-trace-exits", "--zjit-trace-file=t.fxt", *flags, "script.rb", env: { "LD_PRELOAD" => @library })
  end

  # A hundred times as long as a writer waits; the calls take a second each.
  LONGEST = 0.5

  def assert_went_on(result)
    assert_predicate result.status, :success?, result.err
    exits, longest = result.out.lines.map(&:to_f)
    assert_operator longest, :<, LONGEST
    assert_match(/ events lost \(.*the disk was too slow, and the program did not wait for it/, result.err)
    trace = Trace.new(File.join(@dir, "t.fxt")).validate
    summary = trace.summary
    assert_operator summary["exits"], :>=, exits - 5 # the first ones are not compiled
    assert_equal summary["exits"], summary["sampled"] + summary["lost"]
    assert_operator summary["sampled"], :>, 5_000
    trace
  end

  def test_exits_go_on_while_the_disk_is_slow
    trace = assert_went_on(run_slowly(PROGRAM))
    losses = trace.in_category("trace").select { |event| event["name"] == "loss" }.map { |event| event["args"]["reason"] }
    assert_equal ["the disk was too slow, and the program did not wait for it"], losses
  end

  def test_exits_go_on_in_a_file_that_keeps_the_newest
    assert_went_on(run_slowly(PROGRAM, "--zjit-trace-max-size=8"))
  end

  # The first chunks of the others are made while the main ractor continues.
  def test_ractors_begin_and_end_while_the_disk_is_slow
    result = run_slowly(<<~'RUBY')
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      3.times { foo }
      Warning[:experimental] = false
      times = 4.times.map do
        Ractor.new do
          start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          50.times { foo }
          Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
        end
      end.map(&:value)
      puts times.max
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_operator result.out.to_f, :<, LONGEST
    summary = Trace.new(File.join(@dir, "t.fxt")).validate(recorders: 5).summary
    assert_equal summary["exits"], summary["sampled"] + summary["lost"]
  end
end
