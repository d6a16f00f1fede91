//! How long a picture of a million distinct stacks takes, from the recording's file to the SVG.

use super::{Spread, milliseconds, verdict};
use crate::command::{self, command, output};
use crate::{interrupt, workload};
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

const STACKS: u32 = 1_000_000;
const PICTURES: usize = 3;
const GOAL_MS: f64 = 2_000.0;

/// Fills a recording with stacks that tools would make of a write-heavy run, each other in its two
/// innermost functions.
const FILL: &str = "
PRAGMA journal_mode = OFF;
DELETE FROM stacks; DELETE FROM stack_sums;
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :stacks)
INSERT INTO stacks (tick, stack, frames)
    SELECT 0, i, json_array('leaf_' || (i % 1000), 'inner_' || (i / 1000), 'xfs_' || (i % 17),
        'xlog_' || (i % 13), 'vfs_' || (i % 7), 'iomap_file_buffered_write', 'xfs_file_write_iter',
        'vfs_write', 'ksys_write', '__x64_sys_write', 'do_syscall_64',
        'entry_SYSCALL_64_after_hwframe')
    FROM n;
INSERT INTO stack_sums (tick, kind, pid, comm, workload, kernel_stack, count, time_ns, bytes)
    SELECT 0, 'cpu', 100 + stack % 50, 'worker-' || (stack % 50), 1, stack, 1, 1003009, 0 FROM stacks;
";

/// The stacks are what they should be: no two alike, and each of a thread.
fn check(recording: &Path) -> Result<()> {
    let distinct = "SELECT count(DISTINCT frames || comm)
        FROM stacks JOIN stack_sums ON kernel_stack = stack
        WHERE instr(frames, 'leaf_') = 3 AND comm LIKE 'worker-%'";
    let found = output(command("sqlite3", &[recording]).arg(distinct))?;
    ensure!(
        found.trim() == STACKS.to_string(),
        "the recording holds {} distinct stacks instead of {STACKS}",
        found.trim()
    );
    Ok(())
}

/// Measures with `tool` on `recording`, which is spoilt by it.
pub fn measure(tool: &Path, recording: &Path) -> Result<()> {
    let fill = FILL.replace(":stacks", &STACKS.to_string());
    output(command("sqlite3", &[recording]).arg(fill))?;
    check(recording)?;
    let picture = recording.with_extension("svg");
    let mut times = Vec::new();
    for _ in 0..PICTURES {
        interrupt::check()?;
        let before = workload::monotonic_ns()?;
        command::run(
            command(tool, &["flamegraph", "--kind", "cpu"])
                .arg(recording)
                .arg("-o")
                .arg(&picture),
        )?;
        times.push(milliseconds(workload::monotonic_ns()? - before));
    }
    let size = fs::metadata(&picture)?.len();
    let spread = Spread::of(&mut times)?;
    println!(
        "picture of {STACKS} distinct stacks: {spread} ms, {size} bytes; goal < {GOAL_MS} ms: {}",
        verdict(spread.median < GOAL_MS)
    );
    Ok(())
}
