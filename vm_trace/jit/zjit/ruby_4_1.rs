//! What the tracer knows of ZJIT in Ruby 4.1. Each file ruby_*.rs has the same names, for mod.rs and
//! points.rs; the patches of its Ruby call the rest.

use std::collections::HashMap;
use std::ptr::null;

use crate::backend::lir::{
    asm_ccall, asm_comment, Assembler, Insn, Opnd, SideExit, SideExitRecompile, Target, CFP, C_ARG_OPNDS, EC,
    NATIVE_BASE_PTR, NATIVE_STACK_PTR,
};
use crate::codegen::{c_callable, exit_recompile, max_iseq_versions};
use crate::cruby::*;
use crate::hir::{self, FrameState, Function, InsnId, SideExitReason};
use crate::state::ZJITState;
use crate::stats::{counter_ptr, Counter};
use crate::stats::vm_trace::*;
use crate::trace::{site_of, Exit};
use crate::virtualmem::CodePtr;

pub use crate::stats::vm_trace::lead_back;

// --- exits ---------------------------------------------------------------------------------------------------------

/// What an exit has that may cause a recompilation
pub type Recompile = SideExitRecompile;

pub fn recompile(exit: &SideExit) -> Option<&Recompile> {
    exit.recompile.as_ref()
}

/// The ISEQ of a frame in compiled code. It may be inlined into `unit`.
pub fn frame_of(state: &FrameState, _unit: IseqPtr) -> IseqPtr {
    state.iseq
}

pub fn frame_of_exit(exit: &SideExit, _unit: IseqPtr) -> IseqPtr {
    exit.iseq
}

/// The instruction at `pc` of an ISEQ
pub fn opcode(iseq: IseqPtr, pc: *const VALUE) -> usize {
    unsafe { rb_iseq_bare_opcode_at_pc(iseq, pc) as usize }
}

/// What exits of exception handlers increment
pub fn handler_counters() -> [Counter; 2] {
    [Counter::exit_exception_handler; 2]
}

/// Write a reason that only this Ruby has. False: it is none of them.
pub fn write_reason(_text: &mut String, _reason: &SideExitReason) -> bool {
    false
}

/// Let a counted exit recompile, and record it if it is to be, with what came of it.
pub fn gen_recompile_exit(asm: &mut Assembler, site: SitePtr, recompile: &Recompile, unsampled: Option<Target>) {
    let state = C_ARG_OPNDS[0];
    let SideExitRecompile { compiled_iseq, frame_iseq, insn_idx } = recompile.clone();
    let site = Opnd::const_ptr(site as *const u8);
    asm_ccall!(asm, traced_exit_recompile, state, site, EC, compiled_iseq, frame_iseq, insn_idx.into());
    if let Some(unsampled) = unsampled {
        let done = asm.new_label("trace_done");
        asm.jmp(done.clone());
        asm.write_label(unsampled);
        asm_ccall!(asm, unsampled_exit_recompile, state, site, compiled_iseq, frame_iseq, insn_idx.into());
        asm.write_label(done);
    }
}

c_callable! {
    /// A sampled recompile exit: the JIT acts, then the exit is recorded with what came of it, at
    /// the time before.
    fn traced_exit_recompile(state: RactorPtr, site: SitePtr, ec: EcPtr, compiled_iseq: VALUE, frame_iseq: VALUE, insn_idx: u32) {
        let start_ns = unsafe { rb_vm_trace_recompile_begin(state, site, true) };
        let outcome = exit_recompile(compiled_iseq, frame_iseq, insn_idx);
        unsafe { rb_vm_trace_recompile_exit(state, site, ec as AnyPtr, start_ns, outcome) };
    }
}

c_callable! {
    /// One that is not sampled: what it invalidates is recorded all the same, and why.
    fn unsampled_exit_recompile(state: RactorPtr, site: SitePtr, compiled_iseq: VALUE, frame_iseq: VALUE, insn_idx: u32) {
        unsafe { rb_vm_trace_recompile_begin(state, site, false) };
        exit_recompile(compiled_iseq, frame_iseq, insn_idx);
        unsafe { rb_vm_trace_recompile_end(state) };
    }
}

c_callable! {
    /// What compiled code calls at an exit that may cause a recompilation. When it is traced it is
    /// recorded once it is known what came of it, and not by the traced end.
    pub fn recompile_exit(compiled_iseq: VALUE, frame_iseq: VALUE, insn_idx: u32) -> Outcome {
        if !exits_on() {
            return exit_recompile(compiled_iseq, frame_iseq, insn_idx);
        }
        let exit = unsafe { rb_vm_trace_take_exit() } as *mut Exit;
        let (ec, session_then) = (unsafe { rb_vm_trace_current() } as EcPtr, session());
        let site = if exit.is_null() { null() } else { site_of(exit, ec, session_then) };
        if site.is_null() {
            return exit_recompile(compiled_iseq, frame_iseq, insn_idx);
        }
        let mut start_ns = 0;
        let weight = unsafe { rb_vm_trace_recompile_taken(site, ec as AnyPtr, &mut start_ns) };
        let outcome = exit_recompile(compiled_iseq, frame_iseq, insn_idx);
        if session() == session_then {
            unsafe { rb_vm_trace_recompile_done(site, ec as AnyPtr, start_ns, weight, outcome) };
        } else {
            unsafe { rb_vm_trace_recompile_dropped(ec as AnyPtr) };
        }
        outcome
    }
}

// --- fallbacks and compilations ----------------------------------------------------------------------------------------

/// Store the pc of a frame that is about to call out. Its caller finds it without.
pub fn save_pc(_asm: &mut Assembler, _state: &FrameState) {}

pub fn max_versions() -> usize {
    max_iseq_versions()
}

/// How many side exits were compiled since the start, and the bytes of their code: counters of ZJIT's
/// statistics that are kept in any case.
pub fn exits_made() -> (u64, u64) {
    unsafe { (*counter_ptr(Counter::compiled_side_exit_count), *counter_ptr(Counter::side_exit_size)) }
}

// --- counters -------------------------------------------------------------------------------------------------------

/// Do something for each operand of an instruction.
pub fn each_operand(_function: &Function, insn: &hir::Insn, act: impl FnMut(InsnId)) {
    insn.for_each_operand(act);
}

/// Counters that only this Ruby has: the begin of their names, and the rest of it.
pub fn more_counters() -> Option<(&'static str, &'static mut HashMap<String, Box<u64>>)> {
    Some(("iseq_calls_count_", ZJITState::get_iseq_calls_count_pointers()))
}

// --- where exits end ---------------------------------------------------------------------------------------------------

/// The code in which exits end. It makes the frames whole that compiled code did not write.
pub fn end() -> CodePtr {
    ZJITState::get_materialize_exit_trampoline()
}

/// Begin the code that is there while exits are traced. They are recorded before frames are made whole,
/// as exits are that are traced from the start.
pub fn begin_end() -> Assembler {
    let mut asm = Assembler::new();
    asm.new_block_without_id("traced_materialize_exit_trampoline");
    asm.store(Opnd::mem(64, CFP, RUBY_OFFSET_CFP_JIT_RETURN), 0.into());
    asm.store(Opnd::mem(64, CFP, RUBY_OFFSET_CFP_BLOCK_CODE), 0.into());
    asm
}

/// On arm64 it is always aligned.
const ALIGN: bool = cfg!(target_arch = "x86_64");

pub fn align_stack(asm: &mut Assembler) {
    if ALIGN {
        asm.cpush(NATIVE_BASE_PTR);
        asm.load_into(NATIVE_BASE_PTR, NATIVE_STACK_PTR);
        asm.push_insn(Insn::And { left: NATIVE_STACK_PTR, right: Opnd::Imm(-16), out: NATIVE_STACK_PTR });
    }
}

pub fn restore_stack(asm: &mut Assembler) {
    if ALIGN {
        asm.load_into(NATIVE_STACK_PTR, NATIVE_BASE_PTR);
        asm.cpop_into(NATIVE_BASE_PTR);
    }
}

/// Do what [end] does, from where [begin_end] ends.
pub fn finish_end(asm: &mut Assembler) {
    unsafe extern "C" {
        fn rb_zjit_materialize_frames(ec: EcPtr, cfp: CfpPtr);
    }
    asm_comment!(asm, "materialize ZJIT frames");
    asm_ccall!(asm, rb_zjit_materialize_frames, EC, CFP);
    let exit = ZJITState::get_exit_trampoline().raw_ptr(ZJITState::get_code_block());
    asm.load_into(C_ARG_OPNDS[0], Opnd::const_ptr(exit));
    asm.jmp_opnd(C_ARG_OPNDS[0]);
}

/// Have the jump at `at`, which leads to an exit, lead to the stub of a slot, and that to the exit.
pub fn lead_to_stub(stubs: &mut Stubs, slot: u32, at: usize, _exit: usize) -> Option<Patch> {
    stubs.stand_for(slot, at, read_code(at))
}
