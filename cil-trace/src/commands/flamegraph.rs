//! `flamegraph`: the stacks of a recording as a picture.

use super::report::open;
use crate::options::{FlameKind, FlamegraphOptions};
use anyhow::{Context as _, Result};
use cil_trace_common::cause::Cause;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_core::flame::{FlameStack, Flamegraph, Subject, UNRESOLVED_WARNING, flamegraph};
use cil_trace_core::model::Model;
use std::fs;
use std::io::{Write as _, stderr, stdout};

/// Draws what was asked for.
///
/// # Errors
///
/// The recording cannot be read, or the output not be written.
pub fn run(options: &FlamegraphOptions) -> Result<()> {
    let model = open(&options.input)?;
    let graph = match options.kind {
        FlameKind::Flush => flushes(&model)?,
    };
    if graph.unresolved_pct > UNRESOLVED_WARNING {
        let _ = writeln!(
            stderr(),
            "cil-trace: {:.0} % of the frames have no symbol; was it recorded without reading \
             /proc/kallsyms in full?",
            graph.unresolved_pct
        );
    }
    match &options.output {
        Some(path) => fs::write(path, &graph.svg)
            .with_context(|| format!("{}: cannot write the picture", path.display())),
        None => stdout()
            .write_all(graph.svg.as_bytes())
            .context("standard output"),
    }
}

/// The flamegraph of cache flushes.
///
/// # Errors
///
/// The picture cannot be drawn.
pub fn flushes(model: &Model) -> Result<Flamegraph> {
    let stacks: Vec<_> = model
        .flush_stacks()
        .map(|(stack, dev, cause, count)| {
            let cause = Cause::from_u16(cause).unwrap_or(Cause::Other).name();
            let frames = model.stack(stack).unwrap_or_default().to_vec();
            FlameStack::flush(&model.name(dev), cause, frames, count)
        })
        .collect();
    let lost = model
        .losses()
        .filter(|(probe, cause, _)| {
            *probe == Probe::FlushRequests && *cause == LossCause::StackLost
        })
        .map(|(_, _, count)| count)
        .sum();
    flamegraph(&stacks, &Subject::flushes(lost)).context("cannot draw the flamegraph")
}
