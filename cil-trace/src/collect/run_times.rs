//! The kernel's own account of what programs cost, kept for a part of the time.
//!
//! It reads the clock twice for each run of every program, which costs more than the shortest of
//! them. So it is switched on in one stretch of time out of many, and stands for all.

use std::os::fd::OwnedFd;

/// One stretch out of so many is measured, the first included.
const EVERY: u32 = 10;

/// Switches the account on and off.
#[derive(Default)]
pub struct RunTimes {
    /// The kernel keeps account as long as this is open, see bpf_enable_stats(2); since when.
    open: Option<(OwnedFd, u64)>,
    measured_ns: u64,
    stretches: u32,
}

impl RunTimes {
    /// Another stretch begins, CLOCK_MONOTONIC nanoseconds.
    pub fn turn(&mut self, now: u64) {
        self.stop(now);
        if self.stretches.is_multiple_of(EVERY) {
            match aya::sys::enable_stats(aya::sys::Stats::RunTime) {
                Ok(fd) => self.open = Some((fd, now)),
                Err(error) if self.stretches == 0 => {
                    log::warn!("the programs' cost is not measured: {error}");
                }
                Err(_) => {}
            }
        }
        self.stretches = self.stretches.wrapping_add(1);
    }

    /// The last stretch ends.
    pub fn stop(&mut self, now: u64) {
        if let Some((_, since)) = self.open.take() {
            self.measured_ns += now.saturating_sub(since);
        }
    }

    /// How long account was kept.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.measured_ns
    }
}
