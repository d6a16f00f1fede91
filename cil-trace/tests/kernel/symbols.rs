//! Where the few functions of the kernel are that the tests ask for.
//!
//! Each is looked for once, as that takes seconds where a machine is emulated.

use crate::shell::output;
use std::fs;
use std::sync::{Mutex, OnceLock};

/// Whether the kernel has events for iclogs, which came with 5.14: each event has a function that
/// calls who is attached to it. XFS must be loaded.
pub fn has_iclog_events() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| address("__traceiter_xlog_iclog_syncing").is_some())
}

/// Where `xlog_cil_push_work` is, until XFS is unloaded.
pub fn push_work() -> u64 {
    /// With the place of the module that it was found in.
    static FOUND: Mutex<Option<(String, u64)>> = Mutex::new(None);
    // Absent where XFS is built in.
    let code = fs::read_to_string("/sys/module/xfs/sections/.text").unwrap_or_default();
    let mut found = FOUND.lock().unwrap();
    match &*found {
        Some((place, address)) if *place == code => *address,
        _ => {
            let address = address("xlog_cil_push_work").unwrap();
            *found = Some((code, address));
            address
        }
    }
}

/// Not read line by line here, for that takes a minute where a machine is emulated.
fn address(function: &str) -> Option<u64> {
    let script = format!("LC_ALL=C grep -w {function} /proc/kallsyms || true");
    let found = output("sh", &["-c", &script]);
    u64::from_str_radix(found.split(' ').next()?, 16).ok()
}
