//! How fast a comparison is, and how often it is wrong.

use super::verdict;
use crate::command::{cargo, command, run};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use tempfile::TempDir;

const CASES: u64 = 53;
const SIDES: u64 = 3;
const METRICS: u64 = 500;
const RUNS: u64 = 10;
const GOAL_S: f64 = 1.0;
/// The first reads the files from disk, so the best of several is the program's own time.
const REPEATS: usize = 5;

/// Simulated runs through the statistics, then many runs through the whole program.
///
/// # Errors
/// Cargo or the program failed, or there is no room for the files.
pub fn measure(tool: &Path) -> Result<()> {
    run(cargo().args(["bench", "--package=cil-trace-core", "--bench=compare"]))?;
    let directory = TempDir::new().context("no room for matrices")?;
    let sides = matrices(directory.path())?;
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let before = Instant::now();
        let mut compare = command(tool, &["compare"]);
        run(compare.args(&sides).stdout(Stdio::null()))?;
        best = best.min(before.elapsed().as_secs_f64());
    }
    println!(
        "compare: {best:.2} s for {CASES} cases x {SIDES} sides x {METRICS} metrics x {RUNS} runs, \
         the best of {REPEATS}; goal < {GOAL_S} s: {}",
        verdict(best < GOAL_S)
    );
    Ok(())
}

/// A directory per side, in it one per test case, in that LKP's matrix.
fn matrices(top: &Path) -> Result<Vec<std::path::PathBuf>> {
    // Xorshift (Marsaglia 2003); the same numbers in every run.
    let mut state = 88_172_645_463_325_252_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // The sum of two is close enough to a bell.
        ((state >> 32) as f64 + (state & 0xffff_ffff) as f64) / f64::from(u32::MAX) - 1.0
    };
    let mut sides = Vec::new();
    for side in 0..SIDES {
        let path = top.join(format!("v6.{side}"));
        for case in 0..CASES {
            let directory = path.join(format!("case-{case:02}"));
            fs::create_dir_all(&directory)?;
            let mut json = String::from("{");
            for metric in 0..METRICS {
                let mean = 100.0 * (metric + 1) as f64 * (1.0 + 0.01 * side as f64);
                let values: Vec<String> = (0..RUNS)
                    .map(|_| format!("{:.3}", mean * (1.0 + 0.05 * noise())))
                    .collect();
                let comma = if metric == 0 { "" } else { ",\n" };
                let _ = write!(
                    json,
                    "{comma}\"monitor{}.metric.{metric}\": [{}]",
                    metric % 7,
                    values.join(", ")
                );
            }
            json.push('}');
            fs::write(directory.join("matrix.json"), json)?;
        }
        sides.push(path);
    }
    Ok(sides)
}
