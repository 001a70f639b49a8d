# System calls and times on CPUs in the page of `vm-trace html`: the numbers of the report, in tables.
require_relative "page_helper"

class TestHtmlKernel < Minitest::Test
  include PageHelper

  FIXTURE = File.join(TRACES, "kernel.fxt")
  CPU_COLUMNS = %w[pid tid thread cpu_ns preempted_ns woken_ns longest_wait_ns runs migrations
                   gvl_without_cpu_ns].freeze

  def report = JSON.parse(tool("report", "--syscalls", "--sched", "--top=1000", "--format=json", FIXTURE).out)

  def columns(table, *names) = report.fetch(table)["rows"].map { |row| row.values_at(*names) }

  def test_numbers_are_those_of_the_report
    data = data_of(page(File.binread(FIXTURE)))
    text = ->(number) { data["strings"][number] }
    syscalls = data["syscalls"].map do |name, ns, calls, max, errors, errno, open, *|
      [text[name], ns, calls, max, errors, errors > 0 ? text[errno] : nil, open]
    end
    assert_equal columns("syscalls", "syscall", "total_ns", "calls", "max_ns", "errors", "errno", "not_returned"),
                 syscalls
    methods = columns("syscall_methods", "method", "total_ns", "calls", "syscalls")
    methods.each { |row| row[0] = "" if row[0] == "(outside recorded calls)" }
    assert_equal methods, data["syscall_methods"].map { |method, ns, calls, names| [text[method], ns, calls, names] }
    assert_equal columns("cpu", *CPU_COLUMNS), data["cpus"].map { |process, *row| [data["processes"][process][0], *row.first(9)] }
    assert_equal columns("cpu_others", "other", "tid", "thread", "waits", "total_ns"),
                 data["cpu_others"].map { |task, tid, thread, waits, ns| [text[task], tid, thread, waits, ns] }
    assert_equal 12, data["slices_too_short"]
    assert_equal columns("syscalls", "total_ns").flatten.sum, data["syscall_ns"]
  end

  def test_tracks_of_cpus_are_no_threads
    data = data_of(page(File.binread(FIXTURE)))
    assert_equal %w[main timer worker], data["threads"].map { |_, _, name, _| data["strings"][name] }.sort
  end

  def test_other_traces_have_none_of_it
    data = data_of(page(File.binread(File.join(TRACES, "gvl.fxt"))))
    assert_empty data.keys.grep(/syscall|cpu/)
  end

  def test_tables_in_a_browser
    browse(File.binread(FIXTURE)) do |browser|
      assert_equal ["poll", "", "49.00 ms", "60.1 %", "1", "49.00 ms", "0"], cells(browser, "#syscalls tbody tr").first
      assert_equal ["futex", "ETIMEDOUT"], cells(browser, "#syscalls tbody tr")[1].first(2)
      assert_equal ["(outside recorded calls)", "exit 1, poll 1, syscall 470 1", "50.50 ms", "3"],
                   cells(browser, "#syscall-methods tbody tr").first
      assert_equal ["main", "43", "59.00 ms", "15.00 ms", "1.00 ms", "15.00 ms", "3", "2", "15.00 ms"],
                   cells(browser, "#cpus tbody tr").first
      assert_equal ["cc1 77", "main", "43", "1", "15.00 ms"], cells(browser, "#cpu-others tbody tr").first
    end
  end

  def test_the_section_is_hidden_without_these_streams
    browse(File.binread(File.join(TRACES, "gvl.fxt"))) do |browser|
      assert_equal "none", browser.run("return getComputedStyle(document.getElementById('kernel')).display")
    end
  end
end
