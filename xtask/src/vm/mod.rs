//! `vm`: boots a Debian kernel in QEMU with the tool inside, and runs a command on an XFS there.
//!
//! Needs no virtualisation by the hardware and touches no device of this machine. Everything that
//! it fetches or makes is below `target/vm`.

mod boot;
mod fetch;
mod initramfs;
mod kernels;

use crate::command::target_dir;
use crate::{build, interrupt, packages, setup};
use anyhow::{Context, Result, bail};
use clap::Args;
use kernels::Kernel;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

/// What to boot, and what to run there.
#[derive(Args)]
pub struct Options {
    /// Series of the kernel, as Debian ships it
    kernel: Kernel,
    /// Give the guest this program, with its libraries, or this file or directory, at the same path
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,
    /// End the guest after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u32,
    /// What to run, in the root of an empty XFS; what it leaves in /out is brought back
    #[arg(last = true, default_values_t = ["cil-trace".to_owned(), "doctor".to_owned()])]
    command: Vec<String>,
}

/// Boots, runs the command, prints its output, and ends with its status. Leaves the outputs, what
/// the command put in `/out`, and the console's log in `target/vm/run/KERNEL`.
///
/// # Errors
/// The kernel could not be had, or the guest did not come to the command's end.
pub fn run(options: &Options) -> Result<ExitCode> {
    interrupt::defer()?;
    if std::env::consts::ARCH != "x86_64" {
        bail!(
            "the kernels are built for x86-64, and this is {}",
            std::env::consts::ARCH
        );
    }
    packages::install(packages::VM)?;
    let tool = build::with(setup::toolchain()?)?;

    let directory = target_dir().join("vm");
    let image = fetch::kernel(&directory, options.kernel)?;
    let results = directory.join("run").join(options.kernel.series());
    fs::remove_dir_all(&results).ok();
    fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
    let initramfs = initramfs::build(&image, &tool, &options.files, &options.command)?;
    let status = boot::run(&image, initramfs.path(), &results, options.limit)?;
    stdout().write_all(&fs::read(results.join("stdout"))?)?;
    stderr().write_all(&fs::read(results.join("stderr"))?)?;
    eprintln!(
        "Linux {}: exit status {status}; outputs and console are in {}",
        image.version,
        results.display()
    );
    Ok(ExitCode::from(status))
}
