//! A scratch XFS: a sparse image, loop-mounted in a temporary directory, gone when dropped.

use crate::command::{command, output};
use crate::packages;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Space for some minutes of dbench; being sparse it takes what is written.
const SIZE: u64 = 2 << 30;

/// A mounted scratch XFS.
pub struct Scratch {
    directory: TempDir,
    mountpoint: PathBuf,
    device: String,
}

impl Scratch {
    /// Makes and mounts one. Needs root.
    ///
    /// # Errors
    /// mkfs.xfs is missing, or making or mounting failed.
    pub fn mount() -> Result<Self> {
        Self::in_directory(TempDir::with_prefix("cil-trace-")?)
    }

    /// The same with its image in memory.
    ///
    /// # Errors
    /// As above, or /dev/shm is no place for files.
    pub fn mount_in_memory() -> Result<Self> {
        let directory = TempDir::with_prefix_in("cil-trace-", "/dev/shm");
        Self::in_directory(directory.context("cannot make a directory in /dev/shm")?)
    }

    fn in_directory(directory: TempDir) -> Result<Self> {
        let image = directory.path().join("xfs.img");
        File::create(&image)?.set_len(SIZE)?;
        output(command("mkfs.xfs", &["-q"]).arg(&image)).with_context(|| {
            format!(
                "cannot make a scratch XFS; `cargo xtask setup` installs {}",
                packages::RUN.join(", ")
            )
        })?;
        let mountpoint = directory.path().join("mnt");
        fs::create_dir(&mountpoint)?;
        // mount's own loop device frees itself at umount, so nothing else needs cleaning up.
        output(
            command("mount", &["-o", "loop"])
                .arg(&image)
                .arg(&mountpoint),
        )?;
        let mut scratch = Self {
            directory,
            mountpoint,
            device: String::new(),
        };
        let source = output(command("findmnt", &["-no", "SOURCE"]).arg(&scratch.mountpoint))?;
        scratch.device = source.trim().trim_start_matches("/dev/").to_owned();
        Ok(scratch)
    }

    /// Where it is mounted.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Its loop device, as `--device` takes it.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// A directory beside the mount, where its image is.
    pub fn outside(&self) -> &Path {
        self.directory.path()
    }

    /// dbench in it.
    pub fn dbench(&self, seconds: u32, clients: u32) -> Command {
        let mut dbench = Command::new("dbench");
        dbench.arg("-D").arg(&self.mountpoint);
        dbench
            .arg("-t")
            .arg(seconds.to_string())
            .arg(clients.to_string());
        dbench
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = output(Command::new("umount").arg(&self.mountpoint)) {
            eprintln!("xtask: {error:#}; lazily unmounting it instead");
            if let Err(error) = output(command("umount", &["-l"]).arg(&self.mountpoint)) {
                eprintln!(
                    "xtask: {} stays mounted: {error:#}",
                    self.mountpoint.display()
                );
            }
        }
    }
}
