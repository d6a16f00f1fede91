//! `report`: a recording as text, JSON, CSV, Markdown or an HTML page. Needs no root and no kernel.

use super::flamegraph;
use crate::options::{Format, ReportOptions};
use anyhow::{Context as _, Result};
use cil_trace_core::model::Model;
use cil_trace_core::recording::Recording;
use cil_trace_core::report::format::{Format as Rendered, Rendering, html};
use cil_trace_core::report::schema::Report;
use std::fs;
use std::io::{Write as _, stderr, stdout};
use std::path::Path;

/// Prints what was asked for, or writes the page.
///
/// # Errors
///
/// The recording cannot be read, or the output not be written.
pub fn run(options: &ReportOptions) -> Result<()> {
    let format = match options.format {
        Format::Text => Rendered::Text,
        Format::Json => Rendered::Json,
        Format::Csv => Rendered::Csv,
        Format::Markdown => Rendered::Markdown,
    };
    let rendering = match &options.html {
        // The page has every section.
        Some(_) => None,
        None => Some(
            Rendering::new(&options.sections, format)
                .map_err(|error| crate::error::Usage(error.to_string()))?
                .of_file(options.input.display().to_string()),
        ),
    };
    let model = open(&options.input)?;
    let ticks = options.per_tick || options.sections.iter().any(|section| section == "ticks");
    let report = Report::of(&model, ticks);
    if let Some(rendering) = rendering {
        return stdout()
            .write_all(rendering.render(&report)?.as_bytes())
            .context("standard output");
    }
    let Some(path) = &options.html else {
        return Ok(());
    };
    let graph = flamegraph::flushes(&model)?;
    fs::write(path, html::page(&report, Some(&graph.svg)))
        .with_context(|| format!("{}: cannot write the page", path.display()))
}

/// Reads a recording into a model; what is odd about it goes to standard error.
///
/// # Errors
///
/// The recording cannot be read; the text says why and what to do.
pub fn open(path: &Path) -> Result<Model> {
    let recording = Recording::open(path)?;
    if let Some(hint) = recording.hint() {
        let _ = writeln!(stderr(), "cil-trace: {hint}");
    }
    let model = recording.model()?;
    if model.rows_skipped() > 0 {
        let _ = writeln!(
            stderr(),
            "cil-trace: {}: {} rows are of a later version and were left out; a newer cil-trace \
             reads them",
            path.display(),
            model.rows_skipped()
        );
    }
    Ok(model)
}
