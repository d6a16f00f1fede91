//! Debian packages: which are missing, and installing them when this is Debian and root.

use crate::command::{command, output, run};
use anyhow::{Result, bail};
use nix::unistd::Uid;
use std::fs;

/// What compiling anything needs: rusqlite builds SQLite from C.
pub const BUILD: &[&str] = &["build-essential", "pkg-config"];

/// What the demo, the benchmarks and the tests on this machine's kernel run.
pub const RUN: &[&str] = &[
    "attr",
    "bpftool",
    "bpftrace",
    "dbench",
    "fio",
    "fsmark",
    "linux-perf",
    "mount",
    "python3-venv",
    "sqlite3",
    "stress-ng",
    "tmux",
    "util-linux",
    "xfsprogs",
];

/// What the tests without root run.
pub const CLI: &[&str] = &["tmux"];

/// What reads exports.
pub const EXPORTS: &[&str] = &["chromium", "golang-go", "python3-venv"];

/// What the virtual machines are made of.
pub const VM: &[&str] = &[
    "binutils",
    "busybox-static",
    "cpio",
    "dbench",
    "debian-archive-keyring",
    "dmsetup",
    "fdisk",
    "kmod",
    "qemu-system-x86",
    "xfsprogs",
    "xz-utils",
];

/// apt-get update fails now and then on a busy mirror.
const UPDATE_ATTEMPTS: u32 = 3;

/// Whether this is Debian or made from it.
pub fn is_debian() -> bool {
    fs::metadata("/etc/debian_version").is_ok()
}

/// Those of `packages` that are not installed.
///
/// # Errors
/// dpkg-query could not be started.
pub fn missing<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>> {
    // Exits 1 when it does not know one of the names, so only its output counts.
    let known = command(
        "dpkg-query",
        &["-W", "-f", "${Package} ${db:Status-Status}\n"],
    )
    .args(packages)
    .output()?;
    let known = String::from_utf8_lossy(&known.stdout);
    let installed = |name: &str| {
        known
            .lines()
            .any(|line| line.split_once(' ') == Some((name, "installed")))
    };
    Ok(packages
        .iter()
        .copied()
        .filter(|name| !installed(name))
        .collect())
}

/// Installs those of `packages` that are missing.
///
/// # Errors
/// Not Debian, not root, or apt-get failed; the message holds the command that would do.
pub fn install(packages: &[&str]) -> Result<()> {
    if !is_debian() {
        bail!(
            "not Debian: install the equivalents of {} by hand",
            packages.join(" ")
        );
    }
    let missing = missing(packages)?;
    if missing.is_empty() {
        return Ok(());
    }
    if !Uid::effective().is_root() {
        bail!(
            "these packages are missing and only root can install them: \
             apt-get install --no-install-recommends {}",
            missing.join(" ")
        );
    }
    update()?;
    run(command(
        "apt-get",
        &[
            "install",
            "-y",
            "-qq",
            "-o=Dpkg::Use-Pty=0",
            "--no-install-recommends",
        ],
    )
    .args(&missing)
    .env("DEBIAN_FRONTEND", "noninteractive"))
}

fn update() -> Result<()> {
    let mut attempt = 1;
    loop {
        match output(&mut command("apt-get", &["update", "-qq"])) {
            Ok(_) => return Ok(()),
            Err(error) if attempt == UPDATE_ATTEMPTS => return Err(error),
            Err(error) => eprintln!("xtask: {error:#}; trying again"),
        }
        attempt += 1;
    }
}
