//! A mounted XFS, gone when dropped.

use crate::count::Subject;
use crate::disk::{Disk, Layer};
use crate::shell::{attempt, output};
use crate::symbols::has_iclog_events;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A mounted XFS.
pub struct Xfs {
    // In the order in which they go.
    layer: Layer,
    disk: Disk,
    directory: TempDir,
}

impl Xfs {
    /// On a whole disk.
    pub fn new() -> Self {
        Self::make(&std::env::temp_dir(), Disk::any, Layer::none)
    }

    /// On the first partition of a disk.
    pub fn on_partition() -> Self {
        Self::make(&std::env::temp_dir(), Disk::any, Layer::partition)
    }

    /// On a mapped device of so many linear targets, all on one disk.
    pub fn on_linear(targets: u64) -> Self {
        let layer = |disk: &Disk| Layer::linear(disk, targets);
        Self::make(&std::env::temp_dir(), Disk::any, layer)
    }

    /// On a loop device over a file of another XFS.
    pub fn over(lower: &Self) -> Self {
        Self::make(&lower.mountpoint(), Disk::of_file_in, Layer::none)
    }

    fn make(
        parent: &Path,
        disk: impl FnOnce(&Path) -> Disk,
        layer: impl FnOnce(&Disk) -> Layer,
    ) -> Self {
        let directory = TempDir::with_prefix_in("cil-trace-test-", parent).unwrap();
        fs::create_dir(directory.path().join("mnt")).unwrap();
        let disk = disk(directory.path());
        let layer = layer(&disk);
        let xfs = Self {
            layer,
            disk,
            directory,
        };
        let device = format!("/dev/{}", xfs.device());
        output("mkfs.xfs", &["-q", "-f", &device]);
        output("mount", &[&device, &*xfs.mountpoint().to_string_lossy()]);
        xfs
    }

    /// Mounts it again after [`Xfs::unmount`].
    pub fn mount(&self) {
        let device = format!("/dev/{}", self.device());
        output(
            "mount",
            &["-t", "xfs", &device, &*self.mountpoint().to_string_lossy()],
        );
    }

    /// Unmounts it; the device stays until the drop.
    pub fn unmount(&self) {
        output("umount", &[&self.mountpoint()]);
    }

    /// Where it is mounted.
    pub fn mountpoint(&self) -> PathBuf {
        self.directory.path().join("mnt")
    }

    /// A path on the filesystem beneath, beside the image.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Its device's bare name: the partition's or mapped device's, if it is on one.
    pub fn device(&self) -> &str {
        self.layer.device().unwrap_or(self.disk())
    }

    /// The bare name of the whole disk.
    pub fn disk(&self) -> &str {
        self.disk.name()
    }

    /// Its statistics since the mount.
    pub fn stats(&self) -> PathBuf {
        Path::new("/sys/fs/xfs")
            .join(self.device())
            .join("stats/stats")
    }

    /// What a trace must be searched for.
    pub fn subject(&self) -> Subject {
        self.subject_on(self.disk())
    }

    /// The same on its own device, where that has no queue of requests but bios all the same.
    pub fn subject_above(&self) -> Subject {
        self.subject_on(self.device())
    }

    fn subject_on(&self, disk: &str) -> Subject {
        let fua = fs::read_to_string(format!("/sys/block/{disk}/queue/fua")).unwrap();
        Subject {
            filesystem: number(self.device()),
            name: self.device().to_owned(),
            disk: number(disk).replace(':', ","),
            fua: fua.trim() == "1",
            iclog_events: has_iclog_events(),
        }
    }
}

/// `major:minor` of a device.
fn number(device: &str) -> String {
    let path = format!("/sys/class/block/{device}/dev");
    fs::read_to_string(path).unwrap().trim().to_owned()
}

impl Drop for Xfs {
    fn drop(&mut self) {
        let mountpoint = self.mountpoint();
        if attempt("mountpoint", &["-q".as_ref(), mountpoint.as_os_str()]).is_ok()
            && let Err(busy) = attempt("umount", &[&mountpoint])
        {
            eprintln!("{busy}; it goes when its last user does");
            attempt("umount", &["-l".as_ref(), mountpoint.as_os_str()]).ok();
        }
    }
}

/// The `log` line of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStats {
    /// iclog writes.
    pub writes: u64,
    /// Log forces.
    pub forces: u64,
}

impl LogStats {
    /// Those of a mounted filesystem.
    pub fn of(xfs: &Xfs) -> Self {
        Self::parse(&fs::read_to_string(xfs.stats()).unwrap())
    }

    /// What came since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            writes: self.writes - before.writes,
            forces: self.forces - before.forces,
        }
    }

    /// Reads it out of the statistics' text.
    pub fn parse(stats: &str) -> Self {
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("log "))
            .unwrap();
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        Self {
            writes: numbers[0],
            forces: numbers[3],
        }
    }
}
