//! A loop-mounted XFS on a sparse file, gone when dropped.

use crate::count::Subject;
use crate::shell::{attempt, output};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Large enough for a log of ordinary size.
const SIZE: u64 = 1 << 30;

const SECTOR: u64 = 512;

/// Where a partition starts.
const FIRST_SECTOR: u64 = 2048;

/// A mounted XFS.
pub struct Xfs {
    directory: TempDir,
    disk: String,
    device: String,
}

impl Xfs {
    /// On a whole loop device.
    pub fn new() -> Self {
        Self::in_directory(&std::env::temp_dir(), false)
    }

    /// On the first partition of a loop device.
    pub fn on_partition() -> Self {
        Self::in_directory(&std::env::temp_dir(), true)
    }

    /// On a loop device over a file of another XFS.
    pub fn over(lower: &Self) -> Self {
        Self::in_directory(&lower.mountpoint(), false)
    }

    fn in_directory(parent: &Path, partitioned: bool) -> Self {
        let directory = TempDir::with_prefix_in("cil-trace-test-", parent).unwrap();
        let image = directory.path().join("xfs.img");
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        fs::create_dir(directory.path().join("mnt")).unwrap();
        // -f finds and takes a free device in one step, so tests beside this one do not collide.
        let path = output("losetup", &["-f", "--show", &image.to_string_lossy()]);
        let disk = path.trim().trim_start_matches("/dev/").to_owned();
        let device = disk.clone();
        let mut xfs = Self {
            directory,
            disk,
            device,
        };
        if partitioned {
            // Not sfdisk: a kernel may be built without any partition table it could read back.
            let sectors = SIZE / SECTOR - FIRST_SECTOR;
            let place = [FIRST_SECTOR.to_string(), sectors.to_string()];
            output("addpart", &[path.trim(), "1", &place[0], &place[1]]);
            xfs.device.push_str("p1");
        }
        let device = format!("/dev/{}", xfs.device);
        output("mkfs.xfs", &["-q", "-f", &device]);
        output("mount", &[&device, &*xfs.mountpoint().to_string_lossy()]);
        xfs
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

    /// Its device's bare name: the partition's, if it is on one.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The bare name of the whole disk.
    pub fn disk(&self) -> &str {
        &self.disk
    }

    /// Its statistics since the mount.
    pub fn stats(&self) -> PathBuf {
        Path::new("/sys/fs/xfs")
            .join(&self.device)
            .join("stats/stats")
    }

    /// What a trace must be searched for.
    pub fn subject(&self) -> Subject {
        let fua = fs::read_to_string(format!("/sys/block/{}/queue/fua", self.disk)).unwrap();
        Subject {
            filesystem: number(&self.device),
            name: self.device.clone(),
            disk: number(&self.disk).replace(':', ","),
            fua: fua.trim() == "1",
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
        let disk = format!("/dev/{}", self.disk);
        if attempt("mountpoint", &["-q".as_ref(), mountpoint.as_os_str()]).is_ok()
            && let Err(busy) = attempt("umount", &[&mountpoint])
        {
            eprintln!("{busy}; it goes when its last user does");
            attempt("umount", &["-l".as_ref(), mountpoint.as_os_str()]).ok();
        }
        if self.device != self.disk {
            // Without this the partition would outlive its disk.
            attempt("delpart", &[&disk, "1"]).ok();
        }
        if let Err(error) = attempt("losetup", &["-d", &disk]) {
            eprintln!("left behind: {error}");
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
