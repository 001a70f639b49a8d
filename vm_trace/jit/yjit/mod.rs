//! Tracing of exits, compilations and invalidations through the C module vm_trace/.
//!
//! The crate `yjit` includes this folder as its module `trace`, and a file for its Ruby, such as
//! ruby_4.rs, as `trace_base`: what differs between Rubies is there, by the same names. What JITs
//! share is in vm_trace/jit/. All of it has to compile with rustc 1.58, which Ruby 3.3 needs.
//!
//! This file says where exits and the others are and why, and emits the few instructions that count
//! and sample an exit. While no trace flag is given nothing of this emits code.
//!
//! The older --yjit-trace-exits, which keeps samples in memory for RubyVM::YJIT.exit_locations, is
//! in stats.rs and has nothing to do with it.

mod points;

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::raw::c_char;
use std::ptr::null;

use crate::asm::{CodeBlock, OutlinedCb};
use crate::backend::ir::{asm_comment, Assembler, Insn, Opnd, Target, EC};
use crate::core::{get_iseq_payload, get_or_create_iseq_payload, next_version, BlockId, IseqPayload};
use crate::cruby::*;
use crate::stats::Counter;
use crate::trace_base::vm_trace::{self, *};
use crate::utils::{c_callable, iseq_get_location};

pub use crate::trace_base::vm_trace::{all_calls_have_frames, SitePtr};
pub use points::*;

pub static JIT: Jit = Jit {
    name: b"YJIT\0".as_ptr() as *const c_char,
    flag_prefix: b"--yjit-\0".as_ptr() as *const c_char,
    exits_flag: b"side-exits\0".as_ptr() as *const c_char, // --yjit-trace-exits is another one
    example_counter: b"opt_plus_overflow\0".as_ptr() as *const c_char,
    fallbacks: false,
    code_text: null(),
    counters: false,
    counter_p,
    prepare_exits: Some(prepare_exits::<PatchedCode>),
    exits_on: Some(put_exits_on::<PatchedCode>),
    every_exit: Some(call_every_exit::<PatchedCode>),
    exits_off: Some(take_exits_off::<PatchedCode>),
    restore_exits: Some(restore_exits::<PatchedCode>),
    prepare_calls: Some(prepare_calls::<PatchedFrames>),
    calls_on: Some(put_calls_on::<PatchedFrames>),
    restore_calls: Some(restore_calls::<PatchedFrames>),
    recording: Some(recording),
};

extern "C" fn counter_p(name: *const c_char) -> bool {
    unsafe { CStr::from_ptr(name) }.to_str().map_or(false, |name| Counter::get(name).is_some())
}

/// Why control leaves generated code for the interpreter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// What a counter of --yjit-stats counts
    Counter(Counter),
    /// The instruction is one that YJIT generates no code for, or not in this case
    UncompiledInsn,
    /// The block was invalidated, and control comes to its start
    InvalidatedBlock,
    /// All code was invalidated while the frame was in a call
    InvalidatedEverything,
}

impl Reason {
    fn name(self) -> String {
        match self {
            Reason::Counter(counter) => counter.get_name(),
            Reason::UncompiledInsn => "uncompiled_insn".to_string(),
            Reason::InvalidatedBlock => "invalidated_block".to_string(),
            Reason::InvalidatedEverything => "invalidated_everything".to_string(),
        }
    }

    /// Whether flags have its exits traced by code of their own.
    pub fn traced(self) -> bool {
        exits_by_flags(|name| matches!(self, Reason::Counter(counter) if counter.get_name() == name))
    }
}

/// The counter that makes an exit different from others with the same state. Exits are shared by
/// those that need not be told apart, which are all where nothing is traced.
pub fn own_exit(counter: Option<Counter>) -> Option<Counter> {
    counter.filter(|&counter| Reason::Counter(counter).traced())
}

/// The last counter that code was generated for. Guarded by the VM lock, as all state below.
static mut LAST_COUNTER: Option<Counter> = None;

/// Code that increments a counter has just been generated.
pub fn note_counter(counter: Counter) {
    unsafe { LAST_COUNTER = Some(counter) };
}

/// Count a call of a method in C, which the code being generated replaces.
pub fn count_replaced_call(asm: &mut Assembler) {
    if let Some(count) = replaced_calls() {
        let count = asm.load(Opnd::const_ptr(count as *const u8));
        asm.incr_counter(Opnd::mem(64, count, 0), Opnd::UImm(1));
    }
}

/// Why the current instruction can't be compiled: each begins with the counter of instructions,
/// and the code generator may have said more. Those that begin with num_ say what it looked at.
pub fn uncompiled_reason() -> Reason {
    match unsafe { LAST_COUNTER } {
        Some(counter) if counter != Counter::yjit_insns_count && !counter.get_name().starts_with("num_") => {
            Reason::Counter(counter)
        }
        _ => Reason::UncompiledInsn,
    }
}

/// The ISEQ whose block is being compiled and the number of the version that it becomes.
static mut UNIT: (IseqPtr, u32) = (null(), 0);

/// Sites made from now on belong to the code of this block.
pub fn begin_block(blockid: BlockId) {
    unsafe { UNIT = (blockid.iseq, next_version(blockid)) };
}

/// Of the code being compiled
pub fn unit_version() -> u32 {
    unsafe { UNIT.1 }
}

pub fn new_site(reason: Reason, iseq: IseqPtr, version: u32, pc: *const VALUE) -> Option<SitePtr> {
    let reason = reason.name();
    let insn = insn_name(unsafe { rb_vm_insn_decode(*pc) } as usize);
    vm_trace::new_site(&Place {
        kind: Kind::SideExit,
        reason: &reason,
        insn: &insn,
        unit: iseq.cast(),
        version,
        frame: iseq.cast(),
        method: null(),
        pc: pc.cast(),
        callee: None,
        code: (null(), 0),
    })
}

/// Memory operand at a base register. The assembler encodes no displacement past 16 bits right.
pub fn mem_at(asm: &mut Assembler, base: Opnd, offset: usize) -> Opnd {
    match i16::try_from(offset) {
        Ok(offset) => Opnd::mem(64, base, offset.into()),
        Err(_) => {
            let address = asm.add(base, offset.into());
            Opnd::mem(64, address, 0)
        }
    }
}

/// Count a side exit and record it if it is to be, in its own machine code. The state of the
/// exiting frame is saved and all stack temps are spilled.
pub fn gen_exit(asm: &mut Assembler, pc: *const VALUE, reason: Reason) {
    // Unit tests link no C, and trace nothing.
    let _ = (&asm, pc, reason);
    #[cfg(not(test))]
    if reason.traced() {
        gen_traced_exit(asm, pc, reason);
    } else {
        note_end(asm, reason, false);
    }
}

/// Load the address of what the current ractor records with.
pub fn load_state(asm: &mut Assembler) -> Opnd {
    let thread = asm.load(Opnd::mem(64, EC, RUBY_OFFSET_EC_THREAD_PTR as i32));
    let ractor = asm.load(Opnd::mem(64, thread, thread_offset() as i32));
    let state = mem_at(asm, ractor, ractor_offset());
    asm.load(state)
}

/// Jump away from all exits but one in K.
pub fn gen_countdown(asm: &mut Assembler, state: Opnd, unsampled: Target) {
    asm_comment!(asm, "trace: is this the one in K?");
    let countdown = Opnd::mem(64, state, countdown_offset() as i32);
    let left = asm.sub(countdown, Opnd::UImm(1));
    asm.store(countdown, left);
    asm.test(left, left);
    asm.jnz(unsampled);
}

#[cfg_attr(test, allow(dead_code))]
fn gen_traced_exit(asm: &mut Assembler, pc: *const VALUE, reason: Reason) {
    let (iseq, version) = unsafe { UNIT };
    let site = match new_site(reason, iseq, version, pc) {
        Some(site) => site,
        None => return,
    };

    asm_comment!(asm, "trace: count the exit");
    let state = load_state(asm);
    let hits = mem_at(asm, state, hits_offset(site));
    let count = asm.add(hits, Opnd::UImm(1));
    asm.store(hits, count);

    let unsampled = asm.new_label("trace_unsampled");
    if sampled_by_flags() {
        gen_countdown(asm, state, unsampled);
    }
    asm.ccall(rb_vm_trace_exit as *const u8, vec![state, Opnd::const_ptr(site as *const u8), EC]);
    asm.write_label(unsampled);
}

/// The same in code that all ISEQs share: from where is known only when it happens. The state of
/// the top frame is saved.
pub fn gen_shared_exit(asm: &mut Assembler, counter: Counter) {
    let reason = Reason::Counter(counter);
    if !reason.traced() {
        note_end(asm, reason, true);
        return;
    }
    let function = match counter {
        Counter::exit_from_branch_stub => exit_from_branch_stub as *const u8,
        Counter::traced_cfunc_return => traced_cfunc_return as *const u8,
        _ => unreachable!("{counter:?} is counted in the code of ISEQs"),
    };
    asm.ccall(function, vec![EC]);
}

c_callable! {
    fn exit_from_branch_stub(ec: EcPtr) {
        record_shared_exit(ec, Counter::exit_from_branch_stub);
    }
}

c_callable! {
    fn traced_cfunc_return(ec: EcPtr) {
        record_shared_exit(ec, Counter::traced_cfunc_return);
    }
}

fn record_shared_exit(ec: EcPtr, counter: Counter) {
    let site = known_shared_site(ec, counter).unwrap_or_else(|| with_vm_lock(src_loc!(), || shared_site(ec, counter)));
    if !site.is_null() {
        unsafe { rb_vm_trace_first_hit(site, ec as AnyPtr) };
    }
}

/// The ISEQ and the pc of a frame whose state is saved
fn top_frame(ec: EcPtr) -> (IseqPtr, *mut VALUE) {
    unsafe {
        let cfp = get_ec_cfp(ec);
        (get_cfp_iseq(cfp), get_cfp_pc(cfp))
    }
}

/// Sites of exits that no code of an ISEQ holds, by pc and counter, or null where there is to be none,
/// with [site_session]
pub type SharedSites = HashMap<(*mut VALUE, Counter), (SitePtr, u64)>;

/// The site of such an exit, or null if there is to be none. None: that is not known yet. Needs no
/// lock: the payload changes only with all ractors stopped, and a thread does not stop here.
fn known_shared_site(ec: EcPtr, counter: Counter) -> Option<SitePtr> {
    let (iseq, pc) = top_frame(ec);
    let &(site, session) = get_iseq_payload(iseq)?.traced_sites.get(&(pc, counter))?;
    if session == site_session() { Some(site) } else { None }
}

/// The same, made if it is not known. It hangs on the payload of the ISEQ, for there is no code
/// that it could be in. VM lock held.
fn shared_site(ec: EcPtr, counter: Counter) -> SitePtr {
    known_shared_site(ec, counter).unwrap_or_else(|| {
        let (iseq, pc) = top_frame(ec);
        let site = new_site(Reason::Counter(counter), iseq, 0, pc).unwrap_or(null());
        get_or_create_iseq_payload(iseq).traced_sites.insert((pc, counter), (site, site_session()));
        site
    })
}

/// The code of an ISEQ that is not running is freed by code GC: so are its sites.
pub fn iseq_code_freed(iseq: IseqPtr, payload: &mut IseqPayload) {
    if by_flags().is_some() || exits_on() {
        payload.traced_sites.clear();
        forget_sites(iseq);
    }
}

/// Record the compilation of a series of blocks, with the bytes of code that were written.
pub fn compile<R>(
    blockid: BlockId, cb: &mut CodeBlock, ocb: &mut OutlinedCb,
    func: impl FnOnce(&mut CodeBlock, &mut OutlinedCb) -> Option<R>,
) -> Option<R> {
    if !recording_compiles() {
        return func(cb, ocb);
    }
    let name = iseq_get_location(blockid.iseq, blockid.idx);
    let version = next_version(blockid);
    let span = Span::begin(SpanKind::Compile, name.as_str());
    let before = cb.code_size() + ocb.unwrap().code_size();
    let result = func(cb, ocb);
    if let Some(span) = span {
        // Where code moves to the next page the sizes may shrink: they are estimates.
        let bytes = (cb.code_size() + ocb.unwrap().code_size()).saturating_sub(before);
        span.end_compile(blockid.iseq, if result.is_some() { version } else { 0 }, bytes);
    }
    result
}

/// Record an invalidation of some blocks, named by the counter that counts them (if there is one):
/// the time until the result is dropped.
pub fn invalidation(name: &'static str, blocks: usize) -> Option<Span<'static>> {
    if blocks == 0 || !recording_invalidations() {
        return None;
    }
    Span::begin(SpanKind::Invalidation, name)
}
