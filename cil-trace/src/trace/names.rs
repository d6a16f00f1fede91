//! Addresses of the kernel's code as the names that reports show.

use crate::system::kallsyms::Kallsyms;
use cil_trace_common::function::Group;
use cil_trace_core::probes::source_name;

/// What calls a program itself: which of them stand in a stack depends on the way of attaching and
/// on what the compiler made of the tracepoint.
const TRACER: [&str; 5] = [
    "bpf_trace_run",
    "__bpf_trace_",
    "__traceiter_",
    "bpf_trampoline_",
    "bpf_prog_",
];

/// Frames that they take at most; an interrupt with what it does takes more.
const TOP: usize = 7;

/// Functions under a lock's own whose ends may be probed.
const PROBED: [&str; 3] = ["xfs_ilock", "xfs_ilock_nowait", "xlog_cil_commit"];

/// A function's name, and its module's; unresolved, the address.
fn name(symbols: &Kallsyms, address: u64) -> String {
    match symbols.name_of(address) {
        Some((name, _)) => match symbols.module_of(address) {
            Some(module) => format!("{name} [{module}]"),
            None => name.to_owned(),
        },
        None => format!("{address:#x}"),
    }
}

/// The name in the source of the function that holds a return address; unresolved, the address.
pub fn caller(symbols: &Kallsyms, address: u64) -> String {
    // The call that returns there may be its function's last instruction.
    match symbols.name_of(address.wrapping_sub(1)) {
        Some((name, _)) => source_name(name).to_owned(),
        None => format!("{address:#x}"),
    }
}

/// The names of a stack's functions.
pub fn all<'a>(symbols: &Kallsyms, frames: impl Iterator<Item = &'a u64>) -> Vec<String> {
    frames.map(|&address| name(symbols, address)).collect()
}

/// A stack without what calls the program itself: everything down to the tracepoint's function.
pub fn without_tracer<'a>(
    symbols: &Kallsyms,
    frames: impl Iterator<Item = &'a u64>,
) -> Vec<String> {
    let mut frames = all(symbols, frames);
    let is_tracer = |frame: &String| TRACER.iter().any(|start| frame.starts_with(start));
    // Further down stands a program that this one has interrupted.
    let top = &frames[..frames.len().min(TOP)];
    let tracepoint = top.iter().rposition(is_tracer);
    frames.drain(..tracepoint.map_or(0, |position| position + 1));
    frames
}

/// A stack of a contended wait from the lock's own functions on; of anything else,
/// [`without_tracer`].
pub fn lock_stack<'a>(symbols: &Kallsyms, frames: impl Iterator<Item = &'a u64>) -> Vec<String> {
    let mut frames = without_tracer(symbols, frames);
    let locking = Group::Locking.symbols();
    let first = frames
        .iter()
        .position(|frame| locking.contains(&source_name(frame)));
    frames.drain(..first.unwrap_or(0));
    // A function whose end is probed is called by a trampoline, which came after the symbols.
    let probed = |frame: &String| {
        let name = source_name(frame.split(' ').next().unwrap_or(frame));
        locking.contains(&name) || PROBED.contains(&name)
    };
    for index in (1..frames.len()).rev() {
        if frames[index].starts_with("0x") && probed(&frames[index - 1]) {
            frames.remove(index);
        }
    }
    frames
}
