# Exactly one exit in K is recorded, with its weight, and every exit is counted whatever K is.
require_relative "helper"

class TestCounts < Integration::Test
  EXITS = 1000
  REASON = "DirectiveInduced"

  # Compiled at its second call, then one exit for each call.
  SCRIPT = <<~'RUBY'
    def exit_at(n)
      ::RubyVM::ZJIT.induce_side_exit! if n >= 0
      n
    end
    3.times { exit_at(-1) }
    n = 0
    while n < Integer(ARGV.fetch(0))
      exit_at(n)
      n += 1
    end
  RUBY

  def counts(exits, *flags)
    trace(SCRIPT, *flags, args: [exits.to_s]).trace
  end

  # How many recorded exits have each weight: counted by the tool, for backtraces of a long trace take seconds to parse.
  def weights(trace)
    sql = "SELECT a.int_value, COUNT(*) FROM slice s LEFT JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = 'weight' " \
          "WHERE s.name = '#{jit(REASON)}' AND s.category LIKE '%_exit' GROUP BY 1"
    trace.query(sql).to_h { |weight, count| [Integer(weight, exception: false), count.to_i] }
  end

  def assert_one_in(rate, exits, trace)
    recorded = weights(trace)
    assert_equal [exits], trace.sites(REASON).map { |site| site["hits"] }
    assert_equal exits, trace.summary["exits"], "no other exit than those induced"
    assert_equal exits / rate, recorded.values.sum
    assert_equal exits / rate, trace.summary["sampled"]
    assert_equal [rate == 1 ? nil : rate], recorded.keys
    assert_equal rate, trace.settings["exit_rate"]
  end

  def test_every_exit_is_recorded_without_a_rate
    assert_one_in 1, EXITS, counts(EXITS)
  end

  [1, 2, 97, EXITS].each do |rate|
    define_method("test_one_exit_in_#{rate}_is_recorded") do
      assert_one_in rate, EXITS, counts(EXITS, "--zjit-trace-exits-sample-rate=#{rate}")
    end
  end

  def test_a_rate_above_the_number_of_exits_records_none_and_counts_all
    trace = counts(EXITS, "--zjit-trace-exits-sample-rate=#{EXITS + 1}")
    assert_empty trace.exits
    assert_equal [EXITS], trace.sites(REASON).map { |site| site["hits"] }
    assert_equal [EXITS, 0], trace.summary.values_at("exits", "sampled")
  end

  def test_the_largest_rate_is_taken
    trace = counts(EXITS, "--zjit-trace-exits-sample-rate=4294967295")
    assert_equal 4_294_967_295, trace.settings["exit_rate"]
    assert_equal EXITS, trace.summary["exits"]
  end

  def test_the_exits_recorded_are_every_kth
    script = <<~'RUBY'
      def count_to(n)
        i = 0
        while i < n
          i += 1
          line_of(i)
        end
      end
      # Ten exits at ten lines in turn.
      def line_of(i)
        case i % 10
        when 0 then ::RubyVM::ZJIT.induce_side_exit!
        when 1 then ::RubyVM::ZJIT.induce_side_exit!
        when 2 then ::RubyVM::ZJIT.induce_side_exit!
        when 3 then ::RubyVM::ZJIT.induce_side_exit!
        when 4 then ::RubyVM::ZJIT.induce_side_exit!
        when 5 then ::RubyVM::ZJIT.induce_side_exit!
        when 6 then ::RubyVM::ZJIT.induce_side_exit!
        when 7 then ::RubyVM::ZJIT.induce_side_exit!
        when 8 then ::RubyVM::ZJIT.induce_side_exit!
        when 9 then ::RubyVM::ZJIT.induce_side_exit!
        end
      end
      2.times { line_of(0) }
      count_to(200)
    RUBY
    all = trace(script).trace.exits(REASON).map { |event| event["args"]["0"] }
    assert_operator all.size, :>=, 200
    third = trace(script, "--zjit-trace-exits-sample-rate=3").trace.exits(REASON).map { |event| event["args"]["0"] }
    assert_equal all.each_slice(3).filter_map { |slice| slice[2] }, third
  end

  def test_a_sample_rate_alone_traces
    result = run_ruby(SCRIPT, "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", "--zjit-trace-exits-sample-rate=2", args: ["100"])
    assert_predicate result.status, :success?
    assert_one_in 2, 100, result.trace
  end

  def test_a_counter_and_a_rate_go_together_in_any_order
    flags = %w[--zjit-trace-exits=exit_directive_induced --zjit-trace-exits-sample-rate=7]
    [flags, flags.reverse].each do |order|
      result = run_ruby(SCRIPT, "--zjit-call-threshold=2", "--zjit-trace-file=%p.fxt", *order, args: ["100"])
      assert_one_in 7, 100, result.trace
      assert_equal jit("exit_directive_induced"), result.trace.settings["counter"]
    end
  end

  # The counter of the last site is far from the first one, in memory and for an instruction's
  # displacement.
  def test_each_of_many_thousand_sites_has_its_own_count
    trace = trace(<<~'RUBY').trace
      names = 5000.times.map { |i| "m#{i}" }
      eval(names.each_with_index.map { |name, i| "def #{name} = (::RubyVM::ZJIT.induce_side_exit! if $on; #{i})" }.join("\n"), nil, "many.rb")
      eval("def all\n#{names.join("\n")}\nend", nil, "all.rb")
      3.times { all }
      $on = true
      3.times { all }
      2000.times { m0; m4999 }
    RUBY
    # A method that is inlined somewhere also has a site there.
    hits = trace.sites(REASON).group_by { |site| site["location"] }.transform_values { |sites| sites.sum { |site| site["hits"] } }
    assert_equal 5000, hits.size
    first, last = %w[Object#m0\ (many.rb:1) Object#m4999\ (many.rb:5000)].map { |location| hits.delete(location) }
    assert_equal 1, hits.values.uniq.size, hits.values.tally
    [first, last].each { |count| assert_equal 2000 + hits.values.first, count }
  end

  # Many chunks: a chunk is 1 MiB, an event of one frame some 50 bytes.
  def test_a_hundred_thousand_exits_are_each_recorded
    assert_one_in 1, 100_000, counts(100_000)
  end
end
