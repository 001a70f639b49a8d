# What earlier runs have left: how long each entry took, which entries passed at this state of the tree,
# and at which commits check-all, or all that `make check` runs of one base, passed.
require "digest"
require "fileutils"
require "json"
require "open3"

class Memory
  CACHE = File.join(ENV["XDG_CACHE_HOME"] || File.join(ENV["HOME"] || "/nonexistent", ".cache"), "ruby-vm-trace")
  TIMES = File.join(CACHE, "test-times")
  # "COMMIT" for check-all, "COMMIT BASE" for a base that was tested as a whole.
  COMMITS = File.join(CACHE, "commits-passed")
  COMMITS_KEPT = 50
  # Without such a commit, what changed since so many commits counts as changed.
  COMMITS_BACK = 20
  # Below these folders a change is one of all bases.
  OF_ALL_BASES = %w[vm_trace/host vm_trace/jit].freeze

  # resume: whether entries that passed before at this state of the tree are passed over
  def initialize(resume:)
    @times = read(TIMES).to_h { |line| line.split("\t", 2).then { |seconds, name| [name, seconds.to_f] } }
    @passed_file = "build/passed/#{state}" if resume && state
    @passed = @passed_file ? read(@passed_file).to_h { |line| JSON.parse(line).then { |entry| [entry["name"], entry] } } : {}
  end

  def seconds_of(name) = @times[name]
  def passed(name) = @passed[name]

  # Kept at once: a run can be cut.
  def took(name, seconds)
    @times[name] = seconds
    write(TIMES, @times.map { |entry, took| format("%.1f\t%s\n", took, entry) }.join)
  end

  def remember(name, result)
    return unless @passed_file
    FileUtils.mkdir_p(File.dirname(@passed_file))
    File.write(@passed_file, JSON.generate(name: name, counts: result.counts, skips: result.skips) << "\n", mode: "a")
  end

  # All of check-all has passed.
  def all_passed
    FileUtils.rm_f(@passed_file) if @passed_file
    add_commits([head])
  end

  # All that `make check` runs of these bases has passed.
  def bases_passed(bases) = add_commits(bases.map { |base| "#{head} #{base}" })

  # { base => first changed path }
  def changed_bases(bases)
    bases.to_h do |base|
      since = last_passed(base)
      folders = ["patches/#{base}", *OF_ALL_BASES]
      paths = since ? git("diff", "--name-only", since, "--", *folders).to_s.lines(chomp: true) : []
      [base, paths.find { |path| OF_ALL_BASES.any? { |folder| path.start_with?("#{folder}/") } } || paths.first]
    end.compact
  end

  private

  # The commit of the tree as it is now: what differs from a commit is not what later runs compare with.
  def add_commits(lines)
    return unless lines.any? && head && clean?
    write(COMMITS, (read(COMMITS) + lines).last(COMMITS_KEPT).map { |line| "#{line}\n" }.join)
  end

  def last_passed(base)
    commits = read(COMMITS).filter_map { |line| line.split.then { |commit, only| commit if only.nil? || only == base } }
    commits.reverse.find { |commit| git("merge-base", "--is-ancestor", commit, "HEAD") } ||
      git("rev-list", "-n", (COMMITS_BACK + 1).to_s, "--first-parent", "HEAD")&.lines(chomp: true)&.last
  end

  def head = @head ||= git("rev-parse", "-q", "--verify", "HEAD")&.chomp
  def clean? = git("status", "--porcelain").to_s.empty?

  # The commit, and what differs from it.
  def state
    return unless head
    @state ||= clean? ? head : Digest::SHA256.hexdigest([head, git("diff", "HEAD"), git("status", "--porcelain")].join("\0"))
  end

  def git(*arguments)
    out, _, status = Open3.capture3("git", *arguments)
    out if status.success?
  rescue SystemCallError
    nil
  end

  def read(file)
    File.readlines(file, chomp: true)
  rescue SystemCallError
    []
  end

  def write(file, text)
    FileUtils.mkdir_p(File.dirname(file))
    File.write("#{file}.#$$", text)
    File.rename("#{file}.#$$", file)
  rescue SystemCallError => e
    warn "run-tests: #{file} is not written: #{e.message}"
  end
end
