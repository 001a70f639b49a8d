# The trace file is made safely, or not at all, and then the program runs untraced.
#
# Once: the file is the module's.
require_relative "helper"

class TestFile < Integration::Test
  SCRIPT = <<~'RUBY'
    def foo = ::RubyVM::ZJIT.induce_side_exit!
    10.times { foo }
    puts "done"
    warn "warned"
    exit 7
  RUBY
  FLAGS = %w[--zjit-call-threshold=2 --zjit-trace-exits].freeze

  def setup
    super
    @dir = scratch_dir
    File.write(File.join(@dir, "script.rb"), jit(SCRIPT))
    @command = [Integration::RUBY, "--disable=gems"]
  end

  # Runs as an unprivileged user. False when that is impossible.
  def become_nobody
    return true unless Process.uid.zero?
    other = %w[setpriv --reuid=65534 --regid=65534 --clear-groups]
    return false unless system(*other, Integration::RUBY, "-e", "", out: File::NULL, err: File::NULL)
    @command = other + @command
    FileUtils.chmod(0o755, @dir)
    true
  end

  def path(name) = File.join(@dir, name)

  def run_to(name, env: {})
    result = run_in(@dir, *FLAGS, *("--zjit-trace-file=#{name}" if name), "script.rb", env: env, command: @command)
    assert_equal [7, "done\n", "warned\n"], [result.status.exitstatus, result.out, result.own_err.sub(/\A#{jit("ZJIT")}: can't trace .*\n/, "")]
    result
  end

  def assert_traced_to(name, as: name)
    result = run_to(name)
    trace = validated(Trace.new(File.expand_path(as.gsub("PID", result.pid.to_s), @dir)))
    assert_operator trace.exits.size, :>, 0
    result
  end

  # One line, and no file.
  def assert_untraced(name, why)
    before = Dir.children(@dir)
    result = run_to(name)
    assert_equal [jit("ZJIT: can't trace to #{File.expand_path(name, @dir)}: #{why}; running untraced\n")], result.err.lines.grep(/JIT/)
    assert_empty Dir.children(@dir) - before - %w[.out .err]
  end

  def test_a_path_is_taken_as_it_is
    assert_traced_to("a trace.fxt")
  end

  def test_an_absolute_path_is_taken
    assert_traced_to(path("absolute.fxt"))
  end

  def test_percent_p_is_the_pid
    assert_traced_to("x-%p-%p.fxt", as: "x-PID-PID.fxt")
  end

  def test_two_percents_are_one
    assert_traced_to("x%%p-%d.fxt", as: "x%p-%d.fxt")
  end

  def test_a_path_that_is_not_ascii_is_taken
    assert_traced_to("träce-日本.fxt")
  end

  def test_the_default_is_in_tmp_and_named_by_the_pid
    result = run_to(nil)
    file = "/tmp/perfetto-#{result.pid}.fxt"
    assert_includes result.err, jit("ZJIT: tracing to #{file}\n")
    assert_operator validated(Trace.new(file)).exits.size, :>, 0
  ensure
    FileUtils.rm_f(file) if file
  end

  def test_only_the_owner_may_read_it
    FileUtils.chmod(0o777, @dir)
    old = File.umask(0)
    assert_traced_to("t.fxt")
    assert_equal 0o600, File.stat(path("t.fxt")).mode & 0o777
  ensure
    File.umask(old)
  end

  def test_a_link_in_its_place_is_neither_followed_nor_removed
    File.write(path("target"), "precious")
    File.symlink("target", path("t.fxt"))
    assert_untraced("t.fxt", "it exists and is not a regular file")
    assert_equal "precious", File.read(path("target"))
    assert_equal "target", File.readlink(path("t.fxt"))
  end

  def test_a_link_to_nothing_makes_no_file_there
    File.symlink("target", path("t.fxt"))
    assert_untraced("t.fxt", "it exists and is not a regular file")
    refute_path_exists path("target")
  end

  def test_a_stale_file_of_ones_own_is_replaced
    File.write(path("t.fxt"), "x" * 5_000_000)
    old = File.stat(path("t.fxt")).ino
    File.link(path("t.fxt"), path("other name"))
    assert_traced_to("t.fxt")
    refute_equal old, File.stat(path("t.fxt")).ino
    assert_equal 5_000_000, File.size(path("other name")), "what has another name is not written into"
  end

  def test_a_file_of_another_user_stays
    skip "only root can give a file away" unless Process.uid.zero?
    File.write(path("t.fxt"), "precious")
    File.chown(12_345, nil, path("t.fxt"))
    assert_untraced("t.fxt", "it exists and belongs to another user")
    assert_equal "precious", File.read(path("t.fxt"))
  end

  def test_a_folder_in_its_place_stays_and_the_program_runs_untraced
    Dir.mkdir(path("t.fxt"))
    assert_untraced("t.fxt", "it exists and is not a regular file")
    assert_path_exists path("t.fxt")
  end

  def test_a_fifo_in_its_place_stays_and_the_program_runs_untraced
    File.mkfifo(path("t.fxt"))
    assert_untraced("t.fxt", "it exists and is not a regular file")
    assert_predicate File.stat(path("t.fxt")), :pipe?
  end

  def test_a_folder_that_is_not_there_leaves_the_program_untraced
    assert_untraced("nowhere/t.fxt", "No such file or directory")
  end

  def test_a_file_taken_for_a_folder_leaves_the_program_untraced
    assert_untraced("script.rb/t.fxt", "Not a directory")
  end

  def test_a_folder_that_takes_no_files_leaves_the_program_untraced
    assert_untraced("/proc/t.fxt", "No such file or directory")
  end

  def test_a_folder_without_write_permission_leaves_the_program_untraced
    Dir.mkdir(path("closed"), 0o500)
    skip "root may write everywhere, and there is no setpriv to be another user" unless become_nobody
    assert_untraced("closed/t.fxt", "Permission denied")
  end

  def test_a_name_that_is_too_long_leaves_the_program_untraced
    assert_untraced("x" * 300, "File name too long")
  end

  # The limit is seen before a write past it would raise SIGXFSZ.
  def test_a_limit_of_the_files_size_stops_the_trace_and_not_the_program
    result = limited(fsize: 3 << 20, exits: 100_000)
    assert_match(/#{jit("ZJIT")}: wrote \d+ of 100000 exits, \d+ events to \S+\/t\.fxt, \d+ events lost \(File too large\)\n\z/, result.err)
    trace = Trace.new(path("t.fxt")).validate
    summary = trace.summary
    assert_equal 100_000, summary["exits"]
    assert_equal summary["lost"], trace.in_category("trace").find { |event| event["name"] == "loss" }["args"]["lost"]
    assert_operator summary["sampled"], :>, 10_000
    # An exit is recorded or lost; the counts of sites that don't fit are lost as well.
    assert_operator summary["sampled"] + summary["lost"], :>=, 100_000
  end

  def test_a_limit_below_one_chunk_leaves_no_file_and_says_so
    result = run_in(@dir, *FLAGS, "--zjit-trace-file=t.fxt", "script.rb",
                    command: ["/bin/sh", "-c", 'ulimit -f 64; exec "$@"', "sh", Integration::RUBY])
    untraced = "#{jit("ZJIT")}: can't trace to #{path("t.fxt")}: File too large; running untraced\n"
    assert_equal [7, "done\n", "#{untraced}warned\n"], [result.status.exitstatus, result.out, result.err]
    refute_path_exists path("t.fxt")
  end

  # Truncates and removes the trace while it is written at full rate; the program's output stays the
  # same.
  HARM = <<~'RUBY'
    def foo = ::RubyVM::ZJIT.induce_side_exit!
    foo
    harm, path, size = ARGV
    thread = Thread.new do
      5.times do |i|
        sleep 0.02
        case harm
        when "cut" then File.truncate(path, size.to_i)
        when "half" then File.truncate(path, File.size(path) / 2)
        when "remove" then File.unlink(path) if i == 0
        when "rename" then File.rename(path, path + ".old") if i == 0
        end
      end
    end
    i = sum = 0
    while thread.alive? || i < 200_000
      foo
      i += 1
      sum += i % 3
    end
    $stdout.puts "done"
    exit 7
  RUBY

  # A busy disk may be too slow for so many exits, too.
  SLOW_DISK = /(; the disk was too slow, [^)]+)?/
  CUT_SHORT = / events lost \(another program cut the file short#{SLOW_DISK}\)\n\z/

  # On a disk, where the kernel takes away the pages of a file that is cut, and in memory.
  def harmed(*harm, dir: scratch_dir_on_disk)
    @dir = dir
    File.write(path("harm.rb"), jit(HARM))
    result = run_in(@dir, *FLAGS, "--zjit-trace-file=t.fxt", "harm.rb", harm[0], path("t.fxt"), *harm.drop(1))
    assert_equal [7, "done\n", ""], [result.status.exitstatus, result.out, result.own_err], result.err
    result
  end

  [0, 1, 4096, 100_000, 1 << 20].each do |size|
    define_method("test_a_file_cut_to_#{size}_bytes_is_no_bus_error_and_valid_at_the_end") do
      result = harmed("cut", size.to_s)
      assert_match(CUT_SHORT, result.err)
      trace = Trace.new(path("t.fxt")).validate
      summary = trace.summary
      assert_operator summary["lost"], :>, 0
      assert_operator summary["sampled"] + summary["lost"], :>=, summary["exits"]
    end
  end

  def test_a_file_cut_to_half_again_and_again_is_no_bus_error_and_valid_at_the_end
    result = harmed("half")
    assert_match(CUT_SHORT, result.err)
    Trace.new(path("t.fxt")).validate
  end

  def test_a_removed_file_is_said_to_be
    result = harmed("remove")
    assert_match(/wrote 0 of (\d+) exits, 0 events to \S+t\.fxt, \d+ events lost \(the file was removed#{SLOW_DISK}\)\n\z/, result.err)
    refute_path_exists path("t.fxt")
  end

  def test_a_renamed_file_is_whole
    result = harmed("rename", dir: @dir)
    assert_match(/, (nothing|\d+ events) lost( \(the disk was too slow, [^)]+\))?\n\z/, result.err)
    summary = Trace.new(path("t.fxt.old")).validate.summary
    assert_operator summary["sampled"], :>, 0
    assert_equal summary["exits"], summary["sampled"] + summary["lost"], "each is there, or is said to be lost"
  end

  # A SIGBUS that the tracer did not cause is reported as always.
  def test_another_bus_error_is_still_a_crash
    result = run_in(@dir, *FLAGS, "--zjit-trace-file=t.fxt", "-e", "Process.kill(:BUS, $$); sleep 5")
    assert_predicate result.status, :signaled?
    assert_match(/\[BUG\] Bus Error/, result.err)
  end

  def test_a_full_disk_at_the_start_leaves_the_program_untraced_and_no_file
    with_disk("400k") do |mount|
      result = run_in(@dir, *FLAGS, "--zjit-trace-file=#{mount}/t.fxt", "script.rb", command: [*in_mount(mount, "400k"), *@command])
      assert_equal [7, "done\n"], [result.status.exitstatus, result.out]
      assert_includes result.err, jit("ZJIT: can't trace to #{mount}/t.fxt: No space left on device; running untraced\n")
      assert_equal "0 files\n", result.err.lines.last
    end
  end

  FILL = <<~'RUBY'
    def foo = ::RubyVM::ZJIT.induce_side_exit!
    foo
    i = 0
    while i < 100_000
      foo
      i += 1
    end
    puts "done"
  RUBY

  def test_a_disk_that_fills_up_stops_the_trace_and_not_the_program
    File.write(path("fill.rb"), jit(FILL))
    with_disk("3m") do |mount|
      result = run_in(@dir, *FLAGS, "--zjit-trace-file=#{mount}/t.fxt", "fill.rb", command: [*in_mount(mount, "3m"), *@command])
      assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
      assert_match(/events lost \(No space left on device\)$/, result.err)
      assert_equal "1 files\n", result.err.lines.last
      summary = Trace.new(path("t.fxt")).validate.summary
      assert_operator summary["lost"], :>, 0
    end
  end

  # The rest of the disk is for others, and for the end of the trace.
  def test_recording_stops_before_the_disk_is_full
    File.write(path("fill.rb"), jit(FILL))
    with_disk("64m") do |mount|
      result = run_in(@dir, *FLAGS, "--zjit-trace-min-free=62", "--zjit-trace-file=#{mount}/t.fxt", "fill.rb", command: [*in_mount(mount, "64m"), *@command])
      assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
      full = /trace stopped: #{full_disk(mount)} is full \(61 MiB free\)/
      assert_match(/events lost \(#{full}; give #{jit("--zjit")}-trace-file another disk\)$/, result.err)
      trace = Trace.new(path("t.fxt")).validate
      assert_operator File.size(path("t.fxt")), :<=, 4 << 20
      summary = trace.summary
      assert_operator summary["sampled"], :>, 10_000
      assert_equal summary["exits"], summary["sampled"] + summary["lost"]
      assert_match(/\Atrace stopped: .* is full/, trace.in_category("trace").find { |event| event["name"] == "loss" }["args"]["reason"])
      assert_operator trace.sites.size, :>, 0
    end
  end

  def test_with_min_free_0_the_disk_may_become_full
    File.write(path("fill.rb"), jit(FILL))
    with_disk("3m") do |mount|
      result = run_in(@dir, *FLAGS, "--zjit-trace-min-free=0", "--zjit-trace-file=#{mount}/t.fxt", "fill.rb", command: [*in_mount(mount, "3m"), *@command])
      assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
      assert_match(/events lost \(No space left on device[;)]/, result.err)
    end
  end

  def test_a_disk_with_too_little_space_at_the_start_leaves_the_program_untraced
    with_disk("8m") do |mount|
      result = run_in(@dir, *FLAGS, "--zjit-trace-min-free=9", "--zjit-trace-file=#{mount}/t.fxt", "script.rb", command: [*in_mount(mount, "8m"), *@command])
      assert_equal [7, "done\n"], [result.status.exitstatus, result.out]
      full = "#{full_disk(mount)} is full (8 MiB free)"
      assert_includes result.err, jit("ZJIT: can't trace to #{mount}/t.fxt: #{full}; running untraced\n")
      assert_equal "0 files\n", result.err.lines.last
    end
  end

  # Recording is in memory, but a save is a file.
  def test_a_save_leaves_the_disk_the_space_that_is_to_stay_free
    File.write(path("save.rb"), jit(FILL + <<~'RUBY'))
      begin
        RubyVM::Trace.save(ARGV[0] + "/t.fxt")
      rescue Errno::ENOSPC => e
        puts e.class, Dir.children(ARGV[0]).size
      end
      puts RubyVM::Trace.save("there.fxt")[:exits]
    RUBY
    with_disk("8m") do |mount|
      result = run_in(@dir, *FLAGS, "--zjit-trace-memory=16", "--zjit-trace-min-free=7", "save.rb", mount, command: [*in_mount(mount, "8m"), *@command])
      assert_equal [0, "done\nErrno::ENOSPC\n0\n"], [result.status.exitstatus, result.out.lines.first(3).join], result.err
      assert_equal 100_000, result.out.lines.last.to_i
    end
  end

  # The flag applies to traces that start without min_free:.
  def test_min_free_of_a_trace_that_the_program_begins
    File.write(path("start.rb"), jit(<<~'RUBY'))
      folder = ARGV[0]
      def try(**options) = (RubyVM::Trace.start(**options); RubyVM::Trace.stop[:path])
      puts try(file: "#{folder}/a.fxt", min_free: 7)
      puts (try(file: "#{folder}/b.fxt", min_free: 9) rescue $!.message)
      puts try(file: "#{folder}/c.fxt", min_free: 0)
      puts (try(file: "#{folder}/d.fxt") rescue $!.message)
      puts (try(file: "#{folder}/d.fxt", min_free: -1) rescue $!.message)
    RUBY
    with_disk("8m") do |mount|
      result = run_in(@dir, "--zjit", "--zjit-trace-later", "--zjit-trace-min-free=20", "start.rb", mount, command: [*in_mount(mount, "8m"), *@command])
      full = "%s/%s.fxt: %s is full (7 MiB free); give file: a path in a folder that can be written to"
      refused = %w[b d].map { |name| "can't trace to #{format(full, mount, name, full_disk(mount))}" }
      assert_equal ["#{mount}/a.fxt", refused[0], "#{mount}/c.fxt", refused[1],
                    "min_free: takes a number of MiB from 0 to 1048576, not -1"], result.out.lines(chomp: true), result.err
    end
  end

  ["", "x", "-1", "1048577"].each do |value|
    define_method("test_min_free_#{value.inspect}_is_refused") do
      result = run_in(@dir, *FLAGS, "--zjit-trace-min-free=#{value}", "script.rb")
      refute_predicate result.status, :success?
      assert_includes result.err, jit("--zjit-trace-min-free takes the MiB that stay free on the disk, up to 1048576, or 0 to write until it is full, not '#{value}'\n")
    end
  end

  # An error in its structures makes a file system read-only: ext4 can be told that it found one.
  def test_a_disk_that_turns_read_only_stops_the_trace_and_not_the_program
    File.write(path("read-only.rb"), jit(<<~'RUBY'))
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      mount, trigger = ARGV
      1000.times { foo }
      File.open("#{mount}/t.fxt", &:fsync) # pages that were written to are write-protected now
      File.write(trigger, "1")
      begin
        File.write("#{mount}/new", "")
      rescue SystemCallError => e
        puts e.class
      end
      100_000.times { foo }
      puts "done"
      exit 7
    RUBY
    with_disk("64m") do |mount|
      image = path("image")
      File.truncate(FileUtils.touch(image).first, 64 << 20)
      skip "mkfs.ext4 is not here" unless system("mkfs.ext4", "-q", "-F", image, err: File::NULL)
      skip "no loop device" unless system("unshare", "-m", "mount", "-o", "loop", image, mount, err: File::NULL)
      in_loop = ["unshare", "-m", "sh", "-c", "mount -o loop,errors=remount-ro #{image} #{mount} || exit 99; " \
                 "trigger=/sys/fs/ext4/$(basename $(findmnt -no SOURCE #{mount}))/trigger_fs_error; " \
                 "test -w $trigger || exit 98; \"$@\" #{mount} $trigger; status=$?; cp #{mount}/t.fxt #{@dir}/t.fxt; exit $status", "sh"]
      result = run_in(@dir, *FLAGS, "--zjit-trace-file=#{mount}/t.fxt", "read-only.rb", command: [*in_loop, *@command])
      skip "this kernel's ext4 has no trigger_fs_error" if result.status.exitstatus == 98
      assert_equal [7, "Errno::EROFS\ndone\n", ""], [result.status.exitstatus, result.out, result.own_err]
      assert_match(/wrote \d+ of \d+ exits, .* events lost \(Read-only file system\)$/, result.err)
      summary = Trace.new(path("t.fxt")).validate.summary
      assert_operator summary["lost"], :>, 0
      # An exit is recorded or lost, and the counts of sites that don't fit.
      assert_operator summary["exits"], :<=, summary["sampled"] + summary["lost"]
    end
  end

  def with_disk(_size)
    skip "only root may mount" unless Process.uid.zero? && system("unshare", "-m", "true", err: File::NULL)
    skip "there is no program mount" unless system("sh", "-c", "command -v mount", out: File::NULL)
    mount = path("disk")
    Dir.mkdir(mount)
    yield mount
  end

  # A disk of `size` in a mount namespace; the program's files on it are counted, and copied beside
  # it.
  def in_mount(mount, size)
    ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=#{size} none #{mount} || exit 99; \"$@\"; status=$?; " \
     "cp #{mount}/t.fxt #{@dir}/t.fxt 2>/dev/null; echo $(ls #{mount} | wc -l) files >&2; exit $status", "sh"]
  end

  # --- limits ---

  # More exits of either method than fit into 5 MiB.
  LIMITED = <<~'RUBY'
    def foo = ::RubyVM::ZJIT.induce_side_exit!
    def bar = ::RubyVM::ZJIT.induce_side_exit!
    foo
    bar
    i = 0
    while i < 200_000
      i < 100_000 ? foo : bar
      i += 1
    end
    puts "done"
  RUBY

  { "4" => "newest", "4,newest" => "newest", "5,oldest" => "oldest" }.each do |value, keep|
    define_method("test_max_size_#{value}_keeps_the_#{keep}_events") do
      File.write(path("limited.rb"), jit(LIMITED))
      result = run_in(@dir, *FLAGS, "--zjit-trace-max-size=#{value}", "--zjit-trace-file=t.fxt", "limited.rb")
      assert_equal [0, "done\n", ""], [result.status.exitstatus, result.out, result.own_err]
      assert_operator File.size(path("t.fxt")), :<=, value.to_i << 20
      trace = Trace.new(path("t.fxt")).validate
      assert_equal [value.to_i << 20, keep], trace.settings.values_at("max_bytes", "keep")
      summary = trace.summary
      assert_operator summary["sampled"], :>, 10_000
      assert_equal summary["exits"], summary["sampled"] + summary["lost"]
      last_of_the_start = 20 # where the first ones are compiled
      methods = trace.exits.drop(keep == "newest" ? 0 : last_of_the_start).map { |exit| exit["args"]["0"][/#(foo|bar) /, 1] }
      assert_equal [keep == "newest" ? "bar" : "foo"], methods.uniq
      assert_match keep == "newest" ? /older events gave way at the limit/ : /the limit of the file's size is reached/, result.err
    end
  end

  def test_a_limited_trace_that_is_killed_is_valid_and_has_its_settings
    File.write(path("endless.rb"), jit("def foo = ::RubyVM::ZJIT.induce_side_exit!\nloop { foo }\n"))
    5.times do |i|
      flags = [*FLAGS, "--zjit-trace-max-size=4", "--zjit-trace-file=#{path("t.fxt")}"].map { |flag| jit(flag) }
      pid = Process.spawn(Integration::ENVIRONMENT, *@command, *flags, path("endless.rb"), err: File::NULL)
      wait_until_large(path("t.fxt"))
      sleep 0.05 * (i + 1)
      Process.kill(:KILL, pid)
      Process.wait(pid)
      Trace.new(path("t.fxt")).validate(ended: false)
      File.unlink(path("t.fxt"))
    end
  end

  # Until it has reached its limit, and chunks are used again.
  def wait_until_large(file) = wait_until("#{file} has 3 MiB") { File.exist?(file) && File.size(file) > 3 << 20 }

  # Its chunks are reused all the time.
  def test_a_limited_trace_can_be_read_while_it_is_written
    File.write(path("endless.rb"), jit("def foo = ::RubyVM::ZJIT.induce_side_exit!\nloop { foo }\n"))
    flags = [*FLAGS, "--zjit-trace-max-size=4", "--zjit-trace-file=#{path("t.fxt")}"].map { |flag| jit(flag) }
    pid = Process.spawn(Integration::ENVIRONMENT, *@command, *flags, path("endless.rb"), err: File::NULL)
    wait_until_large(path("t.fxt"))
    20.times do
      out, status = Open3.capture2e(Trace::TOOL, "check", path("t.fxt"))
      assert_predicate status, :success?, out
    end
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  ["", "3", "4,", "4,both", "x", "-4", "2000000"].each do |value|
    define_method("test_max_size_#{value.inspect}_is_refused") do
      result = run_in(@dir, *FLAGS, "--zjit-trace-max-size=#{value}", "script.rb")
      refute_predicate result.status, :success?
      assert_includes result.err, jit("--zjit-trace-max-size takes a number of MiB from 4 to 1048576, then ',newest' (the default) " \
                                      "or ',oldest' for the events that are kept, not '#{value}'\n")
    end
  end

  def test_a_child_of_fork_has_the_same_limit_in_a_file_of_its_own
    File.write(path("forked.rb"), jit(LIMITED.sub("i = 0", "fork\ni = 0").sub('puts "done"', "Process.waitall")))
    result = run_in(@dir, *FLAGS, "--zjit-trace-max-size=4", "--zjit-trace-file=%p.fxt", "forked.rb")
    assert_predicate result.status, :success?, result.err
    files = Dir[path("*.fxt")]
    assert_equal 2, files.size
    files.each do |file|
      assert_operator File.size(file), :<=, 4 << 20
      assert_operator Trace.new(file).validate.summary["sampled"], :>, 10_000
    end
  end

  def limited(fsize:, exits:)
    script = <<~RUBY
      Process.setrlimit(:FSIZE, #{fsize})
      def foo = ::RubyVM::ZJIT.induce_side_exit!
      foo
      i = 0
      while i < #{exits}
        foo
        i += 1
      end
      puts "done"
    RUBY
    File.write(path("limited.rb"), jit(script))
    result = run_in(@dir, *FLAGS, "--zjit-trace-file=t.fxt", "limited.rb")
    assert_predicate result.status, :success?, "#{result.status} #{result.err}"
    assert_equal "done\n", result.out
    result
  end

  def test_a_closed_stderr_harms_nothing
    result = run_in(@dir, *FLAGS, "--zjit-trace-file=t.fxt", "-e",
                    "def foo = ::RubyVM::ZJIT.induce_side_exit!\n10.times { foo }\nputs 'done'", 
                    command: ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", Integration::RUBY])
    assert_equal "done\n", result.out
    assert_operator validated(Trace.new(path("t.fxt"))).exits.size, :>, 0
  end
end
