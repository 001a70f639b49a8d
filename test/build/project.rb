# A small project for the tests of the build scripts: copies of the scripts, a base that pins a
# commit of a small new repository, and its own home. It changes nothing outside its temporary
# folder and uses no network.

require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"

class Project
  ROOT = File.expand_path("../..", __dir__)
  FILES = {
    "version.h" => "#define RUBY_API_VERSION_MAJOR 4\n",
    "common.mk" => (1..20).map { |n| "line #{n}\n" }.join,
    "zjit.c" => (1..20).map { |n| "int f#{n}(void);\n" }.join,
    "gems/bundled_gems" => "minitest 6.0.0 https://example.invalid/minitest\n",
    ".gitignore" => "*.o\n/configure\n",
  }.freeze

  # What configure makes, for tests that are not about configure: it takes seconds, and finds the same
  # in every project.
  CONFIGURED = %w[configure config.status Makefile].freeze

  def self.configured
    @configured ||= new.tap do |project|
      Minitest.after_run { project.delete }
      project.add_makefiles
      unset = { "MAKEFLAGS" => nil, "MAKELEVEL" => nil, "MFLAGS" => nil, "BASE" => nil, "CC" => nil, "CFLAGS" => nil }
      out, status = Open3.capture2e({ **project.env, **unset }, "make", "Makefile", chdir: project.path("project"))
      raise out unless status.success?
    end
  end

  # The small Ruby's repository, the cache with its source, and patches are made once, and copied for each project:
  # git starts dozens of processes for them.
  def self.once(key) = (@made ||= {})[key] ||= yield

  def self.folder_until_exit = Dir.mktmpdir("vm-trace-build-").tap { |dir| Minitest.after_run { FileUtils.rm_rf(dir) } }

  # Returns the folder that the block fills.
  def self.made(kind, files) = once([kind, files]) { File.join(folder_until_exit, kind).tap { |dir| yield dir } }

  attr_reader :dir, :ruby, :commit, :tree

  # more_files: of the small Ruby, beside FILES
  def initialize(more_files = {})
    @dir = Dir.mktmpdir("vm-trace-build-")
    @ruby = path("ruby")
    @files = FILES.merge(more_files)
    FileUtils.cp_r(Project.made("ruby", @files) { |made| make_ruby(made) }, ruby)
    @commit, @tree = git("rev-parse", "HEAD", "HEAD^{tree}").lines(chomp: true)
    FileUtils.mkdir_p([path("project/scripts"), path("project/bases"), path("project/vm_trace"), path("home")])
    write("home/system.gitconfig", "[maintenance]\nauto = false\n[gc]\nauto = 0\n")
    FileUtils.cp(Dir["#{ROOT}/scripts/*.sh"], path("project/scripts"))
    FileUtils.cp("#{ROOT}/configure.ac", path("project")) # the version
    script("bin/rustc", "echo 'rustc 1.90.0 (some build)'")
    write("project/bases/small", <<~BASE)
      url=file://#{path("no-upstream")}
      commit=#{commit}
      tree=#{tree}
      date=2026-08-22T02:33:28Z
      origins=git
      jits=zjit
      rustc_min=1.0
      configure_args=
      patches=patches/small
      build_core_minutes=1
      build_log_lines=1
    BASE
  end

  # The repository's own makefiles, and the base under the name of the one that make prefers.
  def add_makefiles
    %w[GNUmakefile Makefile.in configure.ac].each { |file| FileUtils.cp("#{ROOT}/#{file}", path("project")) }
    FileUtils.mv(path("project/bases/small"), path("project/bases/ruby-4.0"))
  end

  # As after `make Makefile`. What is written below bases/ later makes make configure again.
  def configure
    CONFIGURED.each { |file| FileUtils.cp(Project.configured.path("project/#{file}"), path("project")) }
  end

  def delete
    FileUtils.rm_rf(dir)
  end

  def path(name)
    File.join(dir, name)
  end

  def read(name)
    File.read(path(name))
  end

  def write(name, text)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path(name), text)
  end

  def script(name, text)
    write(name, "#!/bin/sh\n#{text}")
    FileUtils.chmod(0o755, path(name))
  end

  # What configure finds out about the machine is the same in every project.
  SITE = File.join(folder_until_exit, "site").tap do |site|
    File.write(site, %(test -n "$CC$CFLAGS$CPPFLAGS$LDFLAGS$LIBS$PKG_CONFIG" || cache_file='#{File.dirname(site)}/cache'\n))
  end

  def env(**more)
    { "CONFIG_SITE" => SITE, "HOME" => path("home"), "PATH" => "#{path("bin")}:#{ENV["PATH"]}",
      "XDG_CACHE_HOME" => nil, "RUBY_SOURCE" => nil,
      "GIT_CONFIG_SYSTEM" => path("home/system.gitconfig"),
      "BASE" => "small", "BASES" => nil, "FIXES" => nil, "PLATFORM" => nil, "POSIX_TESTS" => nil,
      "DEPS" => nil, "CI" => nil, "V" => nil, "FORCE" => nil, **more.transform_keys(&:to_s) }
  end

  # Runs a script of the project. Returns [stdout, stderr, exit status].
  def run(script, *args, **env)
    out, err, status = Open3.capture3(env(**env), path("project/scripts/#{script}"), *args, stdin_data: "")
    [out, err, status.exitstatus]
  end

  def git(*args, in: ruby, env: {})
    who = { "GIT_AUTHOR_NAME" => "A", "GIT_AUTHOR_EMAIL" => "a@example.invalid", "GIT_COMMITTER_NAME" => "C",
            "GIT_COMMITTER_EMAIL" => "c@example.invalid",
            "GIT_CONFIG_GLOBAL" => path("home/system.gitconfig"), "GIT_CONFIG_NOSYSTEM" => "1" }
    out, status = Open3.capture2e(who.merge(env), "git", "-C", binding.local_variable_get(:in), *args)
    raise "git #{args.join(' ')}: #{out}" unless status.success?
    out.chomp
  end

  def cache
    path("home/.cache/ruby-vm-trace")
  end

  def store
    "#{cache}/#{commit}.git"
  end

  # As `make ruby-source` does it.
  def cache_source
    made = Project.made("cache", @files) do |to|
      run("source.sh", "cache", RUBY_SOURCE: ruby)
      FileUtils.cp_r(cache, to)
    end
    FileUtils.mkdir_p(File.dirname(cache))
    FileUtils.cp_r(made, cache) unless File.exist?(cache)
  end

  # A patch as git format-patch writes it. The block edits one of FILES; `others` are files with their new texts.
  def patch(name, subject: name, file: "zjit.c", others: {}, &edit)
    make_patch(name, subject, file, Dir["#{path("project/patches/small")}/*.patch"].sort, others, &edit)
    File.write(path("project/patches/small/series"), "#{name}.patch\n", mode: "a")
  end

  # Of CRuby: it applies to the pinned source.
  def fix(name, file: "zjit.c", &edit)
    make_patch("fixes/#{name}", name, file, [], {}, &edit)
  end

  def patch_path(name)
    path("project/patches/small/#{name}.patch")
  end

  private

  def make_patch(name, subject, file, earlier, others)
    tree = tree_with(earlier)
    target = File.join(tree, file)
    changed = { file => yield(File.exist?(target) ? File.read(target) : ""), **others }
    write("project/patches/small/#{name}.patch", Project.once([tree, subject, changed]) { patch_of(tree, subject, changed) })
  end

  # The pinned source with patches.
  def tree_with(patches)
    Project.once([commit, patches.map { |patch| File.read(patch) }]) do
      Project.folder_until_exit.tap do |tree|
        FileUtils.cp_r("#{ruby}/.", tree)
        git("checkout", "-qf", commit, in: tree)
        git("am", "-q", *patches, in: tree) if patches.any?
      end
    end
  end

  # The patch that gives files these texts.
  def patch_of(tree, subject, changed)
    work = path("patch-work")
    FileUtils.cp_r(tree, work)
    changed.each { |file, text| write("patch-work/#{file}", text) }
    git("add", "-A", "-f", in: work)
    git("commit", "-q", "-m", "#{subject}\n\nWhy it is so.", in: work)
    "#{git("format-patch", "--stdout", "-N", "--zero-commit", "HEAD~1", in: work)}\n"
  ensure
    FileUtils.rm_rf(work)
  end

  def make_ruby(to)
    git("init", "-q", "--template=", "-b", "master", to, in: dir)
    @files.each do |name, text|
      FileUtils.mkdir_p(File.dirname("#{to}/#{name}"))
      File.write("#{to}/#{name}", name.end_with?(".sh") ? "#!/bin/sh\n#{text}" : text)
      FileUtils.chmod(0o755, "#{to}/#{name}") if name.end_with?(".sh")
    end
    git("add", "-A", "-f", in: to)
    git("commit", "-q", "-m", "the pinned one", in: to)
  end
end

class BuildTest < Minitest::Test
  attr_reader :project

  def setup
    @project = Project.new
  end

  def teardown
    project.delete
  end
end
