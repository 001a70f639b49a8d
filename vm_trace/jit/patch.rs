//! Tools to trace code that was compiled without trace points: memory for stubs next to the code,
//! the few instructions that are written, and the functions that the C module calls. The JIT knows
//! where exits are and which bytes change.
//!
//! A stub notes which exit is taken, in a register or in `ec->vm_trace_exit`, and jumps on to code
//! that counts and records it. All stubs have one size, so the slot of a stub whose code is gone
//! can be used again.
//!
//! Patching happens under the VM lock with all ractors stopped, and no thread ever stops in a stub.

use std::ffi::{c_void, CStr};
use std::os::raw::c_char;
use std::ptr::null;

use super::ffi::*;

pub const JUMP_BYTES: usize = 5;
pub const JUMP_OPCODE: u8 = 0xE9;
/// The end of a jump
pub const DISTANCE_BYTES: usize = 4;

/// Whether code can be patched at all: only jumps of x86-64 reach stubs from everywhere.
pub fn possible() -> bool {
    cfg!(target_arch = "x86_64") && unsafe { rb_vm_trace_supported_p() }
}

/// From the end of a jump to where it leads.
pub fn distance(end: usize, to: usize) -> Option<[u8; DISTANCE_BYTES]> {
    i32::try_from(to as i64 - end as i64).ok().map(|distance| distance.to_le_bytes())
}

/// A jump at `at`
pub fn jump(at: usize, to: usize) -> Option<[u8; JUMP_BYTES]> {
    let distance = distance(at + JUMP_BYTES, to)?;
    let mut bytes = [JUMP_OPCODE; JUMP_BYTES];
    bytes[1..].copy_from_slice(&distance);
    Some(bytes)
}

/// Write over code that is writable now.
pub fn write_code(at: usize, bytes: &[u8]) {
    unsafe { (at as *mut u8).copy_from(bytes.as_ptr(), bytes.len()) };
}

pub fn read_code<const N: usize>(at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    unsafe { (at as *const u8).copy_to(bytes.as_mut_ptr(), N) };
    bytes
}

/// Offset of `ec->vm_trace_exit`, the exit at hand.
pub fn pending_offset() -> i32 {
    unsafe { rb_vm_trace_pending_offset() as i32 }
}

/// Have the trace say so if exits of what was just compiled can't be recorded.
pub fn report_lost(lost: &mut bool) {
    if std::mem::take(lost) {
        unsafe { rb_vm_trace_lost(rb_vm_trace_current()) };
    }
}

// --- memory -------------------------------------------------------------------------------------------------------

/// Address space that every jump from some code, and back to it, reaches. Given back when this is
/// dropped.
pub struct NearMemory { pub start: *mut u8, pub bytes: usize }

impl NearMemory {
    pub fn reserve(code: *const u8, code_bytes: usize, bytes: usize) -> Option<Self> {
        let start = unsafe { rb_vm_trace_reserve_code_region(code, code_bytes, bytes) };
        if start.is_null() { None } else { Some(NearMemory { start, bytes }) }
    }
}

impl NearMemory {
    /// Make it readable, and executable or writable. False: the kernel refused.
    pub unsafe fn protect(&self, executable: bool) -> bool {
        rb_vm_trace_protect_code_region(self.start, self.bytes, executable)
    }
}

impl Drop for NearMemory {
    fn drop(&mut self) {
        unsafe { rb_vm_trace_release_code_region(self.start, self.bytes) };
    }
}

/// Addresses of the code that counts and records exits: one in K, and all. It is never freed,
/// because a thread may still be in what it called when tracing ends.
#[derive(Clone, Copy)]
pub struct Targets { pub sampled: usize, pub all: usize }

impl Targets {
    pub fn for_rate(&self, rate: u64) -> usize {
        if rate > 1 { self.sampled } else { self.all }
    }
}

pub const STUB_BYTES: usize = 24;

/// Memory for stubs, as much as there may be code: they are smaller than what leads to them.
pub struct Stubs {
    memory: NearMemory,
    /// So many bytes can be written to and executed
    mapped: usize,
    slots: u32,
    free: Vec<u32>,
    writable: bool,
}

impl Stubs {
    pub fn reserve(code: *const u8, code_bytes: usize) -> Option<Stubs> {
        let memory = NearMemory::reserve(code, code_bytes, code_bytes)?;
        Some(Stubs { memory, mapped: 0, slots: 0, free: vec![], writable: false })
    }

    pub fn make_writable(&mut self) {
        if !self.writable && self.mapped > 0 {
            unsafe { rb_vm_trace_protect_code_region(self.memory.start, self.mapped, false) };
        }
        self.writable = true;
    }

    pub fn make_executable(&mut self) {
        if std::mem::take(&mut self.writable) {
            let executable = unsafe { rb_vm_trace_protect_code_region(self.memory.start, self.mapped, true) };
            assert!(executable, "stubs can't be made executable");
        }
    }

    /// Room for one more, writable. None: there is no memory.
    pub fn take_slot(&mut self) -> Option<u32> {
        const MORE: usize = 256 << 10;
        self.make_writable();
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if (self.slots as usize + 1) * STUB_BYTES > self.mapped {
            let more = MORE.min(self.memory.bytes - self.mapped);
            let start = unsafe { self.memory.start.add(self.mapped) };
            if more < STUB_BYTES || !unsafe { rb_vm_trace_protect_code_region(start, more, false) } {
                return None;
            }
            self.mapped += more;
        }
        self.slots += 1;
        Some(self.slots - 1)
    }

    /// What was in it is gone.
    pub fn free_slot(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub fn address(&self, slot: u32) -> usize {
        self.memory.start as usize + slot as usize * STUB_BYTES
    }
}

/// The instructions of a stub at an address. Registers are those of x86-64, by their numbers.
pub struct Stub { at: usize, code: [u8; STUB_BYTES], bytes: usize }

/// [Stub::note]'s bytes
pub const NOTE_BYTES: usize = 18;

impl Stub {
    pub fn new(at: usize) -> Self {
        Stub { at, code: [0; STUB_BYTES], bytes: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.code[self.bytes..self.bytes + bytes.len()].copy_from_slice(bytes);
        self.bytes += bytes.len();
    }

    /// mov register, value
    pub fn load(&mut self, register: u8, value: u64) {
        self.push(&[0x48 | register >> 3, 0xB8 | register & 7]);
        self.push(&value.to_le_bytes());
    }

    /// Note the exit at hand in the execution context, which is in `ec`. Only a scratch register is
    /// free at a jump to an exit.
    pub fn note(&mut self, exit: *const c_void, ec: u8, scratch: u8) {
        const R12: u8 = 12; // addressed by one byte more than other registers
        assert_eq!(ec, R12);
        self.load(scratch, exit as u64);
        // mov [ec + offset], scratch
        self.push(&[0x49 | scratch >> 3 << 2, 0x89, 0x84 | (scratch & 7) << 3, 0x24]);
        self.push(&pending_offset().to_le_bytes());
        debug_assert_eq!(self.bytes, NOTE_BYTES);
    }

    /// Leave out what would be there otherwise, of so many bytes.
    pub fn skip(&mut self, bytes: usize) {
        self.push(&[0xEB, bytes as u8 - 2]); // a short jump
    }

    /// None: that is too far.
    pub fn jump(&mut self, to: usize) -> Option<()> {
        let jump = jump(self.at + self.bytes, to)?;
        self.push(&jump);
        Some(())
    }

    pub fn write(&self) {
        write_code(self.at, &self.code[..self.bytes]);
    }
}

// --- what the C module calls -----------------------------------------------------------------------------------------

pub type Why = &'static CStr;

/// A JIT whose code is patched. `counter`: only exits that increment the one of that name.
pub trait Patches {
    /// Why that can't be: the patched code must be what it was then.
    fn put_in(rate: u64, counter: Option<&str>) -> Result<(), Why>;
    /// From now on every exit calls, and not one in K.
    fn every_exit() -> Result<(), Why>;
    fn take_out();
}

fn c_string(text: &'static [u8]) -> Why {
    CStr::from_bytes_with_nul(text).unwrap()
}

pub fn no_memory() -> Why {
    c_string(b"out of memory\0")
}

pub fn no_memory_near() -> Why {
    c_string(b"no memory can be had near the compiled code\0")
}

fn result(result: Result<(), Why>) -> *const c_char {
    result.map_or_else(|why| why.as_ptr(), |_| null())
}

/// [Jit]'s functions of these names
pub extern "C" fn put_exits_on<P: Patches>(rate: u64, counter: *const c_char) -> *const c_char {
    if !possible() {
        return c_string(
            b"only compiled code of x86-64 can be traced while it runs; start the program with a trace flag\0",
        ).as_ptr();
    }
    let counter = if counter.is_null() { None } else { unsafe { CStr::from_ptr(counter) }.to_str().ok() };
    result(P::put_in(rate, counter))
}

pub extern "C" fn call_every_exit<P: Patches>() -> *const c_char {
    result(P::every_exit())
}

pub extern "C" fn take_exits_off<P: Patches>() {
    P::take_out();
}

/// A JIT whose code calls the tracer where it pushes and pops frames.
pub trait PatchesFrames {
    /// Why that can't be: the patched code must be what it was then.
    fn put_in() -> Result<(), Why>;
    fn take_out();
}

/// [Jit]'s functions of these names
pub extern "C" fn put_calls_on<P: PatchesFrames>() -> *const c_char {
    if !possible() {
        return c_string(b"calls of compiled code can be recorded on x86-64 only\0").as_ptr();
    }
    let put_in = P::put_in();
    if put_in.is_err() {
        P::take_out();
    }
    result(put_in)
}

pub extern "C" fn take_calls_off<P: PatchesFrames>() {
    P::take_out();
}
