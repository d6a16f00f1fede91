//! Small numbers for devices, so that hot events find their sums in arrays and not in hash maps.
//!
//! A number is claimed once, by whoever comes first: user space for what is mounted at the start, an
//! XFS event for what is mounted later.

/// Number of what belongs to no device, or to one without a number.
pub const NONE: u32 = 0;
/// Number of a device that is out of scope.
pub const OUT: u32 = u32::MAX;
/// Most numbers that there can be; the maps say how many there are.
pub const MOST: u32 = 64;
/// Places in the table by which a number is found; a power of two.
pub const PLACES: u32 = 256;
/// Places that are looked at for one device.
pub const STEPS: u32 = 4;

/// A place in the table. All zero is a free one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Slot {
    /// The kernel's `dev_t`, or 0.
    pub dev: u32,
    /// The device's number.
    pub number: u32,
}

/// Where a device is looked for at step `step`.
#[must_use]
#[inline(always)]
pub const fn place(dev: u32, step: u32) -> u32 {
    ((dev.wrapping_mul(0x9e37_79b1) >> 16) + step) & (PLACES - 1)
}
