//! Which locks a kernel has, of those that are known by name.

use super::Kernel;
use cil_trace_common::lock::Lock;

/// Locks that came or went, each with the members by which one or another kernel has it.
const CHANGED: [(Lock, &[&str]); 3] = [
    (Lock::CilLock, &["CIL_LOCK"]),
    (Lock::BusyExtents, &["PERAG_BUSY_LOCK", "BUSY_TREE_LOCK"]),
    (
        Lock::MmaplockExclusive,
        &["XINODE_MMAP_LOCK", "MAPPING_INVALIDATE_LOCK"],
    ),
];

/// The locks that this kernel does not have; empty also if XFS's types are not known.
#[must_use]
pub fn absent_locks(kernel: &dyn Kernel) -> Vec<&'static str> {
    if !kernel.has_offset("CIL_CTX_LOCK") {
        return Vec::new();
    }
    CHANGED
        .iter()
        .filter(|(_, members)| !members.iter().any(|member| kernel.has_offset(member)))
        .map(|(lock, _)| lock.lock())
        .collect()
}
