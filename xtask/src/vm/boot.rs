//! One run of QEMU: two disks, a console, a time limit.

use super::fetch::Image;
use crate::command::{command, output, shown};
use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use tempfile::NamedTempFile;

/// Sparse, so that it takes what is written.
const XFS_BYTES: u64 = 4 << 30;
/// Likewise; what the guest can leave in /out.
const RESULT_BYTES: u64 = 1 << 30;
/// Emulation, as hardware virtualisation is rare inside of virtual machines.
///
/// Both CPUs by one thread: with a thread each, QEMU before 8.1 now and then runs a breakpoint that
/// the kernel has already taken out of its code (`Oops: int3`), and every tracepoint that is attached
/// to puts some in. The guest keeps one CPU busy most of the time, so that costs a tenth.
const MACHINE: &[&str] = &[
    "-accel",
    "tcg,thread=single",
    "-cpu",
    "max",
    "-m",
    "1500",
    "-nodefaults",
    "-no-reboot",
    "-display",
    "none",
];
/// A panic ends the machine at once. What the kernel does not know, as `limit`, it puts into init's
/// environment.
const KERNEL_LINE: &str = "console=ttyS0 quiet loglevel=4 panic=-1 limit=";
/// Seconds from the end of the command's time to the end of QEMU's: to load the kernel before, and
/// to save what there is behind.
const GRACE: u32 = 30;
/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 15;
/// Exit status of timeout(1) when it had to end the program.
const TIMED_OUT: i32 = 124;

/// Boots, and gives the command's exit status; `results` then holds what the guest left in /out,
/// and the console's log. Init ends the command `limit` seconds after the kernel's start.
///
/// # Errors
/// QEMU failed, the time was over, or the guest ended without running the command.
pub fn run(image: &Image, initramfs: &Path, results: &Path, limit: u32, cpus: u32) -> Result<u8> {
    let console = results.join("console");
    let (xfs, left) = (disk(XFS_BYTES)?, disk(RESULT_BYTES)?);
    // Without --foreground timeout(1) leaves this process group, and Ctrl-C does not reach QEMU.
    let mut qemu = command("timeout", &["--foreground", "--kill-after=10"]);
    qemu.arg((limit + GRACE).to_string())
        .arg("qemu-system-x86_64");
    qemu.args(MACHINE)
        .args(["-smp", &cpus.to_string()])
        .arg("-kernel")
        .arg(&image.vmlinuz)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", &format!("{KERNEL_LINE}{limit}")])
        .arg("-serial")
        .arg(format!("file:{}", console.display()));
    for disk in [&xfs, &left] {
        // No write of this machine's waits for its disk; what the guest sees is a write-back cache.
        qemu.arg("-drive").arg(format!(
            "file={},format=raw,if=virtio,cache=unsafe",
            disk.path().display()
        ));
    }
    eprintln!("$ {}", shown(&qemu));
    let mut child = qemu
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start timeout(1)")?;
    let ended = interrupt::while_running(child.id(), || child.wait())?;
    interrupt::check()?;
    // An empty disk is no archive: then the guest did not get that far.
    output(
        command("tar", &["--extract", "--file"])
            .arg(left.path())
            .arg("--directory")
            .arg(results),
    )
    .ok();
    if ended.code() == Some(TIMED_OUT) || results.join("timed-out").exists() {
        bail!("not done within {limit} s (--limit){}", tail(&console));
    }
    if !ended.success() {
        bail!("QEMU failed: {ended}{}", tail(&console));
    }
    let status = fs::read_to_string(results.join("status"))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    status.with_context(|| {
        format!(
            "the guest ended without running the command{}",
            tail(&console)
        )
    })
}

fn disk(bytes: u64) -> Result<NamedTempFile> {
    let disk = NamedTempFile::with_prefix("cil-trace-vm-")?;
    File::set_len(disk.as_file(), bytes)?;
    Ok(disk)
}

/// Where the console's log is, and its end.
pub fn tail(console: &Path) -> String {
    let log = fs::read(console).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().collect();
    let from = lines.len().saturating_sub(CONSOLE_LINES);
    format!(
        "; the end of its console, {}:\n{}",
        console.display(),
        lines[from..].join("\n")
    )
}
