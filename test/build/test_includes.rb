# scripts/check-includes.rb: includes point to the same layer or a lower one, and the picture of the layers is the one that the files give.
require "minitest/autorun"
require "open3"
require "tmpdir"
require "fileutils"
require "rbconfig"

class TestIncludes < Minitest::Test
  SCRIPT = File.expand_path("../../scripts/check-includes.rb", __dir__)

  def setup = @root = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@root)

  def write(path, *includes)
    FileUtils.mkdir_p(File.dirname("#{@root}/#{path}"))
    File.write("#{@root}/#{path}", includes.map { |name| name.start_with?("<") ? "#include #{name}\n" : "#include \"#{name}\"\n" }.join)
  end

  def check(*options)
    out, status = Open3.capture2e(RbConfig.ruby, SCRIPT, *options, @root)
    [out, status.success?]
  end

  def layered
    write "vm_trace/vm_trace.h"
    write "vm_trace/base/clock.h", "vm_trace/vm_trace.h", "<time.h>"
    write "vm_trace/store/writer.h", "vm_trace/base/clock.h"
    write "vm_trace/store/writer.c", "vm_trace/store/writer.h"
    write "vm_trace/host/host.h"
    write "vm_trace/host/cruby.c", "vm_core.h", "vm_trace/host/host.h"
    write "vm_trace/capture/stacks.c", "vm_trace/host/host.h", "vm_trace/store/writer.h"
    FileUtils.mkdir_p("#{@root}/doc/internals")
    File.write("#{@root}/doc/internals/architecture.md", <<~TEXT)
      before
      <!-- layers: written by scripts/check-includes.rb --write -->
      <!-- end of layers -->
      after
    TEXT
    check("--write")
  end

  def assert_fault(pattern)
    out, ok = check
    refute ok, "no fault was found"
    assert_match pattern, out
  end

  def test_includes_of_lower_layers_pass
    layered
    assert_equal ["", true], check
  end

  def test_include_of_a_higher_layer_fails
    layered
    write "vm_trace/base/clock.h", "vm_trace/vm_trace.h", "vm_trace/store/writer.h"
    assert_fault(%r{vm_trace/base/clock\.h:2: includes store/writer\.h: base/ is below store/})
  end

  def test_tables_that_a_file_includes_belong_to_its_layer
    layered
    write "vm_trace/base/names/all.def"
    write "vm_trace/base/clock.h", "vm_trace/vm_trace.h", "vm_trace/base/names/all.def"
    assert_equal ["", true], check
    write "vm_trace/base/clock.h", "vm_trace/vm_trace.h", "vm_trace/base/names/none.def"
    assert_fault(/clock\.h:2: includes .*none\.def, which is not of/)
  end

  def test_include_beside_the_file_is_followed_too
    layered
    write "vm_trace/store/a.h", "b.h"
    write "vm_trace/store/b.h", "a.h"
    assert_fault(%r{these include each other: store/a, store/b$})
  end

  def test_cycle_through_the_source_of_a_header_fails
    layered
    write "vm_trace/store/a.h"
    write "vm_trace/store/a.c", "vm_trace/store/b.h"
    write "vm_trace/store/b.h", "vm_trace/store/a.h"
    assert_fault(%r{these include each other: store/a, store/b$})
  end

  def test_calls_in_a_circle_fail_in_the_tool
    layered
    write "tools/vm-trace/base/pool.h"
    File.write("#{@root}/tools/vm-trace/base/a.c", "int\na_first(void)\n{\n    return b_first(); /* a_second */\n}\n")
    File.write("#{@root}/tools/vm-trace/base/b.c",
               "int\nb_first(void)\n{\n    return 1;\n}\n\nstatic int\na_second(void)\n{\n}\n")
    check("--write")
    assert_equal ["", true], check
    File.write("#{@root}/tools/vm-trace/base/b.c", "int\nb_first(void)\n{\n    return a_first();\n}\n")
    assert_fault(%r{tools/vm-trace: these call each other: base/a, base/b$})
  end

  def test_include_of_the_vm_outside_of_the_host_fails
    layered
    write "vm_trace/capture/stacks.c", "vm_core.h"
    assert_fault(%r{capture/stacks\.c:1: includes vm_core\.h, which is not of vm_trace/})
  end

  def test_what_one_system_has_is_in_the_folder_for_that
    layered
    words = { "#include <sys/prctl.h>" => "<sys/prctl.h>", "#ifdef __linux__" => "__linux__",
              "int n = gettid();" => "gettid(", 'int fd = open("/proc/self/stat", 0);' => '"/proc/',
              "int flags = MAP_NORESERVE;" => "MAP_NORESERVE" }
    words.each do |code, word|
      File.write("#{@root}/vm_trace/store/writer.h", "\n#{code}\n")
      fault = "store/writer.h:2: has #{word}, which not every system has: it belongs to vm_trace/platform/"
      assert_fault(/#{Regexp.escape(fault)}$/)
    end
    FileUtils.mkdir_p("#{@root}/vm_trace/platform")
    File.write("#{@root}/vm_trace/platform/linux.c", "#include <sys/prctl.h>\n")
    File.write("#{@root}/vm_trace/store/writer.h", "/* <sys/prctl.h>, of __linux__ */\n")
    check("--write")
    assert_equal ["", true], check
  end

  def test_tool_includes_the_schema_of_the_module_and_nothing_else_of_it
    layered
    write "vm_trace/schema/events.def"
    write "tools/vm-trace/base/pool.h", "vm_trace/schema/events.def"
    check("--write")
    assert_equal ["", true], check
    write "tools/vm-trace/base/pool.h", "vm_trace/base/clock.h"
    assert_fault(%r{base/pool\.h:1: includes vm_trace/base/clock\.h, which is not of tools/vm-trace/})
    write "tools/vm-trace/base/pool.h", "vm_trace/schema/none.def"
    assert_fault(%r{base/pool\.h:1: includes vm_trace/schema/none\.def, which is not of tools/vm-trace/})
  end

  def test_file_in_no_layer_fails
    layered
    write "vm_trace/extra/a.c"
    assert_fault(%r{vm_trace/extra/a\.c: is in no layer})
  end

  def test_old_picture_fails_until_it_is_written
    layered
    write "vm_trace/store/memory.h", "vm_trace/base/clock.h"
    assert_fault(/the picture of the layers is old/)
    check("--write")
    assert_equal ["", true], check
    page = File.read("#{@root}/doc/internals/architecture.md")
    assert_match(/^\| `store\/` \| memory, writer \| `base\/` \|$/, page)
    assert_match(/\Abefore\n.*\nafter\n\z/m, page)
  end

  def test_folder_in_a_layer_has_its_own_row
    layered
    write "vm_trace/store/disk/file.h", "vm_trace/base/clock.h", "vm_trace/store/writer.h"
    check("--write")
    assert_includes File.read("#{@root}/doc/internals/architecture.md"), "| `store/disk/` | file | `store/`, `base/` |\n"
  end

  def test_page_without_the_markers_fails
    layered
    File.write("#{@root}/doc/internals/architecture.md", "nothing\n")
    assert_fault(/there is no architecture\.md with/)
  end
end
