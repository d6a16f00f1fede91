//! What /sys says of block devices and of mounted XFS.
//!
//! Every path stands below a root that is given, so that tests read a captured tree. Nothing here
//! decides which devices matter.

use cil_trace_core::device::Dev;
use std::fs;
use std::path::{Path, PathBuf};

/// A tree like /sys.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

/// One block device. Queue properties of a partition are its disk's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Bare name, such as `loop2` or `sda1`.
    pub name: String,
    /// The whole disk, of a partition.
    pub partition_of: Option<Dev>,
    /// A word such as `write back`.
    pub write_cache: Option<String>,
    /// Whether the device honours FUA itself.
    pub fua: Option<bool>,
    /// Whether it has hardware queues, and so requests; a partition has none of its own.
    pub request_based: bool,
    /// Members of a dm, md or bcache device.
    pub slaves: Vec<Dev>,
    /// File behind a loop device, as the kernel names it.
    pub backing_file: Option<PathBuf>,
}

impl Sysfs {
    /// The tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Reads one device; `None` if there is no such block device.
    #[must_use]
    pub fn block(&self, dev: Dev) -> Option<Block> {
        let own = self.root.join("dev/block").join(dev.to_string());
        let name = fs::read_link(&own).ok()?.file_name()?.to_str()?.to_owned();
        // The link leads to .../DISK/PARTITION, so that its parent is the disk.
        let partition_of = own
            .join("partition")
            .exists()
            .then(|| read_dev(&own.join("../dev")))
            .flatten();
        let disk = match partition_of {
            Some(_) => own.join(".."),
            None => own.clone(),
        };
        Some(Block {
            name,
            partition_of,
            write_cache: read(&disk.join("queue/write_cache")),
            fua: read(&disk.join("queue/fua")).map(|text| text == "1"),
            request_based: partition_of.is_none() && own.join("mq").is_dir(),
            slaves: entries(&own.join("slaves"))
                .iter()
                .filter_map(|slave| read_dev(&own.join("slaves").join(slave).join("dev")))
                .collect(),
            backing_file: read(&own.join("loop/backing_file")).map(PathBuf::from),
        })
    }

    /// Number of the block device with this bare name.
    #[must_use]
    pub fn dev_of(&self, name: &str) -> Option<Dev> {
        // A name such as `cciss/c0d0` is `cciss!c0d0` here.
        let name = name.replace('/', "!");
        read_dev(&self.root.join("class/block").join(name).join("dev"))
    }

    /// Every loop device that has a file.
    #[must_use]
    pub fn loops(&self) -> Vec<(Dev, Block)> {
        let names = entries(&self.root.join("class/block"));
        let loops = names.iter().filter(|name| name.starts_with("loop"));
        loops
            .filter_map(|name| {
                let dev = self.dev_of(name)?;
                Some((dev, self.block(dev)?))
            })
            .filter(|(_, block)| block.backing_file.is_some())
            .collect()
    }

    /// Bare device names of every mounted XFS, in any mount namespace.
    #[must_use]
    pub fn xfs_names(&self) -> Vec<String> {
        let mut names = entries(&self.root.join("fs/xfs"));
        // `stats` (the sum) and `debug` are no filesystems, and have no such file.
        names.retain(|name| self.xfs_stats_path(name).exists());
        names
    }

    /// Text of a filesystem's statistics.
    #[must_use]
    pub fn xfs_stats(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.xfs_stats_path(name)).ok()
    }

    fn xfs_stats_path(&self, name: &str) -> PathBuf {
        self.root.join("fs/xfs").join(name).join("stats/stats")
    }
}

/// A file's first line; `None` if it cannot be read or is empty.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?;
    (!line.is_empty()).then(|| line.to_owned())
}

fn read_dev(path: &Path) -> Option<Dev> {
    parse_dev(&read(path)?)
}

/// `major:minor`.
#[must_use]
pub fn parse_dev(text: &str) -> Option<Dev> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(Dev::new(major.parse().ok()?, minor.parse().ok()?))
}

/// Names in a directory, sorted; none if it cannot be read.
fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
