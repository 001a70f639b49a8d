//! The instructions that are written over compiled code of arm64, and those of stubs. All of them are
//! words. A branch (B) reaches 128 MiB, one with a condition 1 MiB, which is too near for a stub.
//!
//! Code is changed while nobody runs it, as on other processors. What was written has to be told to
//! the processors: write_code() cleans the caches, code_changed() has each one fetch again
//! (doc/internals/arm64.md says what the architecture asks for).

use super::patch::{pending_offset, read_code, Patch, StandIn};

const WORD: usize = 4;
pub const JUMP_BYTES: usize = WORD;
/// What is changed of a jump that is there already
pub const DISTANCE_BYTES: usize = WORD;
/// Before it: nothing
pub const OPCODE_BYTES: usize = 0;
/// At most so many bytes are written in one place.
pub const PATCH_BYTES: usize = 2 * WORD;
pub const STUB_BYTES: usize = 8 * WORD;
/// As many as fill whole pages of 64 KiB, and as reach their data: LDR (literal) reaches 1 MiB.
pub const GROUP_STUBS: usize = 4096;
/// Where jumps lead in a stub
pub const JUMPS_STUB: usize = 2 * WORD;
/// Where a jump leads whose condition the stub has
const CONDITIONAL_STUB: usize = 6 * WORD;
/// X16: the assemblers use it within an instruction only
const SCRATCH: u8 = 16;
/// Less than a branch reaches, for code and stubs to be within that, and enough for 700,000.
pub const MOST_STUBS_BYTES: usize = 32 << 20;
/// The memory of stubs is mostly below the code, so the first is at its end.
pub const STUBS_DOWNWARDS: bool = true;

const NOP: u32 = 0xD503_201F;

fn word(at: usize) -> u32 {
    u32::from_le_bytes(read_code(at))
}

fn words(at: usize, words: &[u32]) -> Patch {
    let mut bytes = [0; PATCH_BYTES];
    for (i, word) in words.iter().enumerate() {
        bytes[i * WORD..(i + 1) * WORD].copy_from_slice(&word.to_le_bytes());
    }
    Patch::new(at, &bytes[..words.len() * WORD])
}

/// The distance in words as a field of so many bits, with a sign. None: it does not fit.
fn field(at: usize, to: usize, bits: u32) -> Option<u32> {
    let words = (to as i64 - at as i64) / WORD as i64;
    let most = 1 << (bits - 1);
    if -most <= words && words < most { Some(words as u32 & ((1 << bits) - 1)) } else { None }
}

/// Where a field of that kind leads to
fn field_target(at: usize, field: u32, bits: u32) -> usize {
    let words = ((field << (32 - bits)) as i32) >> (32 - bits);
    (at as i64 + words as i64 * WORD as i64) as usize
}

/// B
fn branch(at: usize, to: usize) -> Option<u32> {
    field(at, to, 26).map(|field| 0x1400_0000 | field)
}

fn branch_target(at: usize, instruction: u32) -> Option<usize> {
    if instruction >> 26 == 0b000101 { Some(field_target(at, instruction & 0x3FF_FFFF, 26)) } else { None }
}

/// Branches with a condition: B.cond, CBZ and CBNZ. All have the distance in the same place.
fn conditional_p(instruction: u32) -> bool {
    instruction & 0xFF00_0010 == 0x5400_0000 || instruction & 0x7E00_0000 == 0x3400_0000
}

fn conditional_target(at: usize, instruction: u32) -> usize {
    field_target(at, instruction >> 5 & 0x7_FFFF, 19)
}

/// The same instruction, at `at`, with another target
fn conditional_to(instruction: u32, at: usize, to: usize) -> Option<u32> {
    field(at, to, 19).map(|field| instruction & !(0x7_FFFF << 5) | field << 5)
}

/// B.cond with the opposite condition
fn inverse(instruction: u32) -> u32 {
    instruction ^ 1
}

/// Whether it is the first of two instructions: one with the opposite condition that leaves out a branch
fn leaves_out_branch(at: usize, instruction: u32) -> bool {
    conditional_target(at, instruction) == at + 2 * WORD && branch_target(at + WORD, word(at + WORD)).is_some()
}

/// A jump at `at`, in place of another instruction
pub fn jump(at: usize, to: usize) -> Option<Patch> {
    Some(words(at, &[branch(at, to)?]))
}

/// Where [lead] changes the jump from `start` to `end`.
pub fn changed_part(start: usize, _end: usize) -> usize {
    start
}

/// Where [stand_in] changes a jump that is written already. None: it is none that the stub could
/// stand for, as it goes too far for a branch.
pub fn changed_part_of_written(start: usize, _end: usize) -> Option<usize> {
    let first = word(start);
    if branch_target(start, first).is_some() {
        return Some(start);
    }
    if !conditional_p(first) {
        return None;
    }
    if leaves_out_branch(start, first) {
        return Some(start + WORD);
    }
    // A few words on: it leaves out a jump by a register.
    const MOST_LEFT_OUT: usize = 6 * WORD;
    if (start..=start + MOST_LEFT_OUT).contains(&conditional_target(start, first)) { None } else { Some(start) }
}

/// Whether there still is a jump. The jump of a violated assumption writes over five instructions, and
/// there may be one among them, which is never reached then.
pub fn jump_p(at: usize) -> bool {
    branch_target(at, word(at)).is_some() || conditional_p(word(at))
}

/// Have a jump lead elsewhere: a branch, or one with a condition and room for a second instruction, as
/// ZJIT compiles them. `at` is its [changed_part]. The instructions are those that the assembler would
/// write. None: `to` is too far, or there is something else.
pub fn lead(at: usize, to: usize) -> Option<Patch> {
    let first = word(at);
    if branch_target(at, first).is_some() {
        return jump(at, to);
    }
    let second = at + WORD;
    let condition = match word(second) {
        _ if first & 0xFF00_0010 != 0x5400_0000 => return None, // B.cond
        NOP => first,
        _ if leaves_out_branch(at, first) => inverse(first),
        _ => return None,
    };
    Some(match conditional_to(condition, at, to) {
        Some(near) => words(at, &[near, NOP]),
        None => words(at, &[conditional_to(inverse(condition), at, second + WORD)?, branch(second, to)?]),
    })
}

/// Have a jump lead where it led before [Stubs::stand_for]: a branch, or one with the condition that the
/// stub has.
pub fn lead_back(at: usize, to: usize) -> Option<Patch> {
    let entry = branch_target(at, word(at))?;
    let first = word(entry);
    if conditional_p(first) { Some(words(at, &[conditional_to(first, at, to)?])) } else { jump(at, to) }
}

/// LDR (literal). Registers are given by their numbers.
fn load(at: usize, register: u8, data: usize) -> u32 {
    0x5800_0000 | field(at, data, 19).expect("its data is near") << 5 | u32::from(register)
}

/// The code of a stub. Its data are the exit and where it goes on.
///
/// ```text
///       ldr sp, [exit]
///       b on
///   jumps lead here:                        only a scratch register is free
///       ldr scratch, [exit]
///       str scratch, [ec, pending]
///   on: ldr scratch, [target]
///       br scratch
///       nop; nop                            room for a condition
/// ```
pub fn stub(at: usize, data: usize, sp: u8, ec: u8) -> [u8; STUB_BYTES] {
    let (on, offset) = (at + 4 * WORD, pending_offset() as u32 / 8);
    assert!(offset < 1 << 12 && pending_offset() % 8 == 0, "one instruction stores there");
    let words = [
        load(at, sp, data),
        branch(at + WORD, on).expect("both are in the stub"),
        load(at + JUMPS_STUB, SCRATCH, data),
        0xF900_0000 | offset << 10 | u32::from(ec) << 5 | u32::from(SCRATCH),
        load(on, SCRATCH, data + 8),
        0xD61F_0000 | u32::from(SCRATCH) << 5,
        NOP,
        NOP,
    ];
    let mut code = [0; STUB_BYTES];
    for (bytes, word) in code.chunks_exact_mut(WORD).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    code
}

/// What the stub at `stub` needs to stand for a jump that is, or was, `untraced`, at `at`. In place of one
/// with a condition comes a branch, always, and the stub has the condition:
///
/// ```text
///   b.cond jumps lead here; b back to the next instruction
/// ```
pub fn stand_in(stub: usize, at: usize, untraced: [u8; DISTANCE_BYTES]) -> Option<StandIn> {
    let instruction = u32::from_le_bytes(untraced);
    if let Some(target) = branch_target(at, instruction) {
        return Some(StandIn { target, patch: jump(at, stub + JUMPS_STUB)?, condition: None });
    }
    if !conditional_p(instruction) {
        return None;
    }
    let entry = stub + CONDITIONAL_STUB;
    let condition =
        words(entry, &[conditional_to(instruction, entry, stub + JUMPS_STUB)?, branch(entry + WORD, at + WORD)?]);
    Some(StandIn { target: conditional_target(at, instruction), patch: jump(at, entry)?, condition: Some(condition) })
}

// --- where code changes ec->cfp -----------------------------------------------------------------------------------

/// Length of the instruction that does, STUR register, [X20, 16], and of a call
pub const SWITCH_BYTES: usize = WORD;
/// In instructions. Checked by the JITs, which know the constant.
pub const EC_CFP_OFFSET: u8 = 16;
/// The register with the frame, X19. The execution context is in X20.
pub const CFP: u8 = 19;
const EC: u32 = 20;

/// That instruction
pub fn store(register: u8) -> [u8; SWITCH_BYTES] {
    (0xF800_0000 | u32::from(EC_CFP_OFFSET) << 12 | EC << 5 | u32::from(register)).to_le_bytes()
}

/// The register that is stored there, if that is such an instruction.
pub fn stored_register(code: &[u8; SWITCH_BYTES]) -> Option<u8> {
    let register = code[0] & 31;
    if *code == store(register) { Some(register) } else { None }
}

/// BL, which overwrites X30. Compiled code has what it returns to on the stack.
pub fn call(at: usize, to: usize) -> Option<[u8; SWITCH_BYTES]> {
    field(at, to, 26).map(|field| (0x9400_0000 | field).to_le_bytes())
}

/// Where the jump at `at` leads, if there is one.
pub fn jump_target(at: usize) -> Option<usize> {
    branch_target(at, word(at))
}

/// What a call in the place of that instruction leads to: it stores, and calls one of two functions.
/// `below`: store the frame below the one in the register, at so many bytes. Registers that C does not
/// keep stay what they are.
pub fn switch_stub(below: Option<u8>, pushed: usize, popped: usize) -> Vec<u8> {
    let pairs = || (0..9).map(|pair| (2 * pair, 2 * pair + 1)).chain([(29, 30)]); // X0 to X17, X29, X30
    let mut code: Vec<u32> = vec![];
    for (one, other) in pairs() {
        code.push(0xA9BF_03E0 | other << 10 | one); // STP one, other, [SP, -16]!
    }
    code.push(0xF840_0000 | u32::from(EC_CFP_OFFSET) << 12 | EC << 5 | 1); // LDUR X1, [X20, 16]
    code.push(0xD100_0000 | u32::from(below.unwrap_or(0)) << 10 | u32::from(CFP) << 5 | 9); // SUB X9, X19, bytes
    code.push(u32::from_le_bytes(store(9)));
    code.push(0xAA14_03E0); // MOV X0, X20
    let values = code.len() + 6 + pairs().count(); // after the last instruction
    code.push(0x5800_0000 | ((values - code.len() + values % 2) as u32) << 5 | 10); // LDR X10, pushed
    code.push(0x5800_0000 | ((values - code.len() + values % 2 + 2) as u32) << 5 | 11); // LDR X11, popped
    code.push(0xEB01_013F); // CMP X9, X1
    code.push(0x9A8A_816A); // CSEL X10, X11, X10, HI
    code.push(0xD63F_0140); // BLR X10
    for (one, other) in pairs().collect::<Vec<_>>().into_iter().rev() {
        code.push(0xA8C1_03E0 | other << 10 | one); // LDP one, other, [SP], 16
    }
    code.push(0xD65F_03C0); // RET
    debug_assert_eq!(code.len(), values);
    code.resize(values + values % 2, NOP);
    for value in [pushed as u64, popped as u64] {
        code.extend([value as u32, (value >> 32) as u32]);
    }
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}
