//! What user space tells the kernel side about devices.

/// What is known of a device number. Key of the device map: the kernel's `dev_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Scope {
    /// Bits of [`Scope`].
    pub flags: u32,
    /// For a disk that serves files or devices above: the loop device above it, or 0.
    pub above: u32,
}

impl Scope {
    /// An XFS lives here: its data, log or realtime device.
    pub const XFS: u32 = 1;
    /// A device beneath such a filesystem: its flushes and requests are counted.
    pub const BENEATH: u32 = 2;
    /// The device honours FUA by itself, so that a FUA write needs no flush behind it.
    pub const FUA: u32 = 4;
}
