//! What one process did to the log, summed up in the kernel.

/// Value of the process map; its key is the process id (`tgid`). All zero is a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Process {
    /// The command name of the thread seen first, NUL-padded.
    pub comm: [u8; 16],
    /// 1 for the workload and its descendants.
    pub workload: u32,
    /// 1 once the process has ended: user space then takes the entry out, so that the map holds
    /// only what runs.
    pub ended: u32,
    /// Log forces.
    pub forces: u64,
    /// Bios with PREFLUSH or FUA.
    pub flushes_requested: u64,
    /// Nanoseconds waited for the log: forces, grants, throttling, iclog space and commit order.
    pub log_wait_ns: u64,
}
