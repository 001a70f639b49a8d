# What `vm-trace check` says about the streams `syscalls` and `sched`.
require_relative "tool_helper"

class TestKernelCheck < Minitest::Test
  include ToolHelper

  # Makes a trace whose last event the block adds, and asserts that it has only this fault.
  def assert_event_fault(message, *options, settings: {}, build: {})
    offset = nil
    trace = KernelTrace.new(settings: settings) { |t| offset = yield t }
    assert_fault(offset, message, trace.build(**build), *options)
  end

  def assert_summary_fault(message, settings: {}, **counts)
    trace = KernelTrace.new(settings: settings) do |t|
      t.syscall(:main, "read", 1, 2)
      t.cpu(:main, 0, 1, 2)
    end
    result = check(trace.build(**counts))
    assert_match(/\Avm-trace: F: offset \d+: #{Regexp.escape(message)}\n\z/, result.err)
    assert_equal 1, result.status
  end

  # The fault of a slice of the CPU track, as sched writes it, with these arguments.
  def assert_slice_fault(message, name, *options, **args)
    assert_event_fault(message, *options) { |t| t.sched(:main, name, 1, 2, **args) }
  end

  def test_slices_of_several_threads_are_fine
    trace = KernelTrace.new do |t|
      t.thread(:worker, 44)
      t.thread(:fiber, 3 * 2**29)
      t.syscall(:main, "read", 1, 2, fd: [:uint32, 3], buf: [:pointer, 2**47], count: [:uint64, 2**40], result: 2**40)
      t.syscall(:worker, "futex", 1.5, 3, errno: "EAGAIN", val: -1)
      t.syscall(:main, "syscall 470", 2, 2.5, register0: [:pointer, 0], register5: [:pointer, 2**64 - 1],
                result: -2**40)
      t.syscall(:fiber, "openat", 2, 4, errno: "ENOENT", dfd: -100)
      t.syscall(:worker, "exit", 3, 3.5, ended: "never")
      t.syscall(:main, "poll", 3, 100, ended: "after the trace")
      t.cpu(:main, 0, 1, 2)
      t.runnable(:main, 2, 3, why: "preempted", cpu: 1, other: "cc1 77")
      t.cpu(:worker, 0, 2, 3)
      t.cpu(:main, 1, 3, 4)
      t.runnable(:main, 5, 6, other: "77", waker: "worker 44")
      t.sched(:main, "CPU 1023 and more", 6, 7, cpu: [:uint32, 2000])
    end
    assert_fine(trace.build)
  end

  def test_events_that_are_no_complete_durations
    assert_event_fault("syscall read is not a duration in one record", build: { syscalls: 1 }) do |t|
      t.event(:instant, :main, "syscall", "read", 1, result: 0)
    end
    assert_event_fault("sched CPU 0 is not a duration in one record", build: { sched_slices: 1 }) do |t|
      t.event(:instant, :main, "sched", "CPU 0", 1, cpu: [:uint32, 0])
    end
  end

  def test_a_system_call_ends_in_one_way
    message = "syscall read has %d of result, errno and ended, not one of them"
    assert_event_fault(message % 0) { |t| t.syscall(:main, "read", 1, 2, result: nil) }
    assert_event_fault(message % 2) { |t| t.syscall(:main, "read", 1, 2, result: -11, errno: "EAGAIN") }
    assert_event_fault(message % 3) { |t| t.syscall(:main, "read", 1, 2, result: 1, errno: "EAGAIN", ended: "never") }
  end

  def test_types_of_ends
    assert_event_fault("syscall read has no signed number as its argument result") do |t|
      t.syscall(:main, "read", 1, 2, result: [:uint32, 1])
    end
    assert_event_fault("syscall read has no string as its argument errno") do |t|
      t.syscall(:main, "read", 1, 2, errno: 11)
    end
    assert_event_fault("syscall read: errno is not the name of an error") do |t|
      t.syscall(:main, "read", 1, 2, errno: "again")
    end
    assert_event_fault("syscall read has the unknown ended later") do |t|
      t.syscall(:main, "read", 1, 2, ended: "later")
    end
  end

  def test_types_of_arguments
    assert_event_fault("syscall open has no whole number as its argument filename") do |t|
      t.syscall(:main, "open", 1, 2, filename: "/etc/passwd")
    end
    assert_event_fault("syscall open has no whole number as its argument mode") do |t|
      t.syscall(:main, "open", 1, 2, mode: 0.5)
    end
  end

  def test_system_calls_that_overlap
    assert_event_fault("syscall write begins at 2000000, before the last one of its thread ended") do |t|
      t.syscall(:main, "read", 1, 3)
      t.syscall(:main, "write", 2, 4)
    end
  end

  def test_slices_of_cpus_that_overlap
    assert_event_fault("sched runnable begins at 2000000, before the last one of its track ended") do |t|
      t.cpu(:main, 0, 1, 3)
      t.runnable(:main, 2, 4)
    end
  end

  def test_time_that_goes_backwards
    trace = KernelTrace.new do |t|
      t.syscall(:main, "read", 8, 9)
      t.syscall(:main, "write", 5, 6)
    end
    assert_match(/syscall write: time goes backwards on thread 43, from 9000000 to 6000000 ns$/, check(trace.build).err)
    trace = KernelTrace.new do |t|
      t.cpu(:main, 0, 8, 9)
      t.cpu(:main, 0, 5, 6)
    end
    assert_match(/sched CPU 0: time goes backwards on thread 2013265963, from 9000000 to 6000000 ns$/,
                 check(trace.build).err)
  end

  # Chunks are in any order.
  def test_the_next_chunk_may_be_older
    trace = KernelTrace.new do |t|
      t.syscall(:main, "read", 8, 9)
      t.cpu(:main, 0, 8, 9)
      t.new_chunk
      t.syscall(:main, "write", 5, 6)
      t.cpu(:main, 0, 5, 6)
    end
    assert_fine(trace.build)
  end

  def test_tracks
    assert_event_fault("sched CPU 0 is on track 43, which is not that of a thread's CPU",
                       build: { sched_slices: 1 }) do |t|
      t.event(:complete, :main, "sched", "CPU 0", 1, extra: [t.ns(2)], cpu: [:uint32, 0])
    end
    assert_event_fault("syscall read is on the track of a thread's CPU, 2013265963") do |t|
      t.thread(:"main CPU", KernelTrace::CPU_TRACKS + 43)
      t.syscall(:"main CPU", "read", 1, 2)
    end
  end

  def test_arguments_of_running
    assert_slice_fault("sched CPU 0 lacks its argument cpu", "CPU 0")
    assert_slice_fault("sched CPU 0 has no unsigned number as its argument cpu", "CPU 0", cpu: -1)
    assert_slice_fault("sched CPU 0: cpu is 1", "CPU 0", cpu: [:uint32, 1])
    assert_slice_fault("sched CPU 0 or so: cpu is 0", "CPU 0 or so", cpu: [:uint32, 0])
    assert_slice_fault("sched CPU 9 and more: cpu is 8", "CPU 9 and more", cpu: [:uint32, 8])
    assert_slice_fault("sched sleeps is neither runnable nor the name of a CPU", "sleeps", cpu: [:uint32, 0])
    assert_slice_fault("sched CPU 0 has an argument why", "CPU 0", "--strict", cpu: [:uint32, 0], why: "woken")
    assert_slice_fault("sched CPU 0 has an argument other", "CPU 0", "--strict", cpu: [:uint32, 0], other: "cc1 77")
  end

  def test_arguments_of_waiting
    cpu = { cpu: [:uint32, 0] }
    assert_slice_fault("sched runnable lacks its argument cpu", "runnable", why: "woken")
    assert_slice_fault("sched runnable lacks its argument why", "runnable", **cpu)
    assert_slice_fault("sched runnable has the unknown why tired", "runnable", **cpu, why: "tired")
    assert_slice_fault("sched runnable: other does not end with the tid of a task", "runnable", **cpu,
                       why: "woken", other: "make")
    assert_slice_fault("sched runnable: waker does not end with the tid of a task", "runnable", **cpu,
                       why: "woken", waker: "make")
    assert_slice_fault("sched runnable: it was preempted, but has a waker", "runnable", **cpu,
                       why: "preempted", waker: "77")
  end

  def test_settings
    assert_event_fault("syscall read: the settings do not have the stream syscalls",
                       settings: { flags: "sched" }) do |t|
      t.syscall(:main, "read", 1, 2).tap { t.syscall(:main, "read", 3, 4) }
    end
    assert_event_fault("sched CPU 0: the settings do not have the stream sched",
                       settings: { flags: "syscalls:min=1000ns" }) do |t|
      t.cpu(:main, 0, 1, 2)
    end
    assert_event_fault("syscall read of 1000 ns; the shortest is 1001",
                       settings: { syscalls_min_ns: [:uint64, 1001] }) do |t|
      t.syscall(:main, "read", 1, 1.001)
    end
    assert_event_fault("sched CPU 0 of 1000 ns; the shortest is 1001",
                       settings: { sched_min_ns: [:uint64, 1001] }) do |t|
      t.cpu(:main, 0, 1, 1.001)
    end
    trace = KernelTrace.new(settings: { sched_min_ns: "short" })
    assert_match(/settings has no unsigned number as its argument sched_min_ns$/, check(trace.build).err)
  end

  # What was open at the last reset began earlier than the settings of a snapshot.
  def test_slices_from_before_the_settings
    late = ->(settings = {}) do
      KernelTrace.new(settings: nil) do |t|
        t.event(:instant, :main, "trace", "settings", 5, pid: [:uint32, 42], flags: "syscalls", **settings)
        t.syscall(:main, "read", 4, 6)
      end
    end
    assert_match(/: event is earlier than trace settings$/, check(late.().build).err)
    assert_fine(late.({ snapshot: "save" }).build(snapshot: "save"))
  end

  def test_counts_of_the_summary
    assert_summary_fault("trace summary says syscalls: 2, but the file holds: 1", syscalls: 2)
    assert_summary_fault("trace summary says sched_slices: 0, but the file holds: 1", sched_slices: 0)
    assert_summary_fault("trace summary says syscalls_left_out: 3, but the settings have no syscalls_min_ns",
                         syscalls_left_out: 3)
    assert_summary_fault("trace summary says sched_left_out: 3, but the settings have no sched_min_ns",
                         sched_left_out: 3)
    trace = KernelTrace.new(settings: { sched_min_ns: [:uint64, 10], syscalls_min_ns: [:uint64, 10] })
    assert_fine(trace.build(sched_left_out: 3, syscalls_left_out: 3))
  end

  def test_counts_are_not_compared_where_slices_were_overwritten_or_lost
    newest = KernelTrace.new(settings: { keep: "newest" }) { |t| t.syscall(:main, "read", 1, 2) }
    assert_fine(newest.build(syscalls: 7, sched_slices: 7))
    lost = KernelTrace.new do |t|
      t.cpu(:main, 0, 1, 2)
      t.event(:instant, :main, "trace", "loss", 3, reason: "the disk is full", lost: [:uint64, 4])
    end
    assert_fine(lost.build(syscalls: 7, sched_slices: 7, lost: 4))
  end
end
