//! The command line: flags, help and their translation into plain options.
//!
//! The one place where a flag is spelled; help, man pages and completions come from the same
//! [`command`]. Nothing is looked up, opened or run here.

mod compare;
mod pictures;
mod repeat;
mod top;

use crate::options::{
    DEFAULT_FILE, Filter, Invocation, ListFormat, RecordOptions, ReportOptions, SAMPLING_HZ,
    Target, Tracing,
};
use crate::workload::{self, RunAs};
use cil_trace_core::probes::Set;
use cil_trace_core::report::format::{Format, RenderError};
use cil_trace_core::report::sections;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Error, FromArgMatches as _, Parser, Subcommand};
use pictures::{ExportArgs, FlamegraphArgs};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use top::TopArgs;

/// Sees what the XFS log does to a workload: who flushed, who forced the log, who waited
///
/// Put `cil-trace record` before a command that works on an XFS filesystem, then ask `cil-trace
/// report` which cache flushes, log forces and waits it caused, and why.
#[derive(Parser)]
#[command(name = "cil-trace", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cil-trace record -- dbench -t 60 8
  cil-trace report
  cil-trace report flushes --format markdown
  cil-trace compare old.data new.data
  cil-trace top
  cil-trace flamegraph --kind flush -o flush.svg";

#[derive(Subcommand)]
enum Command {
    Record(Box<RecordArgs>),
    Top(TopArgs),
    Report(ReportArgs),
    Compare(compare::CompareArgs),
    Flamegraph(FlamegraphArgs),
    Export(ExportArgs),
    /// Tell what can be measured on this kernel, what cannot, why, and the remedy
    Doctor(ListArgs),
    /// List the probes and the ways to attach each
    Probes(ListArgs),
    /// Print what decides about the probes on this kernel, for the tests that hold other kernels
    #[command(hide = true)]
    Facts,
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  cil-trace completions bash > /etc/bash_completion.d/cil-trace")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    #[command(after_help = "Example:
  cil-trace man /usr/local/share/man/man1")]
    Man {
        /// The directory; made if it is not there
        dir: PathBuf,
    },
}

/// Record what the XFS log does while a command runs
///
/// The command starts when every probe is attached; its descendants count as the workload, all
/// else as others. Its standard input, output and error are left as they are, and its exit status
/// is passed on: 128 and the signal's number if one ended it, 127 if it was not found, 126 if it
/// could not be executed, 125 if cil-trace itself failed. The first Ctrl-C ends the command and
/// the recording is still written; a second one aborts.
///
/// Without a command, a process (-p), everything (-a) or a stretch of time (--duration) is
/// recorded until it is over or Ctrl-C comes.
#[derive(Args)]
#[command(
    override_usage = "cil-trace record [OPTIONS] [-p PID | -a | [--] COMMAND [ARGS]...]",
    after_help = RECORD_EXAMPLES
)]
struct RecordArgs {
    /// The recording to write (cil-trace.data if not given); an older one is kept as FILE.old. With
    /// --runs a new directory (cil-trace.runs)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Count this process as the workload, until it ends
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["all", "command"],
          value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Record the whole machine, also before any XFS is mounted; with a command, until that ends
    #[arg(short, long)]
    all: bool,
    /// Keep only the filesystem mounted here, and the devices beneath it (may be repeated)
    #[arg(long, value_name = "PATH")]
    mount: Vec<PathBuf>,
    /// Keep only the filesystem on this device, loop2 or /dev/loop2 (may be repeated)
    #[arg(long, value_name = "DEV", value_parser = device_name)]
    device: Vec<String>,
    /// Probe sets to switch on, separated by commas; if not given, every set but offcpu
    #[arg(long, value_name = "SET", value_delimiter = ',', value_parser = probe_sets())]
    probes: Vec<String>,
    /// Samples a second that the set cpu takes of each CPU
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = SAMPLING_HZ,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frequency: u32,
    /// Time between two snapshots, such as 1s or 250ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// What tracing locks of inodes may cost, percent of the CPUs' time: the less, the fewer inodes
    /// have their holds and callers measured (counts and waits stay exact); `off` for all inodes
    #[arg(long, value_name = "PCT|off", default_value = "4", value_parser = overhead_budget)]
    overhead_budget: u32,
    /// End after this time, such as 500ms, 10s or 2m; a command gets TERM, five seconds later KILL
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    #[command(flatten)]
    repeat: repeat::RepeatArgs,
    /// Run the command as this user (needs root)
    #[arg(
        long,
        value_name = "NAME",
        requires = "command",
        conflicts_with = "keep_root"
    )]
    user: Option<String>,
    /// Under sudo, run the command as root and not as the user who called sudo
    #[arg(long, requires = "command")]
    keep_root: bool,
    /// Read the benchmark's results from the command's standard output, copied through a pipe
    #[arg(long, requires = "command")]
    capture: bool,
    /// Read the benchmark's results from this file, written by the command (may be repeated)
    #[arg(long, value_name = "FILE", requires = "command")]
    results: Vec<PathBuf>,
    /// Fail if anything was lost
    #[arg(long)]
    strict: bool,
    /// No summary at the end
    #[arg(short, long)]
    quiet: bool,
    /// The command to run, and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

const RECORD_EXAMPLES: &str = "\
Examples:
  cil-trace record -- dbench -t 60 8
  cil-trace record --mount /srv --capture -o new.data -- fio --output-format=json job.fio
  cil-trace record --runs 10 --prepare 'rm -rf /mnt/x/*' -o runs/6.12 -- dbench -D /mnt/x -t 30 8
  cil-trace record --runs 8 --against 'fio --fsync=10 job.fio' -o ab -- fio --fsync=1 job.fio
  cil-trace record --duration 10s
  cil-trace record -p \"$(pidof postgres | cut -d' ' -f1)\"
  sudo cil-trace record --user postgres -- pgbench -T 60";

/// `--probes` for every set.
const ALL_SETS: &str = "all";

/// The values of `--probes`, from the probe table.
fn probe_sets() -> PossibleValuesParser {
    let sets = Set::ALL
        .iter()
        .map(|set| PossibleValue::new(set.name()).help(set.description()));
    PossibleValuesParser::new(
        std::iter::once(PossibleValue::new(ALL_SETS).help("Every set")).chain(sets),
    )
}

/// Show what a recording says
///
/// A word that is a section's name is a section, any other the recording; write ./pushes for a
/// file of that name. Needs neither root nor the machine that was recorded.
#[derive(Args)]
struct ReportArgs {
    /// The recording (cil-trace.data if not given), and the sections to show (all if not given)
    #[arg(value_name = "FILE|SECTION")]
    words: Vec<OsString>,
    /// The format; csv and markdown take one section
    #[arg(long, value_name = "FORMAT", default_value = Format::Text.name(), value_parser = format())]
    format: Format,
    /// Add one row per snapshot
    #[arg(long)]
    per_tick: bool,
    /// Write the report as an HTML page
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  cil-trace report
  cil-trace report before.data flushes pushes
  cil-trace report --format json | jq '.flushes[] | {cause, requested}'
  cil-trace report iclogs --format csv";

#[derive(Args)]
struct ListArgs {
    /// The format
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    format: ListFormat,
}

/// The whole command line, as completions and man pages need it.
#[must_use]
pub fn command() -> clap::Command {
    let sections: Vec<_> = sections::section_names().collect();
    Cli::command().mut_subcommand("report", |report| {
        report.after_help(format!(
            "{REPORT_EXAMPLES}\n\nSections: {}",
            sections.join(", ")
        ))
    })
}

/// Parses a command line, program name first.
///
/// # Errors
/// What clap has to say: usage errors, and the texts of --help and --version.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, Error> {
    let cli = Cli::from_arg_matches(&command().try_get_matches_from(args)?)?;
    Ok(match cli.command {
        Command::Record(args) => Invocation::Record(args.options()?),
        Command::Top(args) => Invocation::Top(args.options()),
        Command::Report(args) => Invocation::Report(args.options()?),
        Command::Flamegraph(args) => Invocation::Flamegraph(args.options()),
        Command::Export(args) => Invocation::Export(args.options()?),
        Command::Compare(args) => Invocation::Compare(args.options()?),
        Command::Doctor(args) => Invocation::Doctor(args.format),
        Command::Probes(args) => Invocation::Probes(args.format),
        Command::Facts => Invocation::Facts,
        Command::Completions { shell } => Invocation::Completions(shell),
        Command::Man { dir } => Invocation::Man(dir),
    })
}

/// An error that clap did not find, in its form.
fn usage(subcommand: &str, kind: ErrorKind, message: String) -> Error {
    let mut command = command();
    command.build();
    match command.find_subcommand_mut(subcommand) {
        Some(found) => found.error(kind, message),
        None => command.error(kind, message),
    }
}

impl RecordArgs {
    fn options(self) -> Result<RecordOptions, Error> {
        let capture = self.capture || self.repeat.is_series();
        let (repeat, output) = self.repeat.options(self.output);
        let target = if !self.command.is_empty() {
            let run_as = match self.user {
                Some(user) => RunAs::User(user),
                None if self.keep_root => RunAs::Ourselves,
                None => RunAs::Invoker,
            };
            Target::Command(workload::Options {
                argv: self.command,
                run_as,
                capture,
                results: self.results,
            })
        } else if let Some(pid) = self.pid {
            Target::Process(pid)
        } else if self.all || self.duration.is_some() {
            Target::Everything
        } else {
            return Err(usage(
                "record",
                ErrorKind::MissingRequiredArgument,
                "nothing says when to stop recording: give a command (-- COMMAND), a process \
                 (-p PID), a time (--duration 10s), or -a to record until Ctrl-C"
                    .to_owned(),
            ));
        };
        let chosen = |set: &Set| {
            let names = [ALL_SETS, set.name()];
            let mut asked = self.probes.iter().map(String::as_str);
            asked.any(|name| names.contains(&name)) || self.probes.is_empty() && set.by_default()
        };
        Ok(RecordOptions {
            output,
            repeat,
            target,
            tracing: Tracing {
                filters: filters(self.mount, self.device),
                wait_for_xfs: self.all,
                probes: Set::ALL.iter().copied().filter(chosen).collect(),
                interval: self.interval,
                sampling_hz: self.frequency,
                sampling: self.overhead_budget,
            },
            duration: self.duration,
            strict: self.strict,
            quiet: self.quiet,
        })
    }
}

impl ReportArgs {
    fn options(self) -> Result<ReportOptions, Error> {
        let (mut sections, mut input) = (Vec::new(), None);
        for word in self.words {
            match word.to_str() {
                Some(name) if sections::find(name).is_some() => sections.push(name.to_owned()),
                _ if input.is_none() => input = Some(PathBuf::from(word)),
                _ => {
                    // The recording is given already.
                    let unknown = RenderError::UnknownSection(word.display().to_string());
                    return Err(usage(
                        "report",
                        ErrorKind::InvalidValue,
                        unknown.to_string(),
                    ));
                }
            }
        }
        Ok(ReportOptions {
            input: input.unwrap_or_else(|| DEFAULT_FILE.into()),
            sections,
            format: self.format,
            per_tick: self.per_tick,
            html: self.html,
        })
    }
}

/// A report's format, by its name.
fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name()))
        .try_map(|name| name.parse::<Format>())
}

/// The filesystems to keep.
fn filters(mounts: Vec<PathBuf>, devices: Vec<String>) -> Vec<Filter> {
    let devices = devices.into_iter().map(Filter::Device);
    mounts
        .into_iter()
        .map(Filter::Mount)
        .chain(devices)
        .collect()
}

/// A time that is not zero.
fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("must be longer than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}; write it as 500ms, 10s or 2m")),
    }
}

/// Of inodes, 1 in so many is to be sampled: from the budget for a load that takes nearly a million
/// locks of inodes a second on each CPU, which costs some 3 % for the counts and 6 % more if every
/// hold is measured.
fn overhead_budget(text: &str) -> Result<u32, String> {
    const COUNTS: f64 = 3.2;
    const HOLDS: f64 = 5.7;
    const MOST: u32 = 64;
    if text == "off" {
        return Ok(1);
    }
    let percent: f64 = text
        .trim_end_matches('%')
        .parse()
        .ok()
        .filter(|percent| *percent > 0.0)
        .ok_or("write it in percent, such as 4, or off")?;
    let samplings = (0..).map(|power| 1 << power);
    Ok(samplings
        .take_while(|&n| n < MOST)
        .find(|&n| COUNTS + HOLDS / f64::from(n) <= percent + 0.05)
        .unwrap_or(MOST))
}

/// The bare name of a device.
fn device_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    if name.is_empty() || name.starts_with('/') {
        return Err("write it as loop2 or /dev/loop2; `lsblk` lists them".to_owned());
    }
    Ok(name.to_owned())
}
