# The module built out (configure --disable-vm-trace): every function in vm_trace.h has a stub.
require "minitest/autorun"
require "open3"

class TestStubs < Minitest::Test
  FOLDER = File.expand_path("../../vm_trace", __dir__)
  HEADER = "#{FOLDER}/vm_trace.h"
  # Text without comments, up to and from the stubs on.
  DECLARATIONS, STUBS = File.read(HEADER).gsub(%r{/\*.*?\*/}m, "").split("#else", 2)

  def names(text, last) = text.scan(/\b(rb_vm_trace_\w+)\s*\([^;{}]*\)\s*#{last}/).flatten.sort

  def test_each_declared_function_has_one_stub
    declared = names(DECLARATIONS, ";")
    assert_operator declared.size, :>, 50
    assert_equal declared, names(STUBS, "\\{")
  end

  def test_a_caller_of_all_of_them_compiles
    uses = names(DECLARATIONS, ";").map { |name| "(void (*)(void))#{name}" }
    source = "#define USE_VM_TRACE 0\n#include \"#{HEADER}\"\nvoid (*const all[])(void) = { #{uses.join(", ")} };\n"
    out, status = Open3.capture2e(ENV["CC"] || "cc", "-std=c99", "-fsyntax-only", "-x", "c", "-", stdin_data: source)
    assert status.success?, out
  end
end
