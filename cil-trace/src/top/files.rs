//! The files that keys write: a recording, a flamegraph.

use super::text::{time, wall_clock};
use crate::workload::chown_back;
use anyhow::{Context as _, Result};
use cil_trace_common::stack::StackKind;
use cil_trace_core::flame::{Script, flamegraph};
use cil_trace_core::history::Cut;
use cil_trace_core::model::Model;
use cil_trace_core::profile::{Profile, words};
use cil_trace_core::recording::Writer;
use cil_trace_core::report::units;
use cil_trace_core::session::Header;
use jiff::tz::TimeZone;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Most files of one second.
const SAME_NAME: u32 = 100;

/// Writes a stretch of a session as a recording into the current directory; what there is to say of
/// it.
///
/// # Errors
///
/// If it cannot be written.
pub fn recording(session: &Header, mut cut: Cut) -> Result<String> {
    let (start_ns, end_ns) = (cut.header.window_start_ns, cut.footer.window_end_ns);
    let path = unused(session, end_ns, "data")?;
    let length = end_ns.saturating_sub(start_ns);
    cut.header.started_at = time(session, start_ns).map_or_else(String::new, |at| at.to_string());
    let mut writer = Writer::create(&path, &cut.header)?;
    for tick in &cut.ticks {
        writer.tick(tick)?;
    }
    writer.finish(&cut.footer)?;
    chown_back(&path)?;
    Ok(format!(
        "saved {} of ticks: cil-trace report {}",
        units::duration(length),
        path.display()
    ))
}

/// Draws the stacks of a kind of a stretch of a session into the current directory; what there is to
/// say of it.
///
/// # Errors
///
/// If there are none, or the picture cannot be written.
pub fn picture(session: &Header, model: &Model, kind: StackKind) -> Result<String> {
    let words = words(kind);
    let profile = Profile::of(model, kind, words.usual)?;
    let graph = flamegraph(&profile, Script::With)?;
    if let Some(why) = graph.empty {
        anyhow::bail!("there is nothing to draw: {why}");
    }
    let (start_ns, end_ns) = model.window();
    let path = unused(session, end_ns, "svg")?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| file.write_all(graph.svg.as_bytes()))
        .with_context(|| path.display().to_string())?;
    chown_back(&path)?;
    Ok(format!(
        "drew the {} of {}: {}",
        words.unit,
        units::duration(end_ns.saturating_sub(start_ns)),
        path.display()
    ))
}

/// A name that no file has, from the time of day.
fn unused(header: &Header, at_ns: u64, suffix: &str) -> Result<PathBuf> {
    let time = wall_clock(header, at_ns, &TimeZone::system(), "-%Y%m%d-%H%M%S");
    (1..=SAME_NAME)
        .map(|number| match number {
            1 => format!("cil-trace{time}.{suffix}"),
            _ => format!("cil-trace{time}-{number}.{suffix}"),
        })
        .find(|name| !Path::new(name).exists())
        .map(PathBuf::from)
        .context("the current directory is full of files of this second")
}
