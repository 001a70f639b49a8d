//! The part of the tracer that all JITs written in Rust share: calls of the C module, flags, sites,
//! durations, sessions, and stubs for code that is patched while it runs. A JIT adds where its
//! exits are, why control leaves there, and the instructions that count.
//!
//! CRuby's crate `jit` includes this file. Where there is no such crate, the JIT's own crate does.
//! The crate defines the macro `c_functions` before it, because editions of Rust spell blocks of
//! foreign functions in two ways. This code has to compile with rustc 1.58, the oldest that any
//! base needs.

#![allow(dead_code, unused_imports)] // no JIT uses all of it

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "arm64.rs")]
mod arch;
mod ffi;
mod flags;
mod frames;
mod patch;
mod session;
mod sites;
mod spans;

pub use arch::*;
pub use ffi::*;
pub use flags::*;
pub use frames::*;
pub use patch::*;
pub use session::*;
pub use sites::*;
pub use spans::*;
