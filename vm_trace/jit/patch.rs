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

use super::arch::*;
use super::ffi::*;

/// Whether code can be patched at all.
pub fn possible() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && unsafe { rb_vm_trace_supported_p() }
}

/// What has to be written over code, and where.
pub struct Patch { pub at: usize, code: [u8; PATCH_BYTES], bytes: usize }

impl Patch {
    pub fn new(at: usize, code: &[u8]) -> Self {
        let mut patch = Patch { at, code: [0; PATCH_BYTES], bytes: code.len() };
        patch.code[..code.len()].copy_from_slice(code);
        patch
    }

    pub fn code(&self) -> &[u8] {
        &self.code[..self.bytes]
    }

    /// The code is writable now.
    pub fn write(&self) {
        write_code(self.at, self.code());
    }

    /// The JIT has written it.
    pub fn written(&self) {
        code_written(self.at, self.bytes);
    }
}

/// Write over code that is writable now. Nobody runs it until code_changed(). Instructions that are
/// words are written as words.
pub fn write_code(at: usize, bytes: &[u8]) {
    if cfg!(target_arch = "x86_64") {
        unsafe { (at as *mut u8).copy_from(bytes.as_ptr(), bytes.len()) };
        return;
    }
    for (i, word) in bytes.chunks_exact(4).enumerate() {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        unsafe { (at as *mut u32).add(i).write_volatile(word) };
    }
    code_written(at, bytes.len());
}

/// Such code was written: no cache is to have what was there.
pub fn code_written(at: usize, bytes: usize) {
    if cfg!(not(target_arch = "x86_64")) {
        unsafe { rb_vm_trace_code_written(at as *const u8, bytes) };
    }
}

/// Code was written that others may run soon, and its pages are executable: no processor is to go on
/// with what it fetched before.
pub fn code_changed() {
    if cfg!(not(target_arch = "x86_64")) {
        unsafe { rb_vm_trace_code_changed() };
    }
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

/// Memory for stubs, as much as there may be code: they are smaller than what leads to them. Where
/// branches do not reach that far it is less.
pub struct Stubs {
    memory: NearMemory,
    /// So many bytes can be written to and executed
    mapped: usize,
    slots: u32,
    free: Vec<u32>,
    /// Whether the first is at the end of the memory
    downwards: bool,
    writable: bool,
}

impl Stubs {
    pub fn reserve(code: *const u8, code_bytes: usize) -> Option<Stubs> {
        let memory = NearMemory::reserve(code, code_bytes, code_bytes.min(MOST_STUBS_BYTES))?;
        let downwards = STUBS_DOWNWARDS && memory.start < code as *mut u8;
        Some(Stubs { memory, mapped: 0, slots: 0, free: vec![], downwards, writable: false })
    }

    pub fn make_writable(&mut self) {
        if !self.writable && self.mapped > 0 {
            unsafe { rb_vm_trace_protect_code_region(self.mapped_part(0, self.mapped), self.mapped, false) };
        }
        self.writable = true;
    }

    pub fn make_executable(&mut self) {
        if std::mem::take(&mut self.writable) {
            let start = self.mapped_part(0, self.mapped);
            let executable = unsafe { rb_vm_trace_protect_code_region(start, self.mapped, true) };
            assert!(executable, "stubs can't be made executable");
            code_changed();
        }
    }

    /// So many bytes, which begin after so many others
    fn mapped_part(&self, after: usize, bytes: usize) -> *mut u8 {
        let offset = if self.downwards { self.memory.bytes - after - bytes } else { after };
        unsafe { self.memory.start.add(offset) }
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
            let start = self.mapped_part(self.mapped, more);
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
        self.mapped_part(slot as usize * STUB_BYTES, STUB_BYTES) as usize
    }
}

/// A stub at an address. Its instructions are the processor's (x86_64.rs, arm64.rs).
pub struct Stub { at: usize, code: [u8; STUB_BYTES], bytes: usize, data_from: usize }

impl Stub {
    pub fn new(at: usize) -> Self {
        Stub { at, code: [0; STUB_BYTES], bytes: 0, data_from: STUB_BYTES }
    }

    pub fn start(&self) -> usize {
        self.at
    }

    /// Where the next instruction comes
    pub fn end(&self) -> usize {
        self.at + self.bytes
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.code[self.bytes..self.bytes + bytes.len()].copy_from_slice(bytes);
        self.bytes += bytes.len();
    }

    /// Data at the end of the stub
    pub fn put_at(&mut self, offset: usize, bytes: &[u8]) {
        self.code[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.data_from = offset;
    }

    /// What it does not have stays what it is.
    pub fn write(&self) {
        write_code(self.at, &self.code[..self.bytes]);
        if self.data_from < STUB_BYTES {
            write_code(self.at + self.data_from, &self.code[self.data_from..]);
        }
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
            b"compiled code of this system can't be traced while it runs; start the program with a trace flag\0",
        ).as_ptr();
    }
    let counter = if counter.is_null() { None } else { unsafe { CStr::from_ptr(counter) }.to_str().ok() };
    let put_in = P::put_in(rate, counter);
    code_changed();
    result(put_in)
}

pub extern "C" fn call_every_exit<P: Patches>() -> *const c_char {
    let every_exit = P::every_exit();
    code_changed();
    result(every_exit)
}

pub extern "C" fn take_exits_off<P: Patches>() {
    P::take_out();
    code_changed();
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
        return c_string(b"calls of compiled code can't be recorded on this system\0").as_ptr();
    }
    let put_in = P::put_in();
    if put_in.is_err() {
        P::take_out();
    }
    code_changed();
    result(put_in)
}

pub extern "C" fn take_calls_off<P: PatchesFrames>() {
    P::take_out();
    code_changed();
}
