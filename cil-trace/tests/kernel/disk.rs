//! The disks beneath the tests' filesystems, and what may lie between: a partition, or targets of the
//! device mapper. All of it is gone when dropped.

use crate::shell::{attempt, output};
use std::fs::File;
use std::path::Path;

/// Names a disk whose contents may be lost. Where it is set, as in a virtual machine, it takes the
/// place of loop devices, and has one filesystem at a time.
const GIVEN: &str = "CIL_TRACE_TEST_DISK";

/// Large enough for a log of ordinary size.
const SIZE: u64 = 1 << 30;

const SECTOR: u64 = 512;

/// Where a partition starts.
const FIRST_SECTOR: u64 = 2048;

/// A whole disk, by its bare name.
pub enum Disk {
    /// A loop device with a file of its own.
    Loop(String),
    /// See [`GIVEN`].
    Given(String),
}

impl Disk {
    /// The given one, else a loop device over a sparse file in `directory`.
    pub fn any(directory: &Path) -> Self {
        std::env::var(GIVEN).map_or_else(|_| Self::of_file_in(directory), Self::Given)
    }

    /// A loop device over a sparse file in `directory`.
    pub fn of_file_in(directory: &Path) -> Self {
        let image = directory.join("xfs.img");
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        attempt("modprobe", &["loop"]).ok();
        // -f finds and takes a free device in one step, so tests beside this one do not collide.
        let path = output("losetup", &["-f", "--show", &image.to_string_lossy()]);
        Self::Loop(path.trim().trim_start_matches("/dev/").to_owned())
    }

    /// Its bare name.
    pub fn name(&self) -> &str {
        match self {
            Self::Loop(name) | Self::Given(name) => name,
        }
    }

    fn path(&self) -> String {
        format!("/dev/{}", self.name())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if matches!(self, Self::Loop(_)) {
            undo("losetup", &["-d", &self.path()]);
        }
    }
}

fn undo(program: &str, args: &[&str]) {
    if let Err(error) = attempt(program, args) {
        eprintln!("left behind: {error}");
    }
}

/// What lies on a disk.
pub enum Layer {
    None,
    Partition {
        /// The disk's path.
        of: String,
        device: String,
    },
    Mapped {
        /// Its name for the device mapper.
        name: String,
        device: String,
    },
}

impl Layer {
    /// The disk itself.
    pub fn none(_: &Disk) -> Self {
        Self::None
    }

    /// A partition.
    pub fn partition(disk: &Disk) -> Self {
        let (name, of) = (disk.name(), disk.path());
        let device = match disk {
            // Not sfdisk: a kernel may be built without any partition table that it could read.
            Disk::Loop(_) => {
                let sectors = SIZE / SECTOR - FIRST_SECTOR;
                let place = [FIRST_SECTOR.to_string(), sectors.to_string()];
                output("addpart", &[&of, "1", &place[0], &place[1]]);
                format!("{name}p1")
            }
            Disk::Given(_) => {
                let table = format!("echo start={FIRST_SECTOR} | sfdisk --quiet {of}");
                output("bash", &["-o", "pipefail", "-c", &table]);
                format!("{name}1")
            }
        };
        Self::Partition { of, device }
    }

    /// So many linear targets, each on a piece of the disk.
    pub fn linear(disk: &Disk, targets: u64) -> Self {
        attempt("modprobe", &["dm_mod"]).ok();
        let name = format!("cil-trace-test-{}", std::process::id());
        let piece = SIZE / SECTOR / targets;
        let table: String = (0..targets)
            .map(|target| target * piece)
            .map(|start| format!("{start} {piece} linear {} {start}\n", disk.path()))
            .collect();
        // A virtual machine has no udev, for which dmsetup would wait.
        let create = ["create", "--noudevsync", &name, "--table", &table];
        output("dmsetup", &create);
        let shown = ["info", "-c", "--noheadings", "-o", "blkdevname", &name];
        let device = output("dmsetup", &shown).trim().to_owned();
        Self::Mapped { name, device }
    }

    /// Its device's bare name, if it is not the disk itself.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Partition { device, .. } | Self::Mapped { device, .. } => Some(device),
        }
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        match self {
            Self::None => {}
            // Else it would outlive its disk.
            Self::Partition { of, .. } => undo("delpart", &[of, "1"]),
            Self::Mapped { name, .. } => undo("dmsetup", &["remove", "--noudevsync", name]),
        }
    }
}
