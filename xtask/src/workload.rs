//! The demo's own workload, for machines without dbench, one that takes many locks, and the clock
//! they are timed by.

use anyhow::{Context, Result, anyhow};
use nix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
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

/// Creates and unlinks `files` empty files in each of `threads` directories, a thread in each:
/// nearly all of it is spent in locks and transactions. Gives the time, and the CPU time, that it took.
///
/// # Errors
/// A file could not be created or removed.
pub fn churn(dir: &Path, threads: u32, files: u64) -> Result<(Duration, Duration)> {
    let directories: Vec<_> = (0..threads)
        .map(|number| dir.join(format!("churn-{number}")))
        .collect();
    for directory in &directories {
        fs::create_dir(directory).with_context(|| directory.display().to_string())?;
    }
    let (start, cpu) = (Instant::now(), cpu_time()?);
    thread::scope(|scope| {
        let running: Vec<_> = directories
            .iter()
            .map(|directory| scope.spawn(|| churn_in(directory, files)))
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })?;
    let (elapsed, cpu) = (start.elapsed(), cpu_time()?.saturating_sub(cpu));
    for directory in &directories {
        fs::remove_dir(directory)?;
    }
    Ok((elapsed, cpu))
}

/// CPU time of this process so far.
fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

fn churn_in(directory: &Path, files: u64) -> Result<()> {
    let name = |number: u64| directory.join(number.to_string());
    (0..files).try_for_each(|number| File::create(name(number)).map(drop))?;
    (0..files).try_for_each(|number| fs::remove_file(name(number)))?;
    Ok(())
}
