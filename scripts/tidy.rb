#!/usr/bin/env ruby
# clang-tidy of files that are not known to be fine. Prints what is found; exit status 1: something was.
#   tidy.rb FILE... [-- OPTION...] -- COMPILER-OPTION...       (in the folder that has .clang-tidy)
# What is fine is a file in ~/.cache/ruby-vm-trace/lint whose name is the hash of all that clang-tidy looks
# at: its version and configuration, the options, the file and each header that it may include from the
# folders of -iquote, -I and -isystem. The system's own headers are those of the compiler's version.
# $JOBS files are looked at side by side (2, if it is not set).
require "digest"
require "fileutils"
require "open3"
require "pathname"

class Tidy
  FOLDERS = %w[-iquote -I -isystem].freeze

  def initialize(files, options, compiler_options)
    @files, @options, @compiler_options = files, options, compiler_options
    @cache = File.join(ENV["XDG_CACHE_HOME"] || File.join(Dir.home, ".cache"), "ruby-vm-trace/lint")
    @top = Pathname.pwd
    @folders = compiler_options.each_cons(2).filter_map { |option, folder| folder if FOLDERS.include?(option) }
    @texts, @includes = {}, {}
    versions = ["clang-tidy", ENV["CC"] || "cc"].map { |program| `#{program} --version` }
    @always = [*versions, File.read(".clang-tidy"), options, relative(compiler_options)].join("\n")
  end

  # Whether all are fine.
  def run
    unknown = @files.map { |file| [file, File.join(@cache, hash_of(file))] }.reject { |_, known| File.exist?(known) }
    FileUtils.mkdir_p(@cache)
    queue = Queue.new.tap { |all| unknown.each { |pair| all << pair } }.close
    jobs = Array.new(ENV["JOBS"].to_i > 0 ? ENV["JOBS"].to_i : 2) do
      Thread.new do
        fine = true
        while (file, known = queue.pop)
          fine = false unless look(file, known)
        end
        fine
      end
    end
    jobs.map(&:value).all?
  end

  private

  def look(file, known)
    out, status = Open3.capture2("clang-tidy", "--quiet", *@options, file, "--", *@compiler_options, err: File::NULL)
    $stdout.write(out)
    FileUtils.touch(known) if status.success?
    status.success?
  end

  def hash_of(file)
    seen, left = {}, [file]
    while (path = left.pop)
      next if seen.key?(path)
      seen[path] = true
      left.concat(includes(path))
    end
    hash = Digest::SHA256.new << @always
    seen.keys.sort.each { |path| hash << "\n#{relative([path])}\n" << text(path) }
    hash.hexdigest
  end

  def text(path) = @texts[path] ||= File.binread(path)

  def includes(path)
    @includes[path] ||= text(path).scan(/^\s*#\s*include\s*(["<])([^">]+)[">]/n).filter_map do |quote, name|
      folders = quote == '"' ? [File.dirname(path), *@folders] : @folders
      folders.map { |folder| File.join(folder, name) }.find { |candidate| File.file?(candidate) }
    end
  end

  # In each clone the same.
  def relative(words) = words.map { |word| word.delete_prefix("#{@top}/") }.join(" ")
end

first, last = ARGV.index("--"), ARGV.rindex("--")
abort "tidy.rb FILE... [-- OPTION...] -- COMPILER-OPTION..." unless first
exit Tidy.new(ARGV[0...first], ARGV[first + 1...last] || [], ARGV[last + 1..]).run
