//! Sites: one for each traced place in compiled code.

use std::ptr::null;

use super::ffi::*;

/// A traced place in compiled code. JITs have types of their own for what is pointed to.
pub struct Place<'a> {
    pub kind: Kind,
    pub reason: &'a str,
    /// Name of the bytecode instruction
    pub insn: &'a str,
    /// The ISEQ that was compiled, and the number of the version that it became
    pub unit: AnyPtr,
    pub version: u32,
    /// The ISEQ whose frame it is, which may be inlined into `unit`; then its method entry, or null
    /// if only the frame knows it
    pub frame: AnyPtr,
    pub method: AnyPtr,
    /// The instruction; null: only the frame knows it
    pub pc: AnyPtr,
    /// Name of what a fallback calls
    pub callee: Option<&'a str>,
    /// The text of the code and the line in it, from 1; null: none is kept
    pub code: (CodeTextPtr, u32),
}

/// Make the site of a place. None: tracing never began, or the place is not requested.
pub fn new_site(place: &Place) -> Option<SitePtr> {
    new_site_of_frames_at(place, null())
}

/// The same for a place whose `pc` is null: it is where frames exit that have `frame_pc`.
pub fn new_site_of_frames_at(place: &Place, frame_pc: AnyPtr) -> Option<SitePtr> {
    let desc = SiteDesc {
        kind: place.kind,
        reason: place.reason.as_ptr(),
        reason_len: place.reason.len(),
        insn: place.insn.as_ptr(),
        insn_len: place.insn.len(),
        unit: place.unit,
        frame: place.frame,
        pc: place.pc,
        frame_pc,
        version: place.version,
        callee: place.callee.map_or(null(), |callee| callee.as_ptr()),
        callee_len: place.callee.map_or(0, |callee| callee.len()),
        code: place.code.0,
        code_line: place.code.1,
        method: place.method,
    };
    let site = unsafe { rb_vm_trace_site_new(&desc) };
    if site.is_null() { None } else { Some(site) }
}

/// All code of an ISEQ is freed, and its sites with it. VM lock held.
pub fn forget_sites<I>(iseq: *const I) {
    unsafe { rb_vm_trace_code_free(iseq.cast()) };
}

/// Where an ISEQ goes on after a jump out of a call that it catches: the pcs that its frame has
/// then, as many as there is room for. Returns how many.
pub fn landings<I, V>(iseq: *const I, pcs: &mut [*const V]) -> usize {
    unsafe { rb_vm_trace_landings(iseq.cast(), pcs.as_mut_ptr().cast(), pcs.len()) }
}

/// What objects of a shape have: "@x, @y". Empty: this Ruby does not tell.
pub fn shape_text(shape: u32) -> String {
    let mut buffer = [0; 1024];
    let bytes = unsafe { rb_vm_trace_shape_text(shape, buffer.as_mut_ptr(), buffer.len()) };
    String::from_utf8_lossy(&buffer[..bytes.min(buffer.len())]).into_owned()
}

// Offsets for machine code, see rb_vm_trace_site_new in vm_trace_jit.h

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
