//! Trace points that are put into compiled code, and taken out again, while the program runs.
//!
//! Code is compiled without them; only a note is kept of each exit. All exits end alike, once the
//! frame's state is saved, and that end is longer than a jump:
//!
//! ```text
//!   untraced   exit: save the state ─► pop SP, EC, CFP; return
//!   traced     exit: save the state ─► jmp stub ─► stub: SP = ● ─► traced end: count, sample, record; pop SP, EC, CFP; return
//! ```
//!
//! An exit belongs to a state, and guards that leave with the same one share it. It has the reason
//! of the one that it was made for, and of those jumps to it that have another reason a note is
//! kept, too: while it is traced, such a jump goes by way of a stub that reports it,
//! `ec->vm_trace_exit = ●`, which the traced end looks at first.
//!
//! So the code is what it was to the byte but for where it leads, and what a frame does that is in
//! the middle of it does not change: nothing is invalidated or compiled. Taking trace points out
//! writes back what was there. Stubs have memory of their own, which is given back then.
//!
//! Everything here is changed under the VM lock with all ractors stopped, but for
//! `ec->vm_trace_exit`, which is its thread's. No thread ever stops in a stub, or between one and
//! the traced end: so code can be changed whenever all ractors stand still. For the same reason an
//! exit reads its site without the lock: a thread that runs stops only where it checks interrupts
//! or waits for the lock. Only the first exit of a place in a session takes it, which stops all
//! ractors.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::{null, NonNull};

use super::{gen_countdown, known_shared_site, load_state, new_site, shared_site, top_frame, unit_version, Reason};
use crate::asm::CodeBlock;
use crate::backend::ir::{asm_comment, Assembler, Insn, Opnd, EC, SP};
use crate::codegen::{gen_exit_end, CodegenGlobals};
use crate::cruby::*;
use crate::stats::Counter;
use crate::trace_base::{self as base, vm_trace::*};
use crate::utils::c_callable;
use crate::virtualmem::CodePtr;

/// What is known of a place in compiled code.
#[derive(Clone, Copy, Debug)]
struct Note {
    reason: Reason,
    place: Place,
    /// Of the code
    version: u32,
    /// Of a jump: so much of it comes before the part that changes
    opcode_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The end of an exit
    End,
    /// That of an exit which all ISEQs share
    SharedEnd,
    /// The distance in a jump to an exit that was made for another reason
    Jump,
}

/// One while it is traced.
#[repr(C)]
struct Exit {
    /// Made when control first leaves here. Read by machine code.
    site: SitePtr,
    note: Note,
    /// Its stub, NO_SLOT when its code is gone
    slot: u32,
    /// Whether there is to be no site: it is in a method that was not requested
    refused: bool,
    /// What was there
    untraced: [u8; JUMP_BYTES],
}

#[derive(Default)]
struct TracePoints {
    /// By address
    notes: BTreeMap<usize, Note>,
    /// What stubs lead to
    ends: Option<Targets>,
    /// From when the first trace point is put in until the last is taken out
    on: Option<Traced>,
    /// Where code changes `ec->cfp`
    switches: FrameSwitches,
}

struct Traced {
    stubs: Stubs,
    /// Only exits that increment this one
    counter: Option<Counter>,
    /// Where stubs lead
    end: usize,
    /// By address
    exits: BTreeMap<usize, NonNull<Exit>>,
    /// Where they are. Those whose code is gone stay, too: threads may wait that were there.
    memory: Vec<Vec<Exit>>,
    /// Jumps that are traced, or to be traced
    jumps: Vec<usize>,
    /// Which places are put in next, or taken out, and from which on: by address, or by index of `jumps`
    next: (Pass, usize),
    lost: bool,
}

/// What a jump has noted is forgotten at the end of its exit. So ends are the first to be put in, and the last to
/// be taken out.
#[derive(Clone, Copy, PartialEq)]
enum Pass { Ends, Jumps }

static mut TRACE_POINTS: Option<TracePoints> = None;

fn trace_points() -> &'static mut TracePoints {
    unsafe { (*std::ptr::addr_of_mut!(TRACE_POINTS)).get_or_insert_with(TracePoints::default) }
}

const NO_SLOT: u32 = u32::MAX;

// --- notes of what is compiled ----------------------------------------------------------------------------------

/// An exit ends here: its state is saved. It makes no difference to the code.
pub fn note_end(asm: &mut Assembler, reason: Reason, shared: bool) {
    let (place, version) = if shared { (Place::SharedEnd, 0) } else { (Place::End, unit_version()) };
    let note = Note { reason, place, version, opcode_bytes: 0 };
    let _ = &asm; // unit tests link no C
    #[cfg(not(test))]
    if possible() {
        asm.pos_marker(move |at, cb| trace_points().add(cb, at.raw_addr(cb), note));
    }
    let _ = note;
}

/// `ec->cfp` is changed by the next instruction. It makes no difference to the code.
pub fn note_switch(asm: &mut Assembler) {
    let _ = &asm;
    #[cfg(not(test))]
    if possible() {
        asm.pos_marker(|at, cb| trace_points().switches.note(at.raw_addr(cb), |at, code| write(cb, at, code)));
    }
}

/// Write over what was just written.
fn write(cb: &CodeBlock, at: usize, bytes: &[u8]) {
    let start = cb.get_ptr(0).raw_addr(cb);
    for (i, &byte) in bytes.iter().enumerate() {
        cb.write_mem(cb.get_ptr(at + i - start), byte).expect("what was just written can be written again");
    }
}

/// Code was written from `start` to where the block is now: what was there before is gone. `jumps`
/// are those to exits that were made for another reason.
pub fn written(cb: &CodeBlock, start: usize, jumps: Vec<(std::ops::Range<usize>, Counter)>) {
    let end = cb.get_write_pos();
    let _ = (start, end, &jumps);
    #[cfg(not(test))]
    {
        let points = trace_points();
        let address = |pos| cb.get_ptr(pos).raw_addr(cb);
        if !(points.notes.is_empty() && points.switches.is_empty()) && start != end {
            let page = |pos: usize| pos / cb.page_size();
            if page(start) == page(end - 1) {
                points.overwritten(address(start), address(end));
            } else {
                // New code but for its start, which may be that of a branch.
                points.overwritten(address(start), address(start.max(page(start) * cb.page_size() + cb.page_end())));
                points.overwritten(address(page(end - 1) * cb.page_size() + cb.page_start()), address(end));
            }
        }
        if possible() {
            for (jump, counter) in jumps {
                if let Some(at) = changed_part_of_written(address(jump.start), address(jump.end)) {
                    // One without a condition has less, and a branch that is written again may end just before it.
                    let opcode_bytes = (at - address(jump.start)).min(OPCODE_BYTES);
                    let reason = Reason::Counter(counter);
                    points.add(cb, at, Note { reason, place: Place::Jump, version: unit_version(), opcode_bytes });
                }
            }
        }
    }
}

/// Code GC frees some of all code pages.
pub fn pages_freed(cb: &CodeBlock, freed_pages: &[usize]) {
    let points = trace_points();
    let start = cb.get_ptr(0).raw_addr(cb);
    let freed = |at: usize| freed_pages.binary_search(&((at - start) / cb.page_size())).is_ok();
    points.notes.retain(|&at, _| !freed(at));
    for &page in freed_pages {
        points.switches.forget(start + page * cb.page_size(), start + (page + 1) * cb.page_size());
    }
    if let Some(traced) = points.on.as_mut() {
        let gone: Vec<usize> = traced.exits.keys().copied().filter(|&at| freed(at)).collect();
        gone.into_iter().for_each(|at| traced.forget(at));
    }
}

/// All that was compiled is about to run.
pub fn code_complete() {
    #[cfg(not(test))]
    if let Some(traced) = trace_points().on.as_mut() {
        traced.stubs.make_executable();
        report_lost(&mut traced.lost);
    }
}

impl Note {
    /// What it covers, with the opcode of a jump.
    fn bytes(&self, at: usize) -> std::ops::Range<usize> {
        match self.place {
            Place::Jump => at - self.opcode_bytes..at + DISTANCE_BYTES,
            _ => at..at + JUMP_BYTES,
        }
    }
}

impl TracePoints {
    /// If exits are traced, this one is from now on.
    fn add(&mut self, cb: &CodeBlock, at: usize, note: Note) {
        self.notes.insert(at, note);
        let traced = match self.on.as_mut() { Some(traced) if patching() => traced, _ => return };
        if let Some((exit, patch)) = traced.make(at, note) {
            traced.exits.insert(at, exit);
            if note.place == Place::Jump {
                traced.jumps.push(at);
            }
            write(cb, at, patch.code());
            patch.written();
        }
    }

    fn overwritten(&mut self, from: usize, to: usize) {
        self.switches.forget(from, to);
        while let Some((&at, _)) = self.notes.range(from.saturating_sub(JUMP_BYTES)..to + OPCODE_BYTES).find(|&(&at, note)| {
            let bytes = note.bytes(at);
            bytes.start < to && from < bytes.end
        }) {
            self.notes.remove(&at);
            if let Some(traced) = self.on.as_mut() {
                traced.forget(at);
            }
        }
    }
}

// --- putting trace points in, and taking them out ---------------------------------------------------------------

fn number(opnd: Opnd) -> u8 {
    opnd.unwrap_reg().reg_no
}

fn address(exit: &Exit) -> *const c_void {
    (exit as *const Exit).cast()
}

impl Note {
    /// The distance of a jump, or room for a jump.
    fn patched_bytes(&self) -> usize {
        if self.place == Place::Jump { DISTANCE_BYTES } else { JUMP_BYTES }
    }
}

impl Traced {
    fn wanted(&self, note: Note) -> bool {
        self.counter.map_or(true, |only| matches!(note.reason, Reason::Counter(counter) if counter == only))
    }

    /// Make a stub for a place if it is to be traced, and tell what has to be written there.
    fn make(&mut self, at: usize, note: Note) -> Option<(NonNull<Exit>, Patch)> {
        if note.place == Place::Jump && !self.wanted(note) {
            return None;
        }
        let mut untraced = [0; JUMP_BYTES];
        unsafe { (at as *const u8).copy_to(untraced.as_mut_ptr(), note.patched_bytes()) };
        let made = self.stubs.take_slot().and_then(|slot| {
            let exit = self.allocate(Exit { site: null(), note, slot, refused: false, untraced });
            Some((exit, self.gen_stub(at, unsafe { exit.as_ref() })?))
        });
        self.lost |= made.is_none();
        made
    }

    /// They have their address for good, which stubs know.
    fn allocate(&mut self, exit: Exit) -> NonNull<Exit> {
        const MANY: usize = 1024;
        if self.memory.last().map_or(true, |last| last.len() == MANY) {
            self.memory.push(Vec::with_capacity(MANY));
        }
        let last = self.memory.last_mut().unwrap();
        last.push(exit);
        NonNull::from(last.last_mut().unwrap())
    }

    fn gen_stub(&mut self, at: usize, exit: &Exit) -> Option<Patch> {
        if exit.note.place == Place::Jump {
            self.stubs.set_exit(exit.slot, address(exit));
            self.stubs.stand_for(exit.slot, at, exit.untraced[..DISTANCE_BYTES].try_into().unwrap())
        } else {
            // One that is not wanted may be the end of a jump which is. What SP was is on the stack.
            self.stubs.set_exit(exit.slot, if self.wanted(exit.note) { address(exit) } else { null() });
            self.stubs.set_target(exit.slot, self.end);
            jump(at, self.stubs.of_end(exit.slot))
        }
    }

    /// Have the stub of an exit that is refused say nothing, so that nobody is called for it. All
    /// ractors stand still.
    fn leave_out(&mut self, exit: &Exit) {
        if exit.slot != NO_SLOT {
            self.stubs.set_exit(exit.slot, null());
        }
    }

    /// Its code is gone.
    fn forget(&mut self, at: usize) {
        if let Some(mut exit) = self.exits.remove(&at) {
            let exit = unsafe { exit.as_mut() };
            self.stubs.free_slot(std::mem::replace(&mut exit.slot, NO_SLOT));
        }
    }

    /// It takes too long: go on from there another time, and make what there is executable. Whether there is more.
    fn goes_on(&mut self, from: usize) -> bool {
        self.next.1 = from;
        self.stubs.make_executable();
        true
    }

    /// Have a place traced, if it is not.
    fn put(&mut self, at: usize, note: Note, code: &mut WritableCode) {
        if self.exits.contains_key(&at) {
            return;
        }
        if let Some((exit, patch)) = self.make(at, note) {
            self.exits.insert(at, exit);
            code.patch(&patch);
        }
    }

    /// Write back what was there.
    fn restore(&mut self, at: usize, code: &mut WritableCode) {
        if let Some(exit) = self.exits.remove(&at) {
            let Exit { untraced, note, .. } = unsafe { exit.as_ref() };
            code.write(at, &untraced[..note.patched_bytes()]);
        }
    }

    /// Lead the ends of exits elsewhere, if they lead there not yet.
    fn change_end(&mut self, end: usize) {
        if std::mem::replace(&mut self.end, end) == end {
            return;
        }
        for exit in self.exits.values() {
            let exit = unsafe { exit.as_ref() };
            if exit.note.place != Place::Jump {
                self.stubs.set_target(exit.slot, end);
            }
        }
    }

}

fn gen_ends(code: *const u8, code_bytes: usize) -> Option<Targets> {
    let memory = NearMemory::reserve(code, code_bytes, 64 << 10)?;
    let mut code = base::code_block(&memory);
    std::mem::forget(memory); // it stays
    let sampled = gen_end(&mut code, true)?.raw_addr(&code);
    let all = gen_end(&mut code, false)?.raw_addr(&code);
    code.mark_all_executable();
    Some(Targets { sampled, all })
}

/// The end of a traced exit: which one it is, is in SP.
fn gen_end(code: &mut CodeBlock, sampled: bool) -> Option<CodePtr> {
    let mut asm = base::assembler();
    let (own, first, done) = (asm.new_label("trace_own_reason"), asm.new_label("trace_first"), asm.new_label("trace_done"));

    asm_comment!(asm, "trace: which exit is it?");
    let pending = Opnd::mem(64, EC, pending_offset());
    let other = asm.load(pending);
    asm.test(other, other);
    asm.jz(own);
    asm.mov(SP, other);
    asm.mov(pending, 0.into());
    asm.write_label(own);
    asm.test(SP, SP);
    asm.jz(done);
    let on = asm.load(Opnd::const_ptr(exits_on_address()));
    let on = asm.load(Opnd::mem(64, on, 0));
    asm.test(on, on);
    asm.jz(done);
    let site = asm.load(Opnd::mem(64, SP, 0));
    asm.test(site, site);
    asm.jz(first);
    let state = load_state(&mut asm);
    asm.test(state, state);
    asm.jz(first);

    asm_comment!(asm, "trace: count the exit");
    let hits_offset = asm.load(Opnd::mem(64, site, 0));
    let hits = asm.add(hits_offset, state);
    let count = asm.add(Opnd::mem(64, hits, 0), Opnd::UImm(1));
    asm.store(Opnd::mem(64, hits, 0), count);
    if sampled {
        gen_countdown(&mut asm, state, done);
    }
    let site = asm.load(Opnd::mem(64, SP, 0));
    asm.ccall(rb_vm_trace_exit as *const u8, vec![state, site, EC]);
    asm.jmp(done);

    asm.write_label(first);
    asm.ccall(first_exit as *const u8, vec![SP, EC]);

    asm.write_label(done);
    gen_exit_end(&mut asm);
    asm.compile(code, None).map(|(code_ptr, _)| code_ptr)
}

/// The JIT may have been writing where it takes over.
fn all_code(cb: &mut CodeBlock) -> WritableCode {
    cb.mark_all_executable();
    WritableCode::new(cb.get_ptr(0).raw_ptr(cb), cb.get_mem_size())
}

/// What vm_trace/ patches
pub struct PatchedCode;

impl Patches for PatchedCode {
    fn begin(rate: u64, counter: Option<&str>) -> Result<(), Why> {
        let cb = CodegenGlobals::get_inline_cb();
        let (code, code_bytes) = (cb.get_ptr(0).raw_ptr(cb), cb.get_mem_size());
        let points = trace_points();
        let stubs = Stubs::reserve(code, code_bytes, number(SP), number(EC)).ok_or_else(no_memory_near)?;
        if points.ends.is_none() {
            points.ends = Some(gen_ends(code, code_bytes).ok_or_else(no_memory_near)?);
        }
        let end = points.ends.unwrap().for_rate(rate);
        let counter = counter.and_then(Counter::get);
        points.on = Some(Traced {
            stubs, counter, end, exits: BTreeMap::new(), memory: vec![], jumps: vec![], next: (Pass::Ends, 0), lost: false,
        });
        Ok(())
    }

    fn is_for(counter: Option<&str>) -> bool {
        trace_points().on.as_ref().map_or(false, |traced| traced.counter == counter.and_then(Counter::get))
    }

    fn put_in(until: &mut Until) -> Result<bool, Why> {
        let cb = CodegenGlobals::get_inline_cb();
        let mut code = all_code(cb);
        let points = trace_points();
        let traced = points.on.as_mut().expect("it has begun");
        if traced.next.0 == Pass::Ends {
            for (&at, &note) in points.notes.range(traced.next.1..) {
                if until.over() {
                    return Ok(traced.goes_on(at));
                }
                if note.place == Place::Jump {
                    traced.jumps.push(at);
                } else {
                    traced.put(at, note, &mut code);
                }
            }
            traced.next = (Pass::Jumps, 0);
        }
        while let Some(&at) = traced.jumps.get(traced.next.1) {
            if until.over() {
                return Ok(traced.goes_on(traced.next.1));
            }
            if let Some(&note) = points.notes.get(&at) {
                traced.put(at, note, &mut code);
            }
            traced.next.1 += 1;
        }
        traced.stubs.make_executable();
        if std::mem::take(&mut traced.lost) { Err(no_memory()) } else { Ok(false) }
    }

    fn switch_on(rate: u64) {
        let points = trace_points();
        let end = points.ends.expect("it has begun").for_rate(rate);
        points.on.as_mut().expect("it has begun").change_end(end);
    }

    fn every_exit() -> Result<(), Why> {
        Self::switch_on(1);
        Ok(())
    }

    fn leave() {
        trace_points().on.as_mut().expect("it has begun").next = (Pass::Jumps, 0);
    }

    fn take_out(until: &mut Until) -> bool {
        let cb = CodegenGlobals::get_inline_cb();
        let mut code = all_code(cb);
        let points = trace_points();
        let traced = points.on.as_mut().expect("it has begun");
        while let (Pass::Jumps, Some(&at)) = (traced.next.0, traced.jumps.get(traced.next.1)) {
            if until.over() {
                return true;
            }
            traced.restore(at, &mut code);
            traced.next.1 += 1;
        }
        if traced.next.0 == Pass::Jumps {
            traced.next = (Pass::Ends, 0);
        }
        while let Some((&at, _)) = traced.exits.range(traced.next.1..).next() {
            if until.over() {
                return true;
            }
            traced.restore(at, &mut code);
        }
        if until.used() {
            return true;
        }
        points.on = None; // stubs are given back
        false
    }
}

/// What vm_trace/ patches for calls
pub struct PatchedFrames;

const _: () = assert!(RUBY_OFFSET_EC_CFP as u8 == EC_CFP_OFFSET && RUBY_SIZEOF_CONTROL_FRAME < 128, "stubs have them as bytes");

impl PatchesFrames for PatchedFrames {
    fn put_in(until: &mut Until) -> Result<bool, Why> {
        let code = all_code(CodegenGlobals::get_inline_cb());
        trace_points().switches.put_in(code, RUBY_SIZEOF_CONTROL_FRAME as u8, until)
    }

    fn take_out(until: &mut Until) -> bool {
        let code = all_code(CodegenGlobals::get_inline_cb());
        trace_points().switches.take_out(code, until)
    }
}

// --- exits --------------------------------------------------------------------------------------------------------

/// The site of an exit whose frame is the top one, with its state saved. NULL: it is not requested,
/// or tracing was switched off meanwhile.
fn site_of(exit: *mut Exit, ec: EcPtr) -> SitePtr {
    let &Exit { site, refused, note, .. } = unsafe { &*exit };
    if !site.is_null() || refused {
        return site;
    }
    let shared = match note {
        Note { place: Place::SharedEnd, reason: Reason::Counter(counter), .. } => Some(counter),
        _ => None,
    };
    if let Some(site) = shared.and_then(|counter| known_shared_site(ec, counter)) {
        return site;
    }
    let session_then = session();
    with_vm_lock(src_loc!(), || {
        if session() != session_then || !exits_on() {
            return null(); // the exit is gone, too
        }
        if let Some(counter) = shared {
            return shared_site(ec, counter);
        }
        let exit = unsafe { &mut *exit };
        let Exit { site, refused, note, .. } = exit;
        let site = site_in_session(session_then, site, refused, || {
            let (iseq, pc) = top_frame(ec);
            new_site(note.reason, iseq, note.version, pc).unwrap_or(null())
        });
        if let (true, Some(traced)) = (exit.refused, trace_points().on.as_mut()) {
            traced.leave_out(exit);
        }
        site
    })
}

c_callable! {
    /// Called by the traced end at the first exit of its kind, at one that ISEQs share, and by a
    /// ractor that has nothing to record with yet.
    fn first_exit(exit: *mut c_void, ec: EcPtr) {
        let site = site_of(exit.cast(), ec);
        if !site.is_null() {
            unsafe { rb_vm_trace_first_hit(site, ec as AnyPtr) };
        }
    }
}
