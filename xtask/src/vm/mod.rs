//! Debian kernels in QEMU, with the tool and an XFS inside: `vm`, and the level `vm` of the tests.
//!
//! Needs no virtualisation by the hardware and touches no device of this machine. Everything that
//! it fetches or makes is below `target/vm`.

mod boot;
mod fetch;
mod initramfs;
mod kernels;
mod level;

pub use kernels::{Kernel, Selection};
pub use level::run as test;
pub use level::splat;

use crate::command::target_dir;
use crate::{build, interrupt, packages, setup};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to boot, and what to run there.
#[derive(Args)]
pub struct Options {
    /// Series of the kernel, as Debian ships it
    kernel: Kernel,
    #[command(flatten)]
    guest: Guest,
}

/// What a guest has and does.
#[derive(Args)]
pub struct Guest {
    /// Give the guest this program, with its libraries, or this file or directory, at the same path
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// End the command so many seconds after the kernel's start, and the guest soon after
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub limit: u32,
    /// Processors that it has
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub cpus: u32,
    /// What to run, in the root of an empty XFS; what it leaves in /out is brought back
    #[arg(last = true, default_values_t = ["cil-trace".to_owned(), "doctor".to_owned()])]
    pub command: Vec<String>,
}

/// What came back from a guest.
pub struct Ended {
    /// The kernel's, as `uname -r` gives it.
    pub version: String,
    /// The command's exit status.
    pub status: u8,
    /// Holds its `stdout` and `stderr`, what it left in /out, the kernel's messages (`dmesg`) and
    /// the console's log (`console`).
    pub results: PathBuf,
}

/// Boots, runs the command, prints its output, and ends with its status. Leaves the outputs, what
/// the command put in `/out`, and the console's log in `target/vm/run/KERNEL`.
///
/// # Errors
/// The kernel could not be had, or the guest did not come to the command's end.
pub fn run(options: &Options) -> Result<ExitCode> {
    interrupt::defer()?;
    ready()?;
    let tool = build::with(setup::toolchain()?)?;
    let ended = guest(options.kernel, &tool, &options.guest)?;
    eprintln!(
        "Linux {}: exit status {}; outputs and console are in {}",
        ended.version,
        ended.status,
        ended.results.display()
    );
    Ok(ExitCode::from(ended.status))
}

/// Installs what a guest is made of.
///
/// # Errors
/// This machine cannot run the kernels, or a package could not be installed.
pub fn ready() -> Result<()> {
    if std::env::consts::ARCH != "x86_64" {
        bail!(
            "the kernels are built for x86-64, and this is {}",
            std::env::consts::ARCH
        );
    }
    packages::install(packages::VM)
}

/// Boots and runs, and prints what the command has printed, also when it did not come to its end.
///
/// # Errors
/// The kernel could not be had, or the guest did not come to the command's end.
pub fn guest(kernel: Kernel, tool: &Path, guest: &Guest) -> Result<Ended> {
    let directory = target_dir().join("vm");
    let image = fetch::kernel(&directory, kernel)?;
    let results = directory.join("run").join(kernel.series());
    fs::remove_dir_all(&results).ok();
    fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
    let initramfs = initramfs::build(&image, tool, &guest.files, &guest.command)?;
    let status = boot::run(&image, initramfs.path(), &results, guest.limit, guest.cpus);
    stdout().write_all(&fs::read(results.join("stdout")).unwrap_or_default())?;
    stderr().write_all(&fs::read(results.join("stderr")).unwrap_or_default())?;
    Ok(Ended {
        version: image.version,
        status: status?,
        results,
    })
}
