# What earlier runs have left: how long each entry took, which entries passed at this state of the tree,
# and the last commit that passed check-all.
require "digest"
require "fileutils"
require "json"
require "open3"

class Memory
  CACHE = File.join(ENV["XDG_CACHE_HOME"] || File.join(ENV["HOME"] || "/nonexistent", ".cache"), "ruby-vm-trace")
  TIMES = File.join(CACHE, "test-times")
  COMMITS = File.join(CACHE, "check-all-passed")
  # Without a commit that check-all passed, what changed since so many commits counts as changed.
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
    write(COMMITS, (read(COMMITS).last(50) << head).uniq.map { |commit| "#{commit}\n" }.join) if head && clean?
  end

  # { base => first changed path }
  def changed_bases(bases)
    since = last_passed or return {}
    paths = git("diff", "--name-only", since, "--", "patches", *OF_ALL_BASES).to_s.lines(chomp: true)
    common = paths.find { |path| OF_ALL_BASES.any? { |folder| path.start_with?("#{folder}/") } }
    bases.to_h { |base| [base, common || paths.find { |path| path.start_with?("patches/#{base}/") }] }.compact
  end

  private

  def last_passed
    read(COMMITS).reverse.find { |commit| git("merge-base", "--is-ancestor", commit, "HEAD") } ||
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
