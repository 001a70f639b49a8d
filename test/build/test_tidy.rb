# scripts/tidy.rb: what clang-tidy found fine is not looked at again while it is the same, headers included.
require "minitest/autorun"
require "open3"
require "tmpdir"
require "fileutils"

class TestTidy < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  FAULTY = "#define BODY char *p = 0; *p = 1\n".freeze
  FINE = "#define BODY char c = 0, *p = &c; *p = 1\n".freeze

  def setup
    skip "clang-tidy is not installed" unless system("clang-tidy --version", %i[out err] => File::NULL)
    @cache = Dir.mktmpdir
    FileUtils.mkdir_p("#{TOP}/build")
    @folder = Dir.mktmpdir("tidy", "#{TOP}/build") # below .clang-tidy
    FileUtils.mkdir_p("#{@cache}/ruby-vm-trace")
    File.write("#{@folder}/file.c", "#include \"file.h\"\nvoid function(void) { BODY; }\n")
  end

  def teardown = FileUtils.rm_rf([@cache, @folder].compact)

  def found?(header, jobs: nil)
    File.write("#{@folder}/file.h", header)
    env = { "XDG_CACHE_HOME" => @cache, "JOBS" => jobs }
    out, status = Open3.capture2e(env, "#{TOP}/scripts/tidy.rb", "#{@folder}/file.c",
                                  "--", "--header-filter=.*", "--", "-iquote", @folder, chdir: TOP)
    assert_equal status.success?, !out.include?("clang-analyzer"), out
    !status.success?
  end

  def known = Dir["#{@cache}/ruby-vm-trace/lint/*"]

  def test_only_what_is_fine_is_kept
    assert found?(FAULTY, jobs: "") # as `make lint` sets it
    assert found?(FAULTY, jobs: "3")
    assert_empty known
    refute found?(FINE)
    assert_equal 1, known.size
    time = File.stat(known.first).mtime
    refute found?(FINE)
    assert_equal time, File.stat(known.first).mtime, "it was looked at again"
    assert found?(FAULTY)
    refute found?("#{FINE}/* another comment */\n")
    assert_equal 2, known.size
  end
end
