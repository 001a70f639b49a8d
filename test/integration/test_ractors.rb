# Ractors exit side by side, each with its own ractor state; none waits, no event is lost, nothing
# crashes.
require_relative "helper"

class TestRactors < Integration::Test
  EXITS = 5_000
  WORK = <<~'RUBY'
    Warning[:experimental] = false
    def foo(n)
      i = 0
      while i < n
        ::RubyVM::ZJIT.induce_side_exit!
        i += 1
      end
      n
    end
    def bar(n)
      i = 0
      while i < n
        exits
        i += 1
      end
      n
    end
    def exits = ::RubyVM::ZJIT.induce_side_exit!
    3.times { exits }
    3.times { bar(1) }
  RUBY

  def four_ractors(exits, *flags, **options)
    script = WORK + <<~RUBY
      ractors = 4.times.map { |n| Ractor.new(n) { bar(#{exits}) } }
      p ractors.sum(&:value)
    RUBY
    result = trace(script, *flags, recorders: 5, **options)
    assert_equal "#{4 * exits}\n", result.out
    result.trace
  end

  def test_exits_of_four_ractors_add_up
    trace = four_ractors(EXITS)
    found = trace.exits("DirectiveInduced")
    by_frame = found.group_by { |event| event["thread"] }
    assert_equal trace.summary["exits"], trace.exits.size
    assert_equal 4 * EXITS, by_frame.except("main").values.sum(&:size)
  end

  def test_sampled_exits_of_four_ractors_count_all_the_same
    trace = four_ractors(EXITS, "--zjit-trace-exits-sample-rate=97")
    assert_operator trace.sites("DirectiveInduced").sum { |site| site["hits"] }, :>=, 4 * EXITS
    by_thread = trace.exits.group_by { |event| event["thread"] }.except("main").transform_values(&:size)
    assert_operator by_thread.values.sum, :>=, 4 * (EXITS / 97)
  end

  def test_each_ractor_has_its_own_thread
    trace = four_ractors(EXITS)
    ids = trace.exits("DirectiveInduced").map { |event| event["tid"] }.uniq
    assert_includes ids, trace.settings["pid"]
    assert_operator ids.size, :>, 1
    # Their native threads may be shared: then the event has the name.
    names = trace.exits("DirectiveInduced").map { |event| event["thread"] }.tally.except("main")
    assert_equal [4, [EXITS]], [names.keys.grep(/\ARactor #\d+\z/).size, names.values.uniq], names.inspect
  end

  # Each ractor exits in its own method, a hundred times between two readings of its native thread.
  # If both are the same, the hundred were there; otherwise they were on one of the two or, rarely,
  # moved twice.
  LOOKING = <<~'RUBY'
    Warning[:experimental] = false
    ractors, exits = ARGV.map { |argument| Integer(argument) }
    BIG = 2**62 - 1 # one more is no small integer
    ractors.times do |i|
      eval("def exit_#{i}(x) = x + 1\ndef hundred_#{i}(x)\n  i = 0\n  while i < 100\n    exit_#{i}(x)\n    i += 1\n  end\nend")
      30.times { send("hundred_#{i}", 1) }
    end
    ractors.times.map do |n|
      Ractor.new(n, exits) do |i, exits|
        hundred = :"hundred_#{i}"
        (exits / 100).times do |n|
          __send__(hundred, BIG)
          GC.start if n % 300 == i
          Array.new(50) { "garbage" }
        end
      end
    end.each(&:value)
  RUBY

  # By line: a method may have a site in each of its versions. So many events are not read into Ruby.
  HITS = <<~SQL
    SELECT SUM(EXTRACT_ARG(arg_set_id, 'hits')) FROM slice
    WHERE name = 'site' AND EXTRACT_ARG(arg_set_id, 'reason') = 'FixnumAddOverflow'
    GROUP BY EXTRACT_ARG(arg_set_id, 'location')
  SQL

  # Each addition that overflows is one exit of ZJIT's code; YJIT's leaves it to the interpreter in
  # some versions.
  (Integration::JIT == "zjit" ? [4, 16] : []).each do |ractors|
    define_method("test_#{ractors}_ractors_exit_100_000_times_each_while_the_gc_runs") do
      exits = 100_000
      result = trace(LOOKING, args: [ractors.to_s, exits.to_s], recorders: ractors + 1)
      recorded = Hash.new { |hash, ractor| hash[ractor] = Hash.new(0) }
      result.trace.exit_counts.each do |(reason, frame, tid, thread), count|
        refute_empty thread.to_s, "thread #{tid} has no name"
        recorded[frame[/\AObject#exit_(\d+) \(/, 1].to_i][tid] += count if reason == jit("FixnumAddOverflow")
      end
      # Whatever native threads ran it, its Ruby thread has one track.
      assert_equal [1], recorded.values.map(&:size).uniq
      assert_equal recorded.size, recorded.values.flat_map(&:keys).uniq.size
      # What a busy machine's disk is too slow for is counted, and sites count everything.
      lost = result.err[/, (\d+) events lost/, 1].to_i
      sums = recorded.sort.map { |_, tids| tids.values.sum }
      assert_equal [exits] * ractors, sums if lost == 0
      assert_includes 0..lost, ractors * exits - sums.sum, result.err
      assert_equal [exits] * ractors, result.trace.query(HITS).map { |hits,| hits.to_i }
    end
  end

  # A file of 4 MiB has three chunks, and a saved trace of 4 MiB of memory lasts while they record.
  def test_more_ractors_than_a_limited_file_has_chunks_lose_nothing
    script = WORK + "p 20.times.map { |n| Ractor.new { 10.times { bar(20); Ractor.new { exits }.value } } }.each(&:value).size\n"
    trace = trace(script, "--zjit-trace-max-size=4", recorders: 221).trace
    assert_equal 0, trace.summary["lost"]
    names = trace.exits("DirectiveInduced").map { |event| event["thread"] }.tally.except("main")
    assert_equal [[1, 200], [200, 20]], names.values.tally.sort
  end

  # A trace's table of threads has 255 places; each ractor has its own state, which ends with it,
  # and others continue in its chunk.
  def test_hundreds_of_ractors_born_and_dead_are_all_counted
    ractors = Integration::LONG ? 3000 : 400
    result = trace(WORK + <<~RUBY, recorders: ractors + 1)
      #{ractors}.times.each_slice(20) { |some| some.map { |n| Ractor.new { bar(25) } }.each(&:value) }
      puts File.read("/proc/self/status")[/^VmHWM:\\s*(\\d+)/, 1]
    RUBY
    counts = result.trace.exit_counts.select { |(reason, _, _, thread), _| reason == jit("DirectiveInduced") && thread != "main" }
    assert_equal 25 * ractors, counts.values.sum
    assert_empty counts.keys.select { |_, _, _, thread| thread.to_s.empty? }
    # When each kept a chunk until it was collected, this took 1 MiB of file and memory for each
    # ractor.
    assert_operator result.out.to_i, :<, 200_000, "KiB: what dead ractors recorded with is freed"
    assert_operator File.size(result.trace.path), :<, 100 << 20
  end

  # 64 have their own chunk, the others share one. All have exited before the first of them ends.
  def test_hundreds_of_ractors_alive_at_once_are_all_counted
    ractors = Integration::LONG ? 1000 : 200
    result = trace(WORK + <<~RUBY, recorders: ractors + 1)
      ractors = #{ractors}.times.map do |n|
        Ractor.new do
          bar(25)
          Ractor.main << :done
          Ractor.receive
          bar(5)
        end
      end
      #{ractors}.times { Ractor.receive }
      ractors.each { |ractor| ractor << :go }
      ractors.each(&:value)
    RUBY
    counts = result.trace.exit_counts.select { |(reason, _, _, thread), _| reason == jit("DirectiveInduced") && thread != "main" }
    assert_equal 30 * ractors, counts.values.sum, result.err
    assert_operator File.size(result.trace.path), :<, 100 << 20
  end

  def test_ractors_that_come_and_go_are_all_counted
    script = WORK + <<~'RUBY'
      40.times { |n| Ractor.new { bar(25) }.value }
      GC.start
      p 40.times.map { |n| Ractor.new { bar(25) } }.sum(&:value)
    RUBY
    trace = trace(script, recorders: 81).trace
    assert_equal 2000, trace.exits("DirectiveInduced").count { |event| event["thread"] != "main" }
  end

  # The unpatched 3.3 aborts in three of 80 parallel runs ("malloc_consolidate(): unaligned fastbin
  # chunk detected"), and sometimes hangs.
  ONE_BY_ONE = Integration::BASE < "ruby-4.0" ? "sleep 0.001 until Ractor.count == 1" : ""

  def test_compiling_and_invalidating_ractors_do_no_harm
    script = WORK + <<~RUBY
      ractors = 4.times.map do |n|
        ractor = Ractor.new(n) do |me|
          100.times do |i|
            name = "m\#{me}_\#{i}"
            klass = Class.new { class_eval("def \#{name}(x) = x > 3 ? x.to_s : x") }
            object = klass.new
            10.times { |x| object.send(name, x) }
          end
          GC.start
          me
        end
        #{ONE_BY_ONE}
        ractor
      end
      p ractors.sum(&:value)
    RUBY
    result = trace(script, "--zjit-trace-compiles", "--zjit-trace-invalidation", *("--zjit-trace-fallbacks" if JIT == "zjit"), recorders: 5)
    assert_equal "6\n", result.out
  end

  def test_a_program_that_ends_while_ractors_exit_ends_well
    script = WORK + <<~'RUBY'
      4.times.map { Ractor.new { bar(1000); Ractor.main << :exits; loop { bar(1000) } } }
      4.times { Ractor.receive }
      puts "done"
    RUBY
    # Ruby 4.1 runs as many ractors at once as there are processors; none of these waits, so that the main one would.
    result = run_traced(script, recorders: 5, env: { "RUBY_MAX_CPU" => "5" })
    assert_predicate result.status, :success?, result.err
    assert_equal "done\n", result.out
  end
end
