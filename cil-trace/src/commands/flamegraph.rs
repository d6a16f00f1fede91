//! `flamegraph`: a recording's stacks as a picture.

use super::output;
use super::report::open;
use crate::options::{Diff, FlamegraphOptions};
use anyhow::{Context as _, Result, bail};
use cil_trace_common::stack::StackKind;
use cil_trace_core::flame::{Flamegraph, Per, Script, UNRESOLVED_WARNING, difference, flamegraph};
use cil_trace_core::model::Model;
use cil_trace_core::profile::{Profile, ProfileError, Weight};
use std::fs;
use std::io::{self, Write as _, stderr, stdout};
use std::path::Path;

/// Draws a graph.
///
/// # Errors
/// The recording cannot be read or has no such stacks, or the picture cannot be written.
pub fn run(options: &FlamegraphOptions) -> Result<()> {
    let graph = match &options.diff {
        Some(diff) => compared(options, diff)?,
        None => {
            let model = open(&options.input)?;
            let profile = Profile::of(&model, options.kind, options.weight)?;
            flamegraph(&profile, Script::With)?
        }
    };
    warn(&graph);
    match &options.output {
        Some(path) => output::write(path, &graph.svg, "-o"),
        None => stdout()
            .write_all(graph.svg.as_bytes())
            .context("cannot write the picture"),
    }
}

fn compared(options: &FlamegraphOptions, diff: &Diff) -> Result<Flamegraph> {
    let [shown, base] = [&options.input, &diff.base].map(|path| runs(path));
    let (shown, base) = (shown?, base?);
    let (shown, base) = (profiles(&shown, options)?, profiles(&base, options)?);
    let per = diff.per.clone().unwrap_or_else(|| {
        let all: Vec<_> = shown.iter().chain(&base).collect();
        Per::common(&all)
    });
    Ok(difference(&shown, &base, &per, Script::With)?)
}

fn profiles<'a>(
    runs: &'a [Model],
    options: &FlamegraphOptions,
) -> Result<Vec<Profile<'a>>, ProfileError> {
    runs.iter()
        .map(|model| {
            let profile = Profile::of(model, options.kind, options.weight)?;
            Ok(profile.without_only_device())
        })
        .collect()
}

/// The recording, or all recordings in a directory.
fn runs(path: &Path) -> Result<Vec<Model>> {
    if !path.is_dir() {
        return Ok(vec![open(path)?]);
    }
    let shown = path.display();
    let mut files: Vec<_> = fs::read_dir(path)
        .and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<_>>()
        })
        .with_context(|| format!("{shown}: cannot be read"))?;
    files.retain(|file| output::begins_as_sqlite(file));
    files.sort();
    if files.is_empty() {
        bail!("{shown} holds no recording; `cil-trace record -o {shown}/1.data` makes one");
    }
    files.iter().map(|file| Ok(open(file)?)).collect()
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
