//! The kernel side of cil-trace: one file per stage of the log.
//!
//! Programs sum up in maps what they see and hand single objects to a ring buffer. They never
//! decide what a report says, and they never allocate, wait or write to anything but their maps.
#![no_std]
#![no_main]
#![expect(
    clippy::needless_pass_by_value,
    reason = "aya hands each program its context by value"
)]
#![cfg_attr(
    target_arch = "bpf",
    expect(
        unstable_features,
        reason = "inline assembly for this target is not stable yet"
    ),
    feature(asm_experimental_arch)
)]

mod ail;
mod commit;
mod contention;
mod ctx_lock;
mod device;
mod flush;
mod force;
mod fsync;
mod functions;
mod grant;
mod iclog;
mod iclog_functions;
mod ilock;
mod kernel;
mod lifecycle;
mod lock;
mod maps;
mod probe_context;
mod profile;
mod push;
mod sched;
mod slot;
mod stack;
mod stat;
mod task;
mod verifier;
mod workqueue;

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The kernel reads this before it lets a program call GPL-only helpers.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
