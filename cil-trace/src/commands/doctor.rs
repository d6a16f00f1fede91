//! `doctor`: what can be measured on this machine, what cannot, why, and the remedy.
//!
//! It loads every program to find out, and counts nothing.

use crate::options::{ListFormat, ListOptions, SAMPLING_HZ};
use crate::system::environment::{Check, EnvironmentFacts, Status};
use crate::trace::{Options, RunningKernel, Tracer};
use anyhow::{Context as _, Result};
use cil_trace_core::probes::Set;
use cil_trace_core::probes::features::{self, Feature};
use serde::Serialize;
use std::io::{Write as _, stdout};

#[derive(Serialize)]
struct Diagnosis {
    checks: Vec<Check>,
    /// Empty when `not_tried` says why.
    probes: Vec<Feature>,
    not_tried: Option<String>,
}

/// Prints the diagnosis.
///
/// # Errors
///
/// Standard output cannot be written; what is wrong with the machine is no error.
pub fn run(options: &ListOptions) -> Result<()> {
    let checks = EnvironmentFacts::read().checks();
    let (probes, not_tried) = match try_probes(options) {
        Ok(probes) => (probes, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    let diagnosis = Diagnosis {
        checks,
        probes,
        not_tried,
    };
    let text = match options.format {
        ListFormat::Json => format!("{}\n", serde_json::to_string_pretty(&diagnosis)?),
        ListFormat::Text => text(&diagnosis),
    };
    stdout()
        .write_all(text.as_bytes())
        .context("standard output")
}

fn try_probes(options: &ListOptions) -> Result<Vec<Feature>> {
    let kernel = RunningKernel::read(options.debuginfo.as_deref())?;
    let options = Options {
        sets: Set::ALL.to_vec(),
        filtered: true,
        diagnostics: false,
        filesystems: 0,
        sampling_hz: SAMPLING_HZ,
        sampling: 1,
    };
    Ok(features::features(
        &Tracer::load(&kernel, &options)?.outcomes,
    ))
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = String::from("This machine\n");
    for check in &diagnosis.checks {
        let word = match check.status {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "MISSING",
        };
        text.push_str(&format!("  {word:<8} {:<18} {}\n", check.name, check.value));
        if !check.consequence.is_empty() {
            text.push_str(&format!("  {:27} {}\n", "", check.consequence));
        }
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("  {:27} remedy: {remedy}\n", ""));
        }
    }
    text.push_str("\nWhat can be measured\n");
    if let Some(reason) = &diagnosis.not_tried {
        text.push_str(&format!("  not tried: {reason}\n"));
    }
    text.push_str(&features::text(&diagnosis.probes));
    text
}
