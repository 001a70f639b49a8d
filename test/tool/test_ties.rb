# What compares as equal: no output depends on where the C library's sort leaves it, which differs between libraries.
# Each command prints the same when the rows come to the sort in the opposite order.
require_relative "tool_helper"
require "open3"

class TestTies < Minitest::Test
  include ToolHelper

  REVERSED = <<~'C'
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdlib.h>
    #include <string.h>

    static void
    reverse(char *rows, size_t count, size_t bytes)
    {
        char *one = malloc(bytes);
        for (size_t i = 0; i < count / 2; i++) {
            char *a = rows + i * bytes, *b = rows + (count - 1 - i) * bytes;
            memcpy(one, a, bytes);
            memcpy(a, b, bytes);
            memcpy(b, one, bytes);
        }
        free(one);
    }

    void
    qsort(void *rows, size_t count, size_t bytes, int (*compare)(const void *, const void *))
    {
        void (*sort)(void *, size_t, size_t, int (*)(const void *, const void *)) = dlsym(RTLD_NEXT, "qsort");
        if (count > 1) reverse(rows, count, bytes);
        sort(rows, count, bytes, compare);
    }

    void
    qsort_r(void *rows, size_t count, size_t bytes, int (*compare)(const void *, const void *, void *), void *context)
    {
        void (*sort)(void *, size_t, size_t, int (*)(const void *, const void *, void *), void *) = dlsym(RTLD_NEXT, "qsort_r");
        if (count > 1) reverse(rows, count, bytes);
        sort(rows, count, bytes, compare, context);
    }
  C
  COMMANDS = [%w[report --all], %w[report --format=json], %w[annotate], %w[html --output=-], %w[export --format=firefox],
              %w[export --format=pprof --output=-], %w[metrics]].freeze

  def output(env, command, trace) = Open3.capture2(env, TOOL, *command, trace, err: File::NULL).first

  def test_no_output_depends_on_the_order_of_what_is_equal
    skip "a tool that is watched has a qsort of its own" if INSTRUMENTED
    Dir.mktmpdir do |dir|
      File.write("#{dir}/reversed.c", REVERSED)
      built = system("cc", "-shared", "-fPIC", "-o", "#{dir}/reversed.so", "#{dir}/reversed.c", "-ldl", err: File::NULL)
      skip "cc makes no library for LD_PRELOAD here" unless built
      all = Dir[File.expand_path("../traces/*.fxt", __dir__)].product(COMMANDS)
      differ = all.reject do |trace, command|
        [{}, { "LD_PRELOAD" => "#{dir}/reversed.so" }].map { |env| output(env, command, trace) }.uniq.size == 1
      end
      assert_empty differ
    end
  end
end
