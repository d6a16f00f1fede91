//! Where the few functions of the kernel are that the tests ask for.

use crate::shell::output;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Queued to push the log.
const PUSH: &str = "xlog_cil_push_work";

/// Calls who is attached to an event of iclogs.
const ICLOG_EVENT: &str = "__traceiter_xlog_iclog_syncing";

/// Whether the kernel has events for iclogs; they came with 5.14.
pub fn has_iclog_events() -> bool {
    symbols().contains_key(ICLOG_EVENT)
}

/// Where [`PUSH`] is.
pub fn push() -> u64 {
    symbols()[PUSH]
}

/// Read once, and not line by line: where a machine is emulated, that takes a minute.
fn symbols() -> &'static HashMap<String, u64> {
    static SYMBOLS: OnceLock<HashMap<String, u64>> = OnceLock::new();
    SYMBOLS.get_or_init(|| {
        let wanted = ["-w", "-e", PUSH, "-e", ICLOG_EVENT, "/proc/kallsyms"];
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((words.nth(1)?.to_owned(), address))
        };
        output("grep", &wanted).lines().filter_map(symbol).collect()
    })
}
