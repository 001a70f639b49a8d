//! Where compiled code changes `ec->cfp`, which pushes a frame or pops one: while the stream `calls`
//! is recorded, it calls the tracer there.
//!
//! Both JITs change it by one instruction of five bytes, `mov [r12 + 16], register`. A call of a stub
//! is as long, so it can stand in its place:
//!
//! ```text
//!   unrecorded   mov [ec + 16], cfp
//!   recorded     call stub ─► stub: mov [ec + 16], cfp; rb_vm_trace_frame_pushed or _popped
//! ```
//!
//! Code is compiled without calls; only a note is kept of each such instruction. No thread stops
//! in the middle of it or in the stub, which waits for nothing. So it can be written over whenever all
//! ractors stand still. What is there is compared first: a note of an instruction that was written over
//! meanwhile, such as by the jump of a violated assumption, does nothing.

use std::collections::BTreeMap;

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

/// Length of that instruction, and of a call.
pub const SWITCH_BYTES: usize = 5;
const CALL_OPCODE: u8 = 0xE8;
/// An instruction of the stub has it as a byte. Checked by the JITs, which know the constants.
pub const EC_CFP_OFFSET: u8 = 16;
/// The register with the frame, R13. The execution context is in R12.
const CFP: u8 = 13;

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
    on: bool,
}

fn store(register: u8) -> [u8; SWITCH_BYTES] {
    [0x49 | (register >> 3) << 2, 0x89, 0x44 | (register & 7) << 3, 0x24, EC_CFP_OFFSET]
}

/// The register that is stored there, if that is such an instruction.
fn stored_register(code: &[u8; SWITCH_BYTES]) -> Option<u8> {
    let register = (code[0] >> 2 & 1) << 3 | code[2] >> 3 & 7;
    if *code == store(register) { Some(register) } else { None }
}

fn call(at: usize, to: usize) -> Option<[u8; SWITCH_BYTES]> {
    let mut bytes = jump(at, to)?;
    bytes[0] = CALL_OPCODE;
    Some(bytes)
}

impl FrameSwitches {
    /// The instruction at `at` was just written. `write` writes there, if calls are recorded already.
    pub fn note(&mut self, at: usize, write: impl FnOnce(usize, &[u8; SWITCH_BYTES])) {
        // At the end of a page of code there may be a jump to where it goes on
        let mut at = at;
        if read_code::<1>(at)[0] == JUMP_OPCODE {
            at = ((at + JUMP_BYTES) as isize + i32::from_le_bytes(read_code(at + 1)) as isize) as usize;
        }
        let register = match stored_register(&read_code(at)) {
            Some(register) => register,
            None => { debug_assert!(false, "ec->cfp is changed in another way"); return }
        };
        self.notes.insert(at, register);
        if self.on {
            if let Some(code) = self.call_at(at, register) {
                write(at, &code);
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

    /// Calls are recorded from now on. `code` is where all code is, writable now. All ractors stand
    /// still. `frame_bytes`: of a control frame.
    pub fn put_in(&mut self, code: *const u8, code_bytes: usize, frame_bytes: u8) -> Result<(), Why> {
        if self.stubs.is_none() {
            self.stubs = Some(gen_stubs(code, code_bytes, frame_bytes).ok_or_else(no_memory_near)?);
        }
        self.on = true;
        for (&at, &register) in self.notes.iter() {
            if read_code(at) == store(register) {
                write_code(at, &self.call_at(at, register).ok_or_else(no_memory_near)?);
            }
        }
        Ok(())
    }

    /// Write back what was there.
    pub fn take_out(&mut self) {
        self.on = false;
        for (&at, &register) in self.notes.iter() {
            if Some(read_code(at)) == self.call_at(at, register) {
                write_code(at, &store(register));
            }
        }
    }
}

/// Registers that C does not keep, by their numbers, and RBP for the stack's alignment
const SAVED: [u8; 10] = [0, 1, 2, 6, 7, 8, 9, 10, 11, 5];

fn gen_stubs(code: *const u8, code_bytes: usize, frame_bytes: u8) -> Option<SwitchStubs> {
    const BYTES: usize = 4096;
    let memory = NearMemory::reserve(code, code_bytes, BYTES)?;
    if !unsafe { memory.protect(false) } {
        return None;
    }
    let start = memory.start as usize;
    let frame = gen_stub(start, None);
    let below = start + BYTES / 2;
    gen_stub(below, Some(frame_bytes));
    if !unsafe { memory.protect(true) } {
        return None;
    }
    std::mem::forget(memory); // it stays
    Some(SwitchStubs { frame, below })
}

/// `below`: store the frame below the one in the register, at so many bytes.
fn gen_stub(at: usize, below: Option<u8>) -> usize {
    let mut code: Vec<u8> = vec![];
    for &register in SAVED.iter() {
        if register >= 8 { code.push(0x41) }
        code.push(0x50 | register & 7); // push
    }
    code.extend([0x49, 0x8B, 0x74, 0x24, EC_CFP_OFFSET]); // mov rsi, [r12 + 16]
    code.extend([0x48, 0xB8]); // mov rax, ...
    code.extend((rb_vm_trace_frame_pushed as usize as u64).to_le_bytes());
    code.extend([0x48, 0xB9]); // mov rcx, ...
    code.extend((rb_vm_trace_frames_popped as usize as u64).to_le_bytes());
    code.extend([0x4C, 0x89, 0xE7]); // mov rdi, r12
    code.extend([0x48, 0x89, 0xE5]); // mov rbp, rsp
    code.extend([0x48, 0x83, 0xE4, 0xF0]); // and rsp, -16
    match below {
        None => {
            code.extend(store(CFP));
            code.extend([0x49, 0x39, 0xF5]); // cmp r13, rsi
        }
        Some(bytes) => {
            code.extend([0x4D, 0x8D, 0x45, bytes.wrapping_neg()]); // lea r8, [r13 - bytes]
            code.extend(store(8)); // mov [r12 + 16], r8
            code.extend([0x49, 0x39, 0xF0]); // cmp r8, rsi
        }
    }
    code.extend([0x48, 0x0F, 0x47, 0xC1]); // cmova rax, rcx: popped
    code.extend([0xFF, 0xD0]); // call rax
    code.extend([0x48, 0x89, 0xEC]); // mov rsp, rbp
    for &register in SAVED.iter().rev() {
        if register >= 8 { code.push(0x41) }
        code.push(0x58 | register & 7); // pop
    }
    code.push(0xC3); // ret
    write_code(at, &code);
    at
}
