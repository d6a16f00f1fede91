//! What tracing the locks costs the load that takes most of them: two threads that create and unlink
//! empty files, on an XFS in memory.

use super::{Spread, verdict};
use crate::command::{command, output};
use crate::interrupt;
use crate::scratch::Scratch;
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 8;

/// The same tables by bpftrace.
const SCRIPT: &str = include_str!("locks.bt");

/// A way to run the load: its name, its goal in percent, and how.
type Way = (&'static str, Option<f64>, fn(&Run<'_>) -> Result<Command>);

/// What is held against the load alone.
const WAYS: &[Way] = &[
    ("every hold", Some(9.0), |run| Ok(run.record("off"))),
    ("holds of 1 in 8 inodes", Some(4.0), |run| {
        Ok(run.record("4"))
    }),
    ("bpftrace", None, |run| run.bpftrace()),
];

/// One run, on a filesystem that nothing has happened on: after an unlink the kernel goes on for
/// seconds.
struct Run<'a> {
    tool: &'a Path,
    scratch: Scratch,
    load: Vec<OsString>,
}

impl<'a> Run<'a> {
    fn new(tool: &'a Path) -> Result<Self> {
        let scratch = Scratch::mount_in_memory()?;
        let load = vec![
            env::current_exe()?.into(),
            "churn".into(),
            scratch.mountpoint().into(),
        ];
        Ok(Self {
            tool,
            scratch,
            load,
        })
    }

    fn alone(&self) -> Command {
        command(&self.load[0], &self.load[1..])
    }

    fn record(&self, budget: &str) -> Command {
        let mut record = command(self.tool, &["record", "-q", "--keep-root", "--probes"]);
        record.args(["ilock,locks", "--overhead-budget", budget, "--device"]);
        record.arg(self.scratch.device()).arg("-o");
        record.arg(self.scratch.outside().join("bench.data"));
        record.arg("--").args(&self.load);
        record
    }

    /// It reads the formats of tracepoints, so it gets a tracefs that nobody else sees.
    fn bpftrace(&self) -> Result<Command> {
        const IN_TRACEFS: &str = "mountpoint -q /sys/kernel/tracing || \
             mount -t tracefs tracefs /sys/kernel/tracing && exec \"$@\"";
        let outside = self.scratch.outside();
        let script = outside.join("locks.bt");
        std::fs::write(&script, SCRIPT)?;
        let load: Vec<_> = self
            .load
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        let mut bpftrace = command("unshare", &["-m", "sh", "-c", IN_TRACEFS, "sh", "bpftrace"]);
        bpftrace.env("BPFTRACE_MAP_KEYS_MAX", "65536").arg("-o");
        bpftrace.arg(outside.join("bpftrace.txt"));
        bpftrace.arg(script).arg("-c").arg(load.join(" "));
        Ok(bpftrace)
    }
}

/// The load's own time and its CPU time, in nanoseconds.
fn nanoseconds(run: &mut Command) -> Result<[f64; 2]> {
    let printed = output(run)?;
    let numbers = |line: &str| {
        let (elapsed, cpu) = line.split_once(' ')?;
        Some([elapsed.parse().ok()?, cpu.parse().ok()?])
    };
    let times = printed.lines().find_map(numbers);
    times.with_context(|| format!("the load printed no time:\n{printed}"))
}

/// Every way beside the load alone, round by round, each round beginning with another one.
///
/// On a machine that does other things too, CPU time is the steadier of the two.
pub fn measure(tool: &Path, rounds: Option<usize>) -> Result<()> {
    let rounds = rounds.unwrap_or(ROUNDS);
    let mut slower = vec![[Vec::new(), Vec::new()]; WAYS.len()];
    for round in 0..rounds {
        let mut times = vec![[0.0; 2]; WAYS.len() + 1];
        for turn in 0..times.len() {
            interrupt::check()?;
            let which = (turn + round) % times.len();
            let run = Run::new(tool)?;
            let mut command = match which.checked_sub(1) {
                None => run.alone(),
                Some(way) => WAYS[way].2(&run)?,
            };
            times[which] = nanoseconds(&mut command)?;
        }
        let shown = times.iter().map(|[elapsed, cpu]| {
            let (elapsed, cpu) = (elapsed / 1e9, cpu / 1e9);
            format!("{elapsed:.3} s ({cpu:.3} s of CPU)")
        });
        let shown: Vec<_> = shown.collect();
        println!("locks, round {round}: {}", shown.join(", "));
        for (slower, time) in slower.iter_mut().zip(&times[1..]) {
            for ((slower, time), alone) in slower.iter_mut().zip(time).zip(times[0]) {
                slower.push(100.0 * (time / alone - 1.0));
            }
        }
    }
    for ((name, goal, _), [elapsed, cpu]) in WAYS.iter().zip(&mut slower) {
        let (elapsed, cpu) = (Spread::of(elapsed)?, Spread::of(cpu)?);
        let goal = goal.map_or_else(String::new, |goal| {
            format!("; goal <= {goal} %: {}", verdict(elapsed.median <= goal))
        });
        println!(
            "locks, {name}: {elapsed} % slower, {rounds} rounds{goal}; CPU time: {cpu} % more"
        );
    }
    Ok(())
}
