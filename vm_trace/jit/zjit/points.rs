//! Trace points that are put into compiled code, and taken out again, while the program runs.
//!
//! Code is compiled without them; only a note is kept of each jump that leads to a side exit: where
//! it is, and why control would leave there. While exits are traced such a jump leads to a stub,
//! which says which exit it is, and the code in which exits end leads to the traced end. In Ruby 4.0
//! that is part of each exit, so a note is kept of it; in 4.1 all exits lead to the same.
//!
//! ```text
//!   untraced   jo exit ───────────────────► exit: save the state ─► end
//!   traced     jo stub ─► stub: ec->vm_trace_exit = ● ─► exit: as before ──► traced end: count, sample, record; end
//! ```
//!
//! So the code is what it was to the byte but for where jumps and ends lead, exits are shared as
//! they were, and what a frame does that is in the middle of it does not change: no version is
//! invalidated or made, no profile is touched. Taking trace points out writes back what was there.
//! Stubs have memory of their own, which is given back then.
//!
//! Everything here is changed under the VM lock with all ractors stopped, but for
//! `ec->vm_trace_exit`, which is its thread's. A thread that runs stops for that only where it
//! checks interrupts or waits for the VM lock. So at an exit it reads what it needs, the number of
//! the session and the site, without the lock, and the site stays valid until it does one of the
//! two. Only the first exit of a place in a session takes the lock, which stops all ractors.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{null, null_mut, NonNull};
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::code_text::{code_line, keep_code_text, ExitLines};
use super::{gen_countdown, gen_load_state, new_exit_site, reasons::write_reason, UncompiledEntries, NO_LINE};
use crate::asm::{CodeBlock, Label};
use crate::backend::lir::{asm_ccall, asm_comment, Assembler, Insn, Opnd, C_ARG_OPNDS, EC, SP};
use crate::codegen::c_callable;
use crate::cruby::*;
use crate::hir::SideExitReason;
use crate::payload::{IseqVersion, IseqVersionRef};
use crate::state::ZJITState;
use crate::stats::{side_exit_counter, CompileError, Counter};
use crate::stats::vm_trace::*;
use crate::trace_base as base;
use crate::virtualmem::{sys, CodePtr, VirtualMem};

pub use crate::stats::vm_trace::possible;

/// A jump to a side exit in compiled code.
#[repr(C)]
#[derive(Debug)]
pub struct Exit {
    /// Made when control first comes here while it is traced. Read by machine code.
    site: SitePtr,
    /// Where the jump is changed. Of a patch point: where it would begin.
    at: CodePtr,
    /// Where it leads when it is not traced
    exit: CodePtr,
    /// Index of its text in [TracePoints::reasons]
    reason: u32,
    /// Index of its code in [TracePoints::versions]
    version: u32,
    /// Whether it may cause a recompilation
    recompile: bool,
    /// Whether it becomes a jump only when an assumption is violated
    patch_point: bool,
    /// Whether it is a jump now
    live: bool,
    /// Whether it leads to a stub
    traced: bool,
    /// Whether there is to be no site for it in this session: it is in a method that was not
    /// requested
    refused: bool,
}

const _: () = assert!(std::mem::size_of::<Exit>() == 32, "one for each jump to a side exit");

impl Default for Exit {
    /// One that no jump leads to.
    fn default() -> Self {
        unsafe { std::mem::zeroed() }
    }
}

/// What is kept of a version: its exits, which never move, and where they have saved the frame's state.
#[derive(Debug, Default)]
pub struct TracedVersion { exits: Box<[Exit]>, ends: Box<[CodePtr]>, text: Option<ExitLines> }

/// A label of one jump to an exit that others may share. Both are at the same address.
struct ExitLabel { alias: Label, shared: Label, reason: SideExitReason, recompile: bool, line: u32 }

struct Reason { text: String, counter: Counter, users: u32 }

#[derive(Default)]
struct TracePoints {
    /// All code that has exits. None: the next one may have this index.
    versions: Vec<Option<IseqVersionRef>>,
    free_versions: Vec<u32>,
    /// Texts of reasons. Those that nobody uses are taken for others.
    reasons: Vec<Reason>,
    free_reasons: Vec<u32>,
    reason_index: HashMap<String, u32>,
    /// Those of the code being compiled that were met last, and room for a text
    recent_reasons: Vec<(SideExitReason, u32)>,
    text: String,
    /// The code being compiled
    labels: Vec<ExitLabel>,
    patch_points: Vec<(Label, CodePtr)>,
    exits: Vec<Exit>,
    /// Their lines in the text of the code, up to the last that has one
    lines: Vec<u32>,
    ends: Vec<CodePtr>,
    entries: UncompiledEntries,
    /// What exits end in while they are traced
    traced_ends: Option<Targets>,
    /// From when the first trace point is put in until the last is taken out
    on: Option<Traced>,
    /// Where code changes `ec->cfp`, and where the code being compiled does
    switches: FrameSwitches,
    new_switches: Vec<CodePtr>,
}

struct Traced {
    stubs: Stubs,
    /// Index of the version whose trace points are put in next, or taken out
    next: usize,
    /// Only exits that increment this one
    counter: Option<Counter>,
    /// Where exits lead once their state is saved, and what is there otherwise
    end: usize,
    untraced_end: [u8; JUMP_BYTES],
    /// Whether there was no memory for the stub of a jump
    lost: bool,
}

static mut TRACE_POINTS: Option<TracePoints> = None;

/// Exits of code whose ISEQ is dead. Ractors may collect garbage side by side, so this is a list
/// without a lock.
struct Dead { exits: Box<[Exit]>, next: *mut Dead }
static DEAD: AtomicPtr<Dead> = AtomicPtr::new(null_mut());

fn trace_points() -> &'static mut TracePoints {
    unsafe { TRACE_POINTS.get_or_insert_with(TracePoints::default) }
}

/// What code that is compiled now is put into.
fn patched(on: &mut Option<Traced>) -> Option<&mut Traced> {
    on.as_mut().filter(|_| patching())
}

const RECENT_REASONS: usize = 16;

/// Entries that only exit
pub fn entries() -> &'static mut UncompiledEntries {
    &mut trace_points().entries
}

// --- notes of what is compiled ----------------------------------------------------------------------------------

/// A new assembly begins: its jumps to exits come.
pub fn begin_exits() {
    let points = trace_points();
    points.labels.clear();
    points.patch_points.clear();
    points.ends.clear();
    points.lines.clear();
    let exits = std::mem::take(&mut points.exits); // of code that did not come to be
    points.forget_reasons(&exits);
}

/// Give one jump to an exit a label of its own. It makes no difference to the code.
pub fn exit_label(asm: &mut Assembler, shared: Label, reason: SideExitReason, recompile: bool) -> Label {
    let alias = asm.alias_label(shared);
    let line = code_line();
    trace_points().labels.push(ExitLabel { alias, shared, reason, recompile, line });
    alias
}

/// A patch point is at `at`, and leads to the exit of a label when it is violated.
pub fn note_patch_point(label: Label, at: CodePtr) {
    trace_points().patch_points.push((label, at));
}

/// The state of an exit is saved here, and its end comes. It makes no difference to the code.
pub fn note_end(asm: &mut Assembler) {
    if possible() {
        asm.pos_marker(|at, _| trace_points().ends.push(at));
    }
}

/// The code is written, but for its jumps, and the addresses of labels are known: give the labels
/// of exits theirs.
pub fn resolve_exit_labels(cb: &mut CodeBlock) {
    for label in trace_points().labels.iter() {
        cb.alias_label(label.alias, label.shared);
    }
}

/// Called before the jumps are written: note where they are.
pub fn note_exits(cb: &CodeBlock) {
    let points = trace_points();
    if points.labels.is_empty() {
        return;
    }
    points.recent_reasons.clear();
    let mut labels = std::mem::take(&mut points.labels);
    let mut patch_points = std::mem::take(&mut points.patch_points);
    points.exits.reserve_exact(labels.len());
    let jumps = cb.label_refs().map(|(label, jump)| (label, cb.get_ptr(changed_part(jump.start, jump.end)), false));
    for (label, at, patch_point) in jumps.chain(patch_points.iter().map(|&(label, at)| (label, at, true))) {
        // They were made one after the other
        let Ok(idx) = labels.binary_search_by_key(&label.0, |label| label.alias.0) else { continue };
        let ExitLabel { shared, reason, recompile, line, .. } = labels[idx];
        if line > 0 {
            points.lines.resize(points.exits.len() + 1, 0);
            points.lines[points.exits.len()] = line;
        }
        let reason = points.reason_at(reason);
        points.exits.push(Exit {
            site: null(), at, exit: cb.resolve_label(shared), reason, version: 0, recompile, patch_point,
            live: !patch_point, traced: false, refused: false,
        });
    }
    // For the next code
    labels.clear();
    patch_points.clear();
    points.labels = labels;
    points.patch_points = patch_points;
}

/// Of those whose texts take the longest to make. False may be wrong.
fn same(one: &SideExitReason, other: &SideExitReason) -> bool {
    match (one, other) {
        (SideExitReason::GuardType(one), SideExitReason::GuardType(other)) => one.bit_equal(*other),
        (SideExitReason::PatchPoint(one), SideExitReason::PatchPoint(other)) => one == other,
        _ => false,
    }
}

impl TracePoints {
    /// Index of a reason, for one more exit that has it.
    fn reason_at(&mut self, reason: SideExitReason) -> u32 {
        // Exits of one reason are mostly near each other. What was made for other code may name what is dead.
        let mut recent = self.recent_reasons.iter().rev().take(RECENT_REASONS);
        if let Some(&(_, index)) = recent.find(|(recent, _)| same(recent, &reason)) {
            self.reasons[index as usize].users += 1;
            return index;
        }
        self.text.clear();
        write_reason(&mut self.text, &reason); // most are known: this is done for each exit that is compiled
        let index = match self.reason_index.get(&self.text) {
            Some(&index) => index,
            None => self.new_reason(reason),
        };
        self.reasons[index as usize].users += 1;
        self.recent_reasons.push((reason, index));
        index
    }

    fn new_reason(&mut self, reason: SideExitReason) -> u32 {
        let new = Reason { text: self.text.clone(), counter: side_exit_counter(reason), users: 0 };
        let index = self.free_reasons.pop().unwrap_or(self.reasons.len() as u32);
        if index as usize == self.reasons.len() {
            self.reasons.push(new);
        } else {
            self.reasons[index as usize] = new;
        }
        self.reason_index.insert(self.text.clone(), index);
        index
    }

    /// Let go of what only dead code used.
    fn reap(&mut self) {
        let mut dead = DEAD.swap(null_mut(), Ordering::Acquire);
        while !dead.is_null() {
            let Dead { exits, next } = *unsafe { Box::from_raw(dead) };
            self.versions[exits[0].version as usize] = None;
            self.free_versions.push(exits[0].version);
            self.forget_reasons(&exits);
            dead = next;
        }
    }

    fn forget_reasons(&mut self, exits: &[Exit]) {
        for exit in exits {
            let reason = &mut self.reasons[exit.reason as usize];
            reason.users -= 1;
            if reason.users == 0 {
                self.reason_index.remove(&std::mem::take(&mut reason.text));
                self.free_reasons.push(exit.reason);
            }
        }
    }
}

/// The code of a version is whole. If exits are traced, its are from now on.
pub fn keep_exits(cb: &mut CodeBlock, mut version: IseqVersionRef) {
    let points = trace_points();
    let text = keep_code_text(std::mem::take(&mut points.lines));
    if points.exits.is_empty() {
        return;
    }
    points.reap();
    let number = points.free_versions.pop().unwrap_or(points.versions.len() as u32);
    if number as usize == points.versions.len() {
        points.versions.push(None);
    }
    points.versions[number as usize] = Some(version);
    let mut exits = std::mem::take(&mut points.exits).into_boxed_slice(); // they have their address from here on
    for exit in exits.iter_mut() {
        exit.version = number;
        if let Some(traced) = patched(&mut points.on) {
            traced.put_in_new(cb, exit, &points.reasons);
        }
    }
    let ends = std::mem::take(&mut points.ends).into_boxed_slice();
    if let Some(traced) = patched(&mut points.on) {
        traced.lead_new_ends(cb, &ends);
        traced.new_code_is_whole();
    }
    unsafe { version.as_mut() }.traced = TracedVersion { exits, ends, text };
}

/// A patch point has become a jump to its exit, for its assumption is violated.
pub fn patch_point_violated(cb: &mut CodeBlock, mut version: IseqVersionRef, at: CodePtr) {
    let points = trace_points();
    let exits = &mut unsafe { version.as_mut() }.traced.exits;
    let Some(exit) = exits.iter_mut().find(|exit| exit.patch_point && exit.at == at) else { return };
    exit.live = true;
    exit.traced = false; // violated once more: it has just been written as it is untraced
    if let Some(traced) = patched(&mut points.on) {
        traced.put_in_new(cb, exit, &points.reasons);
        traced.new_code_is_whole();
    }
}

/// The ISEQ of a version is dead: nothing will run its code again.
pub fn forget_exits(mut version: IseqVersionRef) {
    let TracedVersion { exits, .. } = std::mem::take(&mut unsafe { version.as_mut() }.traced);
    if exits.is_empty() {
        return;
    }
    let dead = Box::into_raw(Box::new(Dead { exits, next: null_mut() }));
    let _ = DEAD.fetch_update(Ordering::Release, Ordering::Relaxed, |head| {
        unsafe { (*dead).next = head };
        Some(dead)
    });
}

/// `ec->cfp` is changed by the next instruction. It makes no difference to the code.
pub fn note_switch(asm: &mut Assembler) {
    if possible() {
        asm.pos_marker(|at, _| trace_points().new_switches.push(at));
    }
}

/// The code is whole: if calls are recorded, its are from now on.
pub fn keep_switches(cb: &mut CodeBlock) {
    let points = trace_points();
    for at in std::mem::take(&mut points.new_switches) {
        let start = cb.get_ptr(0).raw_addr(cb);
        points.switches.note(at.raw_addr(cb), |at, code| {
            let at = cb.get_ptr(at - start);
            cb.with_write_ptr(at, |cb| cb.write_bytes(code));
        });
    }
}

// --- putting trace points in, and taking them out ---------------------------------------------------------------

impl Exit {
    /// Do what a stub does, for an exit whose site is known. It stays where it is.
    pub fn take(&mut self, site: SitePtr) {
        self.site = site;
        let ec = unsafe { rb_vm_trace_current() };
        unsafe { ec.byte_add(pending_offset() as usize).cast_mut().cast::<*const Exit>().write(self) };
    }

    /// Write back what was there.
    fn take_out(&mut self, cb: &CodeBlock, code: &mut WritableCode) {
        if by_flags().is_none() {
            self.site = null();
            self.refused = false;
        }
        if std::mem::take(&mut self.traced) && jump_p(self.changed_part(cb)) {
            code.patch(&base::lead_back(self.changed_part(cb), self.exit.raw_addr(cb)).expect("it was there"));
        }
    }

    /// Where the jump is changed.
    fn changed_part(&self, cb: &CodeBlock) -> usize {
        let at = self.at.raw_addr(cb);
        if self.patch_point { changed_part(at, at + JUMP_BYTES) } else { at }
    }
}

/// Write into code that is being written.
fn write_new(cb: &mut CodeBlock, patch: &Patch) {
    let at = cb.get_ptr(patch.at - cb.get_ptr(0).raw_addr(cb));
    cb.with_write_ptr(at, |cb| cb.write_bytes(patch.code()));
    patch.written();
}

impl Traced {
    /// Do something for each version from the next one on. Whether there are more.
    fn each_version<F>(&mut self, versions: &[Option<IseqVersionRef>], until: &mut Until, mut act: F) -> bool
        where F: FnMut(&mut Self, &mut IseqVersion)
    {
        while let Some(&version) = versions.get(self.next) {
            if until.over() {
                return true;
            }
            self.next += 1;
            if let Some(mut version) = version {
                act(self, unsafe { version.as_mut() });
            }
        }
        false
    }

    /// Make a stub for a jump if it is to be traced, and tell what leads there.
    fn put(&mut self, cb: &CodeBlock, exit: &mut Exit, reasons: &[Reason]) -> Option<Patch> {
        let at = exit.changed_part(cb);
        if !exit.live || !jump_p(at) || self.counter.is_some_and(|counter| counter != reasons[exit.reason as usize].counter) {
            return None;
        }
        let patch = self.gen_stub(exit, at, exit.exit.raw_addr(cb));
        exit.traced = patch.is_some();
        self.lost |= !exit.traced;
        patch
    }

    /// Say which exit it is, and go there.
    fn gen_stub(&mut self, exit: *const Exit, at: usize, target: usize) -> Option<Patch> {
        let slot = self.stubs.take_slot()?;
        self.stubs.set_exit(slot, exit.cast());
        base::lead_to_stub(&mut self.stubs, slot, at, target)
    }

    /// The same for code that is being written.
    fn put_in_new(&mut self, cb: &mut CodeBlock, exit: &mut Exit, reasons: &[Reason]) {
        if let Some(patch) = self.put(cb, exit, reasons) {
            write_new(cb, &patch);
        }
    }

    /// Have exits end in the traced end.
    fn lead_ends(&self, cb: &CodeBlock, ends: &[CodePtr], code: &mut WritableCode) {
        for end in ends {
            code.patch(&jump(end.raw_addr(cb), self.end).expect("the traced end is near"));
        }
    }

    /// The same for code that is being written.
    fn lead_new_ends(&self, cb: &mut CodeBlock, ends: &[CodePtr]) {
        for &end in ends {
            write_new(cb, &jump(end.raw_addr(cb), self.end).expect("the traced end is near"));
        }
    }

    fn new_code_is_whole(&mut self) {
        self.stubs.make_executable();
        report_lost(&mut self.lost);
    }
}

fn gen_ends(cb: &CodeBlock) -> Option<Targets> {
    let memory = NearMemory::reserve(cb.get_ptr(0).raw_ptr(cb), cb.virtual_region_size(), 64 << 10)?;
    let page_size = unsafe { rb_jit_get_page_size() };
    let block = VirtualMem::new(sys::SystemAllocator {}, page_size, NonNull::new(memory.start).unwrap(), memory.bytes, None);
    std::mem::forget(memory); // it stays
    let mut code = CodeBlock::new(Rc::new(RefCell::new(block)), false);
    let sampled = gen_traced_end(&mut code, true).ok()?.raw_addr(&code);
    let all = gen_traced_end(&mut code, false).ok()?.raw_addr(&code);
    code.mark_all_executable();
    let last = cb.get_ptr(cb.virtual_region_size()).raw_addr(cb); // no code is farther away
    jump(last, sampled).and(jump(last, all)).map(|_| Targets { sampled, all })
}

/// Generate the end of exits while they are traced: count and record the exit that a stub has noted
/// in the execution context, if any, and then do what the end does otherwise. The stub of a call comes
/// here without a frame of its own, so where the stack is, is not known.
fn gen_traced_end(cb: &mut CodeBlock, sampled: bool) -> Result<CodePtr, CompileError> {
    let [pending, site, state, value, address, ..] = C_ARG_OPNDS;
    let mut asm = base::begin_end();
    asm_comment!(asm, "trace: which exit is it?");
    let (first, done, untraced) = (asm.new_label("trace_first"), asm.new_label("trace_done"), asm.new_label("trace_untraced"));
    let field = Opnd::mem(64, EC, pending_offset());
    asm.load_into(pending, field);
    asm.test(pending, pending);
    asm.push_insn(Insn::Jz(untraced.clone()));
    asm.store(field, 0.into());
    asm.load_into(value, Opnd::const_ptr(exits_on_address()));
    asm.load_into(value, Opnd::mem(64, value, 0));
    asm.test(value, value);
    asm.push_insn(Insn::Jz(untraced.clone()));
    base::align_stack(&mut asm);
    asm.load_into(site, Opnd::mem(64, pending, 0));
    asm.test(site, site);
    asm.push_insn(Insn::Jz(first.clone()));
    gen_load_state(&mut asm, state, EC, address);
    asm.test(state, state);
    asm.push_insn(Insn::Jz(first.clone()));

    asm_comment!(asm, "trace: count the exit");
    asm.load_into(address, Opnd::mem(64, site, 0)); // hits_offset
    asm.add_into(address, state);
    asm.load_into(value, Opnd::mem(64, address, 0));
    asm.add_into(value, 1.into());
    asm.store(Opnd::mem(64, address, 0), value);
    if sampled {
        gen_countdown(&mut asm, state, value, address, done.clone());
    }
    asm.load_into(pending, state);
    asm_ccall!(asm, rb_vm_trace_exit, pending, site, EC);
    asm.jmp(done.clone());

    asm.write_label(first);
    asm_ccall!(asm, first_exit, pending, EC);

    asm.write_label(done);
    base::restore_stack(&mut asm);
    asm.write_label(untraced);
    base::finish_end(&mut asm);
    asm.compile(cb).map(|(code_ptr, gc_offsets)| {
        assert_eq!(gc_offsets.len(), 0);
        code_ptr
    })
}

/// The JIT may have been writing where it takes over.
fn all_code(cb: &mut CodeBlock) -> WritableCode {
    cb.mark_all_executable();
    WritableCode::new(cb.get_ptr(0).raw_ptr(cb), cb.virtual_region_size())
}

/// What vm_trace/ patches
pub struct PatchedCode;

impl Patches for PatchedCode {
    fn begin(rate: u64, counter: Option<&str>) -> Result<(), Why> {
        let cb = ZJITState::get_code_block();
        if trace_points().traced_ends.is_none() { // compiles, which notes exits, too
            let ends = gen_ends(cb).ok_or_else(no_memory_near)?;
            trace_points().traced_ends = Some(ends);
        }
        let (code, code_bytes) = (cb.get_ptr(0).raw_ptr(cb), cb.virtual_region_size());
        let (sp, ec) = (SP.unwrap_reg().reg_no, EC.unwrap_reg().reg_no);
        let stubs = Stubs::reserve(code, code_bytes, sp, ec).ok_or_else(no_memory_near)?;
        let points = trace_points();
        let end = points.traced_ends.unwrap().for_rate(rate);
        let untraced_end = read_code(base::end().raw_addr(cb));
        let counter = counter.and_then(Counter::get);
        let traced = Traced { stubs, next: 0, counter, end, untraced_end, lost: false };
        let mut code = all_code(cb);
        traced.lead_ends(cb, &[base::end()], &mut code);
        points.on = Some(traced);
        Ok(())
    }

    fn is_for(counter: Option<&str>) -> bool {
        trace_points().on.as_ref().is_some_and(|traced| traced.counter == counter.and_then(Counter::get))
    }

    /// The ends of a version's exits together with the jumps there: what a stub has noted is forgotten there.
    fn put_in(until: &mut Until) -> Result<bool, Why> {
        let cb = ZJITState::get_code_block();
        let points = trace_points();
        points.reap();
        let traced = points.on.as_mut().expect("it has begun");
        let mut code = all_code(cb);
        let more = traced.each_version(&points.versions, until, |traced, version| {
            traced.lead_ends(cb, &version.traced.ends, &mut code);
            for exit in version.traced.exits.iter_mut().filter(|exit| !exit.traced) {
                if let Some(patch) = traced.put(cb, exit, &points.reasons) {
                    code.patch(&patch);
                }
            }
        });
        traced.stubs.make_executable();
        if std::mem::take(&mut traced.lost) { Err(no_memory()) } else { Ok(more) }
    }

    fn switch_on(rate: u64) {
        let points = trace_points();
        let end = points.traced_ends.expect("it has begun").for_rate(rate);
        points.lead_all_ends(end);
        points.entries.lead(true, points.on.as_ref().expect("it has begun").counter);
    }

    fn every_exit() -> Result<(), Why> {
        let points = trace_points();
        let end = points.traced_ends.expect("it has begun").for_rate(1);
        points.lead_all_ends(end);
        Ok(())
    }

    fn leave() {
        let points = trace_points();
        points.entries.lead(false, None);
        points.on.as_mut().expect("it has begun").next = 0;
    }

    /// Nobody runs in a stub: no thread stops there.
    fn take_out(until: &mut Until) -> bool {
        let cb = ZJITState::get_code_block();
        let points = trace_points();
        points.reap();
        let traced = points.on.as_mut().expect("it has begun");
        let mut code = all_code(cb);
        let more = traced.each_version(&points.versions, until, |traced, version| {
            for exit in version.traced.exits.iter_mut() {
                exit.take_out(cb, &mut code);
            }
            for end in version.traced.ends.iter() {
                code.write(end.raw_addr(cb), &traced.untraced_end);
            }
        });
        let more = more || until.used();
        if !more { // stubs are given back
            code.write(base::end().raw_addr(cb), &traced.untraced_end);
            points.on = None;
        }
        more
    }
}

/// What vm_trace/ patches for calls
pub struct PatchedFrames;

const _: () = assert!(RUBY_OFFSET_EC_CFP as u8 == EC_CFP_OFFSET && RUBY_SIZEOF_CONTROL_FRAME < 128, "stubs have them as bytes");

impl PatchesFrames for PatchedFrames {
    fn put_in(until: &mut Until) -> Result<bool, Why> {
        let cb = ZJITState::get_code_block();
        keep_switches(cb);
        trace_points().switches.put_in(all_code(cb), RUBY_SIZEOF_CONTROL_FRAME as u8, until)
    }

    fn take_out(until: &mut Until) -> bool {
        trace_points().switches.take_out(all_code(ZJITState::get_code_block()), until)
    }
}

impl TracePoints {
    /// Have all exits, and the code in which those of stubs end, lead to that end, if they do not yet.
    fn lead_all_ends(&mut self, end: usize) {
        let cb = ZJITState::get_code_block();
        let traced = self.on.as_mut().expect("it has begun");
        if std::mem::replace(&mut traced.end, end) == end {
            return;
        }
        let mut code = all_code(cb);
        for version in self.versions.iter().flatten() {
            traced.lead_ends(cb, &unsafe { version.as_ref() }.traced.ends, &mut code);
        }
        traced.lead_ends(cb, &[base::end()], &mut code);
    }
}

// --- exits --------------------------------------------------------------------------------------------------------

/// Whether exits that increment this counter are traced by trace points of this file.
pub fn traces(counter: Counter) -> bool {
    exits_on() && trace_points().on.as_ref().is_some_and(|traced| traced.counter.is_none_or(|only| only == counter))
}

/// The site of an exit whose frame is the top one, with its state saved. NULL: it is not requested,
/// or tracing was switched off meanwhile.
pub fn site_of(exit: *mut Exit, ec: EcPtr, session_then: u64) -> SitePtr {
    let Exit { site, refused, .. } = unsafe { &*exit };
    if (!site.is_null() || *refused) && session() == session_then {
        return *site;
    }
    with_vm_lock(src_loc!(), || {
        let Exit { site, refused, version, reason, recompile, .. } = unsafe { &mut *exit };
        site_in_session(session_then, site, refused, || {
            let points = trace_points();
            let version = points.versions[*version as usize].expect("code that runs is not dead");
            let text = &points.reasons[*reason as usize].text;
            let TracedVersion { exits, text: lines, .. } = &unsafe { version.as_ref() }.traced;
            let index = unsafe { exit.cast_const().offset_from(exits.as_ptr()) } as usize;
            let code = lines.as_ref().map_or(NO_LINE, |lines| lines.of_exit(index));
            let cfp = unsafe { get_ec_cfp(ec) };
            let (frame, pc) = unsafe { (get_cfp_iseq(cfp), get_cfp_pc(cfp)) };
            new_exit_site(version, text, *recompile, frame, pc, code)
        })
    })
}

c_callable! {
    /// Called by the traced end at the first exit of its kind, at those that have no site, and by a
    /// ractor that has nothing to record with yet.
    fn first_exit(exit: *mut c_void, ec: EcPtr) {
        let site = site_of(exit.cast(), ec, session());
        if !site.is_null() {
            unsafe { rb_vm_trace_first_hit(site, ec as AnyPtr) };
        }
    }
}
