//! Entries from the interpreter that only exit: those of ISEQs that can't be compiled, and those of
//! exception handlers, which never are. There is no code to put trace points into. While exits are
//! traced, a function takes the place of such an entry.
//!
//! As in points.rs all of it changes under the VM lock with all ractors stopped, and exits
//! read without it.

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{counters_of, known_compile_error_site, new_exception_handler_site, points, traces, traces_counters};
use crate::cruby::*;
use crate::payload::{get_or_create_iseq_payload, IseqPayload};
use crate::stats::{CompileError, Counter};
use crate::stats::vm_trace::*;

/// Such an entry
#[derive(Debug)]
pub struct UncompiledEntry {
    /// Where the ISEQ keeps the entry
    field: *mut *const u8,
    /// What it is when it is not traced: code that counts for --zjit-stats, or null
    untraced: *const u8,
    /// None: it is for exception handlers
    error: Option<CompileError>,
    /// Its site, or null if there is to be none, and [site_session] of when it was made
    site: Option<(u64, SitePtr)>,
    dead: AtomicBool,
}

/// All of them
#[derive(Default)]
pub struct UncompiledEntries(Vec<*mut UncompiledEntry>);

/// Those of an ISEQ: as it can't be compiled, and for exception handlers. Or null.
#[derive(Debug)]
pub struct Entries([*mut UncompiledEntry; 2]);

impl Default for Entries {
    fn default() -> Self {
        Entries([null_mut(); 2])
    }
}

fn entries_of(iseq: IseqPtr) -> &'static mut [*mut UncompiledEntry; 2] {
    &mut get_or_create_iseq_payload(iseq).traced.entries.0
}

type Entry = extern "C" fn(EcPtr, CfpPtr) -> VALUE;

/// Note such an entry, or that there is none where there was: the ISEQ has been compiled after all.
/// Returns where it is to lead now. No error: it is compiled, or for exception handlers.
pub fn note_entry(iseq: IseqPtr, jit_exception: bool, error: Option<CompileError>, untraced: *const u8) -> *const u8 {
    unsafe extern "C" { fn rb_zjit_entry_field(iseq: IseqPtr, jit_exception: bool) -> *mut *const u8; }
    let slot = &mut entries_of(iseq)[usize::from(jit_exception)];
    if let Some(known) = unsafe { slot.as_ref() } {
        known.dead.store(true, Ordering::Release);
        *slot = null_mut();
    }
    if !possible() || !(jit_exception || error.is_some()) {
        return untraced;
    }
    let field = unsafe { rb_zjit_entry_field(iseq, jit_exception) };
    *slot = Box::into_raw(Box::new(UncompiledEntry { field, untraced, error, site: None, dead: AtomicBool::new(false) }));
    points::entries().add(*slot);
    let entry = unsafe { &**slot };
    if counters_of(entry.error.as_ref()).into_iter().any(traces) { entry.traced() } else { untraced }
}

/// The ISEQ of a payload is dead.
pub fn forget_entries(payload: &IseqPayload) {
    for entry in payload.traced.entries.0 {
        if let Some(entry) = unsafe { entry.as_ref() } {
            entry.dead.store(true, Ordering::Release);
        }
    }
}

impl UncompiledEntry {
    fn traced(&self) -> *const u8 {
        let entry: Entry = if self.error.is_some() { traced_error } else { traced_handler };
        entry as *const u8
    }

    /// Have it traced, or not, if it is what it was.
    fn lead(&self, traced: bool) {
        let (from, to) = if traced { (self.untraced, self.traced()) } else { (self.traced(), self.untraced) };
        if unsafe { *self.field } == from {
            unsafe { *self.field = to };
        }
    }
}

impl UncompiledEntries {
    fn add(&mut self, entry: *mut UncompiledEntry) {
        if self.0.len() == self.0.capacity() {
            self.reap();
        }
        self.0.push(entry);
    }

    fn reap(&mut self) {
        self.0.retain(|&entry| {
            let dead = unsafe { (*entry).dead.load(Ordering::Acquire) };
            if dead {
                drop(unsafe { Box::from_raw(entry) });
            }
            !dead
        });
    }

    /// Have them traced, all or those whose exits increment a counter, or not.
    pub fn lead(&mut self, traced: bool, counter: Option<Counter>) {
        self.reap();
        for &entry in self.0.iter() {
            let entry = unsafe { &*entry };
            if counter.is_none_or(|only| counters_of(entry.error.as_ref()).contains(&only)) {
                entry.lead(traced);
            }
        }
    }
}

extern "C" fn traced_error(ec: EcPtr, cfp: CfpPtr) -> VALUE {
    exit(false, ec, cfp)
}

extern "C" fn traced_handler(ec: EcPtr, cfp: CfpPtr) -> VALUE {
    exit(true, ec, cfp)
}

/// Record the exit, and do what the entry does when it is not traced. The frame is the top one.
/// (The trampoline of the first kind leaves no arguments.)
fn exit(jit_exception: bool, _: EcPtr, _: CfpPtr) -> VALUE {
    let ec = unsafe { rb_vm_trace_current() } as EcPtr;
    let cfp = unsafe { get_ec_cfp(ec) };
    let iseq = unsafe { get_cfp_iseq(cfp) };
    let entry = entries_of(iseq)[usize::from(jit_exception)];
    let (site, untraced) = match unsafe { entry.as_ref() } {
        Some(UncompiledEntry { site: Some((session, site)), untraced, .. }) if *session == site_session() => (*site, *untraced),
        _ => make_entry_site(jit_exception, iseq),
    };
    if !site.is_null() {
        unsafe { rb_vm_trace_first_hit(site, ec as AnyPtr) };
    }
    if untraced.is_null() {
        return Qundef;
    }
    let untraced: Entry = unsafe { std::mem::transmute(untraced) };
    untraced(ec, cfp)
}

/// The site of such an entry and where it leads when it is not traced, at its first exit in a
/// session. Other ractors may have been here first, or have switched tracing off, while this one
/// waited for the lock.
fn make_entry_site(jit_exception: bool, iseq: IseqPtr) -> (SitePtr, *const u8) {
    let session_then = session();
    with_vm_lock(src_loc!(), || {
        let entry = entries_of(iseq)[usize::from(jit_exception)];
        let Some(entry) = (unsafe { entry.as_mut() }) else { return (null(), null()) };
        if session() != session_then || !exits_on() {
            return (null(), entry.untraced);
        }
        let session = site_session();
        if entry.site.is_none_or(|(then, _)| then != session) {
            let site = match &entry.error {
                Some(error) => known_compile_error_site(iseq, error, session),
                None => new_exception_handler_site(iseq, null()),
            };
            entry.site = Some((session, site.unwrap_or(null())));
        }
        (entry.site.map_or(null(), |(_, site)| site), entry.untraced)
    })
}

/// Record the exit that this error causes where the stub of a call finds it, if exits are traced by
/// patched code. False: they are not.
pub fn record_late(iseq: IseqPtr, error: &CompileError) -> bool {
    if !exits_on() {
        return false;
    }
    let counters = counters_of(Some(error));
    if traces_counters(&counters) || counters.into_iter().any(traces) {
        if let Some(site) = known_compile_error_site(iseq, error, site_session()) {
            get_or_create_iseq_payload(iseq).traced.error_exit.take(site); // the traced end also notifies hooks
        }
    }
    true
}
