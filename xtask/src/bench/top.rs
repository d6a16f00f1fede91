//! What a screen of `top` costs, idle and while dbench runs.

use super::{Bench, CLIENTS, verdict};
use crate::interrupt;
use crate::screen::Screen;
use anyhow::{Context, Result};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SECONDS: u32 = 30;

/// Goals, in percent of one CPU.
const IDLE: f64 = 1.0;
const BUSY: f64 = 3.0;

/// Shares of one CPU that `top` itself takes at one look a second.
pub fn measure(bench: &Bench) -> Result<()> {
    let screen = Screen::top(&bench.tool, bench.scratch.device())?;
    told("idle", share(&screen)?, IDLE);
    let mut dbench = bench
        .scratch
        .dbench(SECONDS + 5, CLIENTS)
        .stdout(Stdio::null())
        .spawn()
        .context("dbench")?;
    let share = share(&screen);
    dbench.kill()?;
    dbench.wait()?;
    told("under dbench", share?, BUSY);
    Ok(())
}

fn told(when: &str, share: f64, goal: f64) {
    let verdict = verdict(share < goal);
    println!("top: {share:.2} % of one CPU {when}, {SECONDS} s; goal < {goal} %: {verdict}");
}

fn share(screen: &Screen) -> Result<f64> {
    let (before, begun) = (screen.cpu_ns()?, Instant::now());
    for _ in 0..SECONDS {
        sleep(Duration::from_secs(1));
        interrupt::check()?;
    }
    let used = screen.cpu_ns()?.saturating_sub(before);
    Ok(used as f64 / begun.elapsed().as_nanos() as f64 * 100.0)
}
