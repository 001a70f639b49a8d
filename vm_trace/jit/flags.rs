//! Flags, and what they have traced from the start. vm_trace/session/flags.c has their names and what they
//! take.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_uint};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::ffi::*;
use super::spans;

/// Null: no flag has anything traced, or the trace could not begin.
static BY_FLAGS: AtomicPtr<Config> = AtomicPtr::new(null_mut());

/// Parse a flag, its name from "trace-" on. None: there is no such flag, or a line on stderr says
/// what it takes.
pub fn parse_flag(jit: &'static Jit, name: &str, value: &str) -> Option<()> {
    let c_name = CString::new(name).ok()?;
    let c_value = CString::new(value).ok()?;
    if unsafe { !rb_vm_trace_supported_p() } {
        let prefix = unsafe { CStr::from_ptr(jit.flag_prefix) }.to_string_lossy();
        eprintln!("{prefix}{name}: this Ruby was built without vm_trace (the summary of its configure says why)");
        return None;
    }
    unsafe { rb_vm_trace_flag(jit, c_name.as_ptr(), c_value.as_ptr()) }.then(|| ())
}

/// Print all flags for --help.
pub fn show_flags(jit: &'static Jit, help: c_int, highlight: c_int, width: c_uint, columns: c_int) {
    c_functions! {
        fn ruby_show_usage_line(name: *const c_char, secondary: *const c_char, description: *const c_char,
                                help: c_int, highlight: c_int, width: c_uint, columns: c_int);
    }
    let mut flag = [0 as c_char; 64];
    let mut text = null();
    let mut index = 0;
    while unsafe { rb_vm_trace_flag_help(jit, index, flag.as_mut_ptr(), flag.len(), &mut text) } {
        unsafe { ruby_show_usage_line(flag.as_ptr(), null(), text, help, highlight, width, columns) };
        index += 1;
    }
}

/// Start the trace if a flag requests one. Called once, before any code is compiled.
pub fn start(jit: &'static Jit) {
    let config = unsafe { rb_vm_trace_start_by_flags(jit) };
    BY_FLAGS.store(config as *mut Config, Ordering::Release);
    if let Some(config) = by_flags() {
        spans::record(true, config.compiles, config.invalidations);
        spans::record_phases(unsafe { !rb_vm_trace_methods_requested_p() });
    }
}

/// What flags have traced since the start. Such code has trace points, and their sites stay when
/// the trace ends, because another trace may follow. None: nothing, or the trace could not begin.
pub fn by_flags() -> Option<&'static Config> {
    unsafe { BY_FLAGS.load(Ordering::Acquire).as_ref() }
}

/// Whether flags have exits traced that increment one of some counters: those of which `any` says
/// so by their names.
pub fn exits_by_flags(any: impl FnMut(&str) -> bool) -> bool {
    match by_flags() {
        Some(config) if config.exit_rate > 0 => {
            let names = unsafe { config.counter.as_ref() }.map(|names| unsafe { CStr::from_ptr(names) });
            names.map_or(true, |names| names.to_str().map_or(false, |names| names.split(',').any(any)))
        }
        _ => false,
    }
}

/// Whether flags have only one exit in K recorded.
pub fn sampled_by_flags() -> bool {
    by_flags().map_or(false, |config| config.exit_rate > 1)
}
