# What measuring leaves in a folder that others can write to.

require_relative "bench_helper"
require "recording"

class TestRecording < BenchTest
  def warm
    Bench::Recording.new({}, folder: dir).send(:warm_page_cache, dir, bytes: 1 << 20)
  end

  def test_the_warm_up_follows_no_link
    write("victim", "mine")
    File.symlink(path("victim"), path("vm-trace-bench-warm-#{$$}"))
    warm
    assert_equal "mine", File.read(path("victim"))
    assert File.symlink?(path("vm-trace-bench-warm-#{$$}")), "what is not ours stays"
  end

  def test_the_warm_up_leaves_nothing
    warm
    assert_empty Dir.children(dir)
  end
end
