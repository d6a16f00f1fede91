//! Runs that take long, each to see that something stays as it is.

mod locks;

use crate::scratch::Scratch;
use crate::screen::Screen;
use crate::vm::Kernel;
use crate::{build, interrupt, setup};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A part: its name, and what it does.
type Part = (&'static str, fn(&Soak) -> Result<()>);

/// Every part.
const PARTS: &[Part] = &[("top", top), ("locks", locks::run)];

#[derive(Args)]
pub struct Options {
    /// Run this part only (repeatable)
    #[arg(value_name = "PART", value_parser = PARTS.iter().map(|part| part.0).collect::<Vec<_>>())]
    parts: Vec<String>,
    /// How long each part takes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// On this kernel only (repeatable), where a part boots some
    #[arg(long = "vm", value_name = "KERNEL")]
    kernels: Vec<Kernel>,
}

/// What a part works with.
struct Soak {
    tool: PathBuf,
    scratch: Scratch,
    time: Duration,
    /// Kernels to boot instead of what a part has itself.
    kernels: Vec<Kernel>,
}

/// Runs the parts.
///
/// # Errors
/// Something did not stay as it was, or could not be run.
pub fn run(options: &Options) -> Result<()> {
    interrupt::defer()?;
    let soak = Soak {
        tool: build::with(setup::all()?)?,
        scratch: Scratch::mount()?,
        time: Duration::from_secs(60) * options.minutes,
        kernels: options.kernels.clone(),
    };
    let wanted = |name: &str| options.parts.is_empty() || options.parts.iter().any(|p| p == name);
    let parts = PARTS.iter().filter(|(name, _)| wanted(name));
    for (name, part) in parts {
        part(&soak).with_context(|| (*name).to_owned())?;
    }
    Ok(())
}

/// What `top` keeps is complete after two minutes; from then on its memory may not grow.
const FILLED: Duration = Duration::from_secs(150);

/// Growth that is none, in megabytes: what an allocator may hold back.
const NOISE_MB: f64 = 3.0;

/// The memory of `top` under dbench.
fn top(soak: &Soak) -> Result<()> {
    let screen = Screen::top(&soak.tool, soak.scratch.device())?;
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < soak.time {
        // In pieces, because a signal to end is heeded between them.
        let mut dbench = soak.scratch.dbench(20, 2);
        let mut dbench = dbench.stdout(Stdio::null()).spawn().context("dbench")?;
        while dbench.try_wait()?.is_none() {
            sleep(Duration::from_millis(200));
            if let Err(stopped) = interrupt::check() {
                dbench.kill()?;
                dbench.wait()?;
                return Err(stopped);
            }
        }
        let megabytes = screen.megabytes()?;
        println!(
            "top: {megabytes:.1} MB after {:.0} s",
            begun.elapsed().as_secs_f64()
        );
        if begun.elapsed() > FILLED {
            samples.push(megabytes);
        }
    }
    if !screen.shown()?.contains("Rates") {
        bail!("it no longer shows numbers:\n{}", screen.shown()?);
    }
    let growth = growth(&samples).context("too short to tell")?;
    println!("top: memory grew by {growth:.1} MB since it was filled");
    if growth > NOISE_MB {
        bail!("memory is not flat: {samples:.1?} MB");
    }
    Ok(())
}

/// How much the later half is above the earlier half, by medians.
fn growth(samples: &[f64]) -> Option<f64> {
    let median = |samples: &[f64]| {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    };
    let (early, late) = samples.split_at(samples.len() / 2);
    Some(median(late)? - median(early)?)
}

#[cfg(test)]
mod tests {
    use super::growth;

    #[test]
    fn growth_is_between_halves() {
        assert_eq!(growth(&[5.0, 5.0, 9.0, 7.0, 7.0, 7.0]), Some(2.0));
        assert_eq!(growth(&[1.0]), None);
    }
}
