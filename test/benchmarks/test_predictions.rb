# benchmarks/predictions, with a made-up tool, and the pairs of examples/fixes themselves.

require_relative "bench_helper"
require "fixes"

class TestPredictions < BenchTest
  Fix = Bench::Fix

  # A pair whose processes report that they took so many seconds. `head` replaces lines of its comment.
  def pair(name, before: 10, after: 5, prints: [7, 7], **head)
    lines = { Place: "Shop#price", Subject: "exits", JIT: "any", **head }.map { |key, value| "# #{key}: #{value}" }
    programs = [before, after].zip(prints).map do |seconds, value|
      %(puts #{value}\nfile = ENV["VM_TRACE_BENCH"] and File.write(file, "iteration #{seconds} #{seconds}\\n")\n)
    end
    write("fixes/#{name}/before.rb", ["# A situation.", *lines, programs[0]].join("\n"))
    write("fixes/#{name}/after.rb", "# What was changed.\n\n#{programs[1]}")
  end

  # `record` runs the command and writes index.csv; `report` prints the file `findings`.
  def tool(findings)
    write("findings", findings.is_a?(String) ? findings : JSON.generate("findings" => { "rows" => findings }))
    write("vm-trace", <<~'SH')
      #!/bin/sh
      [ "$1" = report ] && { cat "$FINDINGS"; exit; }
      while [ "$1" != -- ]; do [ "$1" = -o ] && folder=$2; shift; done
      shift; mkdir "$folder"; printf 'pid,first_ns,span_ns,exits\n1,0,1500000000,7\n2,5,2000000000,7\n' > "$folder/index.csv"
      echo "$*" >> "$FINDINGS.log"
      "$@" > /dev/null
    SH
    FileUtils.chmod(0o755, path("vm-trace"))
    path("vm-trace")
  end

  def finding(place, gain, least: gain && gain / 2, most: gain && gain * 2, subject: "exits", cause: "",
              whole: 2_000_000_000)
    { "subject" => subject, "place" => place, "cause" => cause, "whole_ns" => whole,
      "gain_ns" => gain, "least_ns" => least, "most_ns" => most }
  end

  def predictions(findings, *words, rounds: 3)
    env = { "VM_TRACE" => tool(findings), "FINDINGS" => path("findings") }
    command = [RbConfig.ruby, "-w", "#{ROOT}/benchmarks/predictions", "--ruby", RbConfig.ruby,
               "--folder", path("fixes"), "-n", rounds.to_s]
    out, err, status = Open3.capture3(env, *command, *words)
    [out, err, status.exitstatus]
  end

  # --- the command

  def test_one_pair_in_one_round
    pair("one")
    findings = [finding("Shop#price (a.rb:3)", 400_000_000), finding("Shop#other (a.rb:9)", 900_000_000)]
    out, err, status = predictions(findings, "one", "--json", path("out.json"), rounds: 1)
    assert_equal [0, ""], [status, err], out
    assert_match(/ 20\.0 % \(10\.0 % \.\. 40\.0 %\)  +5\d\.\d % .* CPU +perhaps$/, row(out, "one"))
    assert_equal 1, File.readlines(path("findings.log")).size, "only the program before the fix is recorded, once"
    entry = JSON.parse(File.read(path("out.json")))[0]
    assert_in_delta 0.5, entry["gain"], 0.04 # a little more: Ruby's start is no part of the program's time
    assert_equal [1, 1, 2], [entry["before_seconds"].size, entry["after_seconds"].size, entry["findings"].size]
  end

  def test_verdicts
    pair("gained")
    pair("missed", Place: "Shop#elsewhere")
    pair("promised", after: 9, Place: "Shop#sum, Shop#price")
    out, = predictions([finding("block (2 levels) in Shop#price ((eval at a.rb:3):1)", 1_000_000_000)])
    assert_match(/ 50\.0 % \(25\.0 % .* CPU +yes$/, row(out, "gained"))
    assert_match(/ missing$/, row(out, "missed"))
    assert_match(/ no +gains less than a third$/, row(out, "promised"))
    assert_match(/^inside the predicted interval: 1 of 2 \(50 %\), and 0 perhaps/, out)
    assert_match(/^recommended, but gained less than a third: 1 \(promised\)/, out)
    assert_match(/^gained more than 5\.0 %, but missing: 1 \(missed\)/, out)
  end

  def test_where_nothing_can_be_gained_every_finding_is_a_promise
    pair("nothing", after: 10.1, Place: "none", Subject: "gvl")
    out, = predictions([finding("Shop#other (a.rb:9)", 900_000_000)])
    assert_match(/ wall +no +gains less than a third; as exits; Shop#other \(a\.rb:9\)$/, row(out, "nothing"))
  end

  def test_a_gain_is_a_part_of_the_time_in_which_the_program_had_a_cpu
    pair("waited")
    half_a_second, one = 500_000_000, 1_000_000_000
    out, = predictions([finding("Shop#price (a.rb:3)", half_a_second, whole: one)], rounds: 1)
    assert_match(/ 50\.0 % \(25\.0 % /, row(out, "waited"))
    out, = predictions([finding("Shop#price (a.rb:3)", half_a_second, whole: one, subject: "gvl")], rounds: 1)
    assert_match(/ 25\.0 % \(12\.5 % /, row(out, "waited"), "what waits has the whole")
  end

  def test_a_change_that_costs_time_gains_nothing
    pair("slower", after: 11)
    out, = predictions([finding("Shop#price (a.rb:3)", nil, least: 0, most: 1_000_000_000)])
    assert_match(/ -10\.\d % .* yes$/, row(out, "slower"))
  end

  def test_a_gain_that_is_not_known_is_no_promise
    pair("unknown", Subject: "gvl")
    called = [finding("<main> (a.rb:9)", nil, least: 0, most: 1_000_000_000, subject: "method",
                      cause: "80 % of it in Shop#price")]
    cause = "threads waited 1 s while it ran Shop#price (a.rb:3)"
    waits = finding("Thread a.rb:2", nil, least: 0, most: 1_000_000_000, subject: "gvl", cause: cause)
    [[waits], called].each do |rows|
      out, = predictions(rows)
      assert_match(/ \? \(0\.0 % \.\. 50\.0 %\) /, row(out, "unknown"))
    end
    out, = predictions([waits])
    assert_match(/less than a third: none/, out)
  end

  def test_what_cannot_run_is_named
    pair("other", prints: [7, 8])
    pair("lacks", Needs: "no_such_library")
    pair("zjit", JIT: "zjit")
    out, _, status = predictions([])
    assert_equal 0, status
    assert_match(/^note: other was not run: before and after print 7 and 8$/, out)
    assert_match(/^note: lacks was not run: no_such_library is not installed$/, out)
    refute_match(/zjit/, out, "a pair of another JIT is none of this Ruby's")
  end

  def test_a_library_from_a_folder_of_gems
    pair("lacks", Needs: "vm_trace_test/part")
    write("gems/ruby/4.0.0/gems/vm_trace_test-1.0/lib/vm_trace_test/part.rb", "")
    write("gems/ruby/4.0.0/gems/vm_trace_other-1.0/lib/x.rb", "")
    out, = predictions([], "--gems", path("gems"), rounds: 1)
    assert row(out, "lacks")
    assert_match(/vm_trace_test-1\.0/, File.read(path("findings.log")))
    refute_match(/vm_trace_other/, File.read(path("findings.log")))
  end

  def test_a_tool_without_findings
    pair("one")
    out, _, status = predictions("vm-trace: there is no table findings here")
    assert_equal 0, status
    assert_match(/inside the predicted interval: none of 0/, out)
  end

  def test_wrong_words
    pair("one")
    assert_match(/two: no such pair; there are: one/, predictions([], "two")[1])
    _, err, status = predictions([], "-n", "0")
    assert_equal 2, status
    assert_match(/--rounds: at least 1/, err)
  end

  # --- the pairs

  FIXES = Fix.find([])

  def test_there_are_pairs_of_each_subject_and_such_that_gain_nothing
    assert_equal Fix::SUBJECTS.sort, FIXES.map(&:subject).uniq.sort
    assert_operator FIXES.count { |fix| fix.places.empty? }, :>=, 3
    assert_operator FIXES.size, :>=, 32
  end

  FIXES.each do |fix|
    define_method "test_pair_#{fix.name}" do
      assert_includes Fix::SUBJECTS, fix.subject
      assert_match(/^# Place: \S/, File.read(fix.path("before")))
      refute_empty fix.jits
      assert_empty fix.jits - %w[any yjit zjit]
      %w[before after].each { |version| assert_match(/\A\S.*\.\)?\z/, fix.situation(version), "#{version}.rb's head") }
      has = !fix.needs || system(RbConfig.ruby, "-r#{fix.needs}", "-e", "", err: File::NULL)
      skip "#{fix.needs} is not installed" unless has
      flags = fix.needs ? [] : ["--disable=gems"]
      values = %w[before after].map do |version|
        out, err, status = Open3.capture3({ "FIXES_SCALE" => "0.01" }, RbConfig.ruby, *flags, fix.path(version))
        assert_predicate status, :success?, err
        out
      end
      assert_match(/\A\S+\n\z/, values[0])
      assert_equal(*values)
    end
  end
end
