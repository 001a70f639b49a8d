//! Tools to trace code that was compiled without trace points: memory for stubs next to the code,
//! the few instructions that are written, and the functions that the C module calls. The JIT knows
//! where exits are and which bytes change.
//!
//! A stub notes which exit is taken, in a register or in `ec->vm_trace_exit`, and jumps on to code
//! that counts and records it. It reads both from data beside it, so the code of stubs is written in
//! advance, for a thousand at a time. Making one while the program compiles changes no code, nor the
//! protection of a page; but on arm64, where a stub may have a condition, it does. The slot of a stub
//! whose code is gone can be used again.
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
        protect(self.start as usize, self.bytes, executable)
    }
}

/// Make part of such memory readable, and executable or writable. False: the kernel refused.
fn protect(at: usize, bytes: usize, executable: bool) -> bool {
    unsafe { rb_vm_trace_protect_code_region(at as *mut u8, bytes, executable) }
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

/// Address space for stubs, as much as there may be code. They are smaller than what leads to them. Where
/// branches do not reach that far it is less.
///
/// There are groups of stubs: the code of so many, and then their data.
pub struct Stubs {
    memory: NearMemory,
    groups: usize,
    slots: u32,
    free: Vec<u32>,
    /// Whether the first group is at the end of the memory
    downwards: bool,
    /// Numbers of registers: what an end has the exit in, and the execution context
    sp: u8,
    ec: u8,
    /// Groups whose code is writable
    writable: Vec<usize>,
}

/// What the code of a stub reads
#[repr(C)]
struct StubData { exit: *const c_void, target: usize }

const DATA_BYTES: usize = std::mem::size_of::<StubData>();
const GROUP_CODE_BYTES: usize = GROUP_STUBS * STUB_BYTES;
const GROUP_BYTES: usize = GROUP_STUBS * (STUB_BYTES + DATA_BYTES);

impl Stubs {
    pub fn reserve(code: *const u8, code_bytes: usize, sp: u8, ec: u8) -> Option<Stubs> {
        let memory = NearMemory::reserve(code, code_bytes, code_bytes.clamp(GROUP_BYTES, MOST_STUBS_BYTES))?;
        let downwards = STUBS_DOWNWARDS && memory.start < code as *mut u8;
        Some(Stubs { memory, groups: 0, slots: 0, free: vec![], downwards, sp, ec, writable: vec![] })
    }

    fn group(&self, group: usize) -> usize {
        let offset = if self.downwards { self.memory.bytes - (group + 1) * GROUP_BYTES } else { group * GROUP_BYTES };
        self.memory.start as usize + offset
    }

    /// None: there is no memory.
    fn add_group(&mut self) -> Option<()> {
        if (self.groups + 1) * GROUP_BYTES > self.memory.bytes {
            return None;
        }
        let group = self.group(self.groups);
        if !protect(group, GROUP_BYTES, false) {
            return None;
        }
        for slot in self.slots..self.slots + GROUP_STUBS as u32 {
            let at = self.of_end(slot);
            write_code(at, &stub(at, self.data(slot) as usize, self.sp, self.ec));
        }
        if !protect(group, GROUP_CODE_BYTES, true) {
            return None;
        }
        code_changed();
        self.groups += 1;
        Some(())
    }

    /// None: there is no memory for one more.
    pub fn take_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.slots as usize == self.groups * GROUP_STUBS {
            self.add_group()?;
        }
        self.slots += 1;
        Some(self.slots - 1)
    }

    /// What led to it is gone.
    pub fn free_slot(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Where the end of an exit leads
    pub fn of_end(&self, slot: u32) -> usize {
        let slot = slot as usize;
        self.group(slot / GROUP_STUBS) + slot % GROUP_STUBS * STUB_BYTES
    }

    /// Where a jump to an exit leads
    pub fn of_jump(&self, slot: u32) -> usize {
        self.of_end(slot) + JUMPS_STUB
    }

    fn data(&self, slot: u32) -> *mut StubData {
        let slot = slot as usize;
        (self.group(slot / GROUP_STUBS) + GROUP_CODE_BYTES + slot % GROUP_STUBS * DATA_BYTES) as *mut StubData
    }

    /// The exit that a stub notes; null: none.
    pub fn set_exit(&mut self, slot: u32, exit: *const c_void) {
        unsafe { std::ptr::addr_of_mut!((*self.data(slot)).exit).write_volatile(exit) };
    }

    /// Where it goes on
    pub fn set_target(&mut self, slot: u32, target: usize) {
        unsafe { std::ptr::addr_of_mut!((*self.data(slot)).target).write_volatile(target) };
    }

    /// Have a stub go on where a jump leads whose [changed_part] is, or was, `untraced`, at `at`. Returns what
    /// has the jump lead to the stub.
    pub fn stand_for(&mut self, slot: u32, at: usize, untraced: [u8; DISTANCE_BYTES]) -> Option<Patch> {
        let StandIn { target, patch, condition } = stand_in(self.of_end(slot), at, untraced)?;
        if let Some(condition) = condition {
            self.make_writable(slot as usize / GROUP_STUBS)?;
            condition.write();
        }
        self.set_target(slot, target);
        Some(patch)
    }

    fn make_writable(&mut self, group: usize) -> Option<()> {
        if !self.writable.contains(&group) {
            if !protect(self.group(group), GROUP_CODE_BYTES, false) {
                return None;
            }
            self.writable.push(group);
        }
        Some(())
    }

    /// What was made is about to run.
    pub fn make_executable(&mut self) {
        for group in std::mem::take(&mut self.writable) {
            assert!(protect(self.group(group), GROUP_CODE_BYTES, true), "stubs can't be made executable");
            code_changed();
        }
    }
}

/// What a stub needs to stand for a jump: where the jump led, what has it lead to the stub, and what is
/// written into the stub for a jump with a condition.
pub struct StandIn { pub target: usize, pub patch: Patch, pub condition: Option<Patch> }

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
