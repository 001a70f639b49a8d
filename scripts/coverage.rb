# Which lines the tests ran, as gcov counted them: a line for each source file, the least covered
# first, and the total.
#   coverage.rb OUT SOURCES NOTES...
# NOTES are folders of objects that were compiled with --coverage, SOURCES the folders (with commas
# between) whose files count. A line counts once, in however many objects it is (headers). OUT gets
# the text of all lines that never ran, as FILE:LINE: TEXT.
require "json"
require "open3"

class Coverage
  def initialize(sources)
    @sources = sources
    @lines = Hash.new { |files, path| files[path] = Hash.new(0) } # path => { line => runs }
  end

  def read(folders)
    notes = folders.flat_map { |folder| Dir[File.join(folder, "**/*.gcno")] }.sort
    abort "coverage.rb: #{folders.join(", ")}: nothing there was compiled with --coverage" if notes.empty?
    # Objects that no test linked have no counts, which gcov says on stderr: their lines count as
    # not run.
    out, err, status = Open3.capture3(ENV["GCOV"] || "gcov", "--json-format", "--stdout", *notes)
    abort "coverage.rb: gcov failed; GCOV=PROGRAM names that of the compiler, from GCC 9 on:\n#{err}" unless status.success?
    out.each_line { |line| add(JSON.parse(line)) }
  rescue Errno::ENOENT => error
    abort "coverage.rb: #{error.message}; it comes with GCC, GCOV=PROGRAM names another one"
  end

  def print_table
    rows = @lines.sort_by { |path, runs| [share(runs), path] }
    rows << ["total", @lines.flat_map { |path, runs| runs.map { |line, count| [[path, line], count] } }.to_h]
    puts "  share    lines  not run  file"
    rows.each { |path, runs| puts format("%6.1f%%  %7d  %7d  %s", 100.0 * share(runs), runs.size, missed(runs), path) }
  end

  def write_missed(out)
    File.open(out, "w") do |file|
      @lines.sort.each do |path, runs|
        texts = File.readlines(path, chomp: true)
        runs.sort.each { |line, count| file.puts "#{path}:#{line}: #{texts[line - 1].strip}" if count == 0 }
      end
    end
  end

  private

  def add(object)
    object["files"].each do |file|
      path = file["file"].delete_prefix("./")
      next unless @sources.any? { |folder| path.start_with?("#{folder}/") }
      file["lines"].each { |line| @lines[path][line["line_number"]] += line["count"] }
    end
  end

  def missed(runs) = runs.count { |_, count| count == 0 }
  def share(runs) = runs.empty? ? 1.0 : 1 - missed(runs).fdiv(runs.size)
end

out, sources, *folders = ARGV
abort "usage: coverage.rb OUT SOURCES NOTES..." if folders.empty?
coverage = Coverage.new(sources.split(","))
coverage.read(folders)
coverage.print_table
coverage.write_missed(out)
