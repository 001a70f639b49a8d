# vm_trace/vm_trace.mk, as CRuby's makefiles include it.
require_relative "project"

class TestModuleMakefile < Minitest::Test
  def setup
    @dir = Dir.mktmpdir("vm-trace-make-")
    %w[vm_trace/base/a.c vm_trace/store/b.c vm_trace/disabled.c].each { |name| write("src/#{name}", "") }
    FileUtils.cp("#{Project::ROOT}/vm_trace/vm_trace.mk", "#{@dir}/src/vm_trace")
    write("src/vm_trace/base.mk", "VM_TRACE_RUSTC_MIN := 1.85.0\n")
    write("obj/Makefile", <<~'MAKE')
      srcdir = ../src
      VPATH = $(srcdir)
      OBJEXT = o
      MAKEDIRS = mkdir -p
      NULLCMD = :
      VM_TRACE_OBJS = vm_trace/disabled.$(OBJEXT)
      all:
      include $(srcdir)/vm_trace/vm_trace.mk
      all: $(VM_TRACE_OBJS)
      	@echo $(VM_TRACE_OBJS)
      .c.o: ; cp $< $@
      vm_trace/disabled.o: vm_trace/.time
      vm_trace/.time: ; mkdir vm_trace; touch $@
    MAKE
  end

  def teardown = FileUtils.rm_rf(@dir)

  def write(name, text)
    FileUtils.mkdir_p(File.dirname("#{@dir}/#{name}"))
    File.write("#{@dir}/#{name}", text)
  end

  def make(*variables, rustc: "rustc 1.90.0 (x)")
    write("rustc", "#!/bin/sh\n#{rustc ? "echo '#{rustc}'" : "exit 127"}\n")
    FileUtils.chmod(0o755, "#{@dir}/rustc")
    Open3.capture2e({ "MAKEFLAGS" => nil, "MAKELEVEL" => nil }, "make", "RUSTC=#{@dir}/rustc", *variables, chdir: "#{@dir}/obj")
  end

  def test_all_files_are_built_outside_the_source_and_new_ones_are_found
    out, status = make
    assert status.success?, out
    assert_equal "vm_trace/base/a.o vm_trace/store/b.o", out.lines.last.chomp
    %w[streams/c streams/exits/d].each { |name| write("src/vm_trace/#{name}.c", "") }
    assert_match(%r{ vm_trace/streams/c.o vm_trace/streams/exits/d.o$}, make[0])
    assert_path_exists "#{@dir}/obj/vm_trace/streams/exits/d.o"
  end

  def test_without_the_tracer_only_the_stubs_are
    assert_equal "vm_trace/disabled.o", make("VM_TRACE_SUPPORT=no")[0].lines.last.chomp
  end

  def test_a_rustc_that_is_too_old_is_one_error_with_the_remedy
    out, status = make("YJIT_SUPPORT=yes", rustc: "rustc 1.63.0")
    refute status.success?
    assert_match(%r{\*\*\* vm_trace in this Ruby needs rustc 1.85.0 or newer, but #{@dir}/rustc is 1.63.0. Get it from https://rustup.rs .*--disable-yjit}, out)
    assert_match(/is not found/, make("ZJIT_SUPPORT=yes", "YJIT_SUPPORT=no", rustc: nil)[0])
  end

  def test_rustc_does_not_matter_without_a_jit_and_a_new_one_is_taken
    [["YJIT_SUPPORT=no", "rustc 1.63.0"], ["YJIT_SUPPORT=yes", "rustc 1.85.0"], ["YJIT_SUPPORT=yes", "rustc 1.100.0-nightly"]].each do |support, rustc|
      out, status = make(support, rustc: rustc)
      assert status.success?, out
    end
  end
end
