//! `report`: a recording as text, JSON, CSV, Markdown or an HTML page.

use super::{flamegraph, output};
use crate::error::Usage;
use crate::options::{DEFAULT_FILE, ReportOptions};
use anyhow::{Context as _, Result};
use cil_trace_core::model::Model;
use cil_trace_core::recording::{Recording, RecordingError};
use cil_trace_core::report::format::{Rendering, html};
use cil_trace_core::report::schema::Report;
use std::io::{Write as _, stderr, stdout};
use std::path::Path;

/// The section that is made of single ticks.
const TICKS: &str = "ticks";

/// Prints a report, or writes it as a page.
///
/// # Errors
/// The sections do not suit the format, the recording cannot be read, the report not written.
pub fn run(options: &ReportOptions) -> Result<()> {
    let ReportOptions {
        input,
        sections,
        format,
        html: page,
        per_tick,
    } = options;
    let mut rendering =
        Rendering::new(sections, *format).map_err(|error| Usage(error.to_string()))?;
    if input.as_path() != Path::new(DEFAULT_FILE) {
        rendering = rendering.of_file(input.display().to_string());
    }
    let model = open(input)?;
    let report = Report::of(
        &model,
        *per_tick || sections.iter().any(|name| name == TICKS),
    );
    match page {
        Some(path) => {
            let graph = flamegraph::flushes(&model)?;
            output::write(path, html::page(&report, Some(&graph)), "--html")
        }
        None => {
            let text = rendering.render(&report)?;
            stdout()
                .write_all(text.as_bytes())
                .context("cannot write the report")
        }
    }
}

/// Reads a recording; what is odd about it goes to standard error, as the numbers are as good as
/// the recording is.
///
/// # Errors
/// It cannot be read; the text says why and what to do.
pub fn open(path: &Path) -> Result<Model, RecordingError> {
    let recording = Recording::open(path)?;
    let model = recording.model()?;
    announce(path, &recording, &model);
    Ok(model)
}

/// Says what is odd about a recording.
pub fn announce(path: &Path, recording: &Recording, model: &Model) {
    if let Some(hint) = recording.hint() {
        let _ = writeln!(stderr(), "cil-trace: {hint}");
    }
    if model.rows_skipped() > 0 {
        let _ = writeln!(
            stderr(),
            "cil-trace: {}: {} rows are of a later version and were left out; a newer cil-trace \
             reads them",
            path.display(),
            model.rows_skipped()
        );
    }
}
