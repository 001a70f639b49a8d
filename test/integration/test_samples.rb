# Exits as stack samples: as many as exits, of the same times, with their stacks; a deep stack costs
# few bytes; and the tool reads what Perfetto reads.
#
# Once for each JIT: stacks are tested for each pair in test_stacks.
require_relative "helper"
require "csv"
require "open3"

class TestSamples < Integration::Test
  STACKS = <<~SQL
    WITH RECURSIVE frames(sample, site, depth) AS (
      SELECT s.id, s.callsite_id, c.depth FROM stack_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id
      UNION ALL
        SELECT sample, c.parent_id, frames.depth - 1 FROM frames JOIN stack_profile_callsite c ON c.id = site
        WHERE frames.depth > 0)
    SELECT s.id, s.ts, t.tid, w.value, m.name, f.name, y.source_file, y.line_number
    FROM frames JOIN stack_sample s ON s.id = sample JOIN stack_profile_callsite c ON c.id = site
      JOIN stack_profile_frame f ON f.id = c.frame_id JOIN stack_profile_mapping m ON m.id = f.mapping
      JOIN stack_profile_symbol y ON y.symbol_set_id = f.symbol_set_id
      JOIN stack_sample_task_context x ON x.id = s.task_context_id JOIN thread t USING (utid)
      JOIN stack_sample_counter w ON w.stack_sample_id = s.id
      JOIN stack_sample_counter_track k ON k.id = w.track_id AND k.name = 'exits'
    ORDER BY s.id, frames.depth
  SQL

  Sample = Struct.new(:ts, :tid, :weight, :frames)

  def query(path, sql)
    out, err, status = Open3.capture3(Trace::TOOL, "query", path, sql)
    assert_predicate status, :success?, err
    CSV.parse(out.force_encoding("UTF-8"), headers: true)
  end

  # The rows of a query whose columns are numbers.
  def numbers(path, sql) = query(path, sql).map { |row| row.fields.map { |field| field.to_r.to_i } }

  # Frames are "mapping function path:line", outermost first.
  def samples(path)
    query(path, STACKS).map(&:fields).group_by(&:first).values.map do |rows|
      frames = rows.map { |_, _, _, _, mapping, function, file, line| "#{mapping} #{function} #{file}:#{line}" }
      Sample.new(rows[0][1].to_i, rows[0][2].to_i, rows[0][3].to_f.to_i, frames)
    end
  end

  def times_of(trace) = trace.exits.map { |event| event["ts"] }.sort

  SCRIPT = <<~'RUBY'
    class Foo
      def exits = (::RubyVM::ZJIT.induce_side_exit!)
      def calls = [1].each { exits }
    end
    foo = Foo.new
    i = 0
    while i < 100
      foo.calls
      i += 1
    end
  RUBY

  def test_each_exit_has_a_sample_of_its_stack
    trace = trace(SCRIPT, "--vm-trace=exits:samples").trace
    found = samples(trace.path)
    refute_empty found
    assert_equal trace.exits.size, found.size
    times = numbers(trace.path, "SELECT ts FROM slice WHERE category LIKE '%_exit' ORDER BY ts").flatten
    assert_equal times, found.map(&:ts)
    assert_equal [trace.settings["pid"]], found.map(&:tid).uniq
    assert_equal [1], found.map(&:weight).uniq
    stack = found.map(&:frames).find { |frames| frames.last == "/jit Foo#exits script.rb:2" }
    assert_equal "/interpreted <main> script.rb:8", stack.first
    assert_includes stack, "/interpreted block in Foo#calls script.rb:3"
    assert_match(/exits:samples/, trace.settings["flags"])
  end

  def test_a_sample_weighs_the_exits_that_it_stands_for
    trace = trace(SCRIPT, "--zjit-trace-exits-sample-rate=7", "--vm-trace=exits:samples").trace
    found = samples(trace.path)
    refute_empty found
    assert_equal trace.exits.size, found.size
    assert_equal [7], found.map(&:weight).uniq
  end

  def test_without_the_option_there_are_none
    trace = trace(SCRIPT).trace
    assert_empty samples(trace.path)
    refute_match(/samples/, trace.settings["flags"].to_s)
  end

  # Two methods that call each other: no frame follows itself.
  DEEP = <<~'RUBY'
    def even(n, at, v)
      return v + 1 if n == at
      odd(n + 1, at, v)
    end
    def odd(n, at, v)
      return v + 1 if n == at
      even(n + 1, at, v)
    end
    1000.times { even(0, 1, 1); even(0, 2, 1) }
    500.upto(1499) { |at| even(0, at, 2**62 - 1) }
  RUBY

  COUNTS_BY_FRAME = <<~SQL
    SELECT a.display_value AS frame, COUNT(*) AS count
    FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0'
    WHERE s.category LIKE '%_exit' GROUP BY 1
  SQL

  def test_a_thousand_depths_from_500_frames_on_cost_few_bytes_an_exit
    { [] => 120, ["--zjit-trace-stack=10"] => 180 }.each do |flags, most|
      trace = trace(DEEP, "--vm-trace=exits:samples", *flags).trace
      exits = trace.exits
      assert_operator exits.size, :>=, 500
      assert_equal exits.size, samples(trace.path).size
      assert_operator File.size(trace.path) / exits.size, :<=, most
      assert_kind_of Integer, exits.last["args"]["10+"]
      counted = query(trace.path, COUNTS_BY_FRAME).to_h { |row| [row["frame"], row["count"].to_i] }
      assert_equal exits.map { |event| event["args"]["0"] }.tally, counted
    end
  end

  def test_repetitions_are_there_once
    found = samples(trace(DEEP, "--vm-trace=exits:samples").trace.path)
    assert_operator found.map(&:frames).uniq.size, :<, 20
    assert_operator found.map { |sample| sample.frames.size }.max, :<, 20
  end

  # Applications have hundreds of frames. All of them are in the stack.
  def test_stacks_of_300_methods_are_whole
    script = "300.times { |i| eval(\"def m\#{i} = m\#{i + 1}\") }\n" \
             "def m300 = (::RubyVM::ZJIT.induce_side_exit!)\n20.times { m0 }\n"
    found = samples(trace(script, "--vm-trace=exits:samples").trace.path)
    deep = found.map { |sample| sample.frames.grep(/#m\d/) }.select { |frames| frames.last&.include?("#m300 ") }
    refute_empty deep
    deep.each { |frames| assert_equal (0..300).map { |i| "Object#m#{i}" }, frames.map { |frame| frame[/\S+#m\d+/] } }
  end

  STARTED = <<~'RUBY'
    def exits = (::RubyVM::ZJIT.induce_side_exit!)
    def work = 100.times { exits }
    work
    RubyVM::Trace.start(file: "a.fxt", exit_samples: true)
    work
    RubyVM::Trace.stop
    RubyVM::Trace.start(file: "b.fxt")
    work
    RubyVM::Trace.stop
    RubyVM::Trace.start(memory: 4, exit_samples: true)
    work
    RubyVM::Trace.reset
    work
    RubyVM::Trace.save("c.fxt")
    RubyVM::Trace.stop
  RUBY

  def test_started_by_the_program_and_saved_from_memory
    result = run_ruby(STARTED, "--zjit", "--zjit-call-threshold=2")
    assert_predicate result.status, :success?, result.err
    a, b, c = %w[a b c].map { |name| result.traces.find { |trace| trace.path.end_with?("/#{name}.fxt") } }
    assert_operator a.exits.size, :>, 0
    assert_equal a.exits.size, samples(a.path).size
    assert_empty samples(b.path)
    assert_equal c.exits.size, samples(c.path).size, "what came before the reset is left out"
  end

  RACTORS = <<~'RUBY'
    def exits = (::RubyVM::ZJIT.induce_side_exit!)
    def work = 200.times { exits }
    work
    Array.new(3) { Ractor.new { work } }.each { |r| r.respond_to?(:value) ? r.value : r.take }
    Array.new(3) { Thread.new { work } }.each(&:join)
    Fiber.new { work }.resume
  RUBY

  EXITS_BY_THREAD = <<~SQL
    SELECT s.ts, t.tid FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid)
    WHERE s.category LIKE '%_exit'
  SQL

  def test_samples_are_on_the_threads_of_their_exits
    trace = trace(RACTORS, "-W0", "--vm-trace=exits:samples", recorders: 4).trace
    on_threads = numbers(trace.path, EXITS_BY_THREAD)
    found = samples(trace.path)
    assert_equal on_threads.sort, found.map { |sample| [sample.ts, sample.tid] }.sort
    assert_operator found.map(&:tid).uniq.size, :>=, 5
    assert_equal [["ruby.exits"]], query(trace.path, "SELECT source FROM stack_sample_session").map(&:fields)
  end

  LOST = <<~'RUBY'
    def work
      ::RubyVM::ZJIT.induce_side_exit!
      i = 0
      i += 1 while i < 50_000
      i
    end
    30.times { work }
  RUBY

  LOST_BY_EVENTS = <<~SQL
    SELECT s.ts, a.int_value FROM slice s JOIN args a USING (arg_set_id)
    WHERE a.key = 'lost_ns' AND s.category LIKE '%_exit' ORDER BY 1
  SQL
  LOST_BY_SAMPLES = <<~SQL
    SELECT s.ts, w.value FROM stack_sample s JOIN stack_sample_counter w ON w.stack_sample_id = s.id
      JOIN stack_sample_counter_track k ON k.id = w.track_id AND k.name = 'lost time' ORDER BY 1
  SQL

  def test_lost_time_is_that_of_the_events
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), jit(LOST))
    flags = %w[--zjit --zjit-call-threshold=2 --vm-trace=states,exits:rate=1:samples --vm-trace-file=t.fxt]
    result = run_in(dir, *flags, "script.rb")
    assert_predicate result.status, :success?, result.err
    path = File.join(dir, "t.fxt")
    lost = numbers(path, LOST_BY_SAMPLES)
    assert_equal numbers(path, LOST_BY_EVENTS), lost
    assert_operator lost.sum(&:last), :>, 0
  end
end
