//! What the tracer knows of ZJIT in Ruby 4.0. Each file ruby_*.rs has the same names, for mod.rs and
//! points.rs; the patches of its Ruby call the rest.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt::Write;

use crate::backend::lir::{Assembler, Insn, Opnd, SideExit, Target, CFP, NATIVE_STACK_PTR};
use crate::codegen::MAX_ISEQ_VERSIONS;
use crate::cruby::*;
use crate::hir::{self, FrameState, Function, InsnId, SideExitReason};
use crate::state::ZJITState;
use crate::stats::{exit_counter_for_compile_error, exit_counter_for_unhandled_hir_insn, CompileError, Counter};
use crate::stats::vm_trace::*;
use crate::virtualmem::CodePtr;

pub use crate::stats::vm_trace::lead as lead_back;

// --- exits ---------------------------------------------------------------------------------------------------------

/// What an exit has that may cause a recompilation: there is none of that kind.
pub type Recompile = Infallible;

pub fn recompile(_exit: &SideExit) -> Option<&Recompile> {
    None
}

pub fn gen_recompile_exit(_asm: &mut Assembler, _site: SitePtr, recompile: &Recompile, _unsampled: Option<Target>) {
    match *recompile {}
}

/// The ISEQ of a frame in compiled code: nothing is inlined that has a frame.
pub fn frame_of(_state: &FrameState, unit: IseqPtr) -> IseqPtr {
    unit
}

pub fn frame_of_exit(_exit: &SideExit, unit: IseqPtr) -> IseqPtr {
    unit
}

/// The instruction at `pc` of an ISEQ
pub fn opcode(_iseq: IseqPtr, pc: *const VALUE) -> usize {
    unsafe { rb_vm_insn_decode(*pc) as usize }
}

/// What exits of exception handlers increment
pub fn handler_counters() -> [Counter; 2] {
    [Counter::exit_compile_error, exit_counter_for_compile_error(&CompileError::ExceptionHandler)]
}

/// Write a reason that only this Ruby has. False: it is none of them.
pub fn write_reason(text: &mut String, reason: &SideExitReason) -> bool {
    let _ = match reason {
        SideExitReason::UnhandledDuparraySend(method) => write!(text, "UnhandledDuparraySend({})", ID(*method).contents_lossy()),
        SideExitReason::UnhandledHIRInsn(insn) => write!(text, "UnhandledHIRInsn({})", unhandled_insn(*insn)),
        _ => return false,
    };
    true
}

/// Instructions of the ISEQ being compiled that the code generator refused, by their numbers.
/// Guarded by the VM lock.
static mut UNHANDLED: Vec<(InsnId, Counter)> = vec![];

/// The code generator refuses an instruction: an exit in its place will have its number as reason.
pub fn note_unhandled_insn(id: InsnId, insn: &hir::Insn) {
    unsafe { (*(&raw mut UNHANDLED)).push((id, exit_counter_for_unhandled_hir_insn(insn))) };
}

/// Another ISEQ is compiled next.
pub fn forget_unhandled_insns() {
    unsafe { (*(&raw mut UNHANDLED)).clear() };
}

/// What statistics call such an instruction.
fn unhandled_insn(id: InsnId) -> &'static str {
    let unhandled = unsafe { &*(&raw const UNHANDLED) };
    let counter = unhandled.iter().rev().find(|(known, _)| *known == id).map(|(_, counter)| counter.name());
    counter.and_then(|name| name.strip_prefix("unhandled_hir_insn_")).unwrap_or("unknown")
}

// --- fallbacks and compilations ----------------------------------------------------------------------------------------

/// Store the pc of a frame that is about to call out. Compiled code may have left in the frame what was
/// there before: a frame without a pc is not seen.
pub fn save_pc(asm: &mut Assembler, state: &FrameState) {
    let next_pc = unsafe { state.pc.add(insn_len(state.get_opcode() as usize) as usize) };
    asm.mov(Opnd::mem(64, CFP, RUBY_OFFSET_CFP_PC), Opnd::const_ptr(next_pc));
}

pub fn max_versions() -> usize {
    MAX_ISEQ_VERSIONS
}

/// Guarded by the VM lock.
static mut EXITS_MADE: (u64, u64) = (0, 0);

/// How many side exits were compiled since the start, and the bytes of their code
pub fn exits_made() -> (u64, u64) {
    unsafe { EXITS_MADE }
}

/// One more is compiled.
pub fn count_exit() {
    unsafe { EXITS_MADE.0 += 1 };
}

/// All that an assembler emits from here on is code of side exits.
pub fn count_exit_bytes(asm: &mut Assembler) {
    if recording_compiles() {
        asm.pos_marker(|start, cb| unsafe { EXITS_MADE.1 += (cb.get_write_ptr().as_offset() - start.as_offset()) as u64 });
    }
}

// --- counters -------------------------------------------------------------------------------------------------------

/// Do something for each operand of an instruction.
pub fn each_operand(function: &Function, insn: &hir::Insn, act: impl FnMut(InsnId)) {
    let mut operands = VecDeque::new();
    function.worklist_traverse_single_insn(insn, &mut operands);
    operands.into_iter().for_each(act);
}

/// Counters that only this Ruby has: there are none.
pub fn more_counters() -> Option<(&'static str, &'static mut HashMap<String, Box<u64>>)> {
    None
}

// --- where exits end ---------------------------------------------------------------------------------------------------

/// The code in which exits of stubs end. Other exits have the same code of their own.
pub fn end() -> CodePtr {
    ZJITState::get_exit_trampoline()
}

/// Begin the code that is there while exits are traced.
pub fn begin_end() -> Assembler {
    Assembler::new()
}

/// On arm64 it is always aligned.
pub fn align_stack(asm: &mut Assembler) {
    if cfg!(target_arch = "x86_64") {
        asm.push_insn(Insn::And { left: NATIVE_STACK_PTR, right: Opnd::Imm(-16), out: NATIVE_STACK_PTR });
    }
}

/// [finish_end] finds the frame by another register.
pub fn restore_stack(_asm: &mut Assembler) {}

/// Do what [end] does, from where [begin_end] ends.
pub fn finish_end(asm: &mut Assembler) {
    asm.frame_teardown(&[]);
    asm.cret(Qundef.into());
}

/// Have the jump at `at`, which leads to an exit, lead to the stub of a slot, and that to the exit. On
/// arm64 jumps with a condition have room for a second instruction, so the stub needs no condition.
pub fn lead_to_stub(stubs: &mut Stubs, slot: u32, at: usize, exit: usize) -> Option<Patch> {
    stubs.set_target(slot, exit);
    lead(at, stubs.of_jump(slot))
}
