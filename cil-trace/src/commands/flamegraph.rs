//! `flamegraph`: a recording's stacks as a picture.

use super::output;
use super::report::open;
use crate::options::FlamegraphOptions;
use anyhow::{Context as _, Result};
use cil_trace_common::stack::StackKind;
use cil_trace_core::flame::{Flamegraph, Script, UNRESOLVED_WARNING, flamegraph};
use cil_trace_core::model::Model;
use cil_trace_core::profile::{Profile, Weight};
use std::io::{Write as _, stderr, stdout};

/// Draws a graph.
///
/// # Errors
/// The recording cannot be read or has no such stacks, or the picture cannot be written.
pub fn run(options: &FlamegraphOptions) -> Result<()> {
    let model = open(&options.input)?;
    let profile = Profile::of(&model, options.kind, options.weight)?;
    let graph = flamegraph(&profile, Script::With)?;
    warn(&graph);
    match &options.output {
        Some(path) => output::write(path, &graph.svg, "-o"),
        None => stdout()
            .write_all(graph.svg.as_bytes())
            .context("cannot write the picture"),
    }
}

/// Says what the reader of a picture should know first.
fn warn(graph: &Flamegraph) {
    if let Some(why) = &graph.empty {
        let _ = writeln!(stderr(), "cil-trace: the picture is empty: {why}");
    } else if graph.unresolved_pct > UNRESOLVED_WARNING {
        let _ = writeln!(
            stderr(),
            "cil-trace: {:.0} % of the frames have no name; for the kernel's, record as root with \
             kernel.kptr_restrict at 0 or 1; for programs', install their symbols (-dbgsym \
             packages)",
            graph.unresolved_pct
        );
    }
}

/// The graph of the cache flushes that XFS asked for, for a page.
///
/// # Errors
/// The library cannot draw it.
pub fn flushes(model: &Model) -> Result<String> {
    let profile = Profile::of(model, StackKind::Flush, Weight::Count)?;
    Ok(flamegraph(&profile, Script::Without)?.svg)
}
