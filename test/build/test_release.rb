# One version number everywhere, and a release that builds by itself.
require "minitest/autorun"
require "open3"
require "tmpdir"

class TestRelease < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  VERSION = File.read(File.join(TOP, "configure.ac"))[/^AC_INIT\(\[ruby-vm-trace\], \[(.*)\]\)$/, 1]

  def test_tool_man_page_gem_and_traces_have_the_version
    assert_match(/\A\d+\.\d+(\.\d+)?\z/, VERSION)
    tool = File.join(TOP, "build/tool/vm-trace")
    assert_equal "vm-trace #{VERSION}\n", Open3.capture2(tool, "--version").first
    man = File.readlines(File.join(TOP, "tools/vm-trace/cli/vm-trace.1"), chomp: true)
    assert_includes man, ".Os vm_trace #{VERSION}"
    gem = File.read(File.join(TOP, "gem/lib/vm_trace/version.rb"))
    assert_includes gem, "VERSION = \"#{VERSION}\""
    built = Dir[File.join(TOP, "build/*/src/vm_trace/base_name.h")]
    built.each { |header| assert_match(/ [0-9a-f]{12}, vm_trace #{Regexp.escape(VERSION)}"$/, File.read(header)) }
  end

  # All files of the gem, and the licence; what it loads is there.
  def test_make_gem_packs_all_of_it
    out, status = Open3.capture2e({ "MAKEFLAGS" => nil }, "make", "gem", chdir: TOP)
    assert_predicate status, :success?, out
    package = File.join(TOP, "build/vm_trace-#{VERSION}.gem")
    listed = Open3.capture2("tar -xOf '#{package}' data.tar.gz | tar -tz").first.lines(chomp: true)
    files = Dir[File.join(TOP, "gem/lib/**/*.rb")].map { |path| path.delete_prefix("#{TOP}/gem/") }
    assert_equal [*files, "LICENSE", "README.md"].sort, listed.sort
    assert_equal "true\n", Open3.capture2(RbConfig.ruby, "-e", "p Gem::Specification.load('vm_trace.gemspec').dependencies.empty?",
                                          chdir: File.join(TOP, "gem")).first
  end

  # Of a clone, so that nothing here is touched; twice, because the bytes are the same each time.
  def test_a_release_builds_without_git_and_autoconf
    skip "this is no clone" unless File.exist?(File.join(TOP, ".git"))
    Dir.mktmpdir do |dir|
      clone = "#{dir}/clone"
      assert system("git", "clone", "-q", "--depth=1", "file://#{TOP}", clone)
      tarballs = Array.new(2) do
        out, status = Open3.capture2e("scripts/release.sh", chdir: clone)
        assert_predicate status, :success?, out
        File.binread(Dir["#{clone}/build/release/*.tar.gz"].fetch(0))
      end
      assert_equal tarballs[0], tarballs[1]
      assert system("tar", "-xzf", "#{clone}/build/release/ruby-vm-trace-#{VERSION}.tar.gz", "-C", dir)

      # Neither is found.
      Dir.mkdir("#{dir}/bin")
      %w[git autoconf].each { |name| File.write("#{dir}/bin/#{name}", "#!/bin/sh\necho no \"$0\" >&2\nexit 1\n") }
      File.chmod(0o755, *Dir["#{dir}/bin/*"])
      root = "#{dir}/ruby-vm-trace-#{VERSION}"
      env = { "PATH" => "#{dir}/bin:#{ENV["PATH"]}", "DEPS" => "no", "MAKEFLAGS" => nil }
      out, status = Open3.capture2e(env, "make", "tool", chdir: root)
      assert_predicate status, :success?, out
      assert_equal "vm-trace #{VERSION}\n", Open3.capture2("#{root}/build/tool/vm-trace", "--version").first
    end
  end
end
