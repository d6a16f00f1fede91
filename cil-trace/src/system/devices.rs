//! Every mounted XFS and all block devices beneath it.
//!
//! What the kernel counts is decided by these numbers ([`Topology::scope_entries`]). It opens no
//! block device for writing and never guesses from names.

mod select;
#[cfg(test)]
mod tests;

pub use select::{Filter, NoXfs, SelectError};

use super::ioctl::{self, Geometry};
use super::mounts::{self, Mount};
use super::sysfs::Sysfs;
use anyhow::{Context as _, Result};
use cil_trace_common::scope::Scope;
use cil_trace_core::device::{Dev, Device};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const SYS: &str = "/sys";
const XFS: &str = "xfs";

/// Mounted XFS filesystems and their devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Topology {
    /// The filesystems, by device number.
    pub filesystems: Vec<Filesystem>,
    /// Their devices and all that lie beneath, by device number.
    pub devices: Vec<Device>,
    /// What could not be found out, as sentences for the user.
    pub notes: Vec<String>,
    /// Every loop device of the machine whose file could be found, in scope or not.
    loops: BTreeMap<Dev, Backing>,
}

/// Where a loop device's file lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Backing {
    /// The device of the filesystem that holds it.
    dev: Dev,
    /// The whole disk, if that is a partition.
    disk: Option<Dev>,
}

/// One mounted XFS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filesystem {
    /// Its data device.
    pub dev: Dev,
    /// That device's bare name.
    pub name: String,
    /// Where it is mounted; mount points of its root come first. Empty if no process that can be
    /// seen has it in its namespace.
    pub mountpoints: Vec<PathBuf>,
}

/// Questions that /sys does not answer; a test answers them from a table.
struct Ask {
    /// Device of the file behind a loop device; the name is the loop device's.
    file_device: fn(name: &str, file: &Path) -> Option<Dev>,
    /// Number of a device node.
    node: fn(&Path) -> Option<Dev>,
    /// How the XFS on a device that is mounted at a path was made.
    geometry: fn(&Path, Dev) -> Option<Geometry>,
}

const KERNEL: Ask = Ask {
    file_device,
    node,
    geometry,
};

impl Topology {
    /// Reads what is mounted now. No XFS at all is an empty topology; [`Topology::select`] makes it
    /// an error.
    ///
    /// # Errors
    /// If /proc/self/mountinfo cannot be read.
    pub fn read() -> Result<Self> {
        let sysfs = Sysfs::new(SYS);
        let mut mounts = mounts::own().context(
            "cannot read /proc/self/mountinfo: /proc must be mounted (mount -t proc proc /proc)",
        )?;
        let own: Vec<Dev> = mounts.iter().map(|mount| mount.dev).collect();
        let hidden: Vec<Dev> = xfs_devices(&sysfs)
            .filter(|dev| !own.contains(dev))
            .collect();
        if !hidden.is_empty() {
            mounts.extend(mounts::elsewhere(hidden));
        }
        Ok(Self::build(&sysfs, &mounts, &KERNEL))
    }

    fn build(sysfs: &Sysfs, mounts: &[Mount], ask: &Ask) -> Self {
        let loops = sysfs.loops().into_iter().filter_map(|(dev, block)| {
            let below = (ask.file_device)(&block.name, block.backing_file.as_deref()?)?;
            let disk = sysfs.block(below).and_then(|block| block.partition_of);
            Some((dev, Backing { dev: below, disk }))
        });
        let mut topology = Self {
            loops: loops.collect(),
            ..Self::default()
        };
        let mut devices: BTreeMap<Dev, Device> = BTreeMap::new();
        let mounted = mounts.iter().filter(|mount| mount.filesystem == XFS);
        let roots: BTreeSet<Dev> = xfs_devices(sysfs)
            .chain(mounted.map(|mount| mount.dev))
            .collect();

        let mut pending: Vec<Dev> = Vec::new();
        for dev in roots {
            let device = topology.xfs_device(sysfs, mounts, ask, dev);
            pending.extend(beneath(&device));
            devices.insert(dev, device);
        }
        while let Some(dev) = pending.pop() {
            if devices.contains_key(&dev) {
                continue;
            }
            let mut device = topology.device(sysfs, dev);
            if let Some(mount) = mount_of(mounts, dev) {
                device.filesystem = Some(mount.filesystem.clone());
                device.mountpoint = Some(mount.mountpoint.to_string_lossy().into_owned());
            }
            pending.extend(beneath(&device));
            devices.insert(dev, device);
        }
        topology.devices = devices.into_values().collect();
        topology
    }

    fn xfs_device(&mut self, sysfs: &Sysfs, mounts: &[Mount], ask: &Ask, dev: Dev) -> Device {
        let mut device = self.device(sysfs, dev);
        device.filesystem = Some(XFS.to_owned());
        let mut all: Vec<&Mount> = mounts.iter().filter(|mount| mount.dev == dev).collect();
        all.sort_by_key(|mount| mount.root != "/");
        self.filesystems.push(Filesystem {
            dev,
            name: device.name.clone(),
            mountpoints: all.iter().map(|mount| mount.mountpoint.clone()).collect(),
        });
        let Some(mount) = all.first() else {
            self.notes.push(format!(
                "{}: mounted where no visible process has it, so its log size, log device and \
                 realtime device are unknown",
                device.name
            ));
            return device;
        };
        device.mountpoint = Some(mount.mountpoint.to_string_lossy().into_owned());
        device.iclog_size_bytes = mount.option("logbsize").and_then(size_in_bytes);
        let node = |option| (ask.node)(&mount.reach(Path::new(mount.option(option)?)));
        device.log_device = node("logdev");
        device.realtime_device = node("rtdev");
        device.mount_options = Some(mount.options_text());
        let geometry = all
            .iter()
            .find_map(|mount| (ask.geometry)(&mount.reach(&mount.mountpoint), dev));
        if let Some(Geometry { log_size, text }) = geometry {
            device.log_size_bytes = Some(log_size);
            device.geometry = Some(text);
        } else {
            self.notes.push(format!(
                "{}: log size unknown, as {} cannot be opened (it needs read permission, and \
                 nothing mounted over it)",
                device.name,
                mount.mountpoint.display()
            ));
        }
        device
    }

    fn device(&mut self, sysfs: &Sysfs, dev: Dev) -> Device {
        let Some(block) = sysfs.block(dev) else {
            self.notes.push(format!(
                "{dev}: not in /sys/dev/block, so what lies beneath it is unknown"
            ));
            return Device {
                dev,
                name: dev.to_string(),
                ..Device::default()
            };
        };
        let stacked_on = match &block.backing_file {
            Some(file) => self.below_loop(dev, &block.name, file),
            None => block.slaves,
        };
        Device {
            dev,
            name: block.name,
            partition_of: block.partition_of,
            write_cache: block.write_cache,
            fua: block.fua,
            request_based: Some(block.request_based),
            stacked_on,
            ..Device::default()
        }
    }

    fn below_loop(&mut self, dev: Dev, name: &str, file: &Path) -> Vec<Dev> {
        let reason = match self.loops.get(&dev).map(|file| file.dev) {
            // Major 0 is no block device.
            Some(dev) if dev.major() != 0 => return vec![dev],
            Some(dev) => format!(
                "lies on a filesystem without a block device of its own ({dev}: btrfs, overlayfs, \
                 tmpfs, NFS or the like)"
            ),
            None => "cannot be reached from here".to_owned(),
        };
        self.notes.push(format!(
            "{}: its file {} {reason}, so what lies beneath is not followed",
            name,
            file.display()
        ));
        Vec::new()
    }

    /// The device with this number.
    #[must_use]
    pub fn device_of(&self, dev: Dev) -> Option<&Device> {
        self.devices.iter().find(|device| device.dev == dev)
    }

    /// What the kernel side is told about each device.
    ///
    /// A disk that carries an XFS itself is both [`Scope::XFS`] and [`Scope::BENEATH`], as it
    /// serves its own requests; a partition with an XFS is not beneath, its disk is.
    #[must_use]
    pub fn scope_entries(&self) -> Vec<(Dev, Scope)> {
        let xfs: BTreeSet<Dev> = self
            .filesystems
            .iter()
            .filter_map(|filesystem| self.device_of(filesystem.dev))
            .flat_map(|device| [Some(device.dev), device.log_device, device.realtime_device])
            .flatten()
            .collect();
        self.devices
            .iter()
            .map(|device| {
                let carries = xfs.contains(&device.dev);
                let serves = !carries || device.partition_of.is_none();
                let flags = [
                    (carries, Scope::XFS),
                    (serves, Scope::BENEATH),
                    (device.fua == Some(true), Scope::FUA),
                ];
                let flags = flags
                    .into_iter()
                    .filter_map(|(holds, flag)| holds.then_some(flag))
                    .sum();
                let above = self.loop_above(device.dev).unwrap_or(Dev::NONE).0;
                (device.dev, Scope { flags, above })
            })
            .collect()
    }

    /// The loop device whose file this disk or one of its partitions holds, if it is the only one
    /// on the machine: one out of scope issues flushes to the disk too.
    fn loop_above(&self, dev: Dev) -> Option<Dev> {
        let mut above = self
            .loops
            .iter()
            .filter(|(_, file)| file.dev == dev || file.disk == Some(dev))
            .map(|(&above, _)| above);
        let only = above.next()?;
        above.next().is_none().then_some(only)
    }
}

/// Text of a filesystem's own statistics, by its device's bare name; `None` once it is unmounted.
#[must_use]
pub fn xfs_stats(name: &str) -> Option<String> {
    Sysfs::new(SYS).xfs_stats(name)
}

/// The devices that serve a device directly.
fn beneath(device: &Device) -> impl Iterator<Item = Dev> + '_ {
    [
        device.partition_of,
        device.log_device,
        device.realtime_device,
    ]
    .into_iter()
    .flatten()
    .chain(device.stacked_on.iter().copied())
}

fn xfs_devices(sysfs: &Sysfs) -> impl Iterator<Item = Dev> + '_ {
    sysfs
        .xfs_names()
        .into_iter()
        .filter_map(|name| sysfs.dev_of(&name))
}

fn mount_of(mounts: &[Mount], dev: Dev) -> Option<&Mount> {
    let of_dev = |mount: &&Mount| mount.dev == dev;
    mounts
        .iter()
        .filter(of_dev)
        .find(|mount| mount.root == "/")
        .or_else(|| mounts.iter().find(of_dev))
}

/// `32k`, as XFS shows sizes among its mount options.
fn size_in_bytes(text: &str) -> Option<u64> {
    match text.strip_suffix('k') {
        Some(kilobytes) => kilobytes.parse::<u64>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

fn from_stat(dev: u64) -> Dev {
    Dev::new(rustix::fs::major(dev), rustix::fs::minor(dev))
}

fn file_device(name: &str, file: &Path) -> Option<Dev> {
    // The driver knows also of a file that is unlinked or in another namespace. Its node may be
    // missing in a container; then the path is all there is.
    let known = File::open(Path::new("/dev").join(name))
        .ok()
        .and_then(|node| ioctl::loop_file_device(node).ok());
    let dev = match known {
        Some(dev) => dev,
        None => fs::metadata(file).ok()?.dev(),
    };
    Some(from_stat(dev))
}

fn node(path: &Path) -> Option<Dev> {
    let dev = fs::metadata(path).ok()?.rdev();
    (dev != 0).then(|| from_stat(dev))
}

fn geometry(path: &Path, dev: Dev) -> Option<Geometry> {
    let root = File::open(path).ok()?;
    // Something else may be mounted over it.
    let same = from_stat(root.metadata().ok()?.dev()) == dev;
    same.then(|| ioctl::xfs_geometry(root).ok()).flatten()
}

/// Names of every XFS that the kernel has mounted, in whatever namespace.
#[must_use]
pub fn xfs_names() -> Vec<String> {
    Sysfs::new(SYS).xfs_names()
}

/// A device by its number alone, with its name and nothing else; `None` if there is none.
#[must_use]
pub fn named(dev: Dev) -> Option<Device> {
    let name = Sysfs::new(SYS).block(dev)?.name;
    Some(Device {
        dev,
        name,
        ..Device::default()
    })
}
