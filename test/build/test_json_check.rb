# scripts/check-json.rb: no file of the tool but its writer has parts of JSON in texts.
require "minitest/autorun"
require "open3"
require "tmpdir"
require "fileutils"
require "rbconfig"

class TestJsonCheck < Minitest::Test
  SCRIPT = File.expand_path("../../scripts/check-json.rb", __dir__)

  def check(code, file = "page/page.c")
    Dir.mktmpdir do |root|
      path = "#{root}/tools/vm-trace/#{file}"
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, code)
      out, status = Open3.capture2e(RbConfig.ruby, SCRIPT, root)
      [out, status.success?]
    end
  end

  JSON_IN_C = ['fputs(",\"name\":", out);', 'printf("{\"ts\":%d", ts);', "putc('[', out);", "putchar('}');",
               'fputs("]}\n", out);', 'printf("%s[%u", before, n);', 'fputs("],\n", out);',
               'fprintf(out, "\"%s\"]", name);'].freeze

  def test_json_in_a_text_fails
    JSON_IN_C.each do |code|
      out, fine = check("\n#{code}\n")
      refute fine, code
      assert_match %r{\Atools/vm-trace/page/page\.c:2: .* looks like JSON}, out
      assert_equal ["", true], check(code, "base/json.c")
    end
  end

  def test_other_texts_pass
    ['fputs("<html lang=\"en\">\n", out);', 'printf("%s,%s\n", a, b);', "putc(',', out);",
     '/* {"rows":[{"count":1}]} */', 'int a[] = {1, 2};', 'puts("the table \"a\" is missing: [options]");',
     'printf("\033[%d;1H", row);', 'json_key(json, "name");'].each do |code|
      assert_equal ["", true], check(code), code
    end
  end

  def test_the_tool_passes
    out, status = Open3.capture2e(RbConfig.ruby, SCRIPT)
    assert status.success?, out
  end
end
