//! Durations: compilations, their phases, invalidations.

use std::borrow::Cow;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ffi::*;
use super::session::session;

/// Whether anything is recorded, compilations, invalidations.
static RECORDING: AtomicBool = AtomicBool::new(false);
static COMPILES: AtomicBool = AtomicBool::new(false);
static INVALIDATIONS: AtomicBool = AtomicBool::new(false);

/// Whether phases are recorded where they come: when only some methods are traced, within their
/// compilations alone.
static PHASES: AtomicBool = AtomicBool::new(true);

pub(super) fn record(on: bool, compiles: bool, invalidations: bool) {
    RECORDING.store(on, Ordering::Relaxed);
    COMPILES.store(compiles, Ordering::Relaxed);
    INVALIDATIONS.store(invalidations, Ordering::Relaxed);
}

pub(super) fn record_phases(wanted: bool) {
    PHASES.store(wanted, Ordering::Relaxed);
}

pub fn recording_any() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

pub fn recording_compiles() -> bool {
    COMPILES.load(Ordering::Relaxed)
}

pub fn recording_invalidations() -> bool {
    INVALIDATIONS.load(Ordering::Relaxed)
}

/// A duration on this thread, from its making until it is dropped.
pub struct Span<'a> { kind: SpanKind, name: Cow<'a, str>, session: u64, ended: bool }

impl<'a> Span<'a> {
    pub fn begin(kind: SpanKind, name: impl Into<Cow<'a, str>>) -> Option<Self> {
        let name = name.into();
        let begun = unsafe { rb_vm_trace_span_begin(kind, name.as_ptr(), name.len()) };
        begun.then(|| Span { kind, name, session: session(), ended: false })
    }

    /// End the compilation of `iseq`, which made so many bytes of code of a version, 0 for none.
    pub fn end_compile<I>(mut self, iseq: *const I, version: u32, code_bytes: usize) {
        self.end(|name, len| unsafe { rb_vm_trace_compile_end(name, len, iseq.cast(), version, code_bytes) });
    }

    fn end(&mut self, end: impl FnOnce(*const u8, usize)) {
        if !self.ended && self.session == session() { // else it is another trace by now
            end(self.name.as_ptr(), self.name.len());
        }
        self.ended = true;
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let kind = self.kind;
        self.end(|name, len| unsafe { rb_vm_trace_span_end(kind, name, len) });
    }
}

/// Record a phase of a compilation: the time that `func` takes.
pub fn phase<R>(name: &str, func: impl FnOnce() -> R) -> R {
    let wanted = recording_compiles() && PHASES.load(Ordering::Relaxed);
    let _span = if wanted { Span::begin(SpanKind::Phase, name) } else { None };
    func()
}

/// Run `func` with phases recorded, or not.
fn with_phases<R>(wanted: bool, func: impl FnOnce() -> R) -> R {
    let before = PHASES.swap(wanted, Ordering::Relaxed);
    let result = func();
    PHASES.store(before, Ordering::Relaxed);
    result
}

/// What a compilation made.
pub struct Made {
    /// 0: no code
    pub version: u32,
    pub code_bytes: u64,
    /// Of these, side exits; and how many
    pub exit_bytes: u64,
    pub exits: u64,
    /// Why there is no code
    pub error: Option<String>,
}

/// The compilation of an ISEQ as a whole, by a JIT that makes versions of ISEQs.
pub struct Compilation<'a> { name: &'a str, iseq: AnyPtr, wanted: bool }

impl<'a> Compilation<'a> {
    /// Called whatever is recorded: it also ends what began with the invalidation of the version
    /// before.
    pub fn begin<I>(name: &'a str, iseq: *const I) -> Self {
        let wanted = unsafe { rb_vm_trace_compile_begin(name.as_ptr(), name.len(), iseq.cast()) };
        Compilation { name, iseq: iseq.cast(), wanted }
    }

    pub fn run<R>(&self, func: impl FnOnce() -> R) -> R {
        with_phases(self.wanted, func)
    }

    pub fn end(self, made: impl FnOnce() -> Made) {
        if !self.wanted {
            return;
        }
        let Made { version, code_bytes, exit_bytes, exits, error } = made();
        let compiled = Compiled {
            iseq: self.iseq,
            version,
            counted: true,
            code_bytes,
            exit_bytes,
            exits,
            error: error.as_ref().map_or(null(), |error| error.as_ptr()),
            error_len: error.as_ref().map_or(0, |error| error.len()),
        };
        unsafe { rb_vm_trace_compiled(self.name.as_ptr(), self.name.len(), &compiled) };
    }
}

/// Note that a callee was inlined into the ISEQ that is being compiled.
pub fn inlined<M, I>(method_entry: *const M, iseq: *const I) {
    if recording_compiles() {
        unsafe { rb_vm_trace_inlined(iseq.cast(), method_entry.cast()) };
    }
}

/// The invalidation of a version, until it is dropped.
pub struct VersionSpan(());

impl VersionSpan {
    /// No `reason`: because of the recompile exit that is being acted upon, or as a part of the
    /// invalidation that is being recorded.
    pub fn begin<I>(iseq: *const I, version: u32, reason: Option<String>, may_recompile: bool) -> Option<Self> {
        let (text, len) = reason.as_ref().map_or((null(), 0), |reason| (reason.as_ptr(), reason.len()));
        unsafe { rb_vm_trace_version_begin(iseq.cast(), version, text, len, may_recompile) }.then(|| VersionSpan(()))
    }
}

impl Drop for VersionSpan {
    fn drop(&mut self) {
        unsafe { rb_vm_trace_version_end() };
    }
}

/// Record an invalidation: the time that `func` takes, with the backtrace.
pub fn invalidation<R>(reason: impl FnOnce() -> String, func: impl FnOnce() -> R) -> R {
    if !recording_invalidations() {
        return func();
    }
    let _span = Span::begin(SpanKind::Invalidation, reason());
    func()
}
