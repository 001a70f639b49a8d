//! The seam to C: what vm_trace_jit.h declares.

use std::ffi::c_void;
use std::os::raw::c_char;

/// Address of a `struct rb_vm_trace_site`, which machine code passes on.
pub type SitePtr = *const c_void;
/// Address of a `struct rb_vm_trace_code`: the text of a version.
pub type CodeTextPtr = *const c_void;
/// Address of a `struct rb_vm_trace_ractor`: what one ractor records with.
pub type RactorPtr = *const c_void;
/// An ISEQ, an execution context and so on, for which each JIT has a type of its own.
pub type AnyPtr = *const c_void;

/// `enum rb_vm_trace_kind`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind { SideExit, RecompileExit, Fallback, Counter }

/// `enum rb_vm_trace_span`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpanKind { Compile, Phase, Invalidation }

/// `enum rb_vm_trace_outcome`: what a recompile exit led to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome { Profiling, Invalidated, AlreadyInvalidated, VersionLimit }

/// `struct rb_vm_trace_max_size`
#[repr(C)]
pub struct MaxSize { bytes: u64, keep_oldest: bool }

/// `struct rb_vm_trace_config`: what flags request.
#[repr(C)]
pub struct Config {
    jit: *const c_char,
    path: *const c_char,
    pub(super) counter: *const c_char,
    /// K: one exit in K is recorded. 0: exits are not traced.
    pub exit_rate: u64,
    /// Likewise for fallbacks
    pub fallback_rate: u64,
    max_size: MaxSize,
    pub compiles: bool,
    pub invalidations: bool,
    pub counters: bool,
    code_text: *const c_char,
}

/// `struct rb_vm_trace_jit`: describes a JIT. The strings end in NUL.
#[repr(C)]
pub struct Jit {
    pub name: *const c_char,
    pub flag_prefix: *const c_char,
    pub exits_flag: *const c_char,
    pub example_counter: *const c_char,
    pub fallbacks: bool,
    pub code_text: *const c_char,
    pub counters: bool,
    pub counter_p: extern "C" fn(*const c_char) -> bool,
    pub prepare_exits: Option<extern "C" fn(u64, *const c_char, u64) -> bool>,
    pub exits_on: Option<extern "C" fn(u64, *const c_char) -> *const c_char>,
    pub every_exit: Option<extern "C" fn() -> *const c_char>,
    pub exits_off: Option<extern "C" fn()>,
    pub restore_exits: Option<extern "C" fn(u64) -> bool>,
    pub prepare_calls: Option<extern "C" fn(u64) -> bool>,
    pub calls_on: Option<extern "C" fn() -> *const c_char>,
    pub restore_calls: Option<extern "C" fn(u64) -> bool>,
    pub recording: Option<extern "C" fn(bool, bool, bool)>,
}
unsafe impl Sync for Jit {}

/// `struct rb_vm_trace_site_desc`
#[repr(C)]
pub(super) struct SiteDesc {
    pub kind: Kind,
    pub reason: *const u8,
    pub reason_len: usize,
    pub insn: *const u8,
    pub insn_len: usize,
    pub unit: AnyPtr,
    pub frame: AnyPtr,
    pub pc: AnyPtr,
    pub frame_pc: AnyPtr,
    pub version: u32,
    pub callee: *const u8,
    pub callee_len: usize,
    pub code: CodeTextPtr,
    pub code_line: u32,
    pub method: AnyPtr,
}

/// `struct rb_vm_trace_compiled`
#[repr(C)]
pub(super) struct Compiled {
    pub iseq: AnyPtr,
    pub version: u32,
    pub counted: bool,
    pub code_bytes: u64,
    pub exit_bytes: u64,
    pub exits: u64,
    pub error: *const u8,
    pub error_len: usize,
}

c_functions! {
    pub(super) fn rb_vm_trace_supported_p() -> bool;
    pub(super) fn rb_vm_trace_late_p() -> bool;
    pub(super) fn rb_vm_trace_flag(jit: *const Jit, name: *const c_char, value: *const c_char) -> bool;
    pub(super) fn rb_vm_trace_flag_help(jit: *const Jit, index: usize, flag: *mut c_char, bytes: usize,
                                        text: *mut *const c_char) -> bool;
    pub(super) fn rb_vm_trace_start_by_flags(jit: *const Jit) -> *const Config;
    pub(super) fn rb_vm_trace_methods_requested_p() -> bool;
    pub(super) fn rb_vm_trace_register_jit(jit: *const Jit);
    pub(super) fn rb_vm_trace_jit_ready();

    pub(super) fn rb_vm_trace_site_new(desc: *const SiteDesc) -> SitePtr;
    pub(super) fn rb_vm_trace_thread_offset() -> usize;
    pub(super) fn rb_vm_trace_ractor_offset() -> usize;
    pub(super) fn rb_vm_trace_countdown_offset() -> usize;
    pub(super) fn rb_vm_trace_hits_offset(site: SitePtr) -> usize;
    pub(super) fn rb_vm_trace_code_free(iseq: AnyPtr);
    pub(super) fn rb_vm_trace_shape_text(shape: u32, buffer: *mut u8, capacity: usize) -> usize;
    pub(super) fn rb_vm_trace_landings(iseq: AnyPtr, pcs: *mut AnyPtr, capacity: usize) -> usize;

    pub(super) fn rb_vm_trace_span_begin(kind: SpanKind, name: *const u8, len: usize) -> bool;
    pub(super) fn rb_vm_trace_span_end(kind: SpanKind, name: *const u8, len: usize);
    pub(super) fn rb_vm_trace_compile_end(name: *const u8, len: usize, iseq: AnyPtr, version: u32, code_bytes: usize);
    pub(super) fn rb_vm_trace_compile_begin(name: *const u8, len: usize, iseq: AnyPtr) -> bool;
    pub(super) fn rb_vm_trace_compiled(name: *const u8, len: usize, compiled: *const Compiled);
    pub(super) fn rb_vm_trace_inlined(iseq: AnyPtr, method_entry: AnyPtr);
    pub fn rb_vm_trace_code_wanted_p() -> bool;
    pub fn rb_vm_trace_code_new(iseq: AnyPtr, version: u32, text: *const u8, len: usize) -> CodeTextPtr;
    pub fn rb_vm_trace_code_release(code: CodeTextPtr);
    pub(super) fn rb_vm_trace_version_begin(iseq: AnyPtr, version: u32, reason: *const u8, len: usize,
                                            may_recompile: bool) -> bool;
    pub(super) fn rb_vm_trace_version_end();

    pub(super) fn rb_vm_trace_pending_offset() -> usize;
    pub(super) fn rb_vm_trace_reserve_code_region(code: *const u8, code_bytes: usize, bytes: usize) -> *mut u8;
    pub(super) fn rb_vm_trace_protect_code_region(start: *mut u8, bytes: usize, executable: bool) -> bool;
    pub(super) fn rb_vm_trace_release_code_region(start: *mut u8, bytes: usize);
    pub(super) fn rb_vm_trace_code_written(start: *const u8, bytes: usize);
    pub(super) fn rb_vm_trace_code_changed();
    pub(super) fn rb_vm_trace_lost(ec: AnyPtr);
    pub(super) fn rb_vm_trace_replaced_calls() -> *mut u64;

    // Machine code calls these, or what it calls does.
    pub fn rb_vm_trace_current() -> AnyPtr;
    pub fn rb_vm_trace_exit(state: RactorPtr, site: SitePtr, ec: AnyPtr);
    pub fn rb_vm_trace_hit(site: SitePtr, ec: AnyPtr);
    pub fn rb_vm_trace_count(site: SitePtr, ec: AnyPtr);
    pub fn rb_vm_trace_fallback_end(ec: AnyPtr);
    pub fn rb_vm_trace_frame_pushed(ec: AnyPtr, before: usize);
    pub fn rb_vm_trace_frames_popped(ec: AnyPtr);
    pub fn rb_vm_trace_jit_frame_begun(ec: AnyPtr);
    pub fn rb_vm_trace_first_hit(site: SitePtr, ec: AnyPtr);
    pub fn rb_vm_trace_recompile_begin(state: RactorPtr, site: SitePtr, sampled: bool) -> u64;
    pub fn rb_vm_trace_recompile_end(state: RactorPtr);
    pub fn rb_vm_trace_recompile_exit(state: RactorPtr, site: SitePtr, ec: AnyPtr, start_ns: u64, outcome: Outcome);
    pub fn rb_vm_trace_recompile_taken(site: SitePtr, ec: AnyPtr, start_ns: *mut u64) -> u64;
    pub fn rb_vm_trace_recompile_done(site: SitePtr, ec: AnyPtr, start_ns: u64, weight: u64, outcome: Outcome);
    pub fn rb_vm_trace_recompile_dropped(ec: AnyPtr);
    pub fn rb_vm_trace_take_exit() -> AnyPtr;
}
