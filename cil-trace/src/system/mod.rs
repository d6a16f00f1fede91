//! What is read of the machine before and while it is traced: symbols, BTF, devices, environment.
//!
//! Reading and parsing are kept apart: parsers take text or bytes and are tested on captures. What
//! must not be here: loading or attaching of BPF programs.

pub mod btf;
pub mod build_id;
pub mod debuginfo;
pub mod devices;
pub mod environment;
mod ioctl;
pub mod kallsyms;
pub mod mounts;
mod sysfs;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, which the kernel side stamps with, in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both are positive: the clock starts with the machine.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
