# scripts/coverage.rb on a small program: its counts, and its message if there is nothing to count.
require "minitest/autorun"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

class TestCoverage < Minitest::Test
  SCRIPT = File.expand_path("../../scripts/coverage.rb", __dir__)
  FILES = {
    "module/twice.h" => "static inline int\ntwice(int x)\n{\n    return 2 * x;\n}\n",
    "module/used.c" => "#include \"twice.h\"\nint used(int);\nint\nused(int x)\n{\n    if (x > 3)\n        return 1;\n    return twice(x);\n}\n",
    "module/unused.c" => "#include \"twice.h\"\nint unused(void);\nint\nunused(void)\n{\n    return twice(2);\n}\n",
    "test/main.c" => "int used(int);\nint\nmain(void)\n{\n    return used(2) == 4 ? 0 : 1;\n}\n",
  }.freeze

  def setup
    skip "gcov is not installed" unless system("gcov", "--version", out: File::NULL, err: File::NULL)
    @dir = Dir.mktmpdir("vm-trace-coverage-")
    FILES.each do |name, text|
      FileUtils.mkdir_p(File.dirname(path(name)))
      File.write(path(name), text)
    end
  end

  def teardown = (FileUtils.rm_rf(@dir) if @dir)
  def path(name) = File.join(@dir, name)

  def build
    Dir.mkdir(path("objects"))
    objects = FILES.keys.grep(/\.c\z/).map do |name|
      object = "objects/#{File.basename(name, ".c")}.o"
      assert system("cc", "-O0", "--coverage", "-c", "-o", object, name, chdir: @dir)
      object
    end
    assert system("cc", "--coverage", "-o", "program", *objects, chdir: @dir)
  end

  def coverage(*arguments, **env) = Open3.capture3(env.transform_keys(&:to_s), RbConfig.ruby, SCRIPT, *arguments, chdir: @dir)

  def test_the_least_covered_file_comes_first_and_a_header_counts_once
    build
    assert system(path("program"))
    out, err, status = coverage("missed.txt", "module", "objects")
    assert_predicate status, :success?, err
    rows = out.lines.drop(1).map(&:split)
    assert_equal ["module/unused.c", "module/used.c", "module/twice.h", "total"], rows.map(&:last)
    assert_equal ["0.0%", "100.0%"], rows.values_at(0, 2).map(&:first)
    assert_equal rows[0][1], rows[0][2]
    assert_equal "1", rows[1][2]
    assert_equal rows.first(3).sum { |row| row[1].to_i }, rows.last[1].to_i
    missed = File.read(path("missed.txt"))
    assert_includes missed, "module/used.c:7: return 1;\n"
    assert_includes missed, "module/unused.c:6: return twice(2);\n"
    refute_includes missed, "main.c"
  end

  def test_what_was_not_compiled_so_is_no_full_coverage
    Dir.mkdir(path("objects"))
    _, err, status = coverage("missed.txt", "module", "objects")
    refute_predicate status, :success?
    assert_match(/objects: nothing there was compiled with --coverage/, err)
  end

  def test_a_missing_gcov_is_named
    build
    _, err, status = coverage("missed.txt", "module", "objects", GCOV: "no-such-gcov")
    refute_predicate status, :success?
    assert_match(/no-such-gcov; .*GCOV=PROGRAM/, err)
  end
end
