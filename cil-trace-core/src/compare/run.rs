//! One run: its numbers, the circumstances that it was made in, and how far it can be trusted.

use super::devices::Layout;
use super::metrics::Metrics;
use crate::model::Model;
use crate::report::schema::Report;
use crate::report::units;
use crate::session::{SeriesPosition, Workload};
use std::collections::BTreeMap;

/// One run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// Where it was read from.
    pub name: String,
    /// What its numbers are worth.
    pub state: State,
    /// The circumstances by name, in the order in which they are shown.
    pub facts: Vec<(String, String)>,
    /// Losses that touch counters: of which probe, why, how many.
    pub losses: Vec<(String, String, u64)>,
    /// Share of the CPUs' time that tracing took, percent.
    pub overhead_pct: Option<f64>,
    /// It was watched for failures: one that is not mentioned did not happen.
    pub watched: bool,
    /// Where it stands in a series.
    pub series: Option<SeriesPosition>,
    /// Its numbers; empty for a run of a matrix, whose numbers come by metric.
    pub metrics: Metrics,
}

/// What the numbers of a run are worth, best first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum State {
    /// It went to its end.
    #[default]
    Complete,
    /// The workload did not succeed; the text says how it ended.
    Failed(String),
    /// The recording has no end, or was aborted; of a matrix's run only failures are known.
    Interrupted,
}

impl Run {
    /// Of a recording whose devices play the parts that `base` gives them.
    #[must_use]
    pub fn of(name: &str, model: &Model, base: &Layout) -> Self {
        let report = Report::of(model, false);
        let layout = Layout::of(model);
        let aliases = base.aliases(&layout);
        let losses = report.loss.by_probe.iter();
        Self {
            name: name.to_owned(),
            state: state(&report, model),
            facts: facts(model, &layout, &aliases),
            losses: losses
                .map(|row| (row.probe.clone(), row.cause.clone(), row.count))
                .collect(),
            overhead_pct: report
                .overhead
                .as_ref()
                .map(|overhead| overhead.share_of_cpu_pct),
            watched: false,
            series: model.header().series.clone(),
            metrics: Metrics::of(&report, &aliases),
        }
    }
}

fn state(report: &Report, model: &Model) -> State {
    let workload = model.footer().and_then(|footer| footer.workload.as_ref());
    match workload {
        _ if report.interrupted => State::Interrupted,
        Some(Workload {
            signal: Some(signal),
            ..
        }) => State::Failed(format!("was ended by signal {signal}")),
        Some(Workload {
            exit_status: Some(status @ 1..),
            ..
        }) => State::Failed(format!("ended with status {status}")),
        _ => State::Complete,
    }
}

/// What may explain a difference, or make it meaningless.
fn facts(
    model: &Model,
    layout: &Layout,
    aliases: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let header = model.header();
    let machine = &header.machine;
    let mut facts = vec![
        ("kernel".to_owned(), machine.kernel.clone()),
        ("kernel build".to_owned(), machine.kernel_version.clone()),
        ("architecture".to_owned(), machine.architecture.clone()),
        ("host".to_owned(), machine.hostname.clone()),
        ("CPUs".to_owned(), machine.cpus.to_string()),
        ("memory".to_owned(), units::bytes(machine.memory_bytes)),
        ("command".to_owned(), header.command.join(" ")),
        ("device".to_owned(), layout.text()),
    ];
    for device in model.devices() {
        let name = aliases.get(&device.name).unwrap_or(&device.name);
        let mut of_device = |what: &str, value: Option<String>| {
            facts.extend(value.map(|value| (format!("{name} {what}"), value)));
        };
        of_device("mkfs", device.geometry.clone());
        of_device("mount", device.mount_options.clone());
        of_device("filesystem", device.filesystem.clone());
        of_device("write cache", device.write_cache.clone());
        of_device(
            "FUA",
            device
                .fua
                .map(|fua| if fua { "yes" } else { "no" }.to_owned()),
        );
        of_device("log", device.log_size_bytes.map(units::bytes));
        of_device("iclog", device.iclog_size_bytes.map(units::bytes));
    }
    if let Some(config) = &machine.kernel_config {
        facts.push((super::facts::CONFIG.to_owned(), config.digest.clone()));
        let options = config.options.iter();
        facts.extend(options.map(|(name, value)| (format!("CONFIG_{name}"), value.clone())));
    }
    facts.push(("cil-trace".to_owned(), header.tool.clone()));
    facts.push(("probe sets".to_owned(), header.scope.probe_sets.join(",")));
    // Whether two numbers are of the same thing depends on how each was got.
    let probes = header.probes.iter();
    facts.extend(probes.map(|row| {
        let how = format!("{} {}", row.outcome.name(), row.how);
        (format!("probe {}", row.probe), how.trim_end().to_owned())
    }));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}
