# make patch-file: one patch for the tarball of a release. It applies without fuzz, and gives the
# tree that the build makes from the series and the module, but for what the tarball has of its own.

require "etc"
require_relative "project"

class TestPatchFileOfASmallProject < BuildTest
  FILE = "project/build/ruby-4.1.2-vm_trace.patch"
  VERSION = { "include/ruby/version.h" => "#define RUBY_API_VERSION_MAJOR 4\n#define RUBY_API_VERSION_MINOR 1\n#define RUBY_API_VERSION_TEENY 0\n",
              "version.h" => "#define RUBY_VERSION_TEENY 2\n#define RUBY_PATCHLEVEL 7\n",
              "configure.ac" => "AC_INIT\n", "template/Makefile.in" => "A = @A@\n" }.freeze

  def setup
    super
    pin(VERSION)
    project.write("project/vm_trace/base/one.c", "int one;\n")
    project.write("project/vm_trace/jit/zjit/mod.rs", "mod one;\n")
    project.write("project/vm_trace/vm_trace.mk", "VM_TRACE_OBJS := one\n")
    project.patch("0001-hook") { |text| text.sub("f10", "hook") }
  end

  # A newer commit with these files, pinned by the base, in the cache.
  def pin(files)
    files.each { |name, text| project.write("ruby/#{name}", text) }
    project.git("add", "-A", "-f")
    project.git("commit", "-qm", "another")
    old = project.read("project/bases/small")
    project.write("project/bases/small", old.sub(/^commit=.*/, "commit=#{project.git("rev-parse", "HEAD")}").sub(/^tree=.*/, "tree=#{project.git("rev-parse", "HEAD^{tree}")}"))
    project.instance_variable_set(:@commit, project.git("rev-parse", "HEAD"))
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby)
  end

  def patch_file(*bases, **env) = project.run("patch-file.sh", *(bases.empty? ? ["small"] : bases), **env)

  # The pinned tree with the patch file.
  def patched
    out, err, status = patch_file
    assert_equal 0, status, out + err
    tree = project.path("tarball")
    FileUtils.mkdir_p(tree)
    assert system("git -C #{project.ruby} archive #{project.commit} | tar x -C #{tree}")
    PatchFile.apply(self, project.path(FILE), tree)
    tree
  end

  def test_hooks_and_module_are_in_it_and_the_tarball_keeps_its_gems
    tree = patched
    assert_includes File.read("#{tree}/zjit.c"), "hook"
    assert_equal "int one;\n", File.read("#{tree}/vm_trace/base/one.c")
    assert_equal "mod one;\n", File.read("#{tree}/vm_trace/jit/zjit/mod.rs")
    assert_includes File.read("#{tree}/vm_trace/base_name.h"), "small #{project.commit[0, 12]}"
    assert_path_exists "#{tree}/vm_trace/vm_trace.mk"
    assert_equal "VM_TRACE_RUSTC_MIN := 1.0\n", File.read("#{tree}/vm_trace/base.mk")
    assert_equal Project::FILES["gems/bundled_gems"], File.read("#{tree}/gems/bundled_gems")
  end

  # As when two documents' commands are run side by side.
  def test_several_at_once_make_the_same_file
    made = Array.new(4) { Thread.new { patch_file } }.map(&:value)
    made.each { |out, err, status| assert_equal 0, status, out + err }
    assert_includes project.read(FILE), "hook"
    assert_equal ["ruby-4.1.2-vm_trace.patch"], Dir.children(File.dirname(project.path(FILE))).grep(/patch/)
  end

  def test_a_patch_of_configure_ac_is_left_out_so_that_nobody_needs_autoconf
    project.patch("0002-disable", file: "configure.ac") { |text| "#{text}AC_SUBST(A)\n" }
    project.patch("0003-later") { |text| text.sub("f3", "later") }
    tree = patched
    assert_equal VERSION["configure.ac"], File.read("#{tree}/configure.ac")
    assert_match(/hook(.|\n)*later|later(.|\n)*hook/, File.read("#{tree}/zjit.c"))
  end

  def test_a_patch_of_configure_ac_that_holds_more_is_refused_by_name
    project.patch("0002-mixed", file: "configure.ac", others: { "common.mk" => "mixed\n" }) { |text| "#{text}AC_SUBST(A)\n" }
    _, err, status = patch_file
    assert_equal 1, status
    assert_match(/the patch "0002-mixed" of patches\/small changes configure.ac.*also changes common.mk: split it/, err)
    refute_path_exists project.path(FILE)
  end

  def test_work_in_the_tree_that_is_in_no_patch_stays_out
    patched
    File.write(project.path("project/build/small/src/common.mk"), "mine\n")
    FileUtils.rm_rf(project.path("tarball"))
    refute_includes File.read("#{patched}/common.mk"), "mine"
  end

  def test_a_base_without_source_is_passed_over_and_alone_fails
    other = project.read("project/bases/small").sub(/^commit=.*/, "commit=#{"1" * 40}")
    project.write("project/bases/other", other)
    out, err, status = patch_file("other", "small")
    assert_equal 0, status, out + err
    assert_path_exists project.path(FILE)
    assert_match(/the source of CRuby for base other was not found/, err)
    _, err, status = patch_file("other", "other")
    assert_equal 3, status
    assert_match(/no patch file was made/, err)
  end

  def test_a_wrong_source_is_an_error_and_not_passed_over
    _, err, status = patch_file("small", "small", BASE: "small", RUBY_SOURCE: project.path("nowhere"))
    assert_equal 1, status
    assert_match(/nowhere is no directory and no file/, err)
    refute_path_exists project.path(FILE)
  end

  def test_the_development_branch_is_named_by_its_commit
    pin("version.h" => "#define RUBY_VERSION_TEENY 0\n#define RUBY_PATCHLEVEL -1\n")
    out, err, status = patch_file
    assert_equal 0, status, out + err
    text = project.read("project/build/ruby-4.1.0dev-#{project.commit[0, 10]}-vm_trace.patch")
    assert_includes text, "Apply it to commit #{project.commit}"
    refute_includes text, "rbenv"
  end
end

# The bases of this repository.
class PatchFile < Minitest::Test
  TOP = Project::ROOT
  BASES = (ENV["BASES"] || Dir.children("#{TOP}/bases").join(" ")).split
  LEFT_OUT = %w[configure.ac gems/bundled_gems].freeze

  # GNU patch says where it had to look elsewhere or to guess.
  def self.apply(test, file, tree)
    out, status = Open3.capture2e("patch", "-p1", "--fuzz=0", "--force", "-i", file, chdir: tree)
    test.assert status.success?, out
    test.refute_match(/offset|fuzz|FAILED|reversed/i, out)
    test.assert_empty Dir.glob("**/*.{orig,rej}", base: tree) - Dir.glob("test/**/*.{orig,rej}", base: tree)
  end

  DEFAULT = ENV["BASE"] || BASES.first

  BASES.each do |base|
    name = base.tr("-.", "__")
    next unless ENV["LONG"] || base == DEFAULT
    define_method("test_#{name}_the_patch_file_gives_the_tree_that_is_built") { compare(base) }
    next unless ENV["LONG"] && base == DEFAULT # a whole build takes minutes
    define_method("test_#{name}_a_tarball_with_the_patch_file_builds_and_traces") { build(base) }
  end

  private

  def environment(base) = { "BASE" => base, "RUBY_SOURCE" => base == ENV["BASE"] ? ENV["RUBY_SOURCE"] : nil }
  def src_git(base, *args) = IO.popen(["git", "-C", "#{TOP}/build/#{base}/src", *args], &:read).tap { assert_predicate $?, :success? }

  # Makes the patch file and the pinned tree in `tree`; returns the file.
  def prepare(base, tree)
    out, status = Open3.capture2e(environment(base), "#{TOP}/scripts/patch-file.sh", base)
    skip "the source of base #{base} was not found" if status.exitstatus == 3
    assert status.success?, out
    FileUtils.mkdir_p(tree)
    assert system("git -C #{TOP}/build/#{base}/src archive #{pinned(base)} | tar x -C #{tree}")
    File.join(TOP, out[/^patch-file: (\S+)/, 1])
  end

  def pinned(base) = src_git(base, "rev-list", "--max-parents=0", "refs/vm-trace/made").chomp

  def tree_of(base, commit)
    src_git(base, "ls-tree", "-r", "-z", commit).split("\0").to_h do |line|
      mode, _, id, path = line.split(/[ \t]/, 4)
      [path, [mode, id]]
    end
  end

  def tree_in(folder)
    assert system("git", "-C", folder, "init", "-q") && system("git", "-C", folder, "add", "-A", "-f")
    IO.popen(["git", "-C", folder, "ls-files", "-s", "-z"], &:read).split("\0").to_h do |line|
      mode, id, _, path = line.split(/[ \t]/, 4)
      [path, [mode, id]]
    end
  end

  def without_what_configure_found(base)
    src_git(base, "show", "refs/vm-trace/made:template/Makefile.in").lines.grep_v(/@VM_TRACE_\w+@/)
  end

  def compare(base)
    Dir.mktmpdir("vm-trace-patch-") do |tree|
      file = prepare(base, tree)
      PatchFile.apply(self, file, tree)
      expected = tree_of(base, "refs/vm-trace/made").merge(expected_of_pinned(base).slice(*LEFT_OUT))
      found = tree_in(tree)
      mod, found = found.partition { |path, _| path.start_with?("vm_trace/") }.map(&:to_h)
      assert_equal without_what_configure_found(base), File.readlines("#{tree}/template/Makefile.in")
      [expected, found].each { |files| files.delete("template/Makefile.in") }
      assert_empty (expected.to_a - found.to_a) + (found.to_a - expected.to_a)
      files = Dir.glob("**/*.{c,h,def,rs,mk,py,sh}", base: "#{TOP}/vm_trace")
      assert_equal [*files, "base.mk", "base_name.h"].sort, mod.keys.map { |path| path.delete_prefix("vm_trace/") }.sort
      files.each { |file| assert_equal File.binread("#{TOP}/vm_trace/#{file}"), File.binread("#{tree}/vm_trace/#{file}"), file }
      # miniprelude.c and *.rbinc, which a tarball has, are made from these by a Ruby, and make does so
      # when one is newer. Nobody has the development branch as a tarball.
      changed = Dir.glob("*.rb", base: tree).reject { |name| expected_of_pinned(base)[name] == expected[name] }
      assert_empty changed, "a tarball with these could not be built without another Ruby" unless file.include?("dev-")
    end
  end

  def expected_of_pinned(base) = (@pinned_trees ||= {})[base] ||= tree_of(base, pinned(base))

  # As ruby-build does it: a shared library, in the tree itself; without autoconf and git.
  def build(base)
    jits = File.read("#{TOP}/bases/#{base}")[/^jits="?([^"\n]*)/, 1].split
    Dir.mktmpdir("vm-trace-patch-") do |scratch|
      tree, prefix = "#{scratch}/ruby", "#{scratch}/prefix"
      file = prepare(base, tree)
      unless File.exist?("#{tree}/configure") # a tarball has it
        run_in(tree, "./autogen.sh")
      end
      File.write("#{tree}/gems/bundled_gems", "") # a tarball has the gems
      PatchFile.apply(self, file, tree)
      FileUtils.mkdir_p("#{scratch}/bin")
      %w[autoconf autoreconf autoheader git].each { |tool| File.write("#{scratch}/bin/#{tool}", "#!/bin/sh\nexit 127\n", perm: 0o755) }
      path = "#{scratch}/bin:#{ENV["PATH"]}"
      run_in(tree, "./configure", "--prefix=#{prefix}", "--enable-shared", "--disable-install-doc", *jits.map { |jit| "--enable-#{jit}" }, path: path)
      run_in(tree, "make", "-j#{Etc.nprocessors}", path: path)
      run_in(tree, "make", "install", path: path)
      jits.each { |jit| trace(jit, "#{prefix}/bin/ruby", "#{scratch}/#{jit}.fxt") }
    end
  end

  def trace(jit, ruby, file)
    flag = jit == "zjit" ? "--zjit-trace-exits" : "--yjit-trace-side-exits"
    run_in(TOP, ruby, "--#{jit}", "--#{jit}-call-threshold=2", flag, "--#{jit}-trace-file=#{file}", "examples/demo.rb")
    run_in(TOP, ENV.fetch("VM_TRACE"), "check", file)
    assert_match(/Exits by reason: [1-9]/, run_in(TOP, ENV["VM_TRACE"], "report", "--all", file))
  end

  def run_in(folder, *command, path: ENV["PATH"])
    environment = { "PATH" => path, "MAKEFLAGS" => nil, "MFLAGS" => nil, "MAKELEVEL" => nil, "BASE" => nil, "CFLAGS" => nil }
    out, status = Open3.capture2e(environment, *command, chdir: folder, stdin_data: "")
    assert status.success?, "#{command.join(" ")}\n#{out.lines.last(30).join}"
    out
  end
end
