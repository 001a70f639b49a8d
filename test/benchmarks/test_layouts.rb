# benchmarks/layouts: orders differ, all have the same code, and the verdicts on times are right.
# The "Rubies" are a few C files that run the system's ruby.

require_relative "bench_helper"

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
    FileUtils.mkdir_p(path("#{name}/stage/lib"))
    assert system("make", "-s", "-C", path("#{name}/obj"), out: File::NULL)
    path("#{name}/obj")
  end

  # A workload whose time depends on the order of the binary by up to `by`, and on nothing else.
  def workload(by)
    write("work.rb", <<~RUBY)
      order = ENV.fetch("BINARY")[/(ours|base)-\\d+/].sum
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
end
