# A page with all kinds of sections, for tests that are about all of them.
require_relative "page_helper"
require_relative "samples_trace"

module PageOfAll
  include PageHelper

  LONG = "ActiveRecord::ConnectionAdapters::PostgreSQLAdapter#exec_query_with_prepared_statement_cache"

  # All kinds of sections: exits with lost times and sources, threads, GC, calls, system calls, CPUs, samples.
  def with_all(*options, **size)
    Dir.mktmpdir do |dir|
      source = File.join(File.realpath(dir), "foo.rb")
      File.write(source, (1..60).map { |i| "line_#{i}_ of the source\n" }.join)
      File.utime(0, 0, source)
      recorded = %w[kernel.fxt calls.fxt gvl.fxt].to_h { |name| [name, File.binread(File.join(TRACES, name))] }
      files = { "samples.fxt" => samples, **recorded }
      paths = files.map { |name, bytes| File.join(dir, name).tap { |path| File.binwrite(path, bytes) } }
      browse(states(source), "--sources", "--below=/", *options, *paths, **size) do |browser|
        wait_for_calls(browser)
        yield browser
      end
    end
  end

  def states(source)
    StatesTrace.new do |t|
      t.thread(:worker, 44)
      14.times do |i|
        reason, place, count = "GuardType(Fixnum#{i})", "#{LONG}#{i} (#{source}:#{3 + i})", 20 - i
        count.times { |n| t.exits(:main, reason, place, 2 + i + n, lost: 0.1) }
        t.site(reason, place, count, lost: count * 0.1, max: 0.1)
      end
      t.exits(:main, "NoProfileSend", "Foo#bar (/app/foo.rb:9)", 60, kind: "recompile_exit", lost: 1,
              outcome: "version_limit")
      t.exits(:main, "SendPolymorphic", "Foo#bar (/app/foo.rb:4)", 61, kind: "fallback", lost: nil)
      t.interpreted("#{LONG} (/app/a.rb:1)", "uncompilable", 70, 10, first: 1, last: 90)
      t.calls("#{LONG}_again (/app/a.rb:9)", "compiled", 1600, 16)
      t.calls("#{LONG}_again (/app/a.rb:9)", "exited", 320, 9.6)
      t.states(:main, exited: 20, compiled: 50, uncompilable: 10)
      t.slice(:main, "compiled", 1, 30)
      t.slice(:main, "interpreted", 30, 60, reason: "GuardType(Fixnum1)")
    end.build
  end

  def samples
    SamplesTrace.new do |t|
      7.times do |i|
        stack = ["<main> (/app/run.rb:1)", "Foo#work#{i} (/app/foo.rb:#{i})", "Array#each (<internal:array>:3)"]
        (3 + i).times { |n| t.sample(:main, 1 + i * 10 + n, 1, SamplesTrace::STATES[i], *stack) }
      end
    end.build.bytes
  end
end
