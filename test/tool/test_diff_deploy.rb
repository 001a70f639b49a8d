# `vm-trace diff --since-deploy`: which version is new, and what is more than the spread between processes.
require_relative "tool_helper"

class TestDiffDeploy < Minitest::Test
  include ToolHelper

  NOON = 1_795_694_400_000_000_000
  OLD, NEW = "Old#way (/app/a.rb:3)", "New#way (/app/a.rb:9)"

  def setup = @dir = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@dir)

  # A process whose places exit so often, for a second; lost: 1 us each.
  def process(name, version, begins, hits, service: "shop")
    trace = StatesTrace.new(ends: 1000) do |t|
      args = { host: "web1", unix_ns: [:uint64, NOON + begins * 1_000_000_000], service: service, version: version }
      t.event(:instant, :main, "trace", "host", 0, **args.compact) unless version == :none
      hits.each { |place, count| t.site("GuardType", place, count, lost: count * 0.001) }
    end.build
    File.binwrite("#{@dir}/#{name}.fxt", trace.bytes)
  end

  def diff(*options) = tool("diff", "--since-deploy", *options, @dir)
  def rows(table, *options) = JSON.parse(diff("--format=json", *options).out).fetch(table)["rows"]

  def test_new_gone_and_grown_exits_beyond_the_spread_of_processes
    wobble = [90, 110, 100, 95, 105]
    gone, same, once = "Gone#x (/app/a.rb:5)", "Same#y (/app/a.rb:6)", "Once#z (/app/a.rb:8)"
    5.times { |i| process("a#{i}", "41", i, { OLD => wobble[i], gone => 7, same => wobble[i] }) }
    5.times do |i|
      hits = { OLD => i == 2 ? 100 : 2 * wobble[i], NEW => 20 + i, same => wobble[-i] + 3, once => i == 0 ? 50 : 0 }
      process("b#{i}", "42", 100 + i, hits)
    end
    result = diff
    assert_equal ["", 0], [result.err, result.status]
    assert_match(/^  A +shop 41: 5 processes$/, result.out)
    assert_match(/^  B +shop 42: 5 processes$/, result.out)
    changes = %w[methods lost_by_method].map do |table|
      rows(table, "--normalize=run").map { |row| row.values_at("change", "a", "b", "method") }
    end
    names = ->(list) { list.map { |change, _, _, method| [change, method[/\A\w+#\w/]] }.sort }
    wanted = [%w[gone Gone#x], %w[grew Old#w], %w[new New#w]]
    assert_equal [wanted, wanted], changes.map(&names), "one process of five is noise, in either direction"
    assert_equal [100, 180], changes[0].find { |change,| change == "grew" }.values_at(1, 2)
    assert_equal [100_000, 180_000], changes[1].find { |change,| change == "grew" }.values_at(1, 2), "ns"
  end

  # Low and high are two standard errors around the mean; a run of its own keeps its value.
  def test_the_margin_is_two_standard_errors
    counts = [10, 14, 30]
    3.times { |i| process("a#{i}", "1", i, { OLD => counts[i] }) }
    process("b", "2", 100, { OLD => 500 })
    row = rows("methods", "--normalize=run").first
    error = Math.sqrt(counts.sum { |n| (n - 18)**2 } / 2.0 / 3)
    assert_in_delta 18 - 2 * error, row["a_low"], 0.01
    assert_in_delta 18 + 2 * error, row["a_high"], 0.01
    assert_equal [500, 500], row.values_at("b_low", "b_high")
    per_second = rows("methods").first
    assert_in_delta 18, per_second["a"], 0.1, "for each second, by default"
  end

  # By when their first process began, whatever their names are; the last two count.
  def test_versions_in_the_order_of_their_deploys
    process("z", "9", 0, { OLD => 1 })
    process("y", "10", 50, { OLD => 2 })
    process("x", "8", 100, { OLD => 4 })
    process("w", "10", 200, { OLD => 2 })
    out = diff.out
    assert_match(/^  A +shop 10: 2 processes$/, out)
    assert_match(/^  B +shop 8: 1 process$/, out)
  end

  def test_one_service_of_several
    %w[shop cart].product([0, 1]).each_with_index do |(service, version), i|
      process("#{service}#{version}", "4#{version}", i, { OLD => 1 }, service: service)
    end
    result = diff
    assert_equal [2, "vm-trace: diff: there are traces of cart and shop: choose one with --service=NAME\n"],
                 [result.status, result.err]
    assert_match(/^  A +cart 40: 1 process$/, diff("--service=cart").out)
    assert_match(/no traces of the service car with a version; did you mean cart\?$/, diff("--service=car").err)
    result = diff("--service=other")
    assert_equal [2, "vm-trace: diff: there are no traces of the service other with a version\n"],
                 [result.status, result.err]
  end

  def test_what_does_not_say_its_version_is_skipped
    process("a", "1", 0, { OLD => 1 })
    process("b", "2", 9, { OLD => 1 })
    process("c", nil, 9, { OLD => 1 })
    process("d", :none, 9, { OLD => 1 })
    File.write("#{@dir}/e.fxt", "no trace")
    result = diff
    assert_equal 5, result.status
    assert_equal 3, result.err.scan(/fxt: names no version of a service/).size
    assert_includes result.err, "vm-trace: diff: 3 of 5 traces skipped\n"
    assert_match(/^  B +shop 2: 1 process$/, result.out)
  end

  def test_nothing_to_compare
    process("a", "1", 0, { OLD => 1 })
    result = diff
    assert_equal [2, "vm-trace: diff: shop has only the version 1 here: there is nothing to compare\n", ""],
                 [result.status, result.err, result.out]
    result = tool("diff", "--service=x", "#{@dir}/a.fxt", "#{@dir}/a.fxt")
    assert_equal [2, "vm-trace: --service is for --since-deploy\n"], [result.status, result.err]
  end

  # As in CI.
  def test_limits
    3.times { |i| process("a#{i}", "1", i, { OLD => 10 }) }
    3.times { |i| process("b#{i}", "2", 9 + i, { OLD => 20 }) }
    result = diff("--fail-over=50")
    assert_equal 1, result.status
    assert_match(/exits grew by 100\.0 % of all exits before, more than --fail-over=50/, result.err)
    assert_equal 0, diff("--fail-over=150").status
  end
end
