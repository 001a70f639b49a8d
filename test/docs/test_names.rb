# Names in documents, and in comments of the code, are those of something that is there.
require "minitest/autorun"
require_relative "names"

class TestNames < Minitest::Test
  PAGES = Names::FILES.grep(%r{\A(?:README|CONTRIBUTING|doc/.*|benchmarks/README|gem/README)\.md\z})

  # Without a patched Ruby nobody knows CRuby's names and options.
  def setup
    skip ENV.fetch("NO_RUBY", "no patched Ruby is built") if Names::RUBIES.empty?
  end

  def test_names_in_documents
    assert_empty Names.missing(PAGES.to_h { |page| [page, Names.of_document(Names.text(page))] })
  end

  # Paths not in tests, which make some up.
  def test_names_in_comments
    tests, others = (Names::CODE.keys - Names::FILES.grep(/\.patch\z/)).partition { |file| file.start_with?("test/") }
    # That file names CRuby's tests of all bases.
    tests.delete("test/cruby/base-failures") if Names::SOURCES.size < Dir[File.join(Names::TOP, "bases/*")].size
    assert_empty Names.missing(others.to_h { |file| [file, Names.comments(file)] }, %i[word path])
    assert_empty Names.missing(tests.to_h { |file| [file, Names.comments(file)] }, %i[word])
  end

  # Of each kind: one that is there, and one that is not.
  {
    function: %w[rb_vm_trace_hit rb_vm_trace_hitt], variable: %w[RUBY_VM_TRACE_CONTROL RUBY_VM_TRACE_CONTROLS],
    path: %w[host/cruby.c host/crubby.c], folder: %w[patches/BASE/fixes patches/BASE/mends],
    command_option: ["vm-trace report --top=3", "vm-trace report --every=3"],
    trace_option: %w[--vm-trace-spool-every --vm-trace-spool-each],
    jit_option: %w[--zjit-call-threshold=2 --zjit-call-limit=2], goal: ["make check-docs", "make check-documents"],
    make_variable: ["make ruby FIXES=all", "make ruby MENDS=all"]
  }.each do |kind, (there, gone)|
    define_method "test_a_wrong_#{kind}_is_found" do
      assert_empty missing("`#{there}`")
      refute_empty missing("`#{gone}`")
    end
  end

  private

  def missing(document) = Names.missing({ "page" => Names.of_document(document) })
end
