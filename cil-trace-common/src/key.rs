//! The one key of all counters and histograms.

/// What a counter or histogram is about. Fields that a metric does not use are 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(C)]
pub struct Key {
    /// Which quantity: a [`Metric`](crate::metric::Metric).
    pub metric: u16,
    /// A [`Cause`](crate::cause::Cause) or [`FsyncKind`](crate::cause::FsyncKind), as the metric
    /// says.
    pub label: u16,
    /// The device, as the kernel's `dev_t` (`major << 20 | minor`).
    pub dev: u32,
    /// The device above, for bios of a lower device (loop, dm, md); 0 for none.
    pub via: u32,
    /// Identifies the stack of a flush that nothing explains, plus 1; 0 for none.
    pub stack: u32,
}
