//! The texts of exit reasons in a trace: as ZJIT prints them, with the names of classes in place of
//! addresses. An address differs from run to run, so it would make another reason of the same exit.
//! Formats without a new Ruby object.

use std::fmt::Write;

use crate::cruby::*;
use crate::hir::{Invariant, SideExitReason};
use crate::hir_type::Specialization;
use crate::stats::vm_trace::shape_text;
use crate::trace_base as base;

/// Write the reason of an exit behind what `text` holds.
pub fn write_reason(text: &mut String, reason: &SideExitReason) {
    let start = text.len();
    match reason {
        SideExitReason::GuardType(guarded) => {
            let (kind, class) = match guarded.spec() {
                Specialization::Type(class) => ("class", class),
                Specialization::TypeExact(class) => ("class_exact", class),
                _ => return write_printed(text, start, reason),
            };
            let star = if is_singleton_class(class) { "*" } else { "" };
            let _ = write!(text, "GuardType({}[{kind}{star}:", guarded.unspecialized());
            write_class(text, class);
            text.push_str("])");
        }
        SideExitReason::GuardShape(shape) => match shape_text(shape.0) {
            variables if variables.is_empty() => write_printed(text, start, reason),
            variables => { let _ = write!(text, "GuardShape({variables})"); }
        },
        SideExitReason::PatchPoint(Invariant::MethodRedefined { klass, method, .. }) => {
            text.push_str("PatchPoint(MethodRedefined(");
            write_class(text, *klass);
            let _ = write!(text, ", {}))", method.contents_lossy());
        }
        SideExitReason::PatchPoint(Invariant::NoSingletonClass { klass }) => {
            text.push_str("PatchPoint(NoSingletonClass(");
            write_class(text, *klass);
            text.push_str("))");
        }
        _ if base::write_reason(text, reason) => {}
        _ => write_printed(text, start, reason),
    }
}

fn write_printed(text: &mut String, start: usize, reason: &SideExitReason) {
    let _ = write!(text, "{reason}");
    while let Some((from, to)) = find_address(&text[start..]) {
        text.replace_range(start + from..start + to, "");
    }
}

/// Bounds of an address with what introduces it: `@0x1`, `VALUE(0x1)`, `0x1, `.
fn find_address(text: &str) -> Option<(usize, usize)> {
    let digits = text.find("0x")?;
    let mut from = digits;
    let mut to = digits + 2 + text[digits + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
    if text[..from].ends_with("VALUE(") && text[to..].starts_with(')') {
        from -= "VALUE(".len();
        to += 1;
    }
    if text[..from].ends_with('@') {
        from -= 1;
    } else if text[to..].starts_with(", ") {
        to += 2;
    }
    Some((from, to))
}

fn is_singleton_class(class: VALUE) -> bool {
    unsafe { RB_TYPE_P(class, RUBY_T_CLASS) && rb_zjit_singleton_class_p(class) }
}

/// Write the name of a class. One without a name has that of its superclass, and a singleton class
/// that of its object.
fn write_class(text: &mut String, class: VALUE) {
    if is_singleton_class(class) {
        let attached = unsafe { rb_class_attached_object(class) };
        let of_module = unsafe { RB_TYPE_P(attached, RUBY_T_CLASS) || RB_TYPE_P(attached, RUBY_T_MODULE) };
        text.push_str("#<Class:");
        if of_module {
            write_class(text, attached);
        } else {
            text.push_str("#<");
            write_class(text, unsafe { rb_class_real(class) });
            text.push('>');
        }
        text.push('>');
        return;
    }
    let module = unsafe { RB_TYPE_P(class, RUBY_T_MODULE) };
    if !module && !unsafe { RB_TYPE_P(class, RUBY_T_CLASS) } {
        text.push_str("Unknown");
        return;
    }
    let real = if module { class } else { unsafe { rb_class_real(class) } };
    let name = unsafe { rb_mod_name(real) };
    if name != Qnil {
        text.push_str(&ruby_str_to_rust_string(name));
    } else if module {
        text.push_str("#<Module>");
    } else {
        text.push_str("#<Class(");
        write_class(text, unsafe { rb_class_real(rb_class_get_superclass(real)) });
        text.push_str(")>");
    }
}
