//! fio's results, from its JSON here and from its text by [`fio_text`](super::fio_text).
//!
//! Names as in lkp-tests `programs/fio/parse`, read and write only. `*_bw_MBps` is MiB per second
//! there and here. LKP writes fio 3's nanoseconds of submission latency under the name
//! `*_slat_mean_us`; here that name holds microseconds, and `*_slat_stddev` is in the same unit.
//! `*_clat_stddev` is in nanoseconds, like `*_clat_mean_ns`. A direction without I/O has no metrics,
//! where LKP has zeros.
//!
//! LKP runs one group-reported job per fio and reads the first. Several jobs are combined here as
//! LKP combines several instances: bandwidth, IOPS and workload are summed, all else is averaged,
//! over the jobs that have it.

use super::{Findings, fio_text};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Completion latency percentiles that LKP keeps.
const PERCENTILES: [f64; 3] = [90.0, 95.0, 99.0];

/// A job, or a group of them, with the field names of fio's JSON.
#[derive(Deserialize, Default)]
pub(super) struct Job {
    #[serde(default)]
    pub(super) jobname: String,
    /// errno of the job's end; 0 if it went well.
    #[serde(default)]
    pub(super) error: i64,
    pub(super) read: Option<Direction>,
    pub(super) write: Option<Direction>,
    /// Upper edge of a latency class to its share of all I/O, percent.
    #[serde(default)]
    pub(super) latency_us: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) latency_ms: BTreeMap<String, f64>,
}

/// The reads or the writes of a job.
#[derive(Deserialize, Default)]
pub(super) struct Direction {
    /// KiB per second.
    pub(super) bw: f64,
    pub(super) iops: f64,
    #[serde(default)]
    pub(super) total_ios: f64,
    /// Completion latency, nanoseconds.
    pub(super) clat_ns: Option<Latency>,
    /// Submission latency, nanoseconds.
    pub(super) slat_ns: Option<Latency>,
    /// fio 2: microseconds.
    clat: Option<Latency>,
    /// fio 2: microseconds.
    slat: Option<Latency>,
}

/// A latency's distribution.
#[derive(Deserialize, Default)]
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) stddev: f64,
    /// `"99.000000"` to the latency.
    #[serde(default)]
    pub(super) percentile: BTreeMap<String, f64>,
}

/// fio's JSON.
#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    _version: String,
    jobs: Vec<Job>,
}

/// Only fio's JSON has it.
const VERSION_KEY: &str = "\"fio version\"";

pub(super) fn recognises(text: &str) -> bool {
    text.contains(VERSION_KEY) || fio_text::recognises(text)
}

pub(super) fn parse(text: &str, findings: &mut Findings) {
    if text.contains(VERSION_KEY) {
        match last_document(text) {
            Ok(document) => combine(&document.jobs, findings),
            Err(error) => findings.problems.push(format!(
                "its JSON is broken ({error}); let fio run to its end, or give it --output=FILE"
            )),
        }
    } else {
        combine(&fio_text::jobs(text), findings);
    }
}

/// The last JSON document: fio may print messages around it, and with `--status-interval` earlier
/// states before it. Each starts with a brace at the start of a line.
fn last_document(text: &str) -> Result<Document, serde_json::Error> {
    let mut result = serde_json::from_str("");
    let mut end = 0;
    for (start, _) in text.match_indices('{') {
        let at_line_start = start == 0 || text[..start].ends_with(['\n', '\r']);
        if start < end || !at_line_start {
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter();
        match stream.next() {
            Some(Ok(document)) => {
                result = Ok(document);
                end = start + stream.byte_offset();
            }
            Some(Err(error)) if result.is_err() => result = Err(error),
            _ => {}
        }
    }
    result
}

fn combine(jobs: &[Job], findings: &mut Findings) {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for job in jobs {
        if job.error != 0 {
            let Job { jobname, error, .. } = job;
            findings.problems.push(format!(
                "job {jobname} failed with errno {error}; see its output"
            ));
        }
        for (name, value) in metrics(job) {
            values.entry(name).or_default().push(value);
        }
    }
    for (name, values) in values {
        let additive = name == "workload" || name.ends_with("_iops") || name.ends_with("_bw_MBps");
        let value = if additive {
            values.iter().sum()
        } else {
            super::mean(&values)
        };
        findings.put(name, value);
    }
}

/// One job under LKP's names; empty if it did no I/O.
fn metrics(job: &Job) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    let directions = [("read", &job.read), ("write", &job.write)];
    let busy = directions
        .iter()
        .filter_map(|(name, direction)| Some((name, direction.as_ref()?)));
    let mut workload = 0.0;
    for (name, direction) in busy.filter(|(_, direction)| direction.iops > 0.0) {
        metrics.insert(format!("{name}_bw_MBps"), direction.bw / 1024.0);
        metrics.insert(format!("{name}_iops"), direction.iops);
        workload += direction.total_ios;
        if let Some((latency, to_ns)) = in_ns(&direction.clat_ns, &direction.clat) {
            metrics.insert(format!("{name}_clat_mean_ns"), latency.mean * to_ns);
            metrics.insert(format!("{name}_clat_stddev"), latency.stddev * to_ns);
            for (percent, value) in &latency.percentile {
                if let Some(percent) = super::number(percent)
                    && PERCENTILES.contains(&percent)
                {
                    metrics.insert(format!("{name}_clat_{percent}%_ns"), value * to_ns);
                }
            }
        }
        // Synchronous engines submit and complete in one, and report a submission latency of zero.
        if let Some((latency, to_ns)) = in_ns(&direction.slat_ns, &direction.slat)
            && latency.mean > 0.0
        {
            metrics.insert(format!("{name}_slat_mean_us"), latency.mean * to_ns / 1e3);
            metrics.insert(format!("{name}_slat_stddev"), latency.stddev * to_ns / 1e3);
        }
    }
    if metrics.is_empty() {
        return metrics;
    }
    metrics.insert("workload".to_owned(), workload);
    for (unit, classes) in [("us", &job.latency_us), ("ms", &job.latency_ms)] {
        metrics.extend(
            classes
                .iter()
                .map(|(edge, v)| (format!("latency_{edge}{unit}%"), *v)),
        );
    }
    metrics
}

/// A latency and the factor that makes it nanoseconds.
fn in_ns<'a>(
    nanoseconds: &'a Option<Latency>,
    microseconds: &'a Option<Latency>,
) -> Option<(&'a Latency, f64)> {
    let nanoseconds = nanoseconds.as_ref().map(|latency| (latency, 1.0));
    nanoseconds.or_else(|| microseconds.as_ref().map(|latency| (latency, 1e3)))
}
