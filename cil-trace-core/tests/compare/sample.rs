//! What the tests compare.

use cil_trace_core::compare::matrix::Matrix;
use cil_trace_core::compare::samples::Samples;
use cil_trace_core::compare::style::Style;
use cil_trace_core::compare::{Comparison, Options, Side};
use cil_trace_core::model::Model;
use cil_trace_core::recording::Recording;
use cil_trace_core::report::schema::Report;
use std::collections::BTreeMap;
use std::path::Path;

/// A checked-in recording of a real run; read from a copy, because SQLite writes a `-shm` beside one
/// that has a `-wal`.
pub fn model(name: &str) -> Model {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cil-trace/tests/recordings");
    let directory = tempfile::tempdir().unwrap();
    for file in [format!("{name}.data"), format!("{name}.data-wal")] {
        if source.join(&file).exists() {
            std::fs::copy(source.join(&file), directory.path().join(&file)).unwrap();
        }
    }
    let recording = Recording::open(&directory.path().join(format!("{name}.data")));
    recording.unwrap().model().unwrap()
}

pub fn report(name: &str) -> Report {
    Report::of(&model(name), false)
}

pub fn aliases(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
        .collect()
}

/// A side of matrices by test case; the only case has no name.
pub fn side(label: &str, cases: &[(&str, &str)]) -> Side {
    let samples = |json: &str| {
        let matrix = Matrix::read(json.as_bytes()).unwrap();
        Samples::new(Vec::new(), vec![("matrix.json".to_owned(), matrix)])
    };
    Side {
        label: label.to_owned(),
        cases: cases
            .iter()
            .map(|(case, json)| ((*case).to_owned(), samples(json)))
            .collect(),
    }
}

/// Sides without test cases, compared.
pub fn compared(sides: &[(&str, &str)]) -> Comparison {
    let sides = sides
        .iter()
        .map(|(label, json)| side(label, &[("", json)]))
        .collect();
    Comparison::of(sides, Options::default()).unwrap()
}

/// The table without what is said beneath it.
pub fn table(style: Style, comparison: &Comparison) -> String {
    let text = style.render(comparison);
    let first_note = text
        .lines()
        .position(|line| line.starts_with("warning: ") || line.starts_with("runs: "));
    let table: Vec<&str> = text.lines().take(first_note.unwrap() - 1).collect();
    table.join("\n") + "\n"
}
