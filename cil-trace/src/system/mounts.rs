//! Mounts, as /proc/*/mountinfo lists them, and word of their changes.
//!
//! It does not know block devices; [`super::devices`] does.

use super::sysfs::parse_dev;
use cil_trace_core::device::Dev;
use procfs::process::MountInfo;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const OWN: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// `st_dev` of its files.
    pub dev: Dev,
    /// Directory of the filesystem that is seen at the mount point; `/` unless it is a bind mount.
    pub root: String,
    /// Where, in its own mount namespace.
    pub mountpoint: PathBuf,
    /// How that namespace's root is reached: `/`, or `/proc/PID/root` of a process in it.
    pub namespace: PathBuf,
    /// Filesystem type.
    pub filesystem: String,
    /// Options of the filesystem.
    pub options: HashMap<String, Option<String>>,
    /// Options of this mount of it, such as `noatime`.
    pub flags: HashMap<String, Option<String>>,
}

impl Mount {
    /// Value of a filesystem option such as `logdev`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name)?.as_deref()
    }

    /// All options as mount(8) takes them, sorted.
    #[must_use]
    pub fn options_text(&self) -> String {
        let options: BTreeSet<_> = self
            .options
            .iter()
            .chain(&self.flags)
            .map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            })
            .collect();
        Vec::from_iter(options).join(",")
    }

    /// A path of the mount's own namespace, as this process reaches it.
    #[must_use]
    pub fn reach(&self, path: &Path) -> PathBuf {
        self.namespace.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// The mounts of this process's namespace.
///
/// # Errors
/// If /proc/self/mountinfo cannot be read.
pub fn own() -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read(OWN)?, Path::new("/")))
}

/// Looks for mounts of these devices in the namespaces of other processes; the first of each.
#[must_use]
pub fn elsewhere(mut wanted: Vec<Dev>) -> Vec<Mount> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let processes = procfs::process::all_processes().into_iter().flatten();
    for process in processes.filter_map(Result::ok) {
        if wanted.is_empty() {
            break;
        }
        let directory = PathBuf::from(format!("/proc/{}", process.pid()));
        // A process that is not ours to read, or has ended: another one may share its namespace.
        let Ok(namespace) = fs::read_link(directory.join("ns/mnt")) else {
            continue;
        };
        if seen.contains(&namespace) {
            continue;
        }
        seen.push(namespace);
        let text = fs::read(directory.join("mountinfo")).unwrap_or_default();
        for mount in parse(&text, &directory.join("root")) {
            if let Some(index) = wanted.iter().position(|&dev| dev == mount.dev) {
                wanted.swap_remove(index);
                found.push(mount);
            }
        }
    }
    found
}

/// Parses mountinfo of the namespace whose root is at `namespace`; lines that it does not
/// understand are left out.
#[must_use]
pub fn parse(mountinfo: &[u8], namespace: &Path) -> Vec<Mount> {
    String::from_utf8_lossy(mountinfo)
        .lines()
        .filter_map(|line| {
            let mount = MountInfo::from_line(line).ok()?;
            let options = mount.super_options.into_iter();
            Some(Mount {
                dev: parse_dev(&mount.majmin)?,
                root: mount.root,
                mountpoint: unescape(mount.mount_point.as_os_str().as_bytes()),
                namespace: namespace.to_owned(),
                filesystem: mount.fs_type,
                flags: mount.mount_options,
                options: options
                    .map(|(name, value)| {
                        let value = value.map(|value| unescape(value.as_bytes()));
                        (
                            name,
                            value.map(|value| value.to_string_lossy().into_owned()),
                        )
                    })
                    .collect(),
            })
        })
        .collect()
}

/// Blank, tab, newline and backslash stand as three octal digits in mountinfo.
fn unescape(text: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = (first == b'\\').then(|| after.get(..3)).flatten();
        let code =
            digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

/// Wakes when something is mounted or unmounted in this process's mount namespace.
#[derive(Debug)]
pub struct MountWatch {
    mountinfo: AsyncFd<File>,
}

impl MountWatch {
    /// Begins to watch; needs tokio's I/O driver.
    ///
    /// # Errors
    /// If /proc/self/mountinfo cannot be opened or polled.
    pub fn new() -> io::Result<Self> {
        let mountinfo = File::open(OWN)?;
        // The kernel reports a change as an exceptional condition, see proc_pid_mountinfo(5).
        // SAFETY: a `File` keeps one open descriptor for as long as it lives, and nothing here
        // replaces it.
        let mountinfo = unsafe { AsyncFd::register_with_interest(mountinfo, Interest::PRIORITY) }?;
        Ok(Self { mountinfo })
    }

    /// Waits for the next change. Cancel safe; several changes at once may wake it once.
    ///
    /// # Errors
    /// If the I/O driver is gone.
    pub async fn changed(&self) -> io::Result<()> {
        let mut guard = self.mountinfo.ready(Interest::PRIORITY).await?;
        guard.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    reason = "a failed test should stop where it fails"
)]
mod tests {
    use super::*;
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    use nix::unistd::geteuid;
    use std::time::Duration;

    #[test]
    fn mountinfo_is_parsed_with_escapes_and_options() {
        let text = b"\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
43 27 7:0 / /mnt/a\\040b rw,relatime shared:1 - xfs /dev/loop0 rw,inode64,logbufs=8,logbsize=32k,logdev=/dev/loop1,noquota\n\
44 27 7:0 /sub /mnt/sub\\134 rw - xfs /dev/loop0 rw,logbsize=32k\n\
what is this\n\
45 27 0:43 / /data rw - btrfs /dev/sdb rw\n";
        let mounts = parse(text, Path::new("/proc/7/root"));
        let seen: Vec<_> = mounts
            .iter()
            .map(|mount| {
                (
                    mount.dev,
                    mount.mountpoint.to_str().unwrap(),
                    mount.root.as_str(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (Dev::new(254, 0), "/", "/"),
                (Dev::new(7, 0), "/mnt/a b", "/"),
                (Dev::new(7, 0), "/mnt/sub\\", "/sub"),
                (Dev::new(0, 43), "/data", "/"),
            ]
        );
        assert_eq!(mounts[1].option("logbsize"), Some("32k"));
        assert_eq!(mounts[1].option("logdev"), Some("/dev/loop1"));
        assert_eq!(mounts[1].option("inode64"), None);
        assert_eq!(
            mounts[1].reach(&mounts[1].mountpoint),
            Path::new("/proc/7/root/mnt/a b")
        );
    }

    #[test]
    fn an_escape_cut_short_stays_as_it_is() {
        for (text, plain) in [
            ("\\040", " "),
            ("\\04", "\\04"),
            ("\\9", "\\9"),
            ("a\\", "a\\"),
        ] {
            assert_eq!(unescape(text.as_bytes()), Path::new(plain));
        }
    }

    #[tokio::test]
    async fn a_mount_and_an_unmount_wake_the_watch() {
        if !geteuid().is_root() {
            eprintln!("skipped: mounting needs root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let watch = MountWatch::new().unwrap();
        let none = None::<&str>;
        let kind = Some("tmpfs");
        if let Err(error) = mount(kind, directory.path(), kind, MsFlags::empty(), none) {
            eprintln!("skipped: cannot mount a tmpfs: {error}");
            return;
        }
        // A bound, so that a watch that never wakes fails the test instead of hanging it.
        let bound = Duration::from_secs(30);
        let woken = tokio::time::timeout(bound, watch.changed()).await;
        umount2(directory.path(), MntFlags::MNT_DETACH).unwrap();
        woken.unwrap().unwrap();
        tokio::time::timeout(bound, watch.changed())
            .await
            .unwrap()
            .unwrap();
    }
}
