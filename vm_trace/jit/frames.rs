//! Where compiled code changes `ec->cfp`, which pushes a frame or pops one: while the stream `calls`
//! is recorded, it calls the tracer there.
//!
//! Both JITs change it by one instruction, a store of a register. A call of a stub is as long, so it
//! can stand in its place:
//!
//! ```text
//!   unrecorded   ec->cfp = register
//!   recorded     call stub ─► stub: ec->cfp = register; rb_vm_trace_frame_pushed or _popped
//! ```
//!
//! Code is compiled without calls; only a note is kept of each such instruction. No thread stops
//! in the middle of it or in the stub, which waits for nothing. So it can be written over whenever all
//! ractors stand still. What is there is compared first: a note of an instruction that was written over
//! meanwhile, such as by the jump of a violated assumption, does nothing.

use std::collections::BTreeMap;

use super::arch::*;
use super::ffi::{rb_vm_trace_frame_pushed, rb_vm_trace_frames_popped, rb_vm_trace_replaced_calls};
use super::patch::*;

/// Whether calls are recorded, and were before anything was compiled. Then each method gets a frame that
/// could do without: one in Ruby that only returns something, one in C that is a leaf.
pub fn all_calls_have_frames() -> bool {
    replaced_calls().is_some()
}

/// Where code that is compiled then counts the calls of methods in C that it replaces by code of its own.
pub fn replaced_calls() -> Option<*mut u64> {
    let counter = unsafe { rb_vm_trace_replaced_calls() };
    if counter.is_null() { None } else { Some(counter) }
}

/// The stubs, by what is in the register that is stored: the frame, or the frame below that, which
/// YJIT has for a method in C.
#[derive(Clone, Copy)]
struct SwitchStubs { frame: usize, below: usize }

#[derive(Default)]
pub struct FrameSwitches {
    /// By address: the number of the register
    notes: BTreeMap<usize, u8>,
    /// Made when they are needed first. They stay: a thread may be on its way back from one.
    stubs: Option<SwitchStubs>,
    /// What is compiled now calls
    on: bool,
    /// From where on code is still to be changed; None: it has been
    next: Option<usize>,
}

impl FrameSwitches {
    /// The instruction at `at` was just written. `write` writes there, if calls are recorded already.
    pub fn note(&mut self, at: usize, write: impl FnOnce(usize, &[u8; SWITCH_BYTES])) {
        // At the end of a page of code there may be a jump to where it goes on
        let at = jump_target(at).unwrap_or(at);
        let register = match stored_register(&read_code(at)) {
            Some(register) => register,
            None => { debug_assert!(false, "ec->cfp is changed in another way"); return }
        };
        self.notes.insert(at, register);
        if self.on {
            if let Some(code) = self.call_at(at, register) {
                write(at, &code);
                code_written(at, code.len());
            }
        }
    }

    /// The code there is gone.
    pub fn forget(&mut self, from: usize, to: usize) {
        let first = from.saturating_sub(SWITCH_BYTES - 1);
        let gone: Vec<usize> = self.notes.range(first..to).map(|(&at, _)| at).collect();
        for at in gone {
            self.notes.remove(&at);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    fn call_at(&self, at: usize, register: u8) -> Option<[u8; SWITCH_BYTES]> {
        let stubs = self.stubs?;
        call(at, if register == CFP { stubs.frame } else { stubs.below })
    }

    /// Have code call, until that takes too long: whether there is more to do. All ractors stand still.
    /// `frame_bytes`: of a control frame.
    pub fn put_in(&mut self, mut code: WritableCode, frame_bytes: u8, until: &mut Until) -> Result<bool, Why> {
        if self.stubs.is_none() {
            self.stubs = Some(gen_stubs(code.start as *const u8, code.bytes, frame_bytes).ok_or_else(no_memory_near)?);
        }
        self.turn(true);
        self.change(until, |switches, at, register| {
            if read_code(at) == store(register) {
                code.write(at, &switches.call_at(at, register).ok_or_else(no_memory_near)?);
            }
            Ok(())
        })
    }

    /// Likewise have it be what it was.
    pub fn take_out(&mut self, mut code: WritableCode, until: &mut Until) -> bool {
        self.turn(false);
        let more = self.change(until, |switches, at, register| {
            if Some(read_code(at)) == switches.call_at(at, register) {
                code.write(at, &store(register));
            }
            Ok(())
        });
        more.unwrap_or(false)
    }

    fn turn(&mut self, on: bool) {
        if self.on != on {
            self.on = on;
            self.next = Some(0);
        }
    }

    fn change<F>(&mut self, until: &mut Until, mut change: F) -> Result<bool, Why>
        where F: FnMut(&Self, usize, u8) -> Result<(), Why>
    {
        let from = match self.next { Some(from) => from, None => return Ok(false) };
        for (&at, &register) in self.notes.range(from..) {
            if until.over() {
                self.next = Some(at);
                return Ok(true);
            }
            change(self, at, register)?;
        }
        self.next = None;
        Ok(false)
    }
}

fn gen_stubs(code: *const u8, code_bytes: usize, frame_bytes: u8) -> Option<SwitchStubs> {
    const BYTES: usize = 4096;
    let memory = NearMemory::reserve(code, code_bytes, BYTES)?;
    if !unsafe { memory.protect(false) } {
        return None;
    }
    let start = memory.start as usize;
    let pushed = rb_vm_trace_frame_pushed as *const () as usize;
    let popped = rb_vm_trace_frames_popped as *const () as usize;
    let below = start + BYTES / 2;
    write_code(start, &switch_stub(None, pushed, popped));
    write_code(below, &switch_stub(Some(frame_bytes), pushed, popped));
    if !unsafe { memory.protect(true) } {
        return None;
    }
    std::mem::forget(memory); // it stays
    Some(SwitchStubs { frame: start, below })
}
