//! Sessions of a running program: exits of code that has no trace points are traced, or not, from
//! one moment on.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ffi::*;
use super::flags::by_flags;
use super::spans;

/// Whether exits are traced by patched code: 0 or 1. Machine code reads it, too.
static EXITS_ON: AtomicU64 = AtomicU64::new(0);
static SESSION: AtomicU64 = AtomicU64::new(0);

/// Whether exits are traced by patched code. Read without the lock, by the thread that exits.
pub fn exits_on() -> bool {
    EXITS_ON.load(Ordering::Acquire) != 0
}

/// Where machine code reads it.
pub fn exits_on_address() -> *const u8 {
    &EXITS_ON as *const AtomicU64 as *const u8
}

/// A number that changes whenever a session starts or stops. Likewise.
pub fn session() -> u64 {
    SESSION.load(Ordering::Acquire)
}

/// The session that sites belong to. Where flags have had code made with trace points, sites stay
/// when a trace ends.
pub fn site_session() -> u64 {
    if by_flags().is_some() { 0 } else { session() }
}

/// Trace points do something from now on, or nothing: a new session begins. All ractors stand still.
pub(super) fn set_exits_on(on: bool) {
    EXITS_ON.store(u64::from(on), Ordering::Release);
    SESSION.fetch_add(1, Ordering::Release);
}

/// [Jit]'s function of that name
pub extern "C" fn recording(on: bool, compiles: bool, invalidations: bool) {
    SESSION.fetch_add(1, Ordering::Release);
    spans::record(on, compiles, invalidations);
}

/// Tell vm_trace/ that there is a JIT whose code can be traced while it runs. Called once it is on,
/// with the VM lock, which stops all ractors: what was to be traced before is traced from now on.
pub fn register(jit: &'static Jit) {
    unsafe {
        rb_vm_trace_register_jit(jit);
        rb_vm_trace_jit_ready();
    }
}

/// The site of an exit in patched code, made if it has none yet in this session. VM lock held, so
/// all ractors stand still; the session may have ended while its thread waited for that. `refused`:
/// there is to be none, for it is in a method that was not requested. NULL: none.
pub fn site_in_session(session_then: u64, site: &mut SitePtr, refused: &mut bool,
                       make: impl FnOnce() -> SitePtr) -> SitePtr {
    if session() != session_then || !exits_on() {
        return std::ptr::null();
    }
    if site.is_null() && !*refused {
        *site = make();
        *refused = site.is_null();
    }
    *site
}
