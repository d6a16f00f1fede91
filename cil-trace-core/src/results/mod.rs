//! Benchmark results out of a benchmark's own output, under LKP's metric names.
//!
//! Takes text and gives numbers: nothing here runs a benchmark or opens a file. The names are those
//! that lkp-tests' `programs/*/parse` print, with the name of LKP's test in front, so that a run
//! here can be held against a table of the kernel test robot; where they differ, the module of the
//! benchmark says why. A new benchmark is one file and one row of [`PARSERS`].

mod command;
mod dbench;
mod fio;
mod fio_text;
mod fsmark;
mod stress_ng;
mod time;

pub use time::{Usage, time_metrics};

use std::collections::BTreeMap;

/// What a text says about a benchmark.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    /// LKP's name to value; always finite.
    pub metrics: BTreeMap<String, f64>,
    /// The benchmark, by the name of LKP's test. Of several in one text, the one that the command
    /// names, else the first of the table; `metrics` holds all of them.
    pub recognised: Option<&'static str>,
    /// What was expected and not found, or what the benchmark itself reports as failed, each with
    /// the remedy. Not fatal.
    pub problems: Vec<String>,
}

/// How the output of one benchmark is known and read.
struct Parser {
    /// LKP's name of the test, in front of each metric.
    name: &'static str,
    /// The file name of the program.
    program: &'static str,
    /// Whether the benchmark wrote this text.
    recognises: fn(&str) -> bool,
    /// Reads the text; whatever it holds, it must not panic.
    parse: fn(&str, &mut Findings),
    /// Said if the text holds no result: why that may be and what to try.
    remedy: &'static str,
}

const PARSERS: &[Parser] = &[
    Parser {
        name: "dbench",
        program: "dbench",
        recognises: dbench::recognises,
        parse: dbench::parse,
        remedy: "no line `Throughput ... MB/sec`; dbench prints it last, let it run to its end",
    },
    Parser {
        name: "fio",
        program: "fio",
        recognises: fio::recognises,
        parse: fio::parse,
        remedy: "no job with reads or writes; give fio --output-format=json, and with --output=FILE \
                 give cil-trace --results FILE",
    },
    Parser {
        name: "stress-ng",
        program: "stress-ng",
        recognises: stress_ng::recognises,
        parse: stress_ng::parse,
        remedy: "no table of bogo ops; give stress-ng --metrics, and as some versions write it to \
                 standard error also --stdout, or --yaml FILE and cil-trace --results FILE",
    },
    Parser {
        name: "fsmark",
        program: "fs_mark",
        recognises: fsmark::recognises,
        parse: fsmark::parse,
        remedy: "no line below `FSUse% Count Size Files/sec App Overhead`; fs_mark prints one per \
                 iteration, let it run to its end",
    },
];

/// Reads the results out of `text`: captured standard output, or a file that the benchmark wrote.
///
/// The text alone decides which benchmark it is. `command` breaks a tie, and makes a text without
/// results of the benchmark that was run a problem instead of nothing; it may be empty.
#[must_use]
pub fn recognise(text: &str, command: &[String]) -> Results {
    let named = command::benchmark(command).map(|parser| parser.name);
    let mut results = Results::default();
    for parser in PARSERS {
        let recognised = (parser.recognises)(text);
        let mut findings = Findings::default();
        if recognised {
            (parser.parse)(text, &mut findings);
            if results.recognised.is_none() || named == Some(parser.name) {
                results.recognised = Some(parser.name);
            }
        }
        if findings.metrics.is_empty() && (recognised || named == Some(parser.name)) {
            findings.problems.push(parser.remedy.to_owned());
        }
        let Findings { metrics, problems } = findings;
        let prefix = parser.name;
        let prefixed = metrics
            .into_iter()
            .map(|(name, v)| (format!("{prefix}.{name}"), v));
        results.metrics.extend(prefixed);
        results.problems.extend(
            problems
                .into_iter()
                .map(|problem| format!("{prefix}: {problem}")),
        );
    }
    results
}

/// What a parser has found; names are without the benchmark's.
#[derive(Default)]
struct Findings {
    metrics: BTreeMap<String, f64>,
    problems: Vec<String>,
}

impl Findings {
    /// Keeps a value; one that is not a number (a mean of nothing) is as good as not printed.
    fn put(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.metrics.insert(name.into(), value);
        }
    }
}

/// The lines as a terminal leaves them: what a carriage return starts anew is progress display.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| {
        let line = line.trim_end_matches('\r');
        line.rsplit_once('\r').map_or(line, |(_, last)| last)
    })
}

/// A finite number; `inf` and `nan` are none.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The arithmetic mean; not a number if there is no value.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
