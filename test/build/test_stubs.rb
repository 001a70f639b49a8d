# The module built out (configure --disable-vm-trace): every function of its headers has a stub.
require "minitest/autorun"
require "open3"

class TestStubs < Minitest::Test
  FOLDER = File.expand_path("../../vm_trace", __dir__)
  HEADERS = %w[vm_trace.h vm_trace_jit.h].map { |name| "#{FOLDER}/#{name}" }
  # Texts without comments, up to and from the stubs on.
  DECLARATIONS, STUBS = HEADERS.map { |path| File.read(path).gsub(%r{/\*.*?\*/}m, "").split("#else", 2) }.transpose.map(&:join)

  def names(text, last) = text.scan(/\b(rb_vm_trace_\w+)\s*\([^;{}]*\)\s*#{last}/).flatten.sort

  # What inline functions call (..._slow) has no stub: their stubs call nothing.
  def declared = names(DECLARATIONS, "[;{]").uniq.grep_v(/_slow\z/)

  def test_each_declared_function_has_one_stub
    assert_operator declared.size, :>, 50
    assert_equal declared, names(STUBS, "\\{")
  end

  def test_a_caller_of_all_of_them_compiles
    uses = declared.map { |name| "(void (*)(void))#{name}" }
    source = "#define USE_VM_TRACE 0\n#include \"#{HEADERS.last}\"\nvoid (*const all[])(void) = { #{uses.join(", ")} };\n"
    out, status = Open3.capture2e(ENV["CC"] || "cc", "-std=c99", "-iquote", File.dirname(FOLDER), "-fsyntax-only", "-x", "c", "-", stdin_data: source)
    assert status.success?, out
  end
end
