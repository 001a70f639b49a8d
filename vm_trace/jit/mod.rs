//! What JITs written in Rust share of the tracer: calls of the C module, the flags, sites, durations, and how a trace of the running
//! program begins and ends. A JIT keeps only where its exits are, why control leaves there, and the instructions that count them.
//!
//! CRuby's crate `jit` includes this file, or, where there is none, the JIT's own. Whoever does defines the macro `c_functions`, for
//! Rust's editions write blocks of foreign functions in two ways. It has to compile with the oldest rustc of all of them, 1.58.
//! What is read here without the VM lock is read by the thread that exits.

#![allow(dead_code, unused_imports)] // no JIT uses all of it

mod ffi;
mod flags;
mod patch;
mod session;
mod sites;
mod spans;

pub use ffi::*;
pub use flags::*;
pub use patch::*;
pub use session::*;
pub use sites::*;
pub use spans::*;
