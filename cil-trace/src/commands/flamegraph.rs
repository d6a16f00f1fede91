//! `flamegraph`: a recording's stacks as a picture.

use super::output;
use super::report::open;
use crate::options::{FlameKind, FlamegraphOptions};
use anyhow::{Context as _, Result};
use cil_trace_common::cause::Cause;
use cil_trace_common::metric::Metric;
use cil_trace_common::stack::StackKind;
use cil_trace_core::flame::{
    FlameError, FlameStack, Flamegraph, Subject, UNRESOLVED_WARNING, flamegraph,
};
use cil_trace_core::model::Model;
use std::io::{Write as _, stderr, stdout};

/// Draws a graph.
///
/// # Errors
/// The recording cannot be read, or the picture not written.
pub fn run(options: &FlamegraphOptions) -> Result<()> {
    let model = open(&options.input)?;
    let graph = match options.kind {
        FlameKind::Flush => flushes(&model, false)?,
    };
    if graph.unresolved_pct > UNRESOLVED_WARNING {
        let _ = writeln!(
            stderr(),
            "cil-trace: {:.0} % of the frames have no name; record as root with \
             kernel.kptr_restrict at 0 or 1",
            graph.unresolved_pct
        );
    }
    match &options.output {
        Some(path) => output::write(path, &graph.svg, "-o"),
        None => stdout()
            .write_all(graph.svg.as_bytes())
            .context("cannot write the picture"),
    }
}

/// The graph of the cache flushes that XFS asked for; what a device beneath makes of them would
/// count them again.
///
/// # Errors
/// The library cannot draw it.
pub fn flushes(model: &Model, in_page: bool) -> Result<Flamegraph, FlameError> {
    let stacks: Vec<_> = model
        .stacks()
        .of(StackKind::Flush)
        .filter(|entry| entry.label != Cause::ForeignFs.name())
        .map(|entry| {
            let frames = entry.kernel.iter().map(|&frame| frame.to_owned()).collect();
            FlameStack::flush(
                &model.name(entry.dev),
                entry.label,
                frames,
                entry.sums.count,
            )
        })
        .collect();
    let drawn = stacks
        .iter()
        .map(|stack| stack.weight)
        .fold(0, u64::saturating_add);
    let requested = model.sum(Metric::FlushRequested, |series| model.is_uppermost(series));
    let subject = Subject::flushes(requested.saturating_sub(drawn));
    let subject = if in_page { subject.in_page() } else { subject };
    flamegraph(&stacks, &subject)
}
