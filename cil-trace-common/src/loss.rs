//! What could not be counted, and why. Never zero by omission: every update that can fail counts.

named_enum! {
    /// Why something that happened is missing from the numbers.
    pub enum LossCause {
        /// The ring buffer was full: the event is not in the sample (counters are complete).
        RingBufferFull = 0 => "ring-buffer-full",
        /// A map had no room for a new key.
        MapFull = 1 => "map-full",
        /// A map update failed for another reason, such as `-EBUSY`.
        MapBusy = 2 => "map-busy",
        /// The kernel could not give a stack.
        StackLost = 3 => "stack-lost",
        /// An end whose beginning was not seen (it lies before the window, or was lost).
        Unpaired = 4 => "unpaired",
        /// The kernel left a run of a program out, because a task was preempted in the middle of
        /// one on the same CPU. Counted by the kernel, whatever the window and the device.
        Preempted = 5 => "preempted",
        /// The kernel did not run the program of a kprobe or kretprobe that was hit: another one was
        /// under way on the CPU, or too many calls of the function were. Counted by the kernel.
        Missed = 6 => "missed",
        /// It happened after a filesystem was mounted and before the probes were attached. Counted
        /// by XFS itself.
        NotAttached = 7 => "not-attached",
    }
}

/// Slots of the per-CPU loss array: one for each probe and cause.
#[must_use]
#[inline(always)]
pub const fn slot(probe: u16, cause: LossCause) -> u32 {
    probe as u32 * LossCause::ALL.len() as u32 + cause as u32
}
