//! Measures what tracing costs its user: the wait before the workload starts, memory, slow-down;
//! how long a large picture takes; and how fast and how often wrong a comparison is.
//!
//! Prints numbers and whether each meets its goal; asserts nothing, since time is not a test.

mod compare;
mod locks;
mod picture;
mod top;

use crate::command::{command, output};
use crate::scratch::Scratch;
use crate::{build, interrupt, setup, workload};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

const STARTS: usize = 10;
const START_GOAL_MS: f64 = 700.0;
const MEMORY_SECONDS: u32 = 60;
const MEMORY_GOAL_MB: f64 = 80.0;
const PAIRS: usize = 4;
const PAIR_SECONDS: u32 = 10;
const CLIENTS: u32 = 2;
/// Made anew by every measurement that records.
const RECORDING: &str = "bench.data";
const POLL: Duration = Duration::from_millis(50);

/// A measurement: its name, and what it does.
type Part = (&'static str, fn(&Bench) -> Result<()>);

/// Every measurement, in order.
const PARTS: &[Part] = &[
    ("start-up", Bench::start_up),
    ("memory", Bench::memory),
    ("slow-down", Bench::slow_down),
    ("picture", |bench| {
        picture::measure(&bench.tool, &bench.scratch.outside().join(RECORDING))
    }),
    ("locks", |bench| locks::measure(&bench.tool, bench.pairs)),
    ("compare", |bench| compare::measure(&bench.tool)),
    ("top", top::measure),
];

/// Their names.
pub fn names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}

/// Runs these measurements, or without any name all of them: about eight minutes. `pairs` is how
/// often what takes turns has its turn.
///
/// # Errors
/// Setting up or a run failed, or a signal came.
pub fn run(wanted: &[String], pairs: Option<usize>) -> Result<()> {
    interrupt::defer()?;
    let bench = Bench {
        tool: build::with(setup::all()?)?,
        scratch: Scratch::mount()?,
        pairs,
    };
    PARTS
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))
        .try_for_each(|(_, part)| part(&bench))
}

struct Bench {
    tool: PathBuf,
    scratch: Scratch,
    /// Of what takes turns, instead of what each measurement has itself.
    pairs: Option<usize>,
}

impl Bench {
    /// `cil-trace record`, which writes beside the traced filesystem, not on it.
    fn record(&self) -> Command {
        let mut record = command(&self.tool, &["record", "-q", "--keep-root", "--device"]);
        record.arg(self.scratch.device());
        record
            .arg("-o")
            .arg(self.scratch.outside().join(RECORDING))
            .arg("--");
        record
    }

    /// From exec of `cil-trace record` to the workload's first act.
    fn start_up(&self) -> Result<()> {
        let mut waits = Vec::new();
        for _ in 0..STARTS {
            interrupt::check()?;
            let before = workload::monotonic_ns()?;
            let printed = output(self.record().arg(env::current_exe()?).arg("now"))?;
            let started: u64 = printed.trim().parse().context("the workload's clock")?;
            waits.push(milliseconds(started.saturating_sub(before)));
        }
        let spread = Spread::of(&mut waits)?;
        println!(
            "start of the workload: {spread} ms after exec of record, {STARTS} runs; goal < {START_GOAL_MS} ms: {}",
            verdict(spread.max < START_GOAL_MS)
        );
        Ok(())
    }

    /// Peak resident memory of cil-trace itself during a long dbench.
    fn memory(&self) -> Result<()> {
        let mut record = self.record();
        add(&mut record, &self.scratch.dbench(MEMORY_SECONDS, CLIENTS));
        let mut child = record.stdout(Stdio::null()).spawn()?;
        let peak = watch_peak(&mut child)?;
        println!(
            "memory: {peak:.1} MB at most during {MEMORY_SECONDS} s of dbench; goal < {MEMORY_GOAL_MB} MB: {}",
            verdict(peak < MEMORY_GOAL_MB)
        );
        Ok(())
    }

    /// dbench with and without tracing, taking turns at going first so that drift cancels.
    fn slow_down(&self) -> Result<()> {
        let plain = || throughput(&mut self.scratch.dbench(PAIR_SECONDS, CLIENTS));
        let traced = || {
            let mut record = self.record();
            add(&mut record, &self.scratch.dbench(PAIR_SECONDS, CLIENTS));
            throughput(&mut record)
        };
        let mut losses = Vec::new();
        let pairs = self.pairs.unwrap_or(PAIRS);
        for pair in 0..pairs {
            interrupt::check()?;
            let (without, with) = if pair.is_multiple_of(2) {
                let without = plain()?;
                (without, traced()?)
            } else {
                let with = traced()?;
                (plain()?, with)
            };
            let loss = 100.0 * (1.0 - with / without);
            println!("dbench: {without:.1} MB/s untraced, {with:.1} MB/s traced: {loss:.1} % less");
            losses.push(loss);
        }
        let spread = Spread::of(&mut losses)?;
        println!("slow-down: {spread} %, {pairs} pairs of {PAIR_SECONDS} s");
        Ok(())
    }
}

/// Appends `workload` to the command line of `record`.
fn add(record: &mut Command, workload: &Command) {
    record.arg(workload.get_program()).args(workload.get_args());
}

/// Megabytes a second, from dbench's last line.
fn throughput(dbench: &mut Command) -> Result<f64> {
    let printed = output(dbench)?;
    printed
        .lines()
        .find_map(|line| {
            line.strip_prefix("Throughput ")?
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
        .with_context(|| format!("dbench printed no throughput:\n{printed}"))
}

/// The kernel keeps the peak until the process ends, so only what is after the last look is missed.
fn watch_peak(child: &mut Child) -> Result<f64> {
    let status = Path::new("/proc")
        .join(child.id().to_string())
        .join("status");
    let mut peak = 0.0;
    loop {
        if let Some(now) = fs::read_to_string(&status)
            .ok()
            .as_deref()
            .and_then(peak_megabytes)
        {
            peak = now;
        }
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("the recorded dbench failed: {status}");
            }
            return Ok(peak);
        }
        thread::sleep(POLL);
    }
}

/// VmHWM of /proc/PID/status, which is in KiB; absent in a process that is ending.
fn peak_megabytes(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

fn milliseconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e3
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT met" }
}

/// Smallest, median and largest of some measurements.
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    fn of(values: &mut [f64]) -> Result<Self> {
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            bail!("nothing was measured");
        };
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            values[middle - 1].midpoint(values[middle])
        } else {
            values[middle]
        };
        Ok(Self { min, median, max })
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "min {:.1}, median {:.1}, max {:.1}",
            self.min, self.median, self.max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::unwrap_used, reason = "a failure is the test's")]
    fn an_even_number_of_values_has_its_median_between_two() {
        let spread = Spread::of(&mut [4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread.to_string(), "min 1.0, median 2.5, max 4.0");
        assert!(Spread::of(&mut []).is_err());
    }

    #[test]
    fn vmhwm_is_read_in_megabytes() {
        let status = "Name:\tcil-trace\nVmPeak:\t  120000 kB\nVmHWM:\t   50000 kB\n";
        assert_eq!(peak_megabytes(status), Some(51.2));
        assert_eq!(peak_megabytes("Name:\tzombie\n"), None);
    }
}
