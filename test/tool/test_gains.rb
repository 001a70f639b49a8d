# What `vm-trace` makes of trace/calls and trace/interpreted: how long calls of a method take with and
# without compiled code, and what it would gain if no call were slow.
require_relative "tool_helper"
require_relative "page_helper"

class TestGains < Minitest::Test
  include PageHelper

  MS = 1_000_000
  F, G, H = "Foo#f (/app/foo.rb:3)", "Foo#g (/app/foo.rb:9)", "block in Foo#h (/app/foo.rb:20)"

  def report(trace, *options)
    with_file(trace) { |path| return tool("report", *options, path).out }
  end

  def json(trace, *options) = JSON.parse(report(trace, "--format=json", *options))

  # [method, gain in ms] of the table; nil without one
  def gains(trace, *options)
    table = json(trace, *options)["estimated_gains"]
    table && table["rows"].map { |row| [row["method"], row["gain_ns"] / MS.to_f] }
  end

  def trace(&block)
    StatesTrace.new do |t|
      t.states(:main, compiled: 70, exited: 30)
      t.exits(:main, "R", F, 5, lost: 30)
      t.site("R", F, 1, lost: 30)
      block.call(t)
    end.build
  end

  # Calls of a method that took 10 us in compiled code, and 30 us when they left it.
  def fast_and_slow_calls(t, method)
    t.calls(method, "compiled", 1600, 16)
    t.calls(method, "exited", 320, 9.6)
  end

  def profiled_again(t, method, calls, ms, **options)
    t.interpreted(method, "profiled again", calls, ms, first: 1, last: 2, **options)
  end

  def test_gain_is_what_slow_calls_take_longer
    given = trace do |t|
      fast_and_slow_calls(t, F)
      t.calls(G, "compiled", 160, 1.6)
      t.interpreted(G, "cannot be compiled", 320, 20, ran: 22.4, first: 1, last: 2)
      profiled_again(t, G, 10, 0.5, ran: 0.6)
      t.calls(H, "compiled", 1600, 16)
    end
    assert_equal [[G, 19.7], [F, 6.4]], gains(given)
    assert_equal({ "gain_ns" => 6_400_000, "time_share" => 0.064, "method" => F,
                   "slow_calls" => 320, "slow_ns_per_call" => 30_000,
                   "exited_calls" => 320, "exited_ns_per_call" => 30_000,
                   "interpreted_calls" => 0, "interpreted_ns_per_call" => nil,
                   "compiled_calls" => 1600, "compiled_ns_per_call" => 10_000 },
                 json(given)["estimated_gains"]["rows"][1])
    assert_includes report(given).gsub(/^ +/, ""), <<~TEXT
      Estimated gain, if slow calls (exited, or interpreted afterwards) took as long as compiled ones
      gain      %  slow calls     each  compiled calls     each  method
      19.7 ms  19.7%         330  69.7 us             160  10.0 us  Foo#g (/app/foo.rb:9)
      6400.0 us   6.4%         320  30.0 us           1,600  10.0 us  Foo#f (/app/foo.rb:3)
    TEXT
  end

  # One in 16 calls is timed of those that began in compiled code, or whose method was given up.
  def test_few_calls_are_no_estimate
    few = [["exited", 144, 160], ["profiled again", 9, 10], ["cannot be compiled", 144, 160]]
    few.each do |state, too_few, enough|
      [[160, too_few, nil], [160, enough, F], [144, enough, nil]].each do |compiled, slow, expected|
        given = trace do |t|
          t.calls(F, "compiled", compiled, 0.001)
          if state == "exited"
            t.calls(F, state, slow, 5)
          else
            t.interpreted(F, state, slow, 0, ran: 5, first: 1, last: 2)
          end
        end
        assert_equal [expected].compact, (gains(given) || []).map(&:first), [state, compiled, slow]
      end
    end
  end

  # No exit made them slow, and the first calls of a program are others than the later ones.
  def test_calls_before_the_first_compilation_do_not_count
    given = trace do |t|
      t.calls(F, "compiled", 1600, 1.6)
      t.interpreted(F, "not compiled yet", 100, 50, ran: 90, first: 1, last: 2)
    end
    assert_nil gains(given)
  end

  def test_calls_that_are_not_slower_gain_nothing
    equal = trace do |t|
      t.calls(F, "compiled", 1600, 16)
      t.calls(F, "exited", 1600, 16)
    end
    assert_nil gains(equal)
    given = trace do |t|
      t.calls(F, "compiled", 1600, 16)
      t.calls(F, "exited", 1600, 8)
      profiled_again(t, F, 10, 0, ran: 1)
    end
    assert_equal [[F, 0.9]], gains(given), "what is faster does not reduce the gain of what is slower"
    assert_equal [10], json(given)["estimated_gains"]["rows"].map { |row| row["slow_calls"] }
  end

  def test_traces_without_the_times_of_calls
    given = trace do |t|
      t.calls(F, "compiled", 1600, 16)
      profiled_again(t, F, 100, 5)
    end
    assert_nil gains(given)
    refute_includes report(trace {}), "Estimated gain"
  end

  def test_filters
    given = trace { |t| [F, G].each { |method| fast_and_slow_calls(t, method) } }
    assert_equal [[F, 6.4]], gains(given, "--method=Foo#f*")
    ["--until=50ms", "--thread=main", "--reason=R"].each { |filter| assert_nil gains(given, filter), filter }
    top = json(given, "--top=1")["estimated_gains"]
    assert_equal [1, 1], [top["rows"].size, top["more_rows"]]
    assert_equal [320, nil], top["more"].values_at("slow_calls", "gain_ns"), "gains overlap, so they do not add up"
  end

  def test_damaged_numbers
    huge = [:uint64, 2**64 - 1]
    given = trace do |t|
      2.times { |i| t.calls(F, %w[compiled exited][i], 1600, 0, calls: huge, ran_ns: huge) }
      t.calls(G, "compiled", 1600, 0, ran_ns: [:uint64, 0])
      t.calls(G, "exited", 1600, 0, ran_ns: huge)
    end
    assert_equal [G], gains(given).map(&:first)
  end

  # --- html ---

  def test_page_has_the_gains
    given = trace do |t|
      fast_and_slow_calls(t, F)
      t.calls(G, "compiled", 1600, 16)
    end
    data = data_of(page(given))
    found = data["gains"].map { |iseq, *numbers| [data["strings"][iseq], *numbers] }
    assert_equal [[F, 6_400_000, 320, 30_000, 1600, 10_000]], found
    browse(given) do |browser|
      assert_equal [["Foo#f (/app/foo.rb:3)", "6.40 ms", "320", "30.0 µs", "1,600", "10.0 µs"]],
                   cells(browser, "#gains tbody tr")
      parts = "document.querySelector('#gains').parentElement"
      assert_match(/^Estimated gain/, browser.run("return #{parts}.querySelector('h3').innerText"))
    end
    browse(trace {}) { |browser| refute browser.run("return document.querySelector('#gains')"), "nothing to gain" }
  end

  def test_page_has_the_largest_gains_only
    given = trace do |t|
      201.times do |i|
        t.calls("f#{i} (/f.rb:1)", "compiled", 160, 1)
        t.calls("f#{i} (/f.rb:1)", "exited", 160, 2 + i)
      end
    end
    data = data_of(page(given))
    assert_equal [200, 1, 201 * MS], [data["gains"].size, data["gains_left_out"], data["gains"][0][1]]
  end

  # --- check ---

  def faults(&block) = check(trace(&block)).err.lines.map { |line| line[/offset \d+: (.*)/, 1] }.uniq

  def test_check_of_calls
    fine = faults do |t|
      t.calls(F, "compiled", 16, 5)
      t.calls(F, "exited", 16, 5, interpreted_ns: [:uint64, 5 * MS])
    end
    assert_empty fine
    args = { iseq: F, state: "compiled", calls: [:uint64, 16], ran_ns: [:uint64, 5 * MS],
             interpreted_ns: [:uint64, 0], first_ns: [:uint64, 1], last_ns: [:uint64, 2 * MS] }
    {
      { state: "asleep" } => "calls: unknown state: asleep",
      { state: nil } => "calls lacks its argument state",
      { iseq: nil } => "calls lacks its argument iseq",
      { calls: [:uint64, 0] } => "calls: calls is 0",
      { ran_ns: nil } => "calls lacks its argument ran_ns",
      { calls: "many" } => "calls has no unsigned number as its argument calls",
      { interpreted_ns: [:uint64, 7 * MS] } => "calls: interpreted for 7000000 ns of the 5000000 that the calls ran",
      { first_ns: [:uint64, 9 * MS] } => "calls: its first call is later than its last: 9000000, 2000000",
    }.each do |wrong, message|
      given = args.merge(wrong).compact
      assert_equal [message], faults { |t| t.event(:instant, :main, "trace", "calls", 100, **given) }
    end
  end

  def test_check_of_interpreted_calls
    assert_equal ["interpreted: interpreted for 9000000 ns of the 5000000 that the calls ran"],
                 faults { |t| t.interpreted(F, "profiled again", 1, 9, ran: 5, first: 1, last: 2) }
  end

  def test_cut_leaves_calls_out
    with_file(trace { |t| t.calls(F, "compiled", 1600, 16) }) do |path|
      assert_equal 0, tool("cut", "--since=50ms", "-o", "#{path}.cut", path).status
      refute_match(/"calls"/, tool("dump", "#{path}.cut").out)
    end
  end
end
