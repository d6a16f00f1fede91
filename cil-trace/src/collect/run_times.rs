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
    refused: bool,
}

impl RunTimes {
    /// Another stretch begins, CLOCK_MONOTONIC nanoseconds.
    pub fn turn(&mut self, now: u64) {
        self.stop(now);
        if self.stretches.is_multiple_of(EVERY) {
            match aya::sys::enable_stats(aya::sys::Stats::RunTime) {
                Ok(fd) => self.open = Some((fd, now)),
                Err(error) => {
                    if !self.refused {
                        log::warn!("the programs' cost is not measured: {error}");
                    }
                    self.refused = true;
                }
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

    /// How long account was kept, up to `now`; `None` if the kernel refuses to.
    #[must_use]
    pub fn measured_ns(&self, now: u64) -> Option<u64> {
        let open = self.open.as_ref();
        let under_way = open.map_or(0, |(_, since)| now.saturating_sub(*since));
        (!self.refused).then_some(self.measured_ns + under_way)
    }
}
