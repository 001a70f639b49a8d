# Which files of the module CRuby builds. template/GNUmakefile.in includes this before uncommon.mk.
# It is here and not in configure.ac, because the tarball of a release has a generated configure:
# with no change to configure.ac nobody needs autoconf to build it. Only GNU make can read this:
# template/Makefile.in names disabled.c for any other make.

# VM_TRACE_SUPPORT is `no` after configure --disable-vm-trace, and where configure misses something that
# the module needs. A new file needs no line here.
ifneq ($(VM_TRACE_SUPPORT),no)
VM_TRACE_OBJS := $(sort \
	$(patsubst $(srcdir)/%.c,%.$(OBJEXT),$(wildcard $(foreach depth,*/*.c */*/*.c,$(srcdir)/vm_trace/$(depth)))))

# Files, because make would find a folder in the source (VPATH).
vm_trace_folders := $(addsuffix .time,$(sort $(dir $(VM_TRACE_OBJS))))
$(VM_TRACE_OBJS): | $(vm_trace_folders)
$(vm_trace_folders):
	$(Q) $(MAKEDIRS) $(@D)
	@$(NULLCMD) > $@
endif

# Made by the build, as what the interpreter itself is made of.
vm_trace/host/operands.$(OBJEXT): insns.inc insns_info.inc

# For YJIT alone, CRuby's configure also takes a rustc that is too old for the tracer's Rust; rustc
# would then print errors about syntax. base.mk has the version that this Ruby needs.
-include $(srcdir)/vm_trace/base.mk
ifneq ($(and $(VM_TRACE_RUSTC_MIN),$(filter-out no,$(YJIT_SUPPORT) $(ZJIT_SUPPORT))),)
vm_trace_rustc := $(word 2,$(shell $(RUSTC) --version))
ifeq ($(shell [ "$(word 2,$(subst ., ,$(vm_trace_rustc)))" -ge $(word 2,$(subst ., ,$(VM_TRACE_RUSTC_MIN))) ] && echo new),)
$(error vm_trace in this Ruby needs rustc $(VM_TRACE_RUSTC_MIN) or newer, but $(RUSTC) is $(or $(vm_trace_rustc),not found). \
	Get it from https://rustup.rs and run configure again, or leave out the JITs: ./configure --disable-yjit --disable-zjit)
endif
endif

# make VM_TRACE_PLATFORM=posix: with nothing but POSIX, on any system (platform/platform.h).
ifeq ($(VM_TRACE_PLATFORM),posix)
$(VM_TRACE_OBJS): CPPFLAGS += -DVM_TRACE_PLATFORM_POSIX
endif

# Names of system calls and errors, from the headers of this system. CPP is a command and its options.
vm_trace/platform/perf/names.$(OBJEXT): vm_trace/platform/perf/system_names.inc
vm_trace/platform/perf/system_names.inc: $(srcdir)/vm_trace/platform/perf/system_names.sh | vm_trace/platform/perf/.time
	$(Q) $(firstword $(SHELL) sh) $< $(CPP) > $@
