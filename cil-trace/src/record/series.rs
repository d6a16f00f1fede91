//! A series of recordings: the same command again and again, or two by turns.
//!
//! One recording is `record`'s business; this decides what comes next, and when it is over.

use super::{Recorded, record};
use crate::options::{RecordOptions, Series, Target};
use crate::signals::Blocked;
use crate::workload::{self, Ended, Outputs, Prepared, RunAs, Subject, Watch, chown_back};
use anyhow::{Context as _, Result, bail};
use cil_trace_core::session::SeriesPosition;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};

/// The two sides, as directories and as recordings name them.
const SIDES: [&str; 2] = ["a", "b"];

/// Records the series. The status is 0 if every run succeeded, else that of the run that did not:
/// the series ends with it, and what was recorded is kept.
///
/// # Errors
///
/// A recording could not be made, or a run not prepared; the recordings before it are kept.
pub(super) async fn run(options: &RecordOptions, series: &Series, blocked: &Blocked) -> Result<u8> {
    let directory = Directory::make(&options.output, series)?;
    let id = format!("{}/{}", jiff::Timestamp::now(), std::process::id());
    let plan = plan(series);
    let mut ended = Ok(None);
    for step in &plan {
        let path = directory.recording(step);
        let position = format!(
            "run {} of {}: {}",
            step.position,
            plan.len(),
            path.display()
        );
        say(options, &position);
        ended = one(options, series, step, &path, &id, blocked).await;
        if !matches!(ended, Ok(None)) {
            break;
        }
    }
    let kept = directory.hand_over(&plan)?;
    let shown = options.output.display();
    if kept < plan.len() || !matches!(ended, Ok(None)) {
        log::warn!(
            "the series ends early; {kept} of {} recordings are in {shown}",
            plan.len()
        );
    } else {
        let sides = match series.against {
            Some(_) => format!("{shown}/a {shown}/b"),
            None => format!("{shown} OTHER"),
        };
        say(
            options,
            &format!("{kept} recordings; cil-trace compare {sides}"),
        );
    }
    Ok(ended?.unwrap_or(0))
}

/// Runs the command that comes before a recording. The status is that of a stop that was asked for.
///
/// # Errors
///
/// It failed, so that there is nothing to record.
pub(super) async fn prepare(command: &str, blocked: &Blocked) -> Result<Option<u8>> {
    let options = workload::Options {
        // What it prints is no output of the workload.
        argv: shell(&format!("exec >&2\n{command}")),
        run_as: RunAs::Ourselves,
        capture: false,
        results: Vec::new(),
    };
    let mut outputs = Outputs::start(&options, blocked)?;
    let started = Prepared::new(&options, &mut outputs, blocked)?.go()?;
    let mut watch = Watch::new(Subject::command(started)?, blocked, None)?;
    let ended = watch.ended().await?;
    match (
        watch.stopped() || ended == Ended::Aborted,
        ended.exit_code(),
    ) {
        (true, code) => Ok(Some(stopped(code))),
        (false, 0) => Ok(None),
        (false, code) => bail!("--prepare: `{command}` ended with status {code}"),
    }
}

/// One recording; the status if the series ends with it.
async fn one(
    options: &RecordOptions,
    series: &Series,
    step: &Step,
    path: &Path,
    id: &str,
    blocked: &Blocked,
) -> Result<Option<u8>> {
    if let Some(signal) = blocked.asked_to_stop()? {
        return Ok(Some(128 + signal as u8));
    }
    if let Some(command) = &series.prepare
        && let Some(status) = prepare(command, blocked).await?
    {
        return Ok(Some(status));
    }
    let mut single = options.clone();
    single.output = path.to_owned();
    single.quiet = true;
    if let (1, Some(against), Target::Command(command)) =
        (step.side, &series.against, &mut single.target)
    {
        command.argv.clone_from(against);
    }
    let position = SeriesPosition {
        id: id.to_owned(),
        side: SIDES[step.side].to_owned(),
        round: step.round,
        position: step.position,
    };
    let Recorded {
        status,
        succeeded,
        stopped,
    } = record(&single, Some(position), blocked).await?;
    if stopped {
        return Ok(Some(self::stopped(status)));
    }
    if !succeeded {
        log::warn!("{}: this run ended with status {status}", path.display());
        return Ok(Some(status));
    }
    Ok(None)
}

/// A stop is no success, even if the command made it one.
fn stopped(status: u8) -> u8 {
    if status == 0 {
        128 + Signal::SIGINT as u8
    } else {
        status
    }
}

/// The command line that a shell runs `text` with.
pub fn shell(text: &str) -> Vec<OsString> {
    ["sh", "-c", text].map(OsString::from).to_vec()
}

/// One run of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    /// Which of [`SIDES`].
    side: usize,
    /// From 1; each side runs once in it.
    round: u32,
    /// From 1, in the order of time.
    position: u32,
}

/// A A A .., or A B, B A, A B ..: a drift of the machine falls on both sides alike.
fn plan(series: &Series) -> Vec<Step> {
    let mut plan = Vec::new();
    for round in 1..=series.runs {
        let order: &[usize] = match (&series.against, round % 2) {
            (None, _) => &[0],
            (Some(_), 1) => &[0, 1],
            (Some(_), _) => &[1, 0],
        };
        for &side in order {
            let position = u32::try_from(plan.len())
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            plan.push(Step {
                side,
                round,
                position,
            });
        }
    }
    plan
}

/// Where the recordings go.
struct Directory {
    top: PathBuf,
    /// One per side, or the top itself.
    sides: Vec<PathBuf>,
}

impl Directory {
    /// Makes it; it must not hold anything, as recordings of another series among these would make
    /// every comparison wrong.
    fn make(top: &Path, series: &Series) -> Result<Self> {
        let shown = top.display();
        if top.is_file() {
            bail!("{shown} is a file, and --runs writes a directory: give another with -o DIR");
        }
        let occupied = fs::read_dir(top).is_ok_and(|mut entries| entries.next().is_some());
        if occupied {
            bail!("{shown} is not empty: give a new directory with -o DIR, or move it away");
        }
        let sides: Vec<PathBuf> = match series.against {
            Some(_) => SIDES.iter().map(|side| top.join(side)).collect(),
            None => vec![top.to_owned()],
        };
        for side in &sides {
            fs::create_dir_all(side).with_context(|| {
                format!(
                    "cannot create {}; give another directory with -o DIR",
                    side.display()
                )
            })?;
        }
        Ok(Self {
            top: top.to_owned(),
            sides,
        })
    }

    fn recording(&self, step: &Step) -> PathBuf {
        self.sides[step.side].join(format!("{:03}.data", step.round))
    }

    /// How many recordings there are; without one nothing remains. The directories belong to the
    /// user who called sudo, as the recordings do.
    fn hand_over(&self, plan: &[Step]) -> Result<usize> {
        let kept = plan
            .iter()
            .filter(|step| self.recording(step).exists())
            .count();
        for directory in self.sides.iter().chain([&self.top]) {
            if kept > 0 {
                chown_back(directory)?;
            } else {
                // It fails if it is gone already, or if somebody has put something there.
                let _ = fs::remove_dir(directory);
            }
        }
        Ok(kept)
    }
}

fn say(options: &RecordOptions, what: &str) {
    if !options.quiet {
        // Nobody is left to tell if this fails.
        let _ = writeln!(stderr(), "cil-trace: {what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(runs: u32, against: Option<Vec<OsString>>) -> Vec<(usize, u32, u32)> {
        let series = Series {
            runs,
            against,
            prepare: None,
        };
        plan(&series)
            .iter()
            .map(|step| (step.side, step.round, step.position))
            .collect()
    }

    #[test]
    fn two_commands_take_turns_at_going_first() {
        let against = Some(shell("true"));
        assert_eq!(
            order(3, against),
            [
                (0, 1, 1),
                (1, 1, 2),
                (1, 2, 3),
                (0, 2, 4),
                (0, 3, 5),
                (1, 3, 6)
            ]
        );
        assert_eq!(order(2, None), [(0, 1, 1), (0, 2, 2)]);
    }
}
