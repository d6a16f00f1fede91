//! Block devices as reports name them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A device number in the kernel's own encoding (`major << 20 | minor`). 0 is no device.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Dev(pub u32);

impl Dev {
    /// No device.
    pub const NONE: Self = Self(0);

    /// From major and minor number.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(major << 20 | (minor & 0xf_ffff))
    }

    /// The major number.
    #[must_use]
    pub const fn major(self) -> u32 {
        self.0 >> 20
    }

    /// The minor number.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }
}

/// `major:minor`, as /sys/dev/block names it.
impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major(), self.minor())
    }
}

/// What is known of a device: its name, what lives on it and what it stands on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// Its number.
    pub dev: Dev,
    /// Its bare name, such as `loop2`, `sda1` or `dm-0`.
    pub name: String,
    /// The whole disk, if this is a partition.
    pub partition_of: Option<Dev>,
    /// Filesystem type, if one is mounted.
    pub filesystem: Option<String>,
    /// Where it is mounted; the first place if there are several.
    pub mountpoint: Option<String>,
    /// `write back`, `write through` or another word of /sys/block/*/queue/write_cache.
    pub write_cache: Option<String>,
    /// Whether the device honours FUA itself.
    pub fua: Option<bool>,
    /// Whether it has a request queue of its own (dm, md and zram have none).
    pub request_based: Option<bool>,
    /// The devices directly beneath: of a dm or md its members, of a loop device the device of the
    /// filesystem that holds its file.
    pub stacked_on: Vec<Dev>,
    /// Options of the XFS mounted from it, as mount(8) takes them.
    pub mount_options: Option<String>,
    /// What mkfs.xfs chose, in the words of `xfs_info`.
    pub geometry: Option<String>,
    /// Size of the XFS log, in bytes.
    pub log_size_bytes: Option<u64>,
    /// Size of an in-core log buffer, in bytes.
    pub iclog_size_bytes: Option<u64>,
    /// The XFS log's device, if it is not this one.
    pub log_device: Option<Dev>,
    /// The XFS realtime device, if there is one.
    pub realtime_device: Option<Dev>,
}
