# The commits of a range, and a Ruby of each: built once, kept by what the build reads.

require "digest"
require "etc"
require "fileutils"
require "open3"
require "shellwords"
require_relative "side"

module Bench
  # title: the first line of its message; key: of what its build reads
  Commit = Struct.new(:id, :date, :title, :key) do
    def short = id[0, 10]
  end

  class Commits
    BUILD = File.expand_path("build_commit.sh", __dir__)
    FOLDER = File.expand_path("../../build/history", __dir__)
    # What no built Ruby depends on. A commit that changes nothing else has the Ruby of the one before.
    NOT_BUILT = %w[.github basictest benchmark bootstraptest doc sample spec test].freeze

    # range: "OLD..NEW". command: what builds a commit (benchmarks/README.md has its contract); nil: build_commit.sh.
    def initialize(repository, range, command: nil, configure: "", folder: nil, jobs: nil)
      @repository, @configure, @jobs = File.expand_path(repository), configure, jobs
      raise BadArgument, "#{repository}: not a git repository" unless git("rev-parse", "--git-dir")
      @command = command || "sh #{BUILD.shellescape}"
      @built_by = [command || File.read(BUILD), configure]
      @folder = File.expand_path(folder || FOLDER)
      @old, @new = range.split("..", 2)
      wrong = [@old, @new].any? { |name| name.to_s.empty? || name.start_with?(".") }
      raise BadArgument, "#{range}: a range is OLD..NEW" if wrong
    end

    # OLD and what follows on the way of first parents to NEW, the oldest first.
    def list
      @list ||= begin
        old, new = [@old, @new].map { |name| id_of(name) }
        raise BadArgument, "#{@old}: not before #{@new}" unless git("merge-base", "--is-ancestor", old, new)
        ids = git("rev-list", "--first-parent", "--reverse", "#{old}..#{new}").split
        raise BadArgument, "#{@old}..#{@new}: no commits" if ids.empty?
        [old, *ids].map { |id| commit(id) }
      end
    end

    def built?(commit) = File.executable?(ruby(commit))

    # The path of its ruby. Raises Failed, also for one that failed before.
    def build(commit)
      return ruby(commit) if built?(commit)
      failed = "#{out(commit)}.failed"
      raise Failed, "it did not build before (#{failed} has the output; remove it to try again)" if File.exist?(failed)
      prepare
      return ruby(commit) if attempt(commit, "#{out(commit)}.log")
      clean # what an older commit left may have been in the way
      return ruby(commit) if attempt(commit, "#{out(commit)}.log")
      File.rename("#{out(commit)}.log", failed)
      raise Failed, "it does not build (#{failed} has the output)"
    end

    private

    def out(commit) = File.join(@folder, commit.key)
    def ruby(commit) = File.join(out(commit), "bin/ruby")
    def source = File.join(@folder, "src")
    def objects = File.join(@folder, "obj")

    def id_of(name)
      git("rev-parse", "-q", "--verify", "#{name}^{commit}")&.chomp or
        raise BadArgument, "#{name}: no commit of #{@repository}"
    end

    def commit(id)
      date, title = git("show", "-s", "--format=%cs%x00%s", id).chomp.split("\0", 2)
      read = git("ls-tree", id).lines(chomp: true).reject { |line| NOT_BUILT.include?(line.split("\t", 2)[1]) }
      key = Digest::SHA256.hexdigest([*read, *@built_by].join("\n"))[0, 16]
      Commit.new(id, date, title.gsub(/[[:cntrl:]]/, "?"), key)
    end

    # One clone for all: only what differs between two commits is compiled again.
    def prepare
      return if File.directory?(source) && git("remote", "get-url", "origin", at: source)&.chomp == @repository
      FileUtils.rm_rf([source, objects])
      FileUtils.mkdir_p(@folder)
      git("clone", "-q", "--shared", "--no-checkout", @repository, source) or
        raise Failed, "#{@repository} cannot be cloned into #{source}"
    end

    def clean
      FileUtils.rm_rf(objects)
      git("clean", "-fdxq", at: source)
    end

    def attempt(commit, log)
      git("checkout", "-q", "-f", commit.id, at: source) or
        raise Failed, "#{commit.short} cannot be checked out in #{source}"
      git("clean", "-fdq", at: source)
      new = "#{out(commit)}.new"
      FileUtils.rm_rf(new)
      FileUtils.mkdir_p([new, objects])
      env = { "OUT" => new, "OBJECTS" => objects, "JOBS" => (@jobs || Etc.nprocessors).to_s, "CONFIGURE" => @configure }
      ok = system(env, "sh", "-c", @command, chdir: source, in: File::NULL, out: log, err: [:child, :out])
      return unless ok && File.executable?("#{new}/bin/ruby")
      File.rename(new, out(commit))
      File.delete(log)
      true
    end

    # nil if it failed
    def git(*arguments, at: @repository)
      out, _, status = Open3.capture3("git", "-C", at, *arguments)
      out.force_encoding(Encoding::UTF_8).scrub if status.success?
    end
  end
end
