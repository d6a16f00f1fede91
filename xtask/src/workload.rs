//! The demo's own workload, for machines without dbench, and the clock it is timed by.

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// CLOCK_MONOTONIC, nanoseconds.
///
/// # Errors
/// The clock cannot be read.
pub fn monotonic_ns() -> Result<u64> {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
    u64::try_from(now.as_nanos()).context("CLOCK_MONOTONIC")
}

/// For `seconds`: create, write, fsync, and unlink all but the last hundred files in `dir`.
///
/// # Errors
/// A file could not be written, synced or removed.
pub fn run(dir: &Path, seconds: u64) -> Result<()> {
    const KEPT: u64 = 100;
    let name = |number: u64| dir.join(format!("file-{number}"));
    let start = Instant::now();
    let mut files = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        let path = name(files);
        let written = File::create(&path)
            .and_then(|mut file| file.write_all(&[0; 4096]).and_then(|()| file.sync_all()));
        written.with_context(|| path.display().to_string())?;
        if let Some(old) = files.checked_sub(KEPT) {
            fs::remove_file(name(old)).context("removing an old file")?;
        }
        files += 1;
    }
    println!("{files} files created, written and synced in {seconds} s");
    Ok(())
}
