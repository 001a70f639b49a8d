//! What the tracer knows of YJIT in Ruby 3.4. Each file ruby_*.rs has the same names.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::asm::CodeBlock;
use crate::backend::ir::Assembler;
use crate::cruby::rb_yjit_get_page_size;
#[cfg(not(test))]
use crate::virtualmem::{sys::SystemAllocator, VirtualMem};

/// What JITs share
pub(crate) use crate::vm_trace;

/// A code block in memory that stays
#[cfg(not(test))]
pub fn code_block(memory: &vm_trace::NearMemory) -> CodeBlock {
    let start = NonNull::new(memory.start).unwrap();
    let block = VirtualMem::new(SystemAllocator {}, unsafe { rb_yjit_get_page_size() }, start, memory.bytes, usize::MAX);
    CodeBlock::new(Rc::new(RefCell::new(block)), false, Rc::new(None), false)
}

/// Unit tests link no C, and reserve no memory.
#[cfg(test)]
pub fn code_block(_: &vm_trace::NearMemory) -> CodeBlock {
    unreachable!()
}

/// An assembler of code that is in no ISEQ
pub fn assembler() -> Assembler {
    Assembler::new_without_iseq()
}
