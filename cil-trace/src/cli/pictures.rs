//! The flags of what goes out of a recording to be looked at elsewhere: pictures and exports.

use super::usage;
use crate::options::{DEFAULT_FILE, Diff, ExportOptions, FlamegraphOptions};
use cil_trace_common::stack::StackKind;
use cil_trace_core::export::Format;
use cil_trace_core::flame::Per;
use cil_trace_core::profile::{KINDS, Weight, words};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Error};
use std::path::PathBuf;

/// Draw a recording's stacks as a flamegraph
///
/// A frame's width is what its stacks weigh; its colour is the part of the kernel that it belongs
/// to. Needs neither root nor the machine that was recorded.
#[derive(Args)]
#[command(after_help = "Examples:
  cil-trace flamegraph --kind flush -o flush.svg
  cil-trace flamegraph --kind offcpu -o waits.svg
  cil-trace flamegraph --kind cpu new.data --diff old.data -o diff.svg
  cil-trace flamegraph --kind flush runs/patched --diff runs/base -o diff.svg")]
pub struct FlamegraphArgs {
    /// The recording
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// What the stacks are of
    #[arg(long, value_name = "KIND", value_parser = kind())]
    kind: StackKind,
    /// What a frame's width stands for: how often, how long, or how many bytes; if not given, time
    /// for offcpu, lock and hold, else count
    #[arg(long, value_name = "WEIGHT", value_parser = weight())]
    weight: Option<Weight>,
    /// Compare with this recording, or with a directory of them; then FILE may be a directory too.
    /// Several runs of each side tell what is noise
    #[arg(long, value_name = "BASE")]
    diff: Option<PathBuf>,
    /// Divide runs of different length by this: `second`, or a metric of the workload that counts
    /// work done in a second; if not given, by the first such metric that all runs have, else by
    /// time
    #[arg(long, value_name = "METRIC", requires = "diff")]
    per: Option<String>,
    /// The SVG to write; standard output if not given
    #[arg(short, long, value_name = "OUT.svg")]
    output: Option<PathBuf>,
}

impl FlamegraphArgs {
    pub fn options(self) -> FlamegraphOptions {
        let per = self.per.map(|per| match per.as_str() {
            "second" => Per::Second,
            _ => Per::Work(per),
        });
        FlamegraphOptions {
            diff: self.diff.map(|base| Diff { base, per }),
            input: self.file,
            kind: self.kind,
            weight: self.weight.unwrap_or(words(self.kind).usual),
            output: self.output,
        }
    }
}

/// Write a recording in the format of another tool
///
/// Needs neither root nor the machine that was recorded.
#[derive(Args)]
#[command(after_help = "Examples:
  cil-trace export --format json -o run.json
  cil-trace export --format pprof --kind offcpu --weight time -o waits.pb.gz
  cil-trace export --format perfetto -o run.pftrace
  cil-trace export --format folded --kind flush | flamegraph.pl > flush.svg")]
pub struct ExportArgs {
    /// The recording
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    format: Format,
    /// What the stacks are of: for folded, pprof and speedscope, and for the stacks alone as json
    /// or csv
    #[arg(long, value_name = "KIND", value_parser = kind())]
    kind: Option<StackKind>,
    /// What they are weighed by, and what pprof shows first
    #[arg(long, value_name = "WEIGHT", requires = "kind", value_parser = weight())]
    weight: Option<Weight>,
    /// The file to write; standard output if not given
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl ExportArgs {
    pub fn options(self) -> Result<ExportOptions, Error> {
        let name = self.format.name();
        let wrong = |kind, text: String| Err(usage("export", kind, text));
        match (self.format, self.kind) {
            (Format::Parquet, _) => {
                return wrong(
                    ErrorKind::InvalidValue,
                    "parquet is not in this version; export csv, which every data frame reads \
                     (pandas.read_csv(\"run.csv\").to_parquet(\"run.parquet\"))"
                        .to_owned(),
                );
            }
            (Format::Folded | Format::Pprof | Format::Speedscope, None) => {
                return wrong(
                    ErrorKind::MissingRequiredArgument,
                    format!("{name} holds stacks of one kind: give --kind, such as --kind flush"),
                );
            }
            (Format::Perfetto, Some(_)) => {
                return wrong(
                    ErrorKind::ArgumentConflict,
                    "perfetto shows the sampled events in time, and no stacks: leave --kind away, \
                     or give --format speedscope or pprof"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let weight = self.weight.unwrap_or(Weight::Count);
        Ok(ExportOptions {
            input: self.file,
            format: self.format,
            stacks: self.kind.map(|kind| (kind, weight)),
            output: self.output,
        })
    }
}

fn kind() -> impl TypedValueParser<Value = StackKind> {
    let kinds = KINDS
        .iter()
        .map(|words| PossibleValue::new(words.kind.name()).help(words.help));
    PossibleValuesParser::new(kinds)
        .try_map(|name| StackKind::from_name(&name).ok_or("not a kind of stacks"))
}

fn weight() -> impl TypedValueParser<Value = Weight> {
    PossibleValuesParser::new(Weight::ALL.map(Weight::name)).try_map(|name| {
        let mut weights = Weight::ALL.into_iter();
        weights
            .find(|weight| weight.name() == name)
            .ok_or("not a weight")
    })
}

fn format() -> impl TypedValueParser<Value = Format> {
    let formats = Format::ALL
        .iter()
        .map(|format| PossibleValue::new(format.name()).help(format.description()));
    PossibleValuesParser::new(formats)
        .try_map(|name| Format::from_name(&name).ok_or("not a format"))
}
