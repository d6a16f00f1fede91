//! Where the few functions of the kernel are that the tests ask for.

use crate::shell::output;

/// Whether the kernel has events for iclogs, which came with 5.14: each event has a function that
/// calls who is attached to it.
pub fn has_iclog_events() -> bool {
    address("__traceiter_xlog_iclog_syncing").is_some()
}

/// Where `xlog_cil_push_work` is, until XFS is unloaded.
pub fn push_work() -> u64 {
    address("xlog_cil_push_work").unwrap()
}

/// Not read line by line here, for that takes a minute where a machine is emulated.
fn address(function: &str) -> Option<u64> {
    let script = format!("grep -w {function} /proc/kallsyms || true");
    let found = output("sh", &["-c", &script]);
    u64::from_str_radix(found.split(' ').next()?, 16).ok()
}
