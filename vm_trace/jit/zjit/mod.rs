//! Exits, fallbacks, compilations and invalidations, for the trace of the C module vm_trace/.
//!
//! The crate `zjit` includes this folder as its module `trace`, and a file for its Ruby, such as
//! ruby_4_1.rs, as `trace_base`: what differs between Rubies is there, by the same names. What JITs
//! share is in vm_trace/jit/.
//!
//! This file says where exits and the others are and why, and emits the few instructions that count
//! and sample an exit. While no trace flag is given nothing of this emits code.

mod code_text;
mod counters;
mod entries;
mod points;
mod reasons;

use std::ffi::{c_char, CStr};
use std::ptr::null;

use crate::asm::CodeBlock;
use crate::backend::lir::{asm_ccall, asm_comment, Assembler, Insn, Opnd, SideExit, Target, CFP, C_ARG_OPNDS, EC};
use crate::cruby::*;
use crate::hir::{self, BlockId, FrameState, Function, SideExitReason};
use crate::payload::{get_or_create_iseq_payload, IseqVersionRef};
use crate::stats::{exit_counter_for_compile_error, side_exit_counter, CompileError, Counter};
use crate::stats::vm_trace::{self, *};
use crate::trace_base::{self as base, Recompile};

pub use crate::stats::vm_trace::{all_calls_have_frames, SitePtr};
pub use code_text::*;
pub use counters::*;
pub use entries::*;
pub use points::*;

pub static JIT: Jit = Jit {
    name: c"ZJIT".as_ptr(),
    flag_prefix: c"--zjit-".as_ptr(),
    exits_flag: c"exits".as_ptr(),
    example_counter: c"exit_guard_type_failure".as_ptr(),
    fallbacks: true,
    code_text: c"hir".as_ptr(),
    counters: true,
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
    unsafe { CStr::from_ptr(name) }.to_str().is_ok_and(|name| Counter::get(name).is_some())
}

/// Whether flags have exits traced that increment one of these counters.
pub fn traces_counters(counters: &[Counter]) -> bool {
    exits_by_flags(|name| counters.iter().any(|counter| counter.name() == name))
}

// --- sites ---------------------------------------------------------------------------------------------------------

/// The ISEQ being compiled and the number of the version that it becomes. Guarded by the VM lock.
static mut UNIT: (IseqPtr, u32) = (null(), 0);

/// Run `func`, which compiles `version` of `iseq`; sites made in it belong to that.
pub fn compiling<R>(iseq: IseqPtr, version: usize, func: impl FnOnce() -> R) -> R {
    let outer = unsafe { UNIT };
    unsafe { UNIT = (iseq, version as u32) };
    count_in(Some(iseq));
    let result = func();
    count_in(None);
    forget_code_text();
    unsafe { UNIT = outer };
    result
}

/// Make a site in the code of `unit` for the instruction at `pc` of `frame`.
fn new_site(kind: Kind, reason: &str, unit: IseqPtr, version: u32, frame: IseqPtr, pc: *const VALUE) -> Option<SitePtr> {
    new_site_in(kind, reason, unit, version, frame, pc, None, NO_LINE)
}

/// The same where something named `callee` is called, and the text of the code is kept.
fn new_site_in(
    kind: Kind, reason: &str, unit: IseqPtr, version: u32, frame: IseqPtr, pc: *const VALUE, callee: Option<&str>,
    code: CodeLine,
) -> Option<SitePtr> {
    let insn = insn_name(base::opcode(frame, pc));
    let method = inlined_method(frame);
    let (unit, frame, pc) = (unit.cast(), frame.cast(), pc.cast());
    vm_trace::new_site(&Place { kind, reason, insn: &insn, unit, version, frame, method, pc, callee, code })
}

/// Make the site of a side exit if flags have it traced.
pub fn exit_site(exit: &SideExit, reason: SideExitReason) -> Option<SitePtr> {
    if !traces_counters(&[side_exit_counter(reason)]) {
        return None;
    }
    let Opnd::UImm(pc) = exit.pc else { return None; };
    let kind = if base::recompile(exit).is_some() { Kind::RecompileExit } else { Kind::SideExit };
    let (unit, version) = unsafe { UNIT };
    let mut text = String::new();
    reasons::write_reason(&mut text, &reason);
    let frame = base::frame_of_exit(exit, unit);
    new_site_in(kind, &text, unit, version, frame, pc as *const VALUE, None, code_at_hand())
}

/// The ISEQ of a version and the version's number, from 1; 0 if it is none of its versions.
fn version_number(version: IseqVersionRef) -> (IseqPtr, u32) {
    let iseq = unsafe { version.as_ref() }.iseq;
    let versions = &get_or_create_iseq_payload(iseq).versions;
    (iseq, versions.iter().position(|&known| known == version).map_or(0, |idx| idx as u32 + 1))
}

/// Make the site of an exit of `version` that is at `pc` of `frame`, whose reason is `text`.
pub fn new_exit_site(
    version: IseqVersionRef, text: &str, recompile: bool, frame: IseqPtr, pc: *const VALUE, code: CodeLine,
) -> SitePtr {
    let (unit, number) = version_number(version);
    let kind = if recompile { Kind::RecompileExit } else { Kind::SideExit };
    new_site_in(kind, text, unit, number, frame, pc, None, code).unwrap_or(null())
}

// --- machine code --------------------------------------------------------------------------------------------------

/// Memory operand at a base register that may need a larger offset than an instruction holds.
pub fn mem_at(asm: &mut Assembler, base: Opnd, offset: usize, scratch: Opnd) -> Opnd {
    if cfg!(target_arch = "x86_64") || offset < 256 {
        Opnd::mem(64, base, offset as i32)
    } else {
        asm.load_into(scratch, Opnd::UImm(offset as u64));
        asm.add_into(scratch, base);
        Opnd::mem(64, scratch, 0)
    }
}

/// Load what the ractor of `ec` records with into `state`; `scratch` is overwritten.
pub fn gen_load_state(asm: &mut Assembler, state: Opnd, ec: Opnd, scratch: Opnd) {
    asm.load_into(state, Opnd::mem(64, ec, RUBY_OFFSET_EC_THREAD_PTR as i32));
    asm.load_into(state, Opnd::mem(64, state, thread_offset() as i32));
    let field = mem_at(asm, state, ractor_offset(), scratch);
    asm.load_into(state, field);
}

/// Jump to `unsampled` with all exits but one in K. `value` and `scratch` are overwritten.
pub fn gen_countdown(asm: &mut Assembler, state: Opnd, value: Opnd, scratch: Opnd, unsampled: Target) {
    asm_comment!(asm, "trace: is this the one in K?");
    let countdown = mem_at(asm, state, countdown_offset(), scratch);
    asm.load_into(value, countdown);
    asm.sub_into(value, 1.into());
    asm.store(countdown, value);
    asm.test(value, value);
    asm.push_insn(Insn::Jnz(unsampled));
}

/// Count at a site. Leaves what the ractor of `ec` records with in the first of `regs`, all of which are
/// overwritten.
fn gen_hit(asm: &mut Assembler, site: SitePtr, ec: Opnd, regs: [Opnd; 3]) {
    let [state, value, address] = regs;
    gen_load_state(asm, state, ec, address);
    let hits = mem_at(asm, state, hits_offset(site), address);
    asm.load_into(value, hits);
    asm.add_into(value, 1.into());
    asm.store(hits, value);
}

/// Count an exit and, where only one in K is recorded, jump past the others to the label that is
/// returned. Leaves what the ractor of `ec` records with in the first of `regs`, all of which are
/// overwritten.
fn gen_count(asm: &mut Assembler, site: SitePtr, ec: Opnd, regs: [Opnd; 3]) -> Option<Target> {
    let [state, value, address] = regs;
    asm_comment!(asm, "trace: count the exit");
    gen_hit(asm, site, ec, regs);
    if !sampled_by_flags() {
        return None;
    }
    let unsampled = asm.new_label("trace_unsampled");
    gen_countdown(asm, state, value, address, unsampled.clone());
    Some(unsampled)
}

/// Record a side exit and let the recompile exit do its work. The state of the exiting frame is
/// saved, so caller-saved registers are free: C_ARG_OPNDS serve as scratch. Past register
/// allocation, no instruction here has a virtual register.
pub fn gen_exit(asm: &mut Assembler, site: SitePtr, recompile: Option<&Recompile>) {
    let state = C_ARG_OPNDS[0];
    let unsampled = gen_count(asm, site, EC, [state, C_ARG_OPNDS[1], C_ARG_OPNDS[2]]);
    match recompile {
        None => {
            asm_ccall!(asm, rb_vm_trace_exit, state, Opnd::const_ptr(site as *const u8), EC);
            if let Some(unsampled) = unsampled {
                asm.write_label(unsampled);
            }
        }
        Some(recompile) => base::gen_recompile_exit(asm, site, recompile, unsampled),
    }
}

// --- exits of what is not compiled -----------------------------------------------------------------------------------

/// What is kept of an ISEQ. Sites live as long as it, and as what they were made for.
#[derive(Debug, Default)]
pub struct TracedIseq {
    /// Site of traced exits due to a compile error, with the kind of error and [site_session]
    error_site: Option<(std::mem::Discriminant<CompileError>, u64, SitePtr)>,
    /// Such an exit as it is noted while exits are traced
    error_exit: Exit,
    /// Sites of counters of traced exits at its entry (counters.rs)
    counted: Vec<(Counter, Option<SitePtr>)>,
    /// Its entries from the interpreter that only exit, or null
    entries: Entries,
}

/// What exits of an ISEQ increment that could not be compiled. No error: those of exception handlers.
fn counters_of(error: Option<&CompileError>) -> [Counter; 2] {
    match error {
        Some(error) => [Counter::exit_compile_error, exit_counter_for_compile_error(error)],
        None => base::handler_counters(),
    }
}

/// Site of the exits that this error causes where an ISEQ which could not be compiled is called, if
/// flags have them traced. There is no code that it could be a constant of: it hangs on the
/// payload.
fn compile_error_site(iseq: IseqPtr, error: &CompileError) -> Option<SitePtr> {
    if traces_counters(&counters_of(Some(error))) { known_compile_error_site(iseq, error, 0) } else { None }
}

fn known_compile_error_site(iseq: IseqPtr, error: &CompileError, session: u64) -> Option<SitePtr> {
    let payload = get_or_create_iseq_payload(iseq);
    let reason = std::mem::discriminant(error);
    if let Some((known, then, site)) = payload.traced.error_site {
        if known == reason && then == session {
            return (!site.is_null()).then_some(site);
        }
    }
    let version = payload.versions.len() as u32;
    let pc = unsafe { rb_iseq_pc_at_idx(iseq, 0) };
    let site = new_site(Kind::SideExit, &format!("CompileError({error:?})"), iseq, version, iseq, pc);
    payload.traced.error_site = Some((reason, session, site.unwrap_or(null())));
    site
}

/// Whether flags have exits of exception handlers traced.
pub fn traces_exception_handlers() -> bool {
    traces_counters(&counters_of(None))
}

/// Site of an entry that only exits, for frames with this pc; null: for the rest of them.
pub type EntrySite = (*const VALUE, SitePtr);

/// Sites of the exits at the entry of an ISEQ that is not compiled because of an error, if flags have
/// them traced. No error: at that of its exception handlers, which are never compiled. One ISEQ has
/// one entry for all its handlers: a site for each place where a jump that it catches goes on, and a
/// last one for the rest.
pub fn entry_sites(iseq: IseqPtr, error: Option<&CompileError>) -> Vec<EntrySite> {
    const MOST: usize = 16;
    count_at_entry(iseq, &counters_of(error));
    if let Some(error) = error {
        return compile_error_site(iseq, error).map(|site| (null(), site)).into_iter().collect();
    }
    if !traces_exception_handlers() {
        return vec![];
    }
    let mut pcs = [null(); MOST];
    let count = landings(iseq, &mut pcs);
    let landings = pcs[..count].iter().chain([&null()]);
    landings.filter_map(|&pc| Some((pc, new_exception_handler_site(iseq, pc)?))).collect()
}

/// Make the site of frames that go on at `landing`; null: of those that go on elsewhere.
fn new_exception_handler_site(iseq: IseqPtr, landing: *const VALUE) -> Option<SitePtr> {
    let version = get_or_create_iseq_payload(iseq).versions.len() as u32;
    let (unit, method) = (iseq.cast(), inlined_method(iseq));
    let place = Place {
        kind: Kind::SideExit, reason: "ExceptionHandler", insn: "(handler)", unit, version,
        frame: unit, method, pc: null(), callee: None, code: NO_LINE,
    };
    new_site_of_frames_at(&place, landing.cast())
}

/// Count and record the exit at an entry that does nothing else. The trampoline of entries has set up
/// registers, but exception handlers are called without it: theirs are in the arguments.
pub fn gen_entry_exits(asm: &mut Assembler, handlers: bool, sites: &[EntrySite]) {
    let [ec, cfp] = if handlers { [C_ARG_OPNDS[0], C_ARG_OPNDS[1]] } else { [EC, CFP] };
    gen_entry_counters(asm, ec);
    if sites.is_empty() {
        return;
    }
    let [pc, address] = [C_ARG_OPNDS[2], C_ARG_OPNDS[3]];
    let done = asm.new_label("trace_entry_done");
    for &(landing, site) in sites {
        if landing.is_null() {
            gen_entry_exit(asm, site, ec);
            break;
        }
        let next = asm.new_label("trace_entry_next");
        asm.load_into(pc, Opnd::mem(64, cfp, RUBY_OFFSET_CFP_PC));
        asm.load_into(address, Opnd::const_ptr(landing));
        asm.cmp(pc, address);
        asm.push_insn(Insn::Jne(next.clone()));
        gen_entry_exit(asm, site, ec);
        asm.jmp(done.clone());
        asm.write_label(next);
    }
    asm.write_label(done);
}

/// The same for one site. `ec` is where its caller has that.
fn gen_entry_exit(asm: &mut Assembler, site: SitePtr, ec: Opnd) {
    let unsampled = gen_count(asm, site, ec, [C_ARG_OPNDS[1], C_ARG_OPNDS[2], C_ARG_OPNDS[3]]);
    // `ec` may be in the first of the registers that arguments go to.
    asm.load_into(C_ARG_OPNDS[2], ec);
    asm.load_into(C_ARG_OPNDS[0], C_ARG_OPNDS[1]);
    asm.frame_setup(&[]); // aligns the stack
    asm_ccall!(asm, rb_vm_trace_exit, C_ARG_OPNDS[0], Opnd::const_ptr(site as *const u8), C_ARG_OPNDS[2]);
    asm.frame_teardown(&[]);
    if let Some(unsampled) = unsampled {
        asm.write_label(unsampled);
    }
}

/// Record the exit that this error causes where the stub of a call finds that its ISEQ can't be
/// compiled: in Rust, before it goes to the code in which exits end. The frame is the top one and its
/// state is saved.
pub fn record_compile_error(iseq: IseqPtr, error: &CompileError) {
    count_compile_error(iseq, &counters_of(Some(error)));
    if entries::record_late(iseq, error) {
        return;
    }
    if let Some(site) = compile_error_site(iseq, error) {
        unsafe { rb_vm_trace_hit(site, rb_vm_trace_current()) };
    }
}

/// The innermost frame was pushed by code that does not change `ec->cfp` itself.
pub fn frame_pushed(ec: EcPtr) {
    unsafe { rb_vm_trace_jit_frame_begun(ec as AnyPtr) };
}

// --- fallbacks -------------------------------------------------------------------------------------------------------

/// Whether fallbacks are recorded.
pub fn fallbacks() -> bool {
    by_flags().is_some_and(|config| config.fallback_rate > 0)
}

/// Count and record a fallback, in the middle of compiled code. `callee`: what it calls.
pub fn gen_fallback(asm: &mut Assembler, state: &FrameState, reason: impl FnOnce() -> String, callee: impl FnOnce() -> String) {
    if !fallbacks() {
        return;
    }
    let (unit, version) = unsafe { UNIT };
    let frame = base::frame_of(state, unit);
    let code = code_at_hand();
    if let Some(site) = new_site_in(Kind::Fallback, &reason(), unit, version, frame, state.pc, Some(&callee()), code) {
        base::save_pc(asm, state);
        asm_ccall!(asm, rb_vm_trace_hit, Opnd::const_ptr(site as *const u8), EC);
        unsafe { IN_FALLBACK = true };
    }
}

/// Whether code of a fallback was generated whose end is not reported yet. Guarded by the VM lock.
static mut IN_FALLBACK: bool = false;

/// An instruction was generated: if it is a fallback, report that what it called has returned.
pub fn gen_fallback_end(asm: &mut Assembler) {
    if unsafe { std::mem::take(&mut *(&raw mut IN_FALLBACK)) } {
        asm_ccall!(asm, rb_vm_trace_fallback_end, EC);
    }
}

/// The name by which `super` calls, as far as the code tells: that of the method around it.
pub fn super_name(iseq: IseqPtr) -> String {
    let method = unsafe { rb_get_iseq_body_local_iseq(iseq) };
    if unsafe { rb_get_iseq_body_type(method) } == ISEQ_TYPE_METHOD { iseq_name(method) } else { "super".to_string() }
}

/// The counter that --zjit-stats increments right before the next access of an instance variable.
/// Guarded by the VM lock.
static mut IVAR_FALLBACK: Option<Counter> = None;

/// Whether a counter tells why an access of an instance variable is not compiled.
pub fn ivar_fallback(counter: Counter) -> bool {
    counter.name().contains("ivar_fallback_")
}

/// Note that code which increments a counter comes next, if that is such a one.
pub fn note_counter(counter: Counter) {
    if fallbacks() && ivar_fallback(counter) {
        unsafe { IVAR_FALLBACK = Some(counter) };
    }
}

/// Count a call of a method in C, which the instructions before replace.
pub fn count_replaced_call(fun: &mut Function, block: BlockId) {
    if let Some(counter_ptr) = replaced_calls() {
        fun.push_insn(block, hir::Insn::IncrCounterPtr { counter_ptr });
    }
}

/// Whether that is what such an instruction counts.
pub fn counts_replaced_calls(counter_ptr: *mut u64) -> bool {
    replaced_calls() == Some(counter_ptr)
}

/// Reason of a fallback that accesses an instance variable: the name of its counter, or that of the
/// instruction.
pub fn ivar_fallback_reason(insn: &str) -> String {
    let counter = unsafe { (*(&raw mut IVAR_FALLBACK)).take() };
    counter.map(|counter| counter.name()).filter(|name| name.starts_with(insn)).unwrap_or(insn).to_string()
}

// --- compilations and invalidations ------------------------------------------------------------------------------------

/// Record the compilation of an ISEQ as a whole, with what it made and the number of the version
/// that this is, or the error that it ended with. `func` is given the code block back for it.
pub fn trace_compile<R>(
    cb: &mut CodeBlock, iseq: IseqPtr, version: usize, func: impl FnOnce(&mut CodeBlock) -> Result<R, CompileError>,
) -> Result<R, CompileError> {
    let func = |cb: &mut CodeBlock| {
        let result = func(cb);
        unsafe { (*(&raw mut INLINED)).clear() }; // the GC may free method entries from now on
        result
    };
    if !vm_trace::recording_any() {
        return func(cb);
    }
    let name = iseq_get_location(iseq, 0);
    let compilation = Compilation::begin(&name, iseq);
    let start = cb.get_write_ptr().as_offset();
    let (exits, exit_bytes) = base::exits_made();
    let result = compilation.run(|| func(cb));
    compilation.end(|| {
        let code_bytes = (cb.get_write_ptr().as_offset() - start) as u64;
        let error = result.as_ref().err().map(|error| format!("{error:?}"));
        let (exits_now, exit_bytes_now) = base::exits_made();
        Made {
            version: if error.is_none() && code_bytes > 0 { version as u32 } else { 0 },
            code_bytes,
            exit_bytes: exit_bytes_now - exit_bytes,
            exits: exits_now - exits,
            error,
        }
    });
    result
}

/// Callees that were inlined into the ISEQ that is being compiled, and how each was called. Guarded
/// by the VM lock.
static mut INLINED: Vec<(IseqPtr, AnyPtr)> = Vec::new();

/// The method entry of an inlined frame, whose code runs before any frame tells. Null: it is not
/// inlined, or was in several ways.
fn inlined_method(frame: IseqPtr) -> AnyPtr {
    let inlined = unsafe { &*(&raw const INLINED) };
    let mut methods = inlined.iter().filter(|(iseq, _)| *iseq == frame).map(|&(_, method)| method);
    let Some(method) = methods.next() else { return null(); };
    if methods.all(|other| other == method) { method } else { null() }
}

/// Note that a callee was inlined into the ISEQ that is being compiled.
pub fn inlined(cme: *const rb_callable_method_entry_t, iseq: IseqPtr) {
    if by_flags().is_some() {
        unsafe { (*(&raw mut INLINED)).push((iseq, cme.cast())) };
    }
    vm_trace::inlined(cme, iseq);
}

/// Record that a version is being invalidated, until the result is dropped. No `reason`: because of
/// the recompile exit that is being acted upon, or as a part of the invalidation that is being
/// recorded.
pub fn version_span(version: IseqVersionRef, reason: Option<&dyn Fn() -> String>) -> Option<VersionSpan> {
    if !recording_invalidations() {
        return None;
    }
    let (iseq, number) = version_number(version);
    let may_recompile = get_or_create_iseq_payload(iseq).versions.len() < base::max_versions();
    VersionSpan::begin(iseq, number, reason.map(|reason| reason()), may_recompile)
}
