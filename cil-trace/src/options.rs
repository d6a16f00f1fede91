//! What a command is asked to do, in plain types: the engine's side of the command line.
//!
//! Nothing here knows a flag's spelling.

use crate::workload;
use cil_trace_common::stack::StackKind;
use cil_trace_core::compare::{self, style::Style};
use cil_trace_core::export;
use cil_trace_core::flame::Per;
use cil_trace_core::probes::Set;
use cil_trace_core::profile::Weight;
use cil_trace_core::report::format::Format;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The recording that `record` writes and every reader looks for, unless told otherwise.
pub const DEFAULT_FILE: &str = "cil-trace.data";

/// The directory that `record --runs` fills, unless told otherwise.
pub const DEFAULT_DIRECTORY: &str = "cil-trace.runs";
/// Samples a second, unless told otherwise. A thousand tell a share of 1 % within 0.6 points in one
/// second of one CPU, at 3 to 6 us each; a prime keeps out of step with timers of 100, 250 and
/// 1,000 Hz.
pub const SAMPLING_HZ: u32 = 997;

/// Of inodes, 1 in so many has its locks' holds and callers measured unless told otherwise.
pub const SAMPLING: u32 = 8;

/// One command line.
#[derive(Clone, PartialEq, Debug)]
pub enum Invocation {
    /// `record`
    Record(RecordOptions),
    /// `top`
    Top(TopOptions),
    /// `report`
    Report(ReportOptions),
    /// `export`
    Export(ExportOptions),
    /// `compare`
    Compare(CompareOptions),
    /// `flamegraph`
    Flamegraph(FlamegraphOptions),
    /// `doctor`
    Doctor(ListOptions),
    /// `probes`
    Probes(ListOptions),
    /// `facts`
    Facts,
    /// `completions`
    Completions(clap_complete::Shell),
    /// `man`: the directory to fill.
    Man(PathBuf),
}

/// How often to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// Once, into a file.
    Once {
        /// Run by a shell before.
        prepare: Option<String>,
    },
    /// Several times, into a directory.
    Series(Series),
}

/// The same command again and again, or two by turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// Runs of each command; never zero.
    pub runs: u32,
    /// The other command.
    pub against: Option<Vec<OsString>>,
    /// Run by a shell before each run.
    pub prepare: Option<String>,
}

/// What to record, how, and into which file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordOptions {
    /// The recording; of a series the directory of recordings.
    pub output: PathBuf,
    /// Whose work counts as the workload's.
    pub target: Target,
    /// What to trace.
    pub tracing: Tracing,
    /// How long at most; never zero.
    pub duration: Option<Duration>,
    /// How often.
    pub repeat: Repeat,
    /// Losses are a failure.
    pub strict: bool,
    /// No summary.
    pub quiet: bool,
}

/// What to show live, or of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopOptions {
    /// What to trace.
    pub tracing: Tracing,
    /// The process that counts as the workload.
    pub pid: Option<u32>,
    /// The recording to play instead of tracing.
    pub replay: Option<PathBuf>,
    /// So many frames of plain text instead of a screen.
    pub batch: Option<u64>,
}

/// What is traced, and how often it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tracing {
    /// The filesystems to keep; empty for every mounted XFS.
    pub filters: Vec<Filter>,
    /// Begin also while no XFS is mounted, and wait for one.
    pub wait_for_xfs: bool,
    /// Each once, in the order of [`Set::ALL`].
    pub probes: Vec<Set>,
    /// Distance of the ticks; never zero.
    pub interval: Duration,
    /// Samples a second of each CPU; never zero.
    pub sampling_hz: u32,
    /// Of inodes, 1 in so many has its locks' holds and callers measured: a power of two.
    pub sampling: u32,
    /// Where XFS's debug information is, if not at one of the usual places.
    pub debuginfo: Option<PathBuf>,
}

/// Whose work counts as the workload's, and whose end ends the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A command and its descendants.
    Command(workload::Options),
    /// A process that runs already.
    Process(u32),
    /// Nobody's: everything, until the duration is over or a signal comes.
    Everything,
}

/// A filesystem to keep, with the devices beneath it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Filter {
    /// The filesystem mounted here.
    Mount(PathBuf),
    /// The filesystem on this device; a bare name such as `loop2`.
    Device(String),
}

/// What to show of a recording, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportOptions {
    /// The recording.
    pub input: PathBuf,
    /// The sections to show; empty for all.
    pub sections: Vec<String>,
    /// The format; CSV and Markdown come with exactly one section.
    pub format: Format,
    /// With one row per tick.
    pub per_tick: bool,
    /// Write an HTML page here.
    pub html: Option<PathBuf>,
}

/// Which recordings to hold against each other, and what to show of it.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareOptions {
    /// The sides, the base first; of halves of one side the only one.
    pub sides: Vec<SidePath>,
    /// The layout of text.
    pub style: Style,
    /// The format.
    pub format: Format,
    /// What to compare.
    pub compare: compare::Options,
}

/// A side as it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SidePath {
    /// What heads its column.
    pub label: String,
    /// A recording, a matrix, or a directory of them.
    pub path: PathBuf,
}

/// Which flamegraph to draw of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlamegraphOptions {
    /// The recording; with a comparison perhaps a directory of them.
    pub input: PathBuf,
    /// What its stacks are of.
    pub kind: StackKind,
    /// What they are weighed by.
    pub weight: Weight,
    /// What to compare with, and what runs of different length are brought to.
    pub diff: Option<Diff>,
    /// The SVG; `None` for standard output.
    pub output: Option<PathBuf>,
}

/// What a flamegraph's stacks are compared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diff {
    /// A recording, or a directory of them.
    pub base: PathBuf,
    /// By what runs are divided; `None` for what all have in common.
    pub per: Option<Per>,
}

/// What to write of a recording for other tools.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportOptions {
    /// The recording.
    pub input: PathBuf,
    /// The format.
    pub format: export::Format,
    /// Of which stacks; `None` for what is not about stacks.
    pub stacks: Option<(StackKind, Weight)>,
    /// The file; `None` for standard output.
    pub output: Option<PathBuf>,
}

/// What `doctor` and `probes` are asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListOptions {
    /// The format.
    pub format: ListFormat,
    /// Where XFS's debug information is, if not at one of the usual places.
    pub debuginfo: Option<PathBuf>,
}

/// The format of `doctor` and `probes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ListFormat {
    /// For people
    Text,
    /// For programs
    Json,
}
