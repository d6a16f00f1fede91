//! Runs the levels in order and closes with a line for each, then one for all.

use crate::interrupt;
use crate::level::Level;
use crate::tally::Tally;
use anyhow::Result;
use clap::ValueEnum;
use std::env;
use std::process::ExitCode;

/// Runs `levels`, or all of them when none is named. With `CI=true` a level that cannot run has
/// failed: there it should have been made possible.
///
/// # Errors
/// A signal asked for the end.
pub fn run(levels: &[Level]) -> Result<ExitCode> {
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
        let (ran, tally) = match level.run() {
            Ok(tally) => ("ran", tally),
            Err(error) => {
                interrupt::check()?;
                let reason = format!("{error:#}");
                (
                    "did not run",
                    if in_ci {
                        Tally::failed(reason)
                    } else {
                        Tally::skipped(reason)
                    },
                )
            }
        };
        let mut line = format!("{:<7} {ran}: {tally}", level.name());
        if !tally.reasons.is_empty() {
            line = format!("{line} ({})", tally.reasons.join("; "));
        }
        closing.push(line);
        total.add(&tally);
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
