//! The text of compiled code (`--zjit-trace-compiles=hir`): the HIR of each version, and the line of
//! it that each exit belongs to.
//!
//! The text is that of `--zjit-dump-hir`. It is made when code is generated from the HIR, for that
//! names objects which may be dead when the code exits.

use std::fmt::{self, Write};
use std::ptr::null;

use crate::hir::{Function, FunctionPrinter, Insn, Invariant};
use crate::stats::vm_trace::{rb_vm_trace_code_new, rb_vm_trace_code_release, rb_vm_trace_code_wanted_p, CodeTextPtr};

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
    /// Lines at which blocks begin, of those that come
    blocks: std::vec::IntoIter<u32>,
    /// The line that was printed last of the block at hand
    printed: u32,
    /// That of the instruction at hand; 0: it is not in the text
    line: u32,
}

/// Guarded by the VM lock.
static mut CURRENT: Option<Current> = None;

fn current() -> Option<&'static mut Current> {
    unsafe { (*(&raw mut CURRENT)).as_mut() }
}

/// A text with lines. A newline that is not the printer's is a part of a name, and is escaped.
struct Lines(String);

impl Write for Lines {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if !piece.contains('\n') || matches!(piece, "\n" | ":\n" | "):\n") {
            self.0.push_str(piece);
        } else {
            self.0.push_str(&piece.replace('\n', "\\n"));
        }
        Ok(())
    }
}

/// Code is generated from here on.
pub fn begin_code(function: &Function) {
    forget_code_text();
    if !unsafe { rb_vm_trace_code_wanted_p() } {
        return;
    }
    let (iseq, version) = unsafe { UNIT };
    let mut lines = Lines(String::with_capacity(16 * 1024));
    let _ = write!(lines, "{}", FunctionPrinter::without_snapshot(function));
    let text = lines.0;
    let code = unsafe { rb_vm_trace_code_new(iseq.cast(), version, text.as_ptr(), text.len()) };
    if !code.is_null() {
        let blocks = block_lines(&text).into_iter();
        unsafe { CURRENT = Some(Current { text: CodeText(code), blocks, printed: 0, line: 0 }) };
    }
}

/// Blocks are in the order in which code is generated. Their instructions are indented.
fn block_lines(text: &str) -> Vec<u32> {
    let lines = text.lines().zip(1..).skip(1);
    lines.filter(|(line, _)| !line.starts_with("  ")).map(|(_, number)| number).collect()
}

/// Whether FunctionPrinter prints an instruction.
fn printed_p(insn: &Insn) -> bool {
    !matches!(insn, Insn::Snapshot { .. } | Insn::PatchPoint { invariant: Invariant::NoTracePoint, .. })
}

/// The next code is that of the index-th instruction of a block.
pub fn code_text_at(index: usize, insn: &Insn) {
    let Some(current) = current() else { return };
    if index == 0 {
        current.printed = current.blocks.next().unwrap_or(0);
    }
    let printed = current.printed > 0 && printed_p(insn);
    current.printed += printed as u32;
    current.line = if printed { current.printed } else { 0 };
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
