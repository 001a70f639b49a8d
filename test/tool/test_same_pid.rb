# Two recordings in one file with the same pids and tids, as of two containers: each command says of the merged file
# what it says of both files.
require_relative "tool_helper"

class TestSamePid < Minitest::Test
  include ToolHelper

  TESTS = [2 << 4 | 1 << 16 | 1 << 20 | 4 << 52].pack("Q<") + "test\0\0\0\0".b
  TRACERS = [3 << 4 | 1 << 16 | 1 << 20 | 13 << 52].pack("Q<") + "ruby vm_trace\0\0\0".b

  # A kept trace, as CRuby's tracer writes it.
  def kept(name)
    File.binread("#{TRACES}/#{name}.fxt").gsub(TESTS, TRACERS).tap { |bytes| assert_includes bytes, TRACERS }
  end

  def merged(*names)
    Dir.mktmpdir do |dir|
      files = names.each_with_index.map { |name, i| "#{dir}/#{i}.fxt".tap { |path| File.binwrite(path, kept(name)) } }
      assert_equal 0, tool("merge", *files, "-o", "#{dir}/merged.fxt").status
      yield files, "#{dir}/merged.fxt"
    end
  end

  def out_of(*args)
    result = tool(*args)
    assert_includes [0, 1], result.status, result.err
    result.out
  end

  PAIRS = %w[allocations calls exits gvl kernel killed loops lost recompiled sampled states].flat_map do |name|
    [[name, name], [name, "exits"]].uniq
  end

  # Tables of files and of what is equal but for its place in the order.
  FILES = %w[files providers settings processes losses].freeze

  def tables(*args)
    JSON.parse(out_of(*args, "--format=json")).reject { |name,| FILES.include?(name) }
  end

  # What dump says of the threads of events.
  def threads(*files)
    out_of("dump", *files).each_line.map { |line| JSON.parse(line).values_at("name", "pid", "tid", "thread") }
  end

  PAIRS.each do |names|
    define_method(:"test_#{names.join('_and_')}") do
      merged(*names) do |files, both|
        assert_equal [files.map { |file| tool("check", file).status }.max, ""],
                     tool("check", both).then { |result| [result.status, result.err.gsub(/.*: warning: .*\n/, "")] }
        [[], %w[-u 7us]].each do |window|
          assert_equal tables("report", "--all", "-n100", *window, *files), tables("report", "--all", "-n100", *window, both)
        end
        %w[exits samples calls blocked allocations].each do |kind|
          args = ["export", "--format=folded", "--threads", "--kind=#{kind}"]
          assert_equal out_of(*args, *files).lines.sort, out_of(*args, both).lines.sort
        end
        args = %w[export --format=folded --weight=lost]
        assert_equal out_of(*args, *files).lines.sort, out_of(*args, both).lines.sort
        assert_equal threads(*files), threads(both)
        assert_equal out_of("metrics", *files).lines.grep_v(/files/), out_of("metrics", both).lines.grep_v(/files/)
      end
    end
  end

  def test_parts
    %w[calls gvl kernel recompiled states].each do |name|
      merged(name, name) do |files, both|
        parts = [*files, both].map do |file|
          "#{file}.cut.fxt".tap { |part| assert_equal 0, tool("cut", "-s", "2us", "-u", "7us", file, "-o", part).status }
        end
        assert_equal 0, tool("check", parts.last).status
        assert_equal tables("report", "--all", "-n100", *parts[0, 2]), tables("report", "--all", "-n100", parts[2])
        args = %w[export --format=folded --kind=calls -s 2us -u 7us]
        assert_equal out_of(*args, *files).lines.sort, out_of(*args, both).lines.sort
      end
    end
  end

  def test_a_format_that_has_only_pids_says_so
    merged("exits", "calls") do |files, both|
      [files, [both]].each do |args|
        assert_equal "vm-trace: #{args[0]}: there are several processes 42: the format shows them as one process\n",
                     tool("export", "--format=chrome", *args).err
      end
      assert_empty tool("export", "--format=chrome", files[0]).err
    end
  end
end
