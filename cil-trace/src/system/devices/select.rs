//! `--device` and `--mount`: from names to filesystems.

use super::{KERNEL, SYS, Sysfs, Topology, beneath};
use cil_trace_core::device::Dev;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What the user wants followed; empty means every XFS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// `loop2` or `/dev/loop2`, also by a link such as /dev/mapper/data.
    pub devices: Vec<String>,
    /// Mount points.
    pub mounts: Vec<PathBuf>,
}

/// Nothing to trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no XFS is mounted: mount one (mount -t xfs DEVICE DIRECTORY) and try again; \
     `cil-trace doctor` tells whether this kernel has XFS"
)]
pub struct NoXfs;

/// A filter that fits no filesystem. `mounted` lists those there are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SelectError {
    /// There is none at all.
    #[error(transparent)]
    NoXfs(#[from] NoXfs),
    /// `--mount` names something else.
    #[error("--mount {}: not the mount point of an XFS{}; XFS is mounted at {mounted}",
        path.display(),
        inside.as_ref().map_or(String::new(), |mount| format!(" but inside {}", mount.display())))]
    NotAMountPoint {
        /// As it was given.
        path: PathBuf,
        /// The XFS mount that holds it.
        inside: Option<PathBuf>,
        /// The XFS mounts there are.
        mounted: String,
    },
    /// `--device` names nothing.
    #[error("--device {name}: no such block device; XFS is mounted at {mounted}")]
    NoSuchDevice {
        /// As it was given.
        name: String,
        /// The XFS mounts there are.
        mounted: String,
    },
    /// `--device` names a device without a mounted XFS.
    #[error("--device {name}: no mounted XFS on this device; XFS is mounted at {mounted}")]
    NotXfs {
        /// As it was given.
        name: String,
        /// The XFS mounts there are.
        mounted: String,
    },
}

/// A [`Filter`] whose names have been looked up.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) devices: Vec<(String, Option<Dev>)>,
    /// As given, and without links.
    pub(super) mounts: Vec<(PathBuf, PathBuf)>,
}

impl Topology {
    /// Keeps the filesystems that the filter names, with everything beneath them.
    ///
    /// # Errors
    /// If there is no XFS, or the filter names something that is none.
    pub fn select(&self, filter: &Filter) -> Result<Self, SelectError> {
        let devices = filter.devices.iter();
        let mounts = filter.mounts.iter();
        self.keep(&Wanted {
            devices: devices.map(|name| (name.clone(), device(name))).collect(),
            mounts: mounts
                .map(|path| {
                    let plain = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                    (path.clone(), plain)
                })
                .collect(),
        })
    }

    pub(super) fn keep(&self, wanted: &Wanted) -> Result<Self, SelectError> {
        if self.filesystems.is_empty() {
            return Err(NoXfs.into());
        }
        let mut roots = BTreeSet::new();
        for (name, dev) in &wanted.devices {
            roots.insert(self.xfs_on(name, *dev)?);
        }
        for (given, path) in &wanted.mounts {
            roots.insert(self.xfs_at(given, path)?);
        }
        if wanted.devices.is_empty() && wanted.mounts.is_empty() {
            return Ok(self.clone());
        }

        let mut kept = BTreeSet::new();
        let mut pending: Vec<Dev> = roots.iter().copied().collect();
        while let Some(dev) = pending.pop() {
            if kept.insert(dev) {
                pending.extend(self.device_of(dev).into_iter().flat_map(beneath));
            }
        }
        let mut selected = self.clone();
        selected
            .filesystems
            .retain(|filesystem| roots.contains(&filesystem.dev));
        selected.devices.retain(|device| kept.contains(&device.dev));
        Ok(selected)
    }

    fn xfs_on(&self, name: &str, dev: Option<Dev>) -> Result<Dev, SelectError> {
        let (name, mounted) = (name.to_owned(), self.mounted());
        let Some(dev) = dev else {
            return Err(SelectError::NoSuchDevice { name, mounted });
        };
        let found = self.filesystems.iter().any(|one| one.dev == dev);
        found
            .then_some(dev)
            .ok_or(SelectError::NotXfs { name, mounted })
    }

    fn xfs_at(&self, given: &Path, path: &Path) -> Result<Dev, SelectError> {
        let mut all = self.filesystems.iter();
        if let Some(found) = all.find(|one| one.mountpoints.iter().any(|at| at == path)) {
            return Ok(found.dev);
        }
        let points = self.filesystems.iter().flat_map(|one| &one.mountpoints);
        Err(SelectError::NotAMountPoint {
            path: given.to_owned(),
            inside: points
                .filter(|point| path.starts_with(point))
                .max_by_key(|point| point.as_os_str().len())
                .cloned(),
            mounted: self.mounted(),
        })
    }

    /// `/mnt/a (loop0), /data (sda1)`.
    fn mounted(&self) -> String {
        let each = self
            .filesystems
            .iter()
            .map(|one| match one.mountpoints.first() {
                Some(point) => format!("{} ({})", point.display(), one.name),
                None => format!("another mount namespace ({})", one.name),
            });
        each.collect::<Vec<_>>().join(", ")
    }
}

fn device(name: &str) -> Option<Dev> {
    if name.contains('/') {
        (KERNEL.node)(Path::new(name))
    } else {
        Sysfs::new(SYS).dev_of(name)
    }
}
