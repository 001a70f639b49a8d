# Reasons by each of their names: vm-trace explain, report --reason, start --counter.
# test/integration/test_reasons.rb checks that no reason of the Ruby is missing.
require "socket"
require_relative "tool_helper"

class TestReasons < Minitest::Test
  include ToolHelper

  REASONS = ["GuardLess", "GuardType(Fixnum)", "GuardType(String)", "PatchPoint(NoTracePoint)", "NoProfileSend"].freeze

  def trace
    FxtBuilder.simple do |b|
      REASONS.each_with_index { |reason, i| b.exit(reason, "A#a (/a.rb:1)", ts: i, insn: "send") }
      b.exit("Send: polymorphic call site", "A#a (/a.rb:1)", ts: 9, kind: "fallback", insn: "send")
      b.exit("opt_plus_overflow", "A#a (/a.rb:1)", ts: 10, insn: "opt_plus")
    end
  end

  def report_of(trace, *options)
    with_file(trace) { |path| return JSON.parse(tool("report", "--format=json", *options, path).out) }
  end

  # Reasons of the selected exits and fallbacks, and the messages.
  def chosen(glob, status: 0)
    with_file(trace.bytes) do |path|
      result = tool("report", "--format=json", "--reason=#{glob}", path)
      assert_equal status, result.status
      tables = JSON.parse(result.out).values_at("exits_by_reason", "fallbacks")
      return tables.flat_map { |table| table["rows"].map { |row| row["reason"] } }.uniq.sort, result.err
    end
  end

  def test_a_reason_is_chosen_by_any_of_its_names
    {
      "GuardLess" => %w[GuardLess],
      "guard_less_failure" => %w[GuardLess],
      "exit_guard_less_failure" => %w[GuardLess],
      "GuardType" => REASONS.grep(/GuardType/),
      "exit_guard_type_failure" => REASONS.grep(/GuardType/),
      "GuardType(String)" => ["GuardType(String)"],
      "guard_*" => REASONS.grep(/Guard/),
      "patchpoint_no_tracepoint" => ["PatchPoint(NoTracePoint)"],
      "PatchPoint" => ["PatchPoint(NoTracePoint)"],
      "send_polymorphic" => ["Send: polymorphic call site"],
      "send_fallback_send_polymorphic" => ["Send: polymorphic call site"],
      "opt_plus_overflow" => %w[opt_plus_overflow],
      "*" => [*REASONS, "Send: polymorphic call site", "opt_plus_overflow"].sort,
    }.each do |glob, reasons|
      assert_equal [reasons, ""], chosen(glob), glob
    end
  end

  def test_a_reason_that_nothing_has_is_said_with_a_near_one
    {
      "gaurd_type" => "; did you mean guard_type_failure?",
      "GuardLes" => "; did you mean GuardLess?",
      "opt_plus_overflov" => "; did you mean opt_plus_overflow?",
      "exit_trow" => "; did you mean throw?",
      "xyzzy\e" => "; vm-trace explain lists all",
    }.each do |glob, hint|
      assert_equal [[], "vm-trace: report: no event has the reason #{glob.sub("\e", "\\x1B")}#{hint}\n"],
                   chosen(glob, status: 2)
    end
  end

  # Reasons that explain has for a name.
  def explained(*names)
    result = tool("explain", "--format=json", *names)
    assert_equal ["", 0], [result.err, result.status], names
    JSON.parse(result.out).dig("advice", "rows")
  end

  # These columns of what explain has for a name.
  def explained_columns(name, *columns) = explained(name).map { |row| row.values_at(*columns) }

  def explained_reasons(*names) = explained(*names).map { |row| row["reason"] }

  def test_explain_has_the_three_names
    ["GuardLess", "guard_less_failure", "exit_guard_less_failure", "guardles*", "GUARDLESS"].each do |name|
      assert_equal [%w[GuardLess guard_less_failure exit_guard_less_failure]],
                   explained_columns(name, "reason", "stats", "counter"), name
    end
    assert_equal [["Send: polymorphic call site", "fallback", "send_polymorphic", nil]],
                 explained_columns("send_fallback_send_polymorphic", "reason", "kind", "stats", "counter")
  end

  def test_explain_takes_a_reason_with_or_without_its_details
    ["GuardType", "guardtype", "GuardType(Fixnum)", "guardtype(fixnum)", "GuardType(*)"].each do |name|
      assert_equal ["GuardType(*)"], explained_reasons(name), name
    end
    assert_equal ["UnhandledYARVInsn(expandarray)"], explained_reasons("UnhandledYARVInsn(expandarray)")
    assert_equal ["UnhandledYARVInsn(*)"], explained_reasons("UnhandledYARVInsn(other)")
    assert_equal %w[UnhandledYARVInsn(once) UnhandledYARVInsn(*)],
                 explained_reasons("UnhandledYARVInsn").values_at(0, -1)
    assert_equal ["CME is invalidated: *"], explained_reasons("CME is invalidated: 0x1234")
    assert_equal [%w[opt_plus_overflow YJIT exit]], explained_columns("opt_plus_overflow", "reason", "jit", "kind")
  end

  def test_explain_in_text
    text = tool("explain", "FixnumDivByZero", "OPT_DIV_ZERO").out
    assert_equal <<~TEXT, text
      FixnumDivByZero
        is        exit of ZJIT
        in stats  fixnum_div_by_zero
        counter   exit_fixnum_div_by_zero
        means     An integer is divided by zero; the interpreter raises `ZeroDivisionError`.
        causes    Code that relies on `rescue ZeroDivisionError`.
        helps     Test for zero before you divide.
        tested    no pair of examples/fixes shows what that gains
        example   def div(a, b) = a / b
                  100.times { div(7, 2) }
                  10.times { div(7, 0) rescue 0 }

      opt_div_zero
        is        exit of YJIT
        means     An integer is divided by zero; the interpreter raises `ZeroDivisionError`.
        causes    Code that relies on `rescue ZeroDivisionError`.
        helps     Test for zero before you divide.
        tested    by examples/fixes/zero_division
        example   def div(a, b) = a / b
                  100.times { div(7, 2) }
                  10.times { div(7, 0) rescue 0 }
    TEXT
    lines = tool("explain", "*").out.lines
    refute_empty lines
    wide = /\A  (in stats|counter|example) |\A\w|\A {13}/
    assert_empty lines.select { |line| line.size > 101 && !line.match?(wide) }
  end

  def test_explain_in_other_formats
    markdown = tool("explain", "--format=markdown", "FixnumDivByZero").out
    assert_includes markdown, "### `FixnumDivByZero`\n\n- **is**: exit of ZJIT\n"
    assert_includes markdown, "\n```ruby\ndef div(a, b) = a / b\n"
    csv = tool("explain", "--format=csv", "--table=advice", "FixnumDivByZero").out.lines
    assert_match(/\Areason,jit,kind,stats,counter,meaning,cause,help,tested,example/, csv.first)
    assert_match(/\A"?FixnumDivByZero"?,"?ZJIT"?,/, csv[1])
  end

  def test_an_unknown_reason_is_an_error_and_the_others_are_explained
    unknown = tool("explain", "GuardLes")
    assert_equal ["", "vm-trace: explain: there is no reason GuardLes; did you mean GuardLess?\n", 2], unknown.to_a
    near = tool("explain", "opt_plus_overflov", "GuardLess", "xyzzy\e")
    assert_match(/\AGuardLess\n/, near.out)
    assert_equal ["vm-trace: explain: there is no reason opt_plus_overflov; did you mean opt_plus_overflow?\n" \
                  "vm-trace: explain: there is no reason xyzzy\\x1B; vm-trace explain lists all\n", 2],
                 [near.err, near.status]
    assert_equal ["", "vm-trace: explain: --method is for a trace\n", 2], tool("explain", "--method=Foo#bar", "GuardLess").to_a
  end

  def test_explain_lists_all
    out = tool("explain").out
    assert_operator out.lines.grep(/ exit_\w+$/).size, :>, 50
    assert_operator out.lines.grep(/^Send/).size, :>, 10
    assert_equal out.lines.map(&:chomp), out.lines.map(&:rstrip)
    assert_empty out.lines.select { |line| line.size > 125 }
    listed = out.lines.map { |line| line.chomp.split(/ {2,}/).first }
    not_listed = /\A(UnhandledYARVInsn|UnhandledHIRInsn|CompileError)\(|\Agetivar\z|\Asetivar\z|site table/
    assert_empty explained_reasons.grep_v(not_listed) - listed
  end

  def test_a_report_has_advice_for_its_reasons
    table = report_of(trace, "--advice")["advice"]["rows"]
    assert_equal [["GuardType(*)", "exit", 2], ["GuardLess", "exit", 1], ["PatchPoint(NoTracePoint*)", "exit", 1],
                  ["NoProfileSend", "exit", 1], ["opt_plus_overflow", "exit", 1],
                  ["Send: polymorphic call site", "fallback", 1]],
                 table.map { |row| row.values_at("reason", "kind", "count") }
    texts = ->(row) { row.values_at("meaning", "cause", "help") }
    same = explained(*table.map { |row| row["reason"] }).to_h { |row| [row["reason"], texts[row]] }
    table.each { |row| assert_equal same.fetch(row["reason"]), texts[row] }
    refute report_of(trace).key?("advice")
  end

  def test_advice_in_a_report_follows_the_exits_by_reason
    with_file(trace.bytes) do |path|
      text = tool("report", "--all", "--advice", path).out
      assert_match(/^Exits by reason: .*^Advice\n.*^Exits by instruction/m, text)
      assert_match(/^Advice\nGuardType\(\*\)\n  is        exit\n  count     2\n  mostly at A#a \(\/a\.rb:1\), send: 1 of 1\n  means     A value has /, text)
      markdown = tool("report", "--all", "--advice", "--format=markdown", path).out
      assert_match(/^## Advice\n\n### `GuardType\(\*\)`$/, markdown.gsub("\n\n\n", "\n\n"))
      few = tool("report", "--all", "--advice", "--top=2", path).out
      assert_includes few, "\nAdvice for 3 of 6 reasons\n"
    end
  end

  # 1,500 exits: of one place, and when. Others are the warm-up of the same reason.
  def lasting(reason, insn, times, **args)
    FxtBuilder.simple do |b|
      times.each { |ts| b.exit(reason, "Foo#get (/app/foo.rb:4)", ts:, insn:, **args) }
      10.times { |i| b.exit(reason, "Foo#other (/app/foo.rb:9)", ts: 10 + i, insn:) }
      b.exit("GuardLess", "Foo#last (/app/foo.rb:20)", ts: 160_000, insn: "send")
    end
  end

  STEADY = (1..1500).map { |i| i * 100 }.freeze
  WARM_UP = (1..1500).map { |i| i * 60 }.freeze # over before the last quarter

  def test_advice_looks_at_the_pattern_of_the_exits
    advice = ->(trace, reason) { report_of(trace, "--advice")["advice"]["rows"].find { |row| row["reason"] == reason } }
    bug = advice[lasting("invalidated_block", "opt_getconstant_path", STEADY, insn_index: 7), "invalidated_block"]
    assert_equal 1, bug["lasting"]
    assert_includes bug["help"], "./configure --with-fixes=yjit-invalidated-block"
    refute_match(/\ADefine methods and constants at boot/, bug["help"])
    assert_equal "Foo#get (/app/foo.rb:4), opt_getconstant_path@7: 1,500 of 1,510, to the end of the trace", bug["place"]
    usual = explained("invalidated_block")[0]
    enough = (1..1000).map { |i| i * 150 }
    few = enough.first(999)
    assert_equal 1, advice[lasting("invalidated_block", "send", enough), "invalidated_block"]["lasting"]
    [WARM_UP, few].map { |times| lasting("invalidated_block", "send", times) }.each do |trace|
      row = advice[trace, "invalidated_block"]
      assert_equal [0, *usual.values_at("cause", "help")], row.values_at("lasting", "cause", "help")
    end
    literal = advice[lasting("GuardType(ArrayExact)", "expandarray", STEADY), "GuardType(*)"]
    assert_includes literal["help"], "--with-fixes=zjit-nil-variables"
    refute_includes advice[lasting("GuardType(ArrayExact)", "send", STEADY), "GuardType(*)"]["help"], "--with-fixes"
  end

  # Half of all: no place is the one to look at if there are many.
  def test_many_places_are_no_pattern
    trace = FxtBuilder.simple do |b|
      6000.times { |i| b.exit("invalidated_block", "Foo#get (/app/foo.rb:#{i % 3})", ts: i, insn: "send") }
    end
    assert_equal [[0, "Foo#get (/app/foo.rb:0), send: 2,000 of 6,000"]],
                 report_of(trace, "--advice")["advice"]["rows"]
                   .map { |row| [row["lasting"], row["place"].sub(/\A.*?:\d/, "Foo#get (/app/foo.rb:0")] }
  end

  def test_explain_of_a_trace
    with_file(lasting("invalidated_block", "send", STEADY).bytes) do |path|
      result = tool("explain", path, "invalidated_block")
      assert_match(/\Ainvalidated_block\n  is        exit\n  count     1,510\n  mostly at Foo#get .*--with-fixes=yjit/m, result.out)
      refute_includes result.out, "GuardLess"
      reasons = lambda do |*args|
        data = JSON.parse(tool("explain", "--format=json", path, *args).out)
        data["advice"]["rows"].map { |row| row["reason"] }
      end
      assert_equal %w[invalidated_block GuardLess], reasons[]
      assert_equal %w[GuardLess], reasons["Foo#last"]
      assert_equal %w[GuardLess], reasons["foo.rb:20"]
      assert_equal %w[invalidated_block], reasons["foo.rb:9"]
      other = tool("explain", path, "Foo#lst")
      assert_equal 2, other.status
      assert_includes other.err, "did you mean Foo#last?"
      assert_includes tool("explain", path, "GuardNotFrozen").err, "the trace has no such exits"
    end
  end

  def test_a_reason_without_advice_is_said_to_be_unknown
    newer = FxtBuilder.simple { |b| b.exit("Newer(thing)", "A#a (/a.rb:1)", ts: 1, insn: "send") }
    row = report_of(newer, "--advice")["advice"]["rows"][0]
    assert_equal ["Newer(thing)", 1, "This version of vm-trace does not know the reason."],
                 row.values_at("reason", "count", "meaning")
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
    {
      "GuardLess" => "exit_guard_less_failure",
      "guard_less_failure" => "exit_guard_less_failure",
      "exit_guard_less_failure" => "exit_guard_less_failure",
      "GuardType" => "exit_guard_type_failure",
      "opt_plus_overflow" => "opt_plus_overflow",
      "none" => "none",
      "GuardType,opt_x,throw" => "exit_guard_type_failure,opt_x,exit_throw",
    }.each { |name, counter| assert_equal counter, requested(name), name }
  end
end
