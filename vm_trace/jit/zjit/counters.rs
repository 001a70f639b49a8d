//! The stream `counters`: what ZJIT's own counters count, by method and line.
//!
//! ZJIT emits all increments of its counters (`--zjit-stats`) by one function of its assembler. While
//! the stream is on, that function emits an increment of a site instead: of the ractor's own word for
//! the counter, the version that is compiled, and the line. So ZJIT has to believe that statistics
//! were asked for (start_counters), and where the user did not, its own counters stay 0.

use std::collections::HashMap;

use crate::backend::lir::{asm_comment, Assembler, Opnd, SideExit, C_ARG_OPNDS, EC};
use crate::cruby::*;
use crate::hir::{Block, Function, Insn};
use crate::options::{get_option, OPTIONS};
use crate::payload::get_or_create_iseq_payload;
use crate::state::ZJITState;
use crate::stats::*;
use crate::stats::vm_trace::{by_flags, hits_offset, ractor_offset, rb_vm_trace_count, rb_vm_trace_current};
use crate::stats::vm_trace::{thread_offset, Kind, SitePtr};
use crate::trace_base as base;

use super::{counts_replaced_calls, gen_hit, new_site, UNIT};

/// What code is generated for
#[derive(Clone, Copy)]
enum Place {
    /// Code that ISEQs share
    Shared,
    /// The instruction at a pc of an ISEQ; virtual registers are still to be assigned
    Insn(IseqPtr, *const VALUE),
    /// The same of a side exit: registers are assigned, and what they hold is still needed
    Exit(IseqPtr, *const VALUE),
}

struct Counting {
    /// The user asked for ZJIT's own statistics, too
    own_stats: bool,
    place: Place,
    /// Names of counters by their addresses
    names: HashMap<usize, String>,
    /// Sites of the code that is being compiled: by counter, ISEQ and line. None: none was requested
    sites: HashMap<(usize, IseqPtr, u32), Option<SitePtr>>,
    /// What the entry counts that is generated next
    entry: Vec<SitePtr>,
}

/// None: the stream is off. Guarded by the VM lock.
static mut COUNTING: Option<Counting> = None;

fn counting() -> Option<&'static mut Counting> {
    unsafe { (*(&raw mut COUNTING)).as_mut() }
}

/// Flags are parsed, and nothing is compiled yet.
pub fn start_counters() {
    if !by_flags().is_some_and(|config| config.counters) {
        return;
    }
    let options = unsafe { (*(&raw mut OPTIONS)).as_mut() }.expect("they are parsed");
    let own_stats = std::mem::replace(&mut options.stats, true);
    let (names, sites) = (HashMap::new(), HashMap::new());
    unsafe { COUNTING = Some(Counting { own_stats, place: Place::Shared, names, sites, entry: vec![] }) };
}

/// Whether the user asked for ZJIT's statistics.
pub fn own_stats() -> bool {
    counting().map_or_else(|| get_option!(stats), |counting| counting.own_stats)
}

/// The code of a version is generated from here on (`unit`), or that is over (None).
pub(super) fn count_in(unit: Option<IseqPtr>) {
    if let Some(counting) = counting() {
        counting.sites.clear();
        counting.place = match unit {
            Some(iseq) => Place::Insn(iseq, unsafe { rb_iseq_pc_at_idx(iseq, 0) }),
            None => Place::Shared,
        };
    }
}

/// Where an instruction is, as its frame state says.
fn place_of(function: &Function, insn: &Insn, unit: IseqPtr) -> Option<Place> {
    let mut place = None;
    let mut look_at = |insn: &Insn| {
        if let Insn::Snapshot { state } = insn {
            place = Some(Place::Insn(base::frame_of(state, unit), state.pc));
        }
    };
    if matches!(insn, Insn::Snapshot { .. }) {
        look_at(insn);
    } else {
        base::each_operand(function, insn, |id| look_at(&function.find(id)));
    }
    place
}

/// The next code is that of the index-th instruction of a block. One without a frame state is where the
/// one before it is, or at the beginning of a block where the next one is.
pub fn count_at_insn(function: &Function, block: &Block, index: usize, insn: &Insn) {
    let Some(counting) = counting() else { return; };
    let unit = unsafe { UNIT.0 };
    let next = || block.insns().skip(index + 1).find_map(|&id| place_of(function, &function.find(id), unit));
    let known = place_of(function, insn, unit).or_else(|| if index == 0 { next() } else { None });
    if let Some(place) = known {
        counting.place = place;
    }
}

/// The next code is that of a side exit.
pub fn count_at_exit(exit: &SideExit) {
    let Some(counting) = counting() else { return; };
    if let Opnd::UImm(pc) = exit.pc {
        counting.place = Place::Exit(base::frame_of_exit(exit, unsafe { UNIT.0 }), pc as *const VALUE);
    }
}

/// Emit the increment of a counter by one. Returns whether that of ZJIT's own word is left out.
pub fn gen_counter(asm: &mut Assembler, counter: Opnd) -> bool {
    let (Some(counting), Opnd::UImm(address)) = (counting(), counter) else { return false; };
    if counts_replaced_calls(address as *mut u64) {
        return false;
    }
    match counting.place {
        Place::Shared => {}
        Place::Insn(iseq, pc) => if let Some(site) = counting.site(address as usize, iseq, pc) {
            asm_comment!(asm, "trace: count by method");
            let state = asm.load(Opnd::mem(64, EC, RUBY_OFFSET_EC_THREAD_PTR as i32));
            let state = asm.load(Opnd::mem(64, state, thread_offset() as i32));
            let state = asm.load(Opnd::mem(64, state, ractor_offset() as i32));
            let hits = Opnd::mem(64, state, hits_offset(site) as i32);
            let value = asm.load(hits);
            let value = asm.add(value, 1.into());
            asm.store(hits, value);
        },
        Place::Exit(iseq, pc) => if let Some(site) = counting.site(address as usize, iseq, pc) {
            asm_comment!(asm, "trace: count by method");
            let [state, value, scratch] = [C_ARG_OPNDS[0], C_ARG_OPNDS[1], C_ARG_OPNDS[2]];
            let saved = [state, value, scratch];
            saved.iter().for_each(|&opnd| asm.cpush(opnd));
            gen_hit(asm, site, EC, saved);
            saved.iter().rev().for_each(|&opnd| asm.cpop_into(opnd));
        },
    }
    !counting.own_stats
}

/// Sites of counters at the entry of an ISEQ that is not compiled. They hang on its payload.
fn entry_sites(iseq: IseqPtr, counters: &[Counter]) -> Vec<SitePtr> {
    let payload = get_or_create_iseq_payload(iseq);
    let version = payload.versions.len() as u32;
    let pc = unsafe { rb_iseq_pc_at_idx(iseq, 0) };
    let mut sites = vec![];
    for (index, &counter) in counters.iter().enumerate() {
        if counters[..index].contains(&counter) {
            continue;
        }
        let known = payload.traced.counted.iter().find(|(known, _)| *known == counter).map(|&(_, site)| site);
        let site = known.unwrap_or_else(|| {
            let site = new_site(Kind::Counter, counter.name(), iseq, version, iseq, pc);
            payload.traced.counted.push((counter, site));
            site
        });
        sites.extend(site);
    }
    sites
}

/// The entry that is generated next counts these, and exits.
pub(super) fn count_at_entry(iseq: IseqPtr, counters: &[Counter]) {
    if let Some(counting) = counting() {
        counting.entry = entry_sites(iseq, counters);
    }
}

/// Emit what such an entry counts. Free registers are those of the arguments from the third on.
pub(super) fn gen_entry_counters(asm: &mut Assembler, ec: Opnd) {
    let Some(counting) = counting() else { return; };
    let [state, value, scratch] = [C_ARG_OPNDS[2], C_ARG_OPNDS[3], C_ARG_OPNDS[4]];
    for site in std::mem::take(&mut counting.entry) {
        gen_hit(asm, site, ec, [state, value, scratch]);
    }
}

/// Count in Rust what is counted where the stub of a call finds that its ISEQ can't be compiled.
pub(super) fn count_compile_error(iseq: IseqPtr, counters: &[Counter]) {
    if counting().is_some() {
        for site in entry_sites(iseq, counters) {
            unsafe { rb_vm_trace_count(site, rb_vm_trace_current()) };
        }
    }
}

impl Counting {
    fn site(&mut self, address: usize, iseq: IseqPtr, pc: *const VALUE) -> Option<SitePtr> {
        let (unit, version) = unsafe { UNIT };
        let line = line_of(iseq, pc);
        if let Some(&site) = self.sites.get(&(address, iseq, line)) {
            return site;
        }
        let name = self.names.entry(address).or_insert_with(|| name_of(address));
        let site = new_site(Kind::Counter, name, unit, version, iseq, pc);
        self.sites.insert((address, iseq, line), site);
        site
    }
}

fn line_of(iseq: IseqPtr, pc: *const VALUE) -> u32 {
    let start = unsafe { rb_iseq_pc_at_idx(iseq, 0) };
    let index = (pc as usize - start as usize) / SIZEOF_VALUE;
    unsafe { rb_iseq_line_no(iseq, index) }
}

/// What RubyVM::ZJIT.stats calls the counter at an address.
fn name_of(address: usize) -> String {
    let fixed = [DEFAULT_COUNTERS, EXIT_COUNTERS, DYNAMIC_SEND_COUNTERS, OPTIMIZED_SEND_COUNTERS,
                 DYNAMIC_SETIVAR_COUNTERS, DYNAMIC_GETIVAR_COUNTERS, DYNAMIC_DEFINEDIVAR_COUNTERS, OTHER_COUNTERS];
    if let Some(counter) = fixed.into_iter().flatten().find(|&&counter| counter_ptr(counter) as usize == address) {
        return counter.name().to_string();
    }
    let by_insn = [("unhandled_yarv_insn_", ZJITState::get_exit_counters()),
                   ("uncategorized_fallback_yarv_insn_", ZJITState::get_send_fallback_counters())];
    for (prefix, counters) in by_insn {
        if let Some(opcode) = counters.iter().position(|counter| std::ptr::from_ref(counter) as usize == address) {
            return format!("{prefix}{}", insn_name(opcode));
        }
    }
    let by_name = [("not_inlined_cfuncs_", ZJITState::get_not_inlined_cfunc_counter_pointers()),
                   ("not_annotated_cfuncs_", ZJITState::get_not_annotated_cfunc_counter_pointers()),
                   ("ccall_", ZJITState::get_ccall_counter_pointers())];
    for (prefix, counters) in by_name.into_iter().chain(base::more_counters()) {
        let found = counters.iter().find(|(_, counter)| std::ptr::from_ref(&***counter) as usize == address);
        if let Some((name, _)) = found {
            return format!("{prefix}{name}");
        }
    }
    "unknown".to_string()
}
