# A disk that does not answer: the program continues, and what could not be recorded is counted.
#
# Once: the file is the module's.
require_relative "helper"
require "rbconfig"

class TestSlowDisk < Integration::Test
  # A call of the disk does not return before the program has taken so many more exits, or has come to its end. It
  # counts them in a file. A program that waited for the disk would wait for ever: then the call returns after a while,
  # and leaves a note.
  EXITS_OF_A_CALL = 30_000
  SLOW = <<~'C'
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <stdint.h>
    #include <sys/mman.h>
    #include <sys/uio.h>
    #include <unistd.h>
    #define AT_THE_END ((uint64_t)1 << 62)
    static void wait_for_disk(void) {
      int fd;
      fd = open("exits", O_RDONLY);
      volatile const uint64_t *exits = mmap(NULL, sizeof(*exits), PROT_READ, MAP_SHARED, fd, 0);
      close(fd);
      if (exits == MAP_FAILED) _exit(99);
      uint64_t until = *exits + EXITS_OF_A_CALL;
      int i = 0;
      if (*exits == 0) until = 0; /* whoever begins a trace waits for the disk */
      while (*exits < until && *exits < AT_THE_END && ++i < LIMIT_MS / 50) usleep(50000);
      if (*exits < until && *exits < AT_THE_END) close(open("program-waited", O_CREAT | O_WRONLY, 0600));
      munmap((void *)exits, sizeof(*exits));
    }
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
  LIMIT_SECONDS = 60 * Integration::SLOWNESS

  # How long the thread has neither run nor waited for a processor, in seconds.
  HEAD = <<~'RUBY'
    Warning[:experimental] = false
    EXITS = IO::Buffer.map(File.open("exits", "r+"), 8)
    at_exit { EXITS.set_value(:u64, 0, 1 << 62) }
    def foo = ::RubyVM::ZJIT.induce_side_exit!
    def stood_still
      wall = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) # brings the numbers of the file up to date
      wall - File.read("/proc/thread-self/schedstat").split.first(2).sum(&:to_i) / 1e9
    end
  RUBY

  PROGRAM = HEAD + <<~'RUBY'
    from = stood_still
    n = 0
    while n < 250_000
      foo
      EXITS.set_value(:u64, 0, n += 1)
    end
    puts n, stood_still - from
  RUBY

  def setup
    super
    @dir = scratch_dir
    File.write(path("slow.c"), SLOW)
    File.binwrite(path("exits"), [0].pack("Q"))
    @library = path("slow.so")
    numbers = ["-DEXITS_OF_A_CALL=#{EXITS_OF_A_CALL}", "-DLIMIT_MS=#{LIMIT_SECONDS * 1000}"]
    skip "no C compiler" unless system("cc", "-shared", "-fPIC", *numbers, "-o", @library, path("slow.c"), "-ldl")
  end

  def path(name) = File.join(@dir, name)

  def run_slowly(script, *flags)
    File.write(path("script.rb"), jit(script))
    result = run_in(@dir, "--zjit-call-threshold=2", "--zjit-trace-exits", "--zjit-trace-file=t.fxt", *flags,
                    "script.rb", env: { "LD_PRELOAD" => @library })
    assert_predicate result.status, :success?, result.err
    refute_path_exists path("program-waited")
    result
  end

  # A writer waits for 10 ms at most, a few times.
  LONGEST = 0.5

  def assert_went_on(result)
    exits, stood_still = result.out.lines.map(&:to_f)
    assert_operator stood_still, :<, LONGEST
    assert_match(/ events lost \(.*the disk was too slow, and the program did not wait for it/, result.err)
    trace = Trace.new(path("t.fxt")).validate
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
    result = run_slowly(HEAD + <<~'RUBY')
      3.times { foo }
      EXITS.set_value(:u64, 0, 3)
      puts 4.times.map { Ractor.new { 50.times { foo } } }.sum(&:value)
    RUBY
    assert_equal "200\n", result.out
    summary = Trace.new(path("t.fxt")).validate(recorders: 5).summary
    assert_equal summary["exits"], summary["sampled"] + summary["lost"]
  end
end
