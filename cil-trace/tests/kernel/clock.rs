//! Where threads run and where they wait, held against perf and against their own clocks.

use crate::shell::output;
use crate::stacks::{rows, stacks};
use crate::tool::{record, uint};
use crate::xfs::Xfs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

/// Makes and removes directories: nearly all of it in the kernel.
const BUSY: &str = "stress-ng-dir";

#[test]
fn kernel_functions_have_the_shares_that_perf_sees() {
    const SHARE: f64 = 0.02;
    const TOP: usize = 20;
    let xfs = Xfs::new();
    let perf = xfs.outside("perf.data");
    let mountpoint = xfs.mountpoint();
    let workload = [
        "perf",
        "record",
        "-q",
        "-a",
        "-F",
        "997",
        "-e",
        "cpu-clock",
        "-o",
    ];
    let workload: Vec<&OsStr> = workload
        .iter()
        .map(OsStr::new)
        .chain([perf.as_os_str()])
        .chain(
            [
                "--",
                "stress-ng",
                "--quiet",
                "--dir",
                "2",
                "-t",
                "8",
                "--temp-path",
            ]
            .map(OsStr::new),
        )
        .chain([mountpoint.as_os_str()])
        .collect();
    let recording = record(&["--probes", "cpu", "-F", "997"], &workload);
    recording.expect_status(0);

    let one_name = aliases();
    let one_name = |name: &str| one_name.get(name).map_or(name, String::as_str).to_owned();
    let ours = stacks("cpu", &recording.file());
    let mut counts = BTreeMap::new();
    for (row, _) in rows(&ours).filter(|(row, _)| row["comm"] == BUSY) {
        let leaf = row["kernel"].as_array().unwrap().last();
        let leaf = leaf.map_or("user", |name| name.as_str().unwrap());
        *counts.entry(one_name(leaf)).or_insert(0) += uint(&row["count"]);
    }
    let ours = shares(&counts);

    let script = output(
        "perf",
        &[
            "script".as_ref(),
            "-i".as_ref(),
            perf.as_os_str(),
            "--comms".as_ref(),
            BUSY.as_ref(),
            "-F".as_ref(),
            "ip,sym".as_ref(),
        ],
    );
    let mut counts = BTreeMap::new();
    for line in script.lines() {
        let (address, function) = line.trim().split_once(' ').unwrap();
        let is_kernel = address.starts_with("ffff");
        let leaf = if is_kernel { function.trim() } else { "user" };
        *counts.entry(one_name(leaf)).or_insert(0) += 1;
    }
    let samples: u64 = counts.values().sum();
    // Or chance alone would move a share by as much.
    assert!(samples > 2_000, "{samples} samples are too few");
    let theirs = shares(&counts);

    let mut top: Vec<_> = theirs.iter().collect();
    top.sort_by(|a, b| b.1.total_cmp(a.1));
    for (function, share) in top.into_iter().take(TOP) {
        // Two samplers differ by chance, too: three standard deviations of a difference.
        let chance = 3.0 * (2.0 * share * (1.0 - share) / samples as f64).sqrt();
        let our_share = ours.get(function).copied().unwrap_or(0.0);
        assert!(
            (our_share - share).abs() <= SHARE.max(chance),
            "{function}: {our_share:.4}, perf has {share:.4} of {samples}\n{ours:#?}"
        );
    }
}

/// One name for those functions that have several, of which perf shows another than we do.
fn aliases() -> BTreeMap<String, String> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    let mut first = BTreeMap::new();
    let mut aliases = BTreeMap::new();
    for line in symbols.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [address, _, name, ..] = words[..] else {
            continue;
        };
        let first = first.entry(address).or_insert(name);
        aliases.insert(name.to_owned(), (*first).to_owned());
    }
    aliases
}

fn shares(counts: &BTreeMap<String, u64>) -> BTreeMap<String, f64> {
    let all: u64 = counts.values().sum();
    let share = |count: u64| count as f64 / all as f64;
    counts
        .iter()
        .map(|(function, &count)| (function.clone(), share(count)))
        .collect()
}

/// Writes and syncs under another name, and tells how long it did not run meanwhile: the time that
/// passed, less the time that its own clock has counted.
const SYNCING: &str = r#"
import os, sys, time
def name(comm):
    with open("/proc/self/comm", "w") as file:
        file.write(comm)
    # What the name means must not be mixed up with how it was given.
    os.sched_yield()
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
name("syncer")
wall, ran, sync = time.monotonic_ns(), time.thread_time_ns(), 0
for i in range(400):
    os.pwrite(fd, b"x" * 4096, i * 4096)
    start, cpu = time.monotonic_ns(), time.thread_time_ns()
    os.fsync(fd)
    sync += time.monotonic_ns() - start - (time.thread_time_ns() - cpu)
away = time.monotonic_ns() - wall - (time.thread_time_ns() - ran)
name("done")
print(sync, away)
"#;

#[test]
fn time_off_the_cpu_in_fsync_is_what_the_process_has_measured() {
    let xfs = Xfs::new();
    let file = xfs.mountpoint().join("file");
    let script = xfs.outside("sync.py");
    fs::write(&script, SYNCING).unwrap();
    let workload = [OsStr::new("python3"), script.as_os_str(), file.as_os_str()];
    let recording = record(&["--probes", "offcpu,log,flush"], &workload);
    recording.expect_status(0);
    let printed = String::from_utf8_lossy(&recording.output.stdout).into_owned();
    let mut printed = printed.split_whitespace().map(|word| word.parse().unwrap());
    let (in_sync, away): (u64, u64) = (printed.next().unwrap(), printed.next().unwrap());

    let export = stacks("offcpu", &recording.file());
    let of_syncer: Vec<_> = rows(&export)
        .filter(|(row, _)| row["comm"] == "syncer")
        .collect();
    let sum = |which: &dyn Fn(&Value, &[&str]) -> bool| {
        let chosen = of_syncer.iter().filter(|(row, stack)| which(row, stack));
        chosen.map(|(row, _)| uint(&row["time_ns"])).sum::<u64>()
    };
    let all = sum(&|_, _| true);
    let fsync = |stack: &[&str]| stack.iter().any(|name| name.starts_with("xfs_file_fsync"));
    let in_fsync = sum(&|_, stack| fsync(stack));
    // It may lose the CPU on the way into the call or out of it, where no function of XFS is.
    let aside = sum(&|row, stack| row["label"] == "preempted" && !fsync(stack));
    let near = |measured: u64, known: u64| measured.abs_diff(known) * 50 <= known;
    assert!(near(all, away), "{all} ns measured, {away} known");
    assert!(
        in_fsync.abs_diff(in_sync) <= in_sync / 50 + aside,
        "{in_fsync} ns in fsync measured, {in_sync} known, {aside} preempted aside"
    );
    let reasons: Vec<_> = of_syncer
        .iter()
        .filter(|(_, stack)| fsync(stack))
        .map(|(row, _)| row["label"].as_str().unwrap())
        .collect();
    assert!(reasons.contains(&"log force"), "{reasons:?}");
}
