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
use std::time::{Duration, Instant};

use super::arch::*;
use super::ffi::*;
use super::session::{exits_on, set_exits_on};

const PATCHED_ARCH: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Whether code can be patched at all.
pub fn possible() -> bool {
    PATCHED_ARCH && unsafe { rb_vm_trace_late_p() }
}

/// Why code can't be patched.
fn impossible() -> Why {
    c_string(if PATCHED_ARCH {
        b"--vm-trace-late=no; a trace flag of the JIT traces exits all the same\0"
    } else {
        b"compiled code of this system can't be traced while it runs; start the program with a trace flag\0"
    })
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

/// How long something may take while all ractors stand still.
pub struct Until { end: Option<Instant>, steps: u32 }

impl Until {
    /// 0: as long as it takes.
    fn new(ns: u64) -> Self {
        Until { end: (ns > 0).then(|| Instant::now() + Duration::from_nanos(ns)), steps: 0 }
    }

    /// Whether there were steps: what takes long by itself has another time.
    pub fn used(&self) -> bool {
        self.steps > 0 && self.end.is_some()
    }

    /// Asked before each step.
    pub fn over(&mut self) -> bool {
        const STEPS: u32 = 16; // between two looks at the clock
        self.steps += 1;
        self.steps % STEPS == 0 && self.end.map_or(false, |end| Instant::now() >= end)
    }
}

/// Compiled code, which is executable but for the part that is being patched. A program may have so much that
/// to protect all of it takes longer than to patch it. Parts are huge pages, which would else be split.
pub struct WritableCode { pub start: usize, pub bytes: usize, part: (usize, usize) }

impl WritableCode {
    pub fn new(start: *const u8, bytes: usize) -> Self {
        WritableCode { start: start as usize, bytes, part: (0, 0) }
    }

    pub fn write(&mut self, at: usize, code: &[u8]) {
        const PART_BYTES: usize = 2 << 20;
        let to = at + code.len();
        if at < self.part.0 || self.part.1 < to {
            let begin = at / PART_BYTES * PART_BYTES;
            let end = (to + PART_BYTES - 1) / PART_BYTES * PART_BYTES;
            self.make_executable();
            self.part = (begin.max(self.start), end.min(self.start + self.bytes));
            self.protect(false);
        }
        write_code(at, code);
    }

    pub fn patch(&mut self, patch: &Patch) {
        self.write(patch.at, patch.code());
    }

    fn make_executable(&mut self) {
        if self.part.0 < self.part.1 {
            self.protect(true);
            self.part = (0, 0);
        }
    }

    fn protect(&self, executable: bool) {
        let (from, to) = self.part;
        assert!(protect(from, to - from, executable), "compiled code can't be made writable or executable");
    }
}

impl Drop for WritableCode {
    fn drop(&mut self) {
        self.make_executable();
    }
}

/// A JIT whose code is patched. A program may have much of it, so it is done in pieces, between which
/// the program runs. Until all trace points are in, and from when exits are switched off, those that are there
/// do nothing: what they lead to looks at [exits_on_address].
pub trait Patches {
    /// Prepare for exits of which one in `rate` calls, and only those that increment `counter`. Err: why that
    /// can't be; nothing has changed.
    fn begin(rate: u64, counter: Option<&str>) -> Result<(), Why>;
    /// Whether what has begun is for that counter.
    fn is_for(counter: Option<&str>) -> bool;
    /// Put trace points in. Whether there are more.
    fn put_in(until: &mut Until) -> Result<bool, Why>;
    /// They are in, and do something from now on.
    fn switch_on(rate: u64);
    /// From now on every exit calls, and not one in K.
    fn every_exit() -> Result<(), Why>;
    /// Trace points, all or some of which are in, are taken out from now on.
    fn leave();
    /// Take them out. Whether there are more; when there are none, all is as it was before `begin`.
    fn take_out(until: &mut Until) -> bool;
}

#[derive(Clone, Copy, PartialEq)]
enum State { Out, PuttingIn, In, TakingOut }
static mut STATE: State = State::Out;

fn state() -> State {
    unsafe { STATE }
}

fn set_state(state: State) {
    unsafe { STATE = state };
}

/// Whether code that is compiled now gets trace points.
pub fn patching() -> bool {
    matches!(state(), State::PuttingIn | State::In)
}

fn leave<P: Patches>() {
    P::leave();
    set_state(State::TakingOut);
}

fn take_out<P: Patches>(until: &mut Until) -> bool {
    let more = P::take_out(until);
    if !more {
        set_state(State::Out);
    }
    more
}

/// Whether there is more to do before exits can be switched on.
fn prepare<P: Patches>(rate: u64, counter: Option<&str>, until: &mut Until) -> Result<bool, Why> {
    if patching() && !P::is_for(counter) {
        leave::<P>();
    }
    if state() == State::TakingOut && take_out::<P>(until) {
        return Ok(true);
    }
    if state() == State::Out {
        P::begin(rate, counter)?;
        set_state(State::PuttingIn);
    }
    if state() == State::PuttingIn {
        match P::put_in(until) {
            Ok(true) => return Ok(true),
            Ok(false) => set_state(State::In),
            Err(why) => {
                leave::<P>();
                take_out::<P>(&mut Until::new(0));
                return Err(why);
            }
        }
    }
    Ok(false)
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

unsafe fn name_of<'a>(counter: *const c_char) -> Option<&'a str> {
    if counter.is_null() { None } else { unsafe { CStr::from_ptr(counter) }.to_str().ok() }
}

/// [Jit]'s functions of these names
pub extern "C" fn prepare_exits<P: Patches>(rate: u64, counter: *const c_char, ns: u64) -> bool {
    let prepare = || prepare::<P>(rate, unsafe { name_of(counter) }, &mut Until::new(ns));
    let more = possible() && !exits_on() && prepare() == Ok(true);
    code_changed();
    more
}

pub extern "C" fn put_exits_on<P: Patches>(rate: u64, counter: *const c_char) -> *const c_char {
    if !possible() {
        return impossible().as_ptr();
    }
    let prepared = prepare::<P>(rate, unsafe { name_of(counter) }, &mut Until::new(0)).map(|_| P::switch_on(rate));
    if prepared.is_ok() {
        set_exits_on(true);
    }
    code_changed();
    result(prepared)
}

pub extern "C" fn call_every_exit<P: Patches>() -> *const c_char {
    let every_exit = P::every_exit();
    code_changed();
    result(every_exit)
}

pub extern "C" fn take_exits_off<P: Patches>() {
    if exits_on() {
        set_exits_on(false);
        leave::<P>();
        code_changed();
    }
}

pub extern "C" fn restore_exits<P: Patches>(ns: u64) -> bool {
    if exits_on() || state() == State::Out {
        return false;
    }
    if patching() {
        leave::<P>();
    }
    let more = take_out::<P>(&mut Until::new(ns));
    code_changed();
    more
}

/// A JIT whose code calls the tracer where it pushes and pops frames.
pub trait PatchesFrames {
    /// Whether there is more to do. Err: why that can't be.
    fn put_in(until: &mut Until) -> Result<bool, Why>;
    /// Likewise; whether or not all are in.
    fn take_out(until: &mut Until) -> bool;
}

fn call_frames<P: PatchesFrames>(ns: u64) -> Result<bool, Why> {
    let put_in = P::put_in(&mut Until::new(ns));
    if put_in.is_err() {
        P::take_out(&mut Until::new(0));
    }
    code_changed();
    put_in
}

/// [Jit]'s functions of these names
pub extern "C" fn prepare_calls<P: PatchesFrames>(ns: u64) -> bool {
    possible() && call_frames::<P>(ns) == Ok(true)
}

pub extern "C" fn put_calls_on<P: PatchesFrames>() -> *const c_char {
    if !possible() {
        return impossible().as_ptr();
    }
    result(call_frames::<P>(0).map(|_| ()))
}

pub extern "C" fn restore_calls<P: PatchesFrames>(ns: u64) -> bool {
    let more = possible() && P::take_out(&mut Until::new(ns));
    code_changed();
    more
}
