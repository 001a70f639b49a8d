# Ractors exit side by side, each with a recorder of its own; none waits, none is lost, nothing crashes.
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

  def test_compiling_and_invalidating_ractors_do_no_harm
    script = WORK + <<~'RUBY'
      ractors = 4.times.map do |n|
        Ractor.new(n) do |me|
          100.times do |i|
            name = "m#{me}_#{i}"
            klass = Class.new { class_eval("def #{name}(x) = x > 3 ? x.to_s : x") }
            object = klass.new
            10.times { |x| object.send(name, x) }
          end
          GC.start
          me
        end
      end
      p ractors.sum(&:value)
    RUBY
    result = trace(script, "--zjit-trace-compiles", "--zjit-trace-invalidation", "--zjit-trace-fallbacks", recorders: 5)
    assert_equal "6\n", result.out
  end

  def test_a_program_that_ends_while_ractors_exit_ends_well
    script = WORK + <<~'RUBY'
      4.times.map { Ractor.new { loop { bar(1000) } } }
      sleep 0.3
      puts "done"
    RUBY
    result = run_traced(script, recorders: 5)
    assert_predicate result.status, :success?, result.err
    assert_equal "done\n", result.out
  end
end
