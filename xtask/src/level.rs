//! The levels of the tests, fast to slow, and what each needs.

use crate::command::{cargo, shown};
use crate::tally::Tally;
use crate::vm::{self, Kernel};
use crate::{build, exports, interrupt, packages, setup, style};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nix::unistd::Uid;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// One level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Level {
    /// Formatting, lints, licences
    Style,
    /// The crates that need no kernel
    Pure,
    /// The program on checked-in recordings, without root
    Cli,
    /// The program on this machine's kernel and a loop-mounted XFS, as root
    Kernel,
    /// Exports of a recording made here, read by the tools that they are for
    Exports,
    /// Most of that on other kernels, in virtual machines
    Vm,
}

/// What became of a level or of a part of it; `Err` says why it could not run.
pub type Outcome = (String, Result<Tally>);

impl Level {
    /// Its name on the command line and in the closing lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Style => "style",
            Self::Pure => "pure",
            Self::Cli => "cli",
            Self::Kernel => "kernel",
            Self::Exports => "exports",
            Self::Vm => "vm",
        }
    }

    /// Runs it, the virtual machines on `kernels`. One outcome for each of those, else one.
    pub fn run(self, kernels: &[Kernel]) -> Vec<Outcome> {
        match self {
            Self::Vm if !kernels.is_empty() => vm::test(kernels),
            _ => vec![(self.name().to_owned(), self.run_here())],
        }
    }

    fn run_here(self) -> Result<Tally> {
        match self {
            Self::Style => style::run(),
            Self::Pure => {
                let packages = [
                    "cil-trace-common",
                    "cil-trace-core",
                    "cil-trace-offsets",
                    "xtask",
                ];
                cargo_test(
                    cargo()
                        .arg("test")
                        .args(packages.map(|name| format!("--package={name}"))),
                )
            }
            Self::Cli => {
                // Without root the tests that need it are skipped, and say so.
                if let Err(error) = packages::install(packages::CLI) {
                    eprintln!("xtask: {error:#}");
                }
                cargo_test(cargo().args(["test", "--package=cil-trace"]))
            }
            Self::Kernel => {
                kernel_allows()?;
                let program = build::with(setup::all()?)?;
                cargo_test(
                    cargo()
                        .args(["test", "--package=cil-trace", "--features=kernel-tests"])
                        // One at a time: each loads both CPUs, and each is timed by the kernel.
                        .args(["--test=kernel", "--", "--test-threads=1"])
                        .args(["--skip", EXPORTS])
                        .env("CIL_TRACE_BIN", program),
                )
            }
            Self::Exports => {
                kernel_allows()?;
                let program = build::with(setup::all()?)?;
                cargo_test(
                    cargo()
                        .args(["test", "--package=cil-trace", "--features=kernel-tests"])
                        .args(["--test=kernel", "--", EXPORTS])
                        .env("CIL_TRACE_BIN", program)
                        .env("CIL_TRACE_EXPORTS", exports::equip()?),
                )
            }
            Self::Vm => Ok(Tally::skipped("--no-vm".to_owned())),
        }
    }
}

/// The tests of exports among those of the kernel: they record, too.
const EXPORTS: &str = "exports::";

/// Whether this machine lets anybody trace XFS.
fn kernel_allows() -> Result<()> {
    if !Uid::effective().is_root() {
        bail!("needs root");
    }
    // Loads the module where XFS is one; where it is built in or missing the list tells.
    Command::new("modprobe")
        .arg("xfs")
        .stderr(Stdio::null())
        .status()
        .ok();
    let filesystems = fs::read_to_string("/proc/filesystems")?;
    if !filesystems.split_whitespace().any(|name| name == "xfs") {
        bail!("this kernel has no XFS: /proc/filesystems does not list it after `modprobe xfs`");
    }
    for (path, what) in [
        ("/dev/loop-control", "loop devices: modprobe loop"),
        (
            "/sys/kernel/btf/vmlinux",
            "BTF: a kernel with CONFIG_DEBUG_INFO_BTF=y",
        ),
        (
            "/sys/kernel/tracing",
            "tracefs: a kernel with CONFIG_FTRACE=y",
        ),
    ] {
        if !Path::new(path).exists() {
            bail!("{path} is missing; this needs {what}");
        }
    }
    Ok(())
}

/// Runs `command`, passes its output on, and counts.
fn cargo_test(command: &mut Command) -> Result<Tally> {
    let line = shown(command);
    eprintln!("$ {line}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).lines() {
            let text = text?;
            println!("{text}");
            tally.add_line(&text);
        }
    }
    let status = interrupt::while_running(child.id(), || child.wait())?;
    interrupt::check()?;
    if !status.success() && tally.failed == 0 {
        tally.add(&Tally::failed(format!("`{line}`: {status}")));
    }
    if status.success() && tally.passed + tally.skipped == 0 {
        tally.add(&Tally::failed(format!("`{line}` ran no test")));
    }
    Ok(tally)
}
