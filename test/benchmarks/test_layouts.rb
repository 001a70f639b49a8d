# benchmarks/layouts and compare --layouts: orders differ, all have the same code, and the verdicts on times are right.
# The "Rubies" are a few C files that run the system's ruby.

require_relative "bench_helper"
require "comparison"

class TestLayouts < BenchTest
  LAYOUTS = "#{ROOT}/benchmarks/layouts"
  FUNCTIONS = %w[dln aaa bbb ccc ddd eee].freeze

  # `speed`: of all its orders.
  def build(name, speed: 1)
    FUNCTIONS.each { |function| write("#{name}/obj/#{function}.c", "int vm_#{function}(void) { return 1; }\n") }
    write("#{name}/obj/main.c", <<~C)
      #include <stdlib.h>
      #include <unistd.h>
      #{FUNCTIONS.map { |function| "int vm_#{function}(void);" }.join(' ')}
      int main(int argc, char **argv)
      {
          if (#{FUNCTIONS.map { |function| "vm_#{function}()" }.join(' + ')} != #{FUNCTIONS.size}) return 1;
          setenv("SPEED", "#{speed}", 1);
          setenv("BINARY", argv[0], 1);
          execv("#{RbConfig.ruby}", argv);
          return 2;
      }
    C
    objects = FUNCTIONS.map { |function| "#{function}.o" }.join(" ")
    write("#{name}/obj/Makefile", <<~MAKE)
      ruby: main.o libruby-static.a
      \tcc -L. main.o -lruby-static -o ruby
      libruby-static.a: #{objects}
      \tar rcD libruby-static.a #{objects}
    MAKE
    assert system("make", "-s", "-C", path("#{name}/obj"), out: File::NULL)
    %w[bin lib].each { |folder| FileUtils.mkdir_p(path("#{name}/stage/#{folder}")) }
    FileUtils.cp(path("#{name}/obj/ruby"), path("#{name}/stage/bin/ruby"))
    File.symlink("stage/bin/ruby", path("#{name}/ruby"))
    path("#{name}/obj")
  end

  # A workload whose time depends on the order of the binary by up to `by`, and on nothing else.
  def workload(by)
    write("work.rb", <<~RUBY)
      order = ENV.fetch("BINARY")[/(ours|base|compare-\\d)-\\d+/].sum
      File.write(ENV.fetch("VM_TRACE_BENCH"), "iteration \#{0.01 * ENV.fetch("SPEED").to_f * (1 + #{by} * Random.new(order).rand)}\n", mode: "a")
    RUBY
  end

  def layouts(*arguments)
    out, status = Open3.capture2e(RbConfig.ruby, "-w", LAYOUTS, "--flags", "", "--out", path("out"), "--runs", "3", *arguments, stdin_data: "")
    [out, status.exitstatus]
  end

  def order(binary)
    `nm -n #{path("out/#{binary}/bin/ruby")}`.scan(/ T vm_(\w+)$/).flatten
  end

  def test_each_order_has_all_the_code_and_is_another_one
    out, status = layouts("--ours", build("ours"), "--base", build("base"), "--orders", "4", workload(0))
    assert_equal 0, status, out
    orders = %w[ours base].flat_map { |side| 4.times.map { |i| order("#{side}-#{i}") } }
    orders.each { |one| assert_equal FUNCTIONS.sort, one.sort }
    assert_equal FUNCTIONS, orders[0]
    assert_operator orders.first(4).uniq.size, :>=, 3
  end

  def test_what_is_slower_in_all_orders_is_slower
    out, status = layouts("--ours", build("ours", speed: 1.1), "--base", build("base"), "--orders", "5", workload(0.01))
    assert_equal 1, status, out
    assert_match(/^work +1\.(09\d|10\d) .* slower$/, out)
  end

  def test_equal_ones_are_not
    out, status = layouts("--ours", build("ours"), "--base", build("base"), "--orders", "5", workload(0.2))
    assert_equal 0, status, out
    assert_match(/^work .* no difference seen$/, out)
  end

  def test_a_folder_that_is_no_build_is_named
    out, status = layouts("--ours", dir, "--base", dir, workload(0))
    assert_equal 2, status
    assert_match(/\Alayouts: #{Regexp.escape(dir)}: /, out)
  end

  # --- compare --layouts

  def compare_layouts(status, *arguments)
    assert_compare(status, "--json", path("out.json"), *arguments, env: { "VM_TRACE_BENCH_LAYOUTS" => path("out") })
  end

  def test_compare_links_both_sides_and_runs_each_order_equally_often
    build("ours", speed: 1.1)
    build("base")
    work = workload(0.01)
    File.write(work, "File.write('#{path('binaries')}', ENV['BINARY'] + \"\\n\", mode: 'a')\n", mode: "a")
    out, = compare_layouts(1, path("base/ruby"), path("ours/ruby"), "--layouts", "5", "-n", "2", "--", work)
    assert_match(/^work .* 1\.(09|10)\d .* 10  slower$/, out)
    assert_match(/^over 5 link orders of each side; slowest \/ fastest order, of baseline and candidate: work 1\.00\d and 1\.00\d$/, out)
    binaries = File.readlines(path("binaries")).map { |line| line[/compare-\d-\d/] }.tally
    assert_equal 10, binaries.size
    assert_equal [3], binaries.values.uniq # with the one that does not count
    orders = 5.times.map { |i| order("compare-0-#{i}") }
    assert_operator orders.uniq.size, :>=, 3
    assert_equal FUNCTIONS, orders[0]
  end

  # Many runs of three orders are still three orders: with one binary this would be a clear difference.
  def test_many_runs_of_a_few_orders_count_as_the_orders
    interval = lambda do |orders|
      ratios = [1.05, 1.09, 1.04] * 10
      baseline, candidate = [[1.0] * 30, ratios].map { |list| list.map { |seconds| Bench::Measure.new(seconds: seconds) } }
      result = Bench::Result.new(Bench::Workload.new("work", "work", []), nil, baseline, orders: orders)
      result.candidate.concat(candidate)
      result.interval(:seconds, 0.99, 1)
    end
    assert_equal [30, :slower], interval.(1).then { |one| [one.pairs, one.verdict] }
    assert_equal [3, :same, 1.05], interval.(3).then { |one| [one.pairs, one.verdict, one.ratio.round(6)] }
  end

  def test_a_difference_as_large_as_that_of_orders_takes_more_orders
    build("base")
    build("ours", speed: 1.05)
    out, = compare_layouts(4, path("base/ruby"), path("ours/ruby"), "--layouts", "3", "-n", "1", "--", workload(0.3))
    assert_match(/^work .* too noisy: to see 2 % takes about \d+ link orders$/, out)
    entry = JSON.parse(File.read(path("out.json")))["workloads"][0]
    assert_operator entry["order_spreads"].max, :>, 1.02
    assert_equal 3, entry["candidate_seconds"].size
  end

  def test_flags_of_one_build_are_compared_over_the_same_orders
    ruby = build("base").then { path("base/ruby") }
    flagged = write("flagged.rb", 'File.write(ENV.fetch("VM_TRACE_BENCH"), "iteration #{$VERBOSE ? 0.02 : 0.01}\n")')
    out, = compare_layouts(1, ruby, "#{ruby} -w", "--layouts", "3", "-n", "1", "--", flagged)
    assert_match(/^flagged .* 2\.000 .* slower$/, out)
    assert_equal 3, Dir[path("out/*")].size
  end

  def test_what_is_no_build_is_refused_with_the_remedy
    _, err = compare_layouts(2, RbConfig.ruby, RbConfig.ruby, "--layouts", "3")
    assert_match(/\Acompare: --layouts: baseline: \S+ is not the Ruby of a build folder .*; `make` leaves one in/, err.lines.first)
    _, err = compare_layouts(2, RbConfig.ruby, RbConfig.ruby, "--layouts", "2")
    assert_match(/\Acompare: --layouts: at least 3/, err)
    _, err = compare_layouts(2, RbConfig.ruby, RbConfig.ruby, "--layouts", "3", "--instructions")
    assert_match(/\Acompare: --layouts compares over link orders of each side; --instructions does not go with it/, err)
  end
end
