//! The text of compiled code (`--zjit-trace-compiles=hir`): the HIR of each version, and the line of
//! it that each exit belongs to.
//!
//! The text is that of `--zjit-dump-hir`. It is made when code is generated from the HIR, for that
//! names objects which may be dead when the code exits.

use std::collections::HashMap;
use std::ptr::null;

use crate::hir::{Block, Function, FunctionPrinter, InsnId};
use crate::stats::vm_trace::{rb_vm_trace_code_new, rb_vm_trace_code_release, rb_vm_trace_code_wanted_p, CodeTextPtr};
use crate::trace_base as base;

use super::UNIT;

/// A text and a line in it, from 1
pub type CodeLine = (CodeTextPtr, u32);

pub const NO_LINE: CodeLine = (null(), 0);

/// The text of a version. Sites that are in it have references of their own.
#[derive(Debug)]
pub struct CodeText(CodeTextPtr);

impl Drop for CodeText {
    fn drop(&mut self) {
        unsafe { rb_vm_trace_code_release(self.0) };
    }
}

/// The text of code that runs, and the line of each of its exits
#[derive(Debug)]
pub struct ExitLines {
    text: CodeText,
    lines: Box<[u32]>,
}

impl ExitLines {
    pub fn of_exit(&self, index: usize) -> CodeLine {
        self.lines.get(index).filter(|&&line| line > 0).map_or(NO_LINE, |&line| (self.text.0, line))
    }
}

/// The text of the code being generated
struct Current {
    text: CodeText,
    lines: HashMap<InsnId, u32>,
    /// That of the instruction at hand; 0: it is not in the text
    line: u32,
}

/// Guarded by the VM lock.
static mut CURRENT: Option<Current> = None;

fn current() -> Option<&'static mut Current> {
    unsafe { (*(&raw mut CURRENT)).as_mut() }
}

/// Code is generated from here on.
pub fn begin_code(function: &Function) {
    forget_code_text();
    if !unsafe { rb_vm_trace_code_wanted_p() } {
        return;
    }
    let (iseq, version) = unsafe { UNIT };
    let text = FunctionPrinter::without_snapshot(function).to_string();
    let code = unsafe { rb_vm_trace_code_new(iseq.cast(), version, text.as_ptr(), text.len()) };
    if !code.is_null() {
        let lines = lines_of(function, &text);
        unsafe { CURRENT = Some(Current { text: CodeText(code), lines, line: 0 }) };
    }
}

/// Lines of instructions: the text begins with a line for the function, and each block with one of its own.
fn lines_of(function: &Function, text: &str) -> HashMap<InsnId, u32> {
    let mut lines = HashMap::with_capacity(function.num_insns());
    let mut line = 1;
    for block_id in base::printed_blocks(function) {
        line += 1;
        for &id in function.block(block_id).insns() {
            if base::printed_p(&function.find(id)) {
                line += 1;
                lines.insert(id, line);
            }
        }
    }
    // A text that is not as expected is kept, without lines.
    if text.lines().count() as u32 != line {
        lines.clear();
    }
    lines
}

/// The next code is that of the index-th instruction of a block.
pub fn code_text_at(block: &Block, index: usize) {
    if let Some(current) = current() {
        current.line = block.insns().nth(index).and_then(|id| current.lines.get(id)).copied().unwrap_or(0);
    }
}

/// The next code is that of an exit of the instruction in this line ([code_line]).
pub fn code_text_at_line(line: u32) {
    if let Some(current) = current() {
        current.line = line;
    }
}

/// Line of the text whose instruction code is generated for; 0: unknown.
pub fn code_line() -> u32 {
    current().map_or(0, |current| current.line)
}

/// The same with the text
pub(super) fn code_at_hand() -> CodeLine {
    current().filter(|current| current.line > 0).map_or(NO_LINE, |current| (current.text.0, current.line))
}

/// The code is whole: what is kept with it, if it is to have lines.
pub(super) fn keep_code_text(lines: Vec<u32>) -> Option<ExitLines> {
    let current = unsafe { (*(&raw mut CURRENT)).take() }?;
    Some(ExitLines { text: current.text, lines: lines.into_boxed_slice() })
}

/// No code is generated any more.
pub(super) fn forget_code_text() {
    unsafe { CURRENT = None };
}
