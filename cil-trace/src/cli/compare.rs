//! The command line of `compare`.

use super::{format, usage};
use crate::options::{CompareOptions, SidePath};
use cil_trace_core::compare::style::Style;
use cil_trace_core::compare::{Options, matrix};
use cil_trace_core::report::format::Format;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Error};
use glob::Pattern;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Hold recordings of two or more kernels against each other
///
/// A side is a recording, a directory of recordings (as `record --runs` makes), or a JSON file or
/// directory of JSON files in LKP's matrix form, {"metric": [run 1, run 2, ..]}; a directory of
/// such directories is one test case each. One run is one observation: at least four a side are
/// needed for a verdict. The first side is the base. Needs neither root nor the machines that were
/// recorded.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    /// The sides, [LABEL=]PATH each, the base first
    #[arg(value_name = "[LABEL=]PATH", required = true)]
    sides: Vec<OsString>,
    /// The layout of text: the kernel test robot's, mmtests', or ratios with intervals
    #[arg(long, value_name = "STYLE", default_value = Style::Lkp.name(), value_parser = style())]
    style: Style,
    /// Compare only metrics that match, such as 'cil-trace.flushes.*' (may be repeated)
    #[arg(long, value_name = "GLOB")]
    metric: Vec<Pattern>,
    /// The metric that the comparison is made for; it is not corrected for the others
    #[arg(long, value_name = "METRIC")]
    primary: Option<String>,
    /// Show only what has changed
    #[arg(long)]
    changed: bool,
    /// Say in words which few differences account for the change
    #[arg(long)]
    explain: bool,
    /// Compare the halves of one side with each other: at most 5 % may be found to differ
    #[arg(long)]
    aa: bool,
    /// Take less of the metrics that match for better, in --style mmtests (may be repeated)
    #[arg(long, value_name = "GLOB")]
    lower_is_better: Vec<Pattern>,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = Format::Text.name(), value_parser = format())]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  cil-trace compare old.data new.data
  cil-trace compare 6.1=runs/6.1 6.12=runs/6.12 --changed
  cil-trace compare runs/a runs/b --explain
  cil-trace compare base/matrix.json head/matrix.json --style ci --primary aim7.jobs-per-min
  cil-trace compare --aa runs/a";

impl CompareArgs {
    pub(super) fn options(self) -> Result<CompareOptions, Error> {
        let wrong = |message: &str| {
            Err(usage(
                "compare",
                ErrorKind::WrongNumberOfValues,
                message.to_owned(),
            ))
        };
        match (self.aa, self.sides.len()) {
            (true, 1) | (false, 2..) => {}
            (true, _) => return wrong("--aa takes one side, whose halves it compares"),
            (false, _) => {
                return wrong(
                    "there is nothing to compare with: give a second side, or --aa to compare the \
                     halves of one",
                );
            }
        }
        if self.explain && matches!(self.format, Format::Csv | Format::Markdown) {
            let message = "--explain is words: give --format text or json with it";
            return Err(usage(
                "compare",
                ErrorKind::ArgumentConflict,
                message.to_owned(),
            ));
        }
        Ok(CompareOptions {
            sides: labelled(&self.sides),
            style: self.style,
            format: self.format,
            compare: Options {
                metrics: self.metric,
                primary: self.primary,
                lower_is_better: self.lower_is_better,
                changed: self.changed,
                halves: self.aa,
                explain: self.explain,
                threads: 1,
            },
        })
    }
}

/// Each side with its label; without one it is the path's last part, or all of it if that would
/// name two sides.
fn labelled(words: &[OsString]) -> Vec<SidePath> {
    let sides: Vec<SidePath> = words.iter().map(side).collect();
    let relabelled = sides.iter().map(|side| {
        let same = sides.iter().filter(|other| other.label == side.label);
        let label = match same.count() {
            1 => side.label.clone(),
            _ => side.path.display().to_string(),
        };
        SidePath {
            label,
            path: side.path.clone(),
        }
    });
    relabelled.collect()
}

fn side(word: &OsString) -> SidePath {
    let bytes = word.as_bytes();
    let equals = bytes.iter().position(|byte| *byte == b'=');
    if let Some((label, path)) = equals.map(|at| (&bytes[..at], &bytes[at + 1..]))
        && !label.is_empty()
        && !label.contains(&b'/')
    {
        return SidePath {
            label: String::from_utf8_lossy(label).into_owned(),
            path: PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        };
    }
    let path = PathBuf::from(word);
    SidePath {
        label: name(&path),
        path,
    }
}

/// `6.12` for `runs/6.12/` and for `runs/6.12/matrix.json`, `old` for `old.data`.
fn name(path: &Path) -> String {
    let last = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    match last(path) {
        Some(name) if matrix::FILES.contains(&name.as_str()) => {
            path.parent().and_then(last).unwrap_or(name)
        }
        Some(name) => {
            let stem = [".data", ".json", ".json.gz"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            stem.unwrap_or(&name).to_owned()
        }
        None => path.display().to_string(),
    }
}

fn style() -> impl TypedValueParser<Value = Style> {
    PossibleValuesParser::new(Style::ALL.iter().map(|style| style.name()))
        .try_map(|name| name.parse::<Style>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(words: &[&str]) -> Vec<(String, PathBuf)> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let sides = labelled(&words).into_iter();
        sides.map(|side| (side.label, side.path)).collect()
    }

    #[test]
    fn labels_are_given_or_taken_from_the_path() {
        assert_eq!(
            labels(&["old=a/b.data", "runs/6.12/", "x/new.data", "./a=b/c"]),
            [
                ("old".to_owned(), PathBuf::from("a/b.data")),
                ("6.12".to_owned(), PathBuf::from("runs/6.12/")),
                ("new".to_owned(), PathBuf::from("x/new.data")),
                ("c".to_owned(), PathBuf::from("./a=b/c")),
            ]
        );
        let names = |words| {
            labels(words)
                .into_iter()
                .map(|(label, _)| label)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["a/matrix.json", "b/matrix.json.gz"]), ["a", "b"]);
        assert_eq!(names(&["a/x.json.gz", "b/y=z.data"]), ["x", "y=z"]);
        assert_eq!(names(&["x/a.data", "y/a.data"]), ["x/a.data", "y/a.data"]);
    }
}
