# Reasons by each of their names: vm-trace explain, report --reason, start --counter.
# test/integration/test_reasons.rb checks that no reason of the Ruby is missing.
require "socket"
require_relative "tool_helper"

class TestReasons < Minitest::Test
  include ToolHelper

  REASONS = ["GuardLess", "GuardType(Fixnum)", "GuardType(String)", "PatchPoint(NoTracePoint)", "NoProfileSend"].freeze

  def trace
    FxtBuilder.simple do |b|
      REASONS.each_with_index { |reason, i| b.event(:instant, "side_exit", reason, ts: i, args: { "0" => "A#a (/a.rb:1)", "insn" => "send" }) }
      b.event(:instant, "fallback", "Send: polymorphic call site", ts: 9, args: { "0" => "A#a (/a.rb:1)", "insn" => "send" })
      b.event(:instant, "side_exit", "opt_plus_overflow", ts: 10, args: { "0" => "A#a (/a.rb:1)", "insn" => "opt_plus" })
    end
  end

  # Reasons of the selected exits and fallbacks, and the messages.
  def chosen(glob)
    with_file(trace.bytes) do |path|
      result = tool("report", "--format=json", "--reason=#{glob}", path)
      assert_equal 0, result.status
      tables = JSON.parse(result.out).values_at("exits_by_reason", "fallbacks")
      return tables.flat_map { |table| table["rows"].map { |row| row["reason"] } }.uniq.sort, result.err
    end
  end

  def test_a_reason_is_chosen_by_any_of_its_names
    { "GuardLess" => %w[GuardLess], "guard_less_failure" => %w[GuardLess], "exit_guard_less_failure" => %w[GuardLess],
      "GuardType" => REASONS.grep(/GuardType/), "exit_guard_type_failure" => REASONS.grep(/GuardType/), "GuardType(String)" => ["GuardType(String)"],
      "guard_*" => REASONS.grep(/Guard/), "patchpoint_no_tracepoint" => ["PatchPoint(NoTracePoint)"], "PatchPoint" => ["PatchPoint(NoTracePoint)"],
      "send_polymorphic" => ["Send: polymorphic call site"], "send_fallback_send_polymorphic" => ["Send: polymorphic call site"],
      "opt_plus_overflow" => %w[opt_plus_overflow], "*" => [*REASONS, "Send: polymorphic call site", "opt_plus_overflow"].sort }.each do |glob, reasons|
      assert_equal [reasons, ""], chosen(glob), glob
    end
  end

  def test_a_reason_that_nothing_has_is_said_with_a_near_one
    { "gaurd_type" => "; did you mean guard_type_failure?", "GuardLes" => "; did you mean GuardLess?", "opt_plus_overflov" => "; did you mean opt_plus_overflow?",
      "exit_trow" => "; did you mean throw?", "xyzzy\e" => "; vm-trace explain lists those of ZJIT" }.each do |glob, hint|
      assert_equal [[], "vm-trace: report: no event has the reason #{glob.sub("\e", "\\x1B")}#{hint}\n"], chosen(glob)
    end
  end

  def test_explain_has_the_three_names
    ["GuardLess", "guard_less_failure", "exit_guard_less_failure", "guard_les*"].each do |name|
      result = tool("explain", name)
      assert_equal [["exit, in traces", "in --zjit-stats", "counter"], %w[GuardLess guard_less_failure exit_guard_less_failure]],
                   result.out.lines.map { |line| line.chomp.split(/ {2,}/) }, name
      assert_equal ["", 0], [result.err, result.status]
    end
    assert_match(/^Send: polymorphic call site +send_polymorphic$/, tool("explain", "send_fallback_send_polymorphic").out)
    unknown = tool("explain", "GuardLes")
    assert_equal ["", "vm-trace: explain: ZJIT has no reason GuardLes; did you mean GuardLess?\n", 2], unknown.to_a
  end

  def test_explain_lists_all
    out = tool("explain").out
    assert_operator out.lines.grep(/ exit_\w+$/).size, :>, 50
    assert_operator out.lines.grep(/^Send/).size, :>, 10
    assert_equal out.lines.map(&:chomp), out.lines.map(&:rstrip)
    assert_empty out.lines.select { |line| line.size > 125 }
  end

  # The request of `start`.
  def requested(counter)
    Dir.mktmpdir do |dir|
      server = UNIXServer.new(File.join(dir, "socket"))
      # The tool's own variable replaces that of a program that has overwritten its environment.
      env = { "RUBY_VM_TRACE_CONTROL" => File.join(dir, "socket") }
      program = Process.spawn({ "RUBY_VM_TRACE_CONTROL" => nil }, "sleep", "60")
      asking = Thread.new { Open3.capture3(env, TOOL, "start", "--counter=#{counter}", program.to_s) }
      peer = server.accept
      words = peer.readpartial(8192).split("\0")
      peer.write("ok\n")
      peer.close
      asking.join
      return words.drop(1).each_slice(2).to_h["exits"]
    ensure
      Process.kill(:KILL, program)
      Process.wait(program)
      server.close
    end
  end

  def test_start_takes_any_name_for_a_counter
    { "GuardLess" => "exit_guard_less_failure", "guard_less_failure" => "exit_guard_less_failure", "exit_guard_less_failure" => "exit_guard_less_failure",
      "GuardType" => "exit_guard_type_failure", "opt_plus_overflow" => "opt_plus_overflow", "none" => "none",
      "GuardType,opt_x,throw" => "exit_guard_type_failure,opt_x,exit_throw" }.each { |name, counter| assert_equal counter, requested(name), name }
  end
end
