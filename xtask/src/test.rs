//! Runs the levels in order and closes with a line for each, then one for all.

use crate::interrupt;
use crate::level::Level;
use crate::tally::Tally;
use crate::vm::Kernel;
use anyhow::Result;
use clap::ValueEnum;
use std::env;
use std::process::ExitCode;

/// Runs `levels`, or all of them when none is named; virtual machines with `kernels`. With `CI=true`
/// a level that cannot run has failed: there it should have been made possible.
///
/// # Errors
/// A signal asked for the end.
pub fn run(levels: &[Level], kernels: &[Kernel]) -> Result<ExitCode> {
    interrupt::defer()?;
    let in_ci = env::var("CI").is_ok_and(|value| value == "true");
    let levels = if levels.is_empty() {
        Level::value_variants()
    } else {
        levels
    };
    let mut total = Tally::default();
    let mut closing = Vec::new();
    for level in levels {
        eprintln!("== {}", level.name());
        for (name, result) in level.run(kernels) {
            interrupt::check()?;
            let could = result.is_ok();
            let tally = result.unwrap_or_else(|error| {
                let failed = if in_ci { Tally::failed } else { Tally::skipped };
                failed(format!("{error:#}"))
            });
            closing.push(line(
                &name,
                could && tally.passed + tally.failed != 0,
                &tally,
            ));
            total.add(&tally);
        }
    }
    println!();
    for line in closing {
        println!("{line}");
    }
    println!("{total}");
    Ok(if total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn line(name: &str, ran: bool, tally: &Tally) -> String {
    let ran = if ran { "ran" } else { "did not run" };
    let mut line = format!("{name:<9} {ran}: {tally}");
    if !tally.reasons.is_empty() {
        line = format!("{line} ({})", tally.reasons.join("; "));
    }
    line
}
