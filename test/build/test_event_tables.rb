# scripts/event-tables.rb: the tables of the event reference are those of the schema.
require "minitest/autorun"
require "open3"
require "tmpdir"
require "fileutils"
require "rbconfig"

class TestEventTables < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  SCHEMA = "vm_trace/schema/events.def"
  PAGE = "doc/internals/events.md"

  def setup
    @root = Dir.mktmpdir
    [SCHEMA, PAGE].each do |path|
      FileUtils.mkdir_p(File.dirname("#{@root}/#{path}"))
      FileUtils.cp("#{TOP}/#{path}", "#{@root}/#{path}")
    end
  end

  def teardown = FileUtils.rm_rf(@root)

  def tables(*options)
    out, status = Open3.capture2e(RbConfig.ruby, "#{TOP}/scripts/event-tables.rb", *options, @root)
    [out, status.success?]
  end

  def change(path, from, to)
    text = File.read("#{@root}/#{path}")
    assert_includes text, from
    File.write("#{@root}/#{path}", text.sub(from) { to })
  end

  def assert_differs
    out, ok = tables
    assert_equal ["#{PAGE}: a table differs from #{SCHEMA}; ruby scripts/event-tables.rb --write writes it\n", false], [out, ok]
  end

  def test_tables_are_those_of_the_schema
    assert_equal ["", true], tables
  end

  def test_change_of_the_page_alone_fails
    change PAGE, "the bytecode instruction that exits", "the instruction"
    assert_differs
  end

  def test_change_of_the_schema_alone_fails_until_it_is_written
    change SCHEMA, '    ARG(INSN, STRING, ALWAYS, "the bytecode instruction that exits")',
           %(    ARG(INSN, STRING, ALWAYS, "an instruction "\n        "(of bytecode)")\n    ARG(FD, INT, WITH(INSN), "a new one")\n    VALUE(CPU, "x"))
    assert_differs
    assert_equal ["", true], tables("--write")
    assert_equal ["", true], tables
    page = File.read("#{@root}/#{PAGE}")
    assert_match(/^\| `insn` \|  \| string \| always \| an instruction \(of bytecode\) \|$/, page)
    assert_match(/^\| `fd` \|  \| int32, int64 \| with `insn` \| a new one\. `cpu`: x \|$/, page)
    assert_match(/^\| `side_exit` \| reason \| instant \| backtrace, `insn`, `fd`, `version`, /, page)
  end

  def test_event_without_a_table_fails
    change PAGE, "<!-- table: call -->", "<!-- table: syscall -->"
    tables("--write")
    assert_equal ["#{PAGE}: no table has the arguments of call\n", false], tables
  end

  def test_unknown_names_fail
    change PAGE, "<!-- table: call -->", "<!-- table: calls -->"
    assert_equal ["event-tables.rb: events.def has no event calls\n", false], tables
    change SCHEMA, "ARG(INSN,", "ARG(INSTRUCTION,"
    assert_match(/events\.def has no string INSTRUCTION/, tables.first)
  end
end
