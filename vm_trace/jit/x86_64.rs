//! The instructions that are written over compiled code of x86-64, and those of stubs.

use super::patch::{pending_offset, read_code, Patch, StandIn};

pub const JUMP_BYTES: usize = 5;
pub const JUMP_OPCODE: u8 = 0xE9;
/// The end of a jump, and what is changed of one that is there already
pub const DISTANCE_BYTES: usize = 4;
/// Before it, in a jump with a condition
pub const OPCODE_BYTES: usize = 2;
/// At most so many bytes are written in one place.
pub const PATCH_BYTES: usize = JUMP_BYTES;
pub const STUB_BYTES: usize = 32;
/// As many as fill whole pages
pub const GROUP_STUBS: usize = 1024;
/// Where jumps lead in a stub
pub const JUMPS_STUB: usize = 9;
/// R11: the only register that is free at a side exit
const SCRATCH: u8 = 11;
/// Of so much code and so many stubs each reaches all of the others.
pub const MOST_STUBS_BYTES: usize = usize::MAX;
pub const STUBS_DOWNWARDS: bool = false;

/// From the end of a jump to where it leads.
fn distance(end: usize, to: usize) -> Option<[u8; DISTANCE_BYTES]> {
    i32::try_from(to as i64 - end as i64).ok().map(|distance| distance.to_le_bytes())
}

/// A jump at `at`, in place of other instructions
pub fn jump(at: usize, to: usize) -> Option<Patch> {
    let distance = distance(at + JUMP_BYTES, to)?;
    let mut bytes = [JUMP_OPCODE; JUMP_BYTES];
    bytes[1..].copy_from_slice(&distance);
    Some(Patch::new(at, &bytes))
}

/// Where [lead] changes the jump from `start` to `end`: its distance.
pub fn changed_part(_start: usize, end: usize) -> usize {
    end - DISTANCE_BYTES
}

/// The same for a jump that is written already. None: there is no such place.
pub fn changed_part_of_written(start: usize, end: usize) -> Option<usize> {
    Some(changed_part(start, end))
}

/// Whether there still is a jump. One that was written over, by that of a violated assumption before it, is
/// never reached, and may be changed.
pub fn jump_p(_at: usize) -> bool {
    true
}

/// Have a jump lead elsewhere, with or without a condition. `at` is its [changed_part].
pub fn lead(at: usize, to: usize) -> Option<Patch> {
    Some(Patch::new(at, &distance(at + DISTANCE_BYTES, to)?))
}

/// Have a jump lead where it led before [Stubs::stand_for].
pub fn lead_back(at: usize, to: usize) -> Option<Patch> {
    lead(at, to)
}

/// mov register, [data]. Registers are given by their numbers.
fn load(at: usize, register: u8, data: usize) -> [u8; 7] {
    let mut bytes = [0x48 | register >> 3 << 2, 0x8B, 0x05 | (register & 7) << 3, 0, 0, 0, 0];
    bytes[3..].copy_from_slice(&distance(at + 7, data).expect("its data is near"));
    bytes
}

/// The code of a stub. Its data are the exit and where it goes on.
///
/// ```text
///       mov sp, [exit]
///       jmp on
///   jumps lead here:                        only a scratch register is free
///       mov scratch, [exit]
///       mov [ec + pending], scratch
///   on: jmp [target]
/// ```
pub fn stub(at: usize, data: usize, sp: u8, ec: u8) -> [u8; STUB_BYTES] {
    const R12: u8 = 12; // addressed by one byte more than other registers
    const ON: usize = JUMPS_STUB + 15;
    assert_eq!(ec, R12);
    let mut code = [0xCC; STUB_BYTES]; // int3
    code[..7].copy_from_slice(&load(at, sp, data));
    code[7..JUMPS_STUB].copy_from_slice(&[0xEB, (ON - JUMPS_STUB) as u8]);
    code[JUMPS_STUB..16].copy_from_slice(&load(at + JUMPS_STUB, SCRATCH, data));
    code[16..20].copy_from_slice(&[0x49 | SCRATCH >> 3 << 2, 0x89, 0x84 | (SCRATCH & 7) << 3, 0x24]);
    code[20..ON].copy_from_slice(&pending_offset().to_le_bytes());
    code[ON..ON + 2].copy_from_slice(&[0xFF, 0x25]);
    code[ON + 2..ON + 6].copy_from_slice(&distance(at + ON + 6, data + 8).expect("its data is near"));
    code
}

/// What the stub at `stub` needs to stand for a jump whose [changed_part] is, or was, `untraced`, at `at`.
pub fn stand_in(stub: usize, at: usize, untraced: [u8; DISTANCE_BYTES]) -> Option<StandIn> {
    let target = (at + DISTANCE_BYTES).wrapping_add(i32::from_le_bytes(untraced) as usize);
    Some(StandIn { target, patch: lead(at, stub + JUMPS_STUB)?, condition: None })
}

// --- where code changes ec->cfp -----------------------------------------------------------------------------------

/// Length of the instruction that does, mov [r12 + 16], register, and of a call
pub const SWITCH_BYTES: usize = 5;
const CALL_OPCODE: u8 = 0xE8;
/// An instruction of the stub has it as a byte. Checked by the JITs, which know the constants.
pub const EC_CFP_OFFSET: u8 = 16;
/// The register with the frame, R13. The execution context is in R12.
pub const CFP: u8 = 13;

/// That instruction
pub fn store(register: u8) -> [u8; SWITCH_BYTES] {
    [0x49 | (register >> 3) << 2, 0x89, 0x44 | (register & 7) << 3, 0x24, EC_CFP_OFFSET]
}

/// The register that is stored there, if that is such an instruction.
pub fn stored_register(code: &[u8; SWITCH_BYTES]) -> Option<u8> {
    let register = (code[0] >> 2 & 1) << 3 | code[2] >> 3 & 7;
    if *code == store(register) { Some(register) } else { None }
}

pub fn call(at: usize, to: usize) -> Option<[u8; SWITCH_BYTES]> {
    let mut bytes = [CALL_OPCODE; SWITCH_BYTES];
    bytes[1..].copy_from_slice(&distance(at + SWITCH_BYTES, to)?);
    Some(bytes)
}

/// Where the jump at `at` leads, if there is one.
pub fn jump_target(at: usize) -> Option<usize> {
    if read_code::<1>(at)[0] != JUMP_OPCODE {
        return None;
    }
    Some((at + JUMP_BYTES).wrapping_add(i32::from_le_bytes(read_code(at + 1)) as usize))
}

/// Registers that C does not keep, by their numbers, and RBP for the stack's alignment
const SAVED: [u8; 10] = [0, 1, 2, 6, 7, 8, 9, 10, 11, 5];

/// What a call in the place of that instruction leads to: it stores, and calls one of two functions.
/// `below`: store the frame below the one in the register, at so many bytes.
pub fn switch_stub(below: Option<u8>, pushed: usize, popped: usize) -> Vec<u8> {
    let mut code: Vec<u8> = vec![];
    for &register in SAVED.iter() {
        if register >= 8 { code.push(0x41) }
        code.push(0x50 | register & 7); // push
    }
    code.extend([0x49, 0x8B, 0x74, 0x24, EC_CFP_OFFSET]); // mov rsi, [r12 + 16]
    code.extend([0x48, 0xB8]); // mov rax, ...
    code.extend((pushed as u64).to_le_bytes());
    code.extend([0x48, 0xB9]); // mov rcx, ...
    code.extend((popped as u64).to_le_bytes());
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
    code
}
