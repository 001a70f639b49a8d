# Processes with the same pid and threads with the same tid, as in two containers, stay apart in the page of
# `vm-trace html`: in two files, and in one that `merge` made. Pieces of a spool are one process.
require_relative "page_helper"

class TestHtmlProcesses < Minitest::Test
  include PageHelper

  MS = 1_000_000
  PID, TID = 7, 7
  FRAME = "Foo#bar (/app/foo.rb:3)".freeze

  # Runs for `ms` at a time from the begin on, so many times, as long blocked in between: in a marker, with a GC pause
  # and an exit each time, which it interprets.
  def recording(host, ms, times:, thread: "main", begin_ms: 0)
    FxtBuilder.new.tap do |b|
      b.provider(1, "ruby vm_trace")
      b.init
      b.thread(1, PID, TID)
      b.thread_name(PID, TID, thread)
      at = begin_ms * MS
      settings = { "pid" => [:uint32, PID], "flags" => "exits threads gc states", "ruby" => host }
      b.event(:instant, "trace", "settings", ts: at, args: settings)
      b.event(:instant, "trace", "host", ts: at, args: { "host" => host, "unix_ns" => [:uint64, 1] })
      b.event(:begin, "marker", "in #{host}", ts: at)
      times.times do
        b.switch(at, 0, 1)
        b.event(:begin, "gc", "minor", ts: at + 1, args: { "reason" => "newobj" })
        b.event(:end, "gc", "minor", ts: at + 1001)
        b.exit("GuardType(Fixnum)", FRAME, ts: at + 2000, lost_ns: 10)
        b.event(:complete, "execution", "interpreted", ts: at + 3000, extra: [at + 3500])
        b.event(:complete, "call", "A#a (a.rb:1)", ts: at + 4000, extra: [at + 5000])
        b.switch(at += ms * MS, 1, 0, state: 3)
        b.wakeup(at += ms * MS, TID)
      end
      b.switch(at, 0, 1)
      b.switch(at, 1, 0, state: 4)
      b.event(:end, "marker", "in #{host}", ts: at)
    end
  end

  def names_of(data, texts) = texts.map { |text| data["strings"][text] }

  # Each track by its process: [pid, tid, name, ns by state]
  def tracks_of(data)
    data["timeline"]["tracks"].to_h do |process, tid, name, *, segments|
      ns = [0, 0, 0, 0]
      at = 0
      until segments.empty?
        what, gap, length = segments.shift(3)
        flunk "folded" if what & 4 != 0
        segments.shift(2) if what & 8 != 0
        segments.shift if what & 16 != 0
        ns[what & 3] += length
        at += gap + length
      end
      [process, [data["processes"][process][0], tid, data["strings"][name], ns]]
    end
  end

  def assert_both(data)
    assert_equal [PID, PID], data["processes"].map(&:first)
    assert_equal({ 0 => [PID, TID, "main", [0, 20 * MS, 2 * 1000, 20 * MS - 2 * 1000]],
                   1 => [PID, TID, "worker", [0, 21 * MS, 3 * 1000, 21 * MS - 3 * 1000]] }, tracks_of(data))
    assert_equal [[0, "main", 12], [1, "worker", 16]],
                 data["threads"].map { |process, _, name, events| [process, data["strings"][name], events] }
    assert_equal [[0, "main", 2], [1, "worker", 3]],
                 data["slices"].map { |process, name, numbers| [process, data["strings"][name], numbers.size / 5] }
    assert_equal [[0, TID, 2], [1, TID, 3]], data["calls"]["tracks"].map { |process, tid, _, slices| [process, tid, slices] }
    assert_equal 2 + 3, data["exits"]
    assert_equal 2 + 3, data["calls"]["recorded"]
  end

  def two
    with_file(recording("web1", 10, times: 2), "one.fxt") do |one|
      with_file(recording("web2", 7, times: 3, thread: "worker"), "two.fxt") { |other| yield one, other }
    end
  end

  def test_two_files
    two do |*files|
      result = tool("html", *files)
      assert_equal ["", 0], [result.err, result.status]
      data = data_of(result.out)
      assert_both(data)
      assert_equal ["web1, #{files[0]}", "web2, #{files[1]}"], data["processes"].map(&:last)
    end
  end

  def test_a_merged_file
    two do |*files|
      merged = "#{files[0]}.merged"
      tool("merge", *files, "-o", merged)
      data = data_of(tool("html", merged).out)
      assert_both(data)
      assert_equal ["web1, #{merged}, recording 1", "web2, #{merged}, recording 2"], data["processes"].map(&:last)
      threads = JSON.parse(tool("export", "--format=firefox", merged).out)["threads"]
      assert_equal [%w[7 main], %w[7-2 worker]], threads.map { |thread| thread.values_at("pid", "name") }
    end
  end

  def test_a_pid_of_one_process_needs_no_place
    data = data_of(page(recording("web1", 10, times: 2).bytes))
    assert_equal [[PID, ""]], data["processes"]
  end

  # As files, and merged.
  def test_pieces_of_a_spool_are_one_process
    Dir.mktmpdir do |dir|
      pieces = [1, 2].map do |number|
        path = "#{dir}/web1-7-20261126T221504-#{number}-size.fxt"
        File.binwrite(path, recording("web1", 10, times: 2, begin_ms: 40 * (number - 1)).bytes)
        path
      end
      merged = "#{dir}/merged.fxt"
      assert_equal ["", 0], tool("merge", *pieces, "-o", merged).then { |result| [result.err, result.status] }
      [pieces, [merged]].each do |files|
        data = data_of(tool("html", *files).out)
        assert_equal [[PID, ""]], data["processes"]
        assert_equal [[PID, TID, "main", [0, 40 * MS, 4 * 1000, 40 * MS - 4 * 1000]]], tracks_of(data).values
      end
    end
  end

  def test_the_page_tells_them_apart
    skip_without_browser
    with_file(recording("web1", 10, times: 2), "one.fxt") do |one|
      with_file(recording("web2", 7, times: 3), "two.fxt") do |other|
        tool("html", one, other, "-o", "#{one}.html")
        browse_file("#{one}.html") do |browser|
          about = browser.run("return document.getElementById('about').innerText")
          labels = browser.map("#tracks .label", "e.textContent")
          %W[web1,\ #{one} web2,\ #{other}].each do |place|
            assert_includes about, "#{PID} (#{place}) / #{TID}"
            assert_includes labels, "main #{TID} (#{place})"
          end
        end
      end
    end
  end
end
