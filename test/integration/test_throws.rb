# A `break` or a `return` of a block is an exit where it starts and another where it is caught: a flow
# joins both. The program itself counts its jumps. YJIT's code throws without an exit.
require_relative "helper"

class TestThrows < Integration::Test
  PROGRAM = <<~'RUBY'
    A = [1, 2, 3, 4].freeze
    def breaks(a) = a.each { |x| break x if x > 2 }
    def returns(a)
      a.each { |x| return x if x > 2 }
    end
    def calls_it = returns(A)
    def ensured
      returns(A)
    ensure
      A.first
    end
    def raises = raise(ArgumentError)
    def rescued
      raises
    rescue ArgumentError
      1
    end
    def thrown = catch(:a) { throw :a, 1 }
  RUBY

  # [thrown at, caught at, flows], with the names of methods only.
  def pairs(trace)
    rows = trace.query(<<~SQL)
      SELECT (SELECT string_value FROM args WHERE arg_set_id = a.arg_set_id AND key = '0'),
             (SELECT string_value FROM args WHERE arg_set_id = b.arg_set_id AND key = '0'), COUNT(*)
      FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in
      WHERE b.name = 'ExceptionHandler' GROUP BY 1, 2 ORDER BY 1, 2
    SQL
    rows.map { |from, to, count| [bare_name(from), bare_name(to), Integer(count)] }
  end

  def bare_name(label) = label[/\A[^(]+(?= \()/].sub("Object#", "")

  def exits_at(trace, insn) = trace.exits.count { |event| event["args"]["insn"] == insn }

  def jumps(script, *flags, **options) = trace(PROGRAM + script, *flags, **options).trace

  def test_each_jump_is_joined_with_its_catch
    trace = jumps(<<~'RUBY')
      def all
        breaks(A)
        calls_it
        ensured
        rescued
        thrown
      end
      500.times { all }
    RUBY
    found = pairs(trace)
    assert_equal ["block in breaks", "block in returns"], found.map(&:first).uniq
    assert_equal %w[breaks], found.filter_map { |from, to, _| to if from == "block in breaks" }
    assert_equal %w[calls_it ensured], found.filter_map { |from, to, _| to if from == "block in returns" }
    # Each catches where it is compiled, and so from its second or third call on.
    found.each { |pair| assert_includes 480..500, pair.last, pair.inspect }
    # `raise` is a method in C: the exit where it is caught stands alone. `throw` and `catch` are, too.
    handlers = exits_at(trace, "(handler)")
    assert_operator handlers, :>, found.sum(&:last) + 450
    assert_operator exits_at(trace, "throw"), :>=, found.sum(&:last)
  end
  zjit_only :test_each_jump_is_joined_with_its_catch

  # An arrow leads to the frame that catches, on the same track. There are as many as in the report.
  def test_threads_fibers_and_ractors_each_join_their_own
    trace = trace(PROGRAM + <<~'RUBY', "-W:no-experimental", recorders: 3).trace
      work = proc { 200.times { breaks([1, 2, 3, 4]); Thread.pass } }
      threads = 3.times.map { Thread.new { 200.times { calls_it; Thread.pass } } }
      fibers = 3.times.map { Fiber.new { 200.times { breaks(A); Fiber.yield } } }
      201.times { fibers.each { |fiber| fiber.resume if fiber.alive? } }
      ractors = 2.times.map { Ractor.new { 200.times { breaks([1, 2, 3, 4]) } } }
      threads.each(&:join)
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    found = pairs(trace)
    assert_equal [["block in breaks", "breaks"], ["block in returns", "calls_it"]], found.map { |pair| pair.first(2) }
    between_tracks = trace.query(<<~SQL)
      SELECT COUNT(*) FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in
      WHERE a.track_id != b.track_id
    SQL
    assert_equal [["0"]], between_tracks
    json = IO.popen([Trace::TOOL, "report", "--format=json", trace.path], &:read)
    report = JSON.parse(json)["throws"]["rows"]
    assert_equal found.map(&:last).sort, report.map { |row| row["count"] }.sort
    assert_operator found.sum(&:last), :>, 1000
  end
  zjit_only :test_threads_fibers_and_ractors_each_join_their_own

  # What an interpreted frame catches has no second exit, and the next handler is not taken for it.
  def test_a_jump_that_an_interpreted_frame_catches_is_joined_with_nothing
    trace = jumps(<<~'RUBY')
      60.times { breaks(A); rescued }
      at_once = "def interpreted#{0} = A.each { |x| break x if x > 2 }"
      300.times { |i| eval(at_once.sub("0", i.to_s)); send("interpreted#{i}") }
      60.times { rescued }
    RUBY
    assert_equal ["breaks"], pairs(trace).map { |_, to, _| to }.uniq - ["block in <main>"]
  end
  zjit_only :test_a_jump_that_an_interpreted_frame_catches_is_joined_with_nothing

  # One in K is recorded: the next recorded exit is not the next exit.
  def test_samples_are_not_joined
    trace = jumps("2000.times { breaks(A); calls_it }", "--zjit-trace-exits-sample-rate=7")
    refute_empty trace.exits
    assert_empty pairs(trace)
  end
  zjit_only :test_samples_are_not_joined

  # Each flow follows its event in the same chunk (`vm-trace check`), over many chunks, also when the
  # first part of the trace is gone.
  def test_many_jumps_and_those_of_a_flight_recorder
    trace = jumps("60_000.times { breaks(A) }")
    assert_includes 59_990..60_000, pairs(trace).sum(&:last)
    trace = jumps("60_000.times { breaks(A) }", "--zjit-trace-max-size=4")
    assert_operator pairs(trace).sum(&:last), :>, 1000
  end
  zjit_only :test_many_jumps_and_those_of_a_flight_recorder

  def test_compiled_code_that_throws_without_an_exit_has_no_pairs
    trace = jumps("500.times { breaks(A); calls_it }")
    assert_empty pairs(trace)
  end
  yjit_only :test_compiled_code_that_throws_without_an_exit_has_no_pairs
end
