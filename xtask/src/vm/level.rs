//! The level `vm` of the tests: those on this machine's kernel, on other kernels.
//!
//! The test program and the tool are built once, here; the guest only runs them.

use super::{Guest, Kernel, guest, ready};
use crate::command::{cargo, output, root};
use crate::level::Outcome;
use crate::tally::Tally;
use crate::{build, setup};
use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Those that make sense there, as libtest's filters.
const TESTS: &[&str] = &[
    "blocked::",
    "contended::",
    "ilock::",
    "mapped::",
    "matrix::",
    "modules::",
    "sequence::on_a_partition",
    "stacked::",
];

/// What they run. In the guest it takes busybox's place, which does not know every option.
const PROGRAMS: &[&str] = &[
    "addpart",
    "bash",
    "dd",
    "delpart",
    "dmsetup",
    "env",
    "findmnt",
    "fsfreeze",
    "losetup",
    "mkdir",
    "modprobe",
    "mount",
    "mountpoint",
    "rm",
    "sfdisk",
    "sync",
    "umount",
    "uname",
    "xfs_io",
];

/// Gives the disk to the tests, and runs them, but not those that are workloads of others. One at a
/// time, as each is timed by the kernel; the log's worker, which forces the log every 30 s, waits
/// long enough never to do it meanwhile.
const COMMAND: &str = "cd / && umount /mnt && echo 720000 >/proc/sys/fs/xfs/xfssyncd_centisecs && \
     CIL_TRACE_BIN=/usr/bin/cil-trace CIL_TRACE_TEST_DISK=vda CIL_TRACE_TEST_KERNEL=$0 \
     exec \"$@\" --include-ignored --skip workload_ --nocapture --test-threads=1";

/// A guest that takes longer hangs.
const LIMIT: u32 = 600;

/// More than this machine may have, so that one of a lock's waiters is always preempted.
const CPUS: u32 = 4;

/// How a splat begins in the kernel's messages.
const SPLAT: &str = "------------[ cut here ]------------";

/// Runs the tests on each of `kernels`.
pub fn run(kernels: &[Kernel]) -> Vec<Outcome> {
    let programs = build();
    kernels
        .iter()
        .map(|&kernel| {
            let tally = match &programs {
                Ok((tool, tests)) => on(kernel, tool, tests),
                Err(error) => Err(anyhow!("{error:#}")),
            };
            (format!("vm {}", kernel.series()), tally)
        })
        .collect()
}

/// The tool and the test program.
fn build() -> Result<(PathBuf, PathBuf)> {
    ready()?;
    Ok((build::with(setup::all()?)?, test_program()?))
}

fn on(kernel: Kernel, tool: &Path, tests: &Path) -> Result<Tally> {
    let mut files = programs()?;
    files.extend([tests.to_owned(), root().join("cil-trace/tests/kernel")]);
    let program = tests.display().to_string();
    let command = ["sh", "-c", COMMAND, kernel.series(), &program];
    let ended = guest(
        kernel,
        tool,
        &Guest {
            files,
            limit: LIMIT,
            cpus: CPUS,
            command: command
                .iter()
                .chain(TESTS)
                .map(|&word| word.to_owned())
                .collect(),
        },
    )?;
    let read = |name| fs::read_to_string(ended.results.join(name)).unwrap_or_default();
    let mut tally = Tally::default();
    for line in read("stdout").lines() {
        tally.add_line(line);
    }
    if ended.status != 0 && tally.failed == 0 {
        tally.add(&Tally::failed(format!("exit status {}", ended.status)));
    }
    if ended.status == 0 && tally.passed == 0 {
        tally.add(&Tally::failed("no test ran".to_owned()));
    }
    let messages = read("dmesg");
    if let Some(line) = splat(&messages) {
        tally.add(&Tally::failed(format!("the kernel said: {line}")));
    }
    eprintln!(
        "Linux {}: {tally}; outputs, messages and console are in {}",
        ended.version,
        ended.results.display()
    );
    Ok(tally)
}

/// What the kernel complains of first, if it does.
pub fn splat(messages: &str) -> Option<&str> {
    let (_, splat) = messages.split_once(SPLAT)?;
    Some(splat.trim_start().lines().next().unwrap_or_default())
}

/// Where [`PROGRAMS`] are.
fn programs() -> Result<Vec<PathBuf>> {
    let find = |name: &&str| {
        ["/usr/bin", "/usr/sbin"]
            .iter()
            .map(|directory| Path::new(directory).join(name))
            .find(|path| path.exists())
            .with_context(|| format!("no {name} on this machine"))
    };
    PROGRAMS.iter().map(find).collect()
}

/// Builds it; its path.
fn test_program() -> Result<PathBuf> {
    let messages = output(cargo().args([
        "test",
        "--no-run",
        "--quiet",
        "--package=cil-trace",
        "--features=kernel-tests",
        "--test=kernel",
        "--message-format=json-render-diagnostics",
    ]))?;
    executable(&messages, "kernel").context("cargo has built no test program")
}

/// The program of the test target `name`, in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name && message["profile"]["test"] == true)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::executable;
    use std::path::Path;

    #[test]
    fn the_test_program_is_found_among_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"build-script-executed","linked_libs":[]}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"kernel"},"profile":{"test":false},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"cli"},"profile":{"test":true},"executable":"/t/cli-1"}"#,
            "\nno message\n",
            r#"{"reason":"compiler-artifact","target":{"name":"kernel"},"profile":{"test":true},"executable":"/t/kernel-2"}"#,
        );
        assert_eq!(
            executable(messages, "kernel").as_deref(),
            Some(Path::new("/t/kernel-2"))
        );
        assert_eq!(executable("", "kernel"), None);
    }
}
