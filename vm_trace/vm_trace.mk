# Which files of the module CRuby builds. template/GNUmakefile.in includes this before uncommon.mk.
# It is here and not in configure.ac, because the tarball of a release has a generated configure:
# with no change to configure.ac nobody needs autoconf to build it. Only GNU make can read this,
# and CRuby's makefiles for YJIT and ZJIT need GNU make, too.

# VM_TRACE_SUPPORT is `no` after configure --disable-vm-trace. A new file needs no line here.
VM_TRACE_OBJS := $(if $(filter no,$(VM_TRACE_SUPPORT)),vm_trace/disabled.$(OBJEXT),$(sort \
	$(patsubst $(srcdir)/%.c,%.$(OBJEXT),$(wildcard $(srcdir)/vm_trace/*/*.c))))

# Files, because make would find a folder in the source (VPATH).
vm_trace_folders := $(addsuffix .time,$(sort $(dir $(VM_TRACE_OBJS))))
$(VM_TRACE_OBJS): | $(vm_trace_folders)
$(vm_trace_folders):
	$(Q) $(MAKEDIRS) $(@D)
	@$(NULLCMD) > $@
