//! Sites: one for each traced place in compiled code.

use super::ffi::*;

/// Make the site of a place in the code of the ISEQ `unit`, at the instruction `insn` at `pc` of `frame`; a null `pc` is for one that
/// only the frame knows. None: tracing never began, or the place is not requested.
pub fn new_site<I, V>(kind: Kind, reason: &str, insn: &str, unit: *const I, version: u32, frame: *const I, pc: *const V) -> Option<SitePtr> {
    let desc = SiteDesc {
        kind,
        reason: reason.as_ptr(),
        reason_len: reason.len(),
        insn: insn.as_ptr(),
        insn_len: insn.len(),
        unit: unit.cast(),
        frame: frame.cast(),
        pc: pc.cast(),
        version,
    };
    let site = unsafe { rb_vm_trace_site_new(&desc) };
    if site.is_null() { None } else { Some(site) }
}

/// All code of an ISEQ is freed, and its sites with it. VM lock held.
pub fn forget_sites<I>(iseq: *const I) {
    unsafe { rb_vm_trace_code_free(iseq.cast()) };
}

// Offsets for machine code, see rb_vm_trace_site_new in vm_trace.h

/// `ec->thread->ractor` in the thread
pub fn thread_offset() -> usize {
    unsafe { rb_vm_trace_thread_offset() }
}

/// What a ractor records with, in the ractor
pub fn ractor_offset() -> usize {
    unsafe { rb_vm_trace_ractor_offset() }
}

pub fn countdown_offset() -> usize {
    unsafe { rb_vm_trace_countdown_offset() }
}

pub fn hits_offset(site: SitePtr) -> usize {
    unsafe { rb_vm_trace_hits_offset(site) }
}
