//! `probes`: the probe table, and which way this kernel leaves open for each.

use crate::options::{ListFormat, ListOptions};
use crate::trace::RunningKernel;
use anyhow::{Context as _, Result};
use cil_trace_core::probes::{Kernel, OpenWay, Otherwise, PROBES, Row, Way, resolve, site, ways};
use serde::Serialize;
use std::io::{Write as _, stdout};

/// One row of the table, on this kernel.
#[derive(Serialize)]
struct Line {
    probe: &'static str,
    sets: Vec<&'static str>,
    quantity: &'static str,
    /// The first way that nothing speaks against; whether it loads shows when recording.
    way: Option<String>,
    otherwise: Option<&'static str>,
    obstacles: Vec<String>,
    ways: Vec<WayLine>,
}

#[derive(Serialize)]
struct WayLine {
    programs: Vec<String>,
    approximation: Option<&'static str>,
    obstacle: Option<String>,
}

/// Prints the table.
///
/// # Errors
///
/// Symbols or types of this kernel cannot be read.
pub fn run(options: &ListOptions) -> Result<()> {
    let kernel = RunningKernel::read(options.debuginfo.as_deref())?;
    let lines: Vec<_> = PROBES.iter().map(|row| line(row, &kernel)).collect();
    let text = match options.format {
        ListFormat::Json => format!("{}\n", serde_json::to_string_pretty(&lines)?),
        ListFormat::Text => table(&lines),
    };
    stdout()
        .write_all(text.as_bytes())
        .context("standard output")
}

fn line(row: &Row, kernel: &dyn Kernel) -> Line {
    let resolution = resolve(row, kernel);
    let first = resolution.open.first();
    let otherwise = match row.otherwise {
        Otherwise::Skipped(text) | Otherwise::Approximated(text) => text,
    };
    Line {
        probe: row.probe.name(),
        sets: row.sets.iter().map(|set| set.name()).collect(),
        quantity: row.quantity,
        way: first.map(OpenWay::describe),
        otherwise: first.is_none().then_some(otherwise),
        obstacles: match resolution.unknown {
            Some(unknown) => vec![unknown],
            None => resolution.obstacles,
        },
        ways: ways(row, kernel).map(|way| way_line(way, kernel)).collect(),
    }
}

fn way_line(way: &Way, kernel: &dyn Kernel) -> WayLine {
    let programs = way.programs.iter();
    WayLine {
        programs: programs
            .clone()
            .map(|program| format!("{} {}", program.attach.name(), program.target))
            .collect(),
        approximation: way.approximation,
        obstacle: programs
            .clone()
            .find_map(|program| site(program, way, kernel).err()),
    }
}

fn table(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&format!("{:<16} {}\n", line.probe, line.quantity));
        match (&line.way, line.otherwise) {
            (Some(way), _) => text.push_str(&format!("{:16}   by {way}\n", "")),
            (None, Some(otherwise)) => text.push_str(&format!("{:16}   {otherwise}\n", "")),
            (None, None) => {}
        }
        for obstacle in &line.obstacles {
            text.push_str(&format!("{:16}   ({obstacle})\n", ""));
        }
    }
    text
}
